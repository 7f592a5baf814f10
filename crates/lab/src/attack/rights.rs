//! Who may what: every endpoint of the OpenAPI document, asked by everybody. What each must answer is written here, apart
//! from the product's own table, so that a slip there is found.

use serde_json::{Value, json};

use super::Attack;

/// What a key must allow at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Nobody,
    Read,
    Write,
    Operate,
    Admin,
    /// No key at all: only commands on the machine itself.
    Machine,
}

/// Whether a tenant's key may ask, for what is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    House,
    Tenants,
}

struct Right {
    asks: &'static str,
    needs: Scope,
    whose: Whose,
}

const fn house(needs: Scope, asks: &'static str) -> Right {
    Right { asks, needs, whose: Whose::House }
}

const fn tenants(needs: Scope, asks: &'static str) -> Right {
    Right { asks, needs, whose: Whose::Tenants }
}

use Scope::{Admin, Machine, Nobody, Operate, Read, Write};

const RIGHTS: [Right; 103] = [
    house(Nobody, "GET /v1/openapi.json"),
    tenants(Read, "GET /v1/audit"),
    house(Read, "GET /v1/audit/export"),
    house(Read, "GET /v1/audit/verify"),
    tenants(Read, "GET /v1/balances/{customer}"),
    tenants(Read, "GET /v1/billing"),
    tenants(Read, "GET /v1/billing/{tenant}"),
    house(Operate, "DELETE /v1/billing/{tenant}"),
    house(Read, "GET /v1/books"),
    house(Read, "GET /v1/books/check"),
    tenants(Read, "GET /v1/cases"),
    tenants(Read, "GET /v1/cases/{id}"),
    tenants(Operate, "POST /v1/cases/{id}/acknowledge"),
    tenants(Operate, "POST /v1/cases/{id}/resolve"),
    tenants(Read, "GET /v1/compensations"),
    house(Read, "GET /v1/compensation_rules"),
    tenants(Read, "GET /v1/compensation_rules/check/{id}"),
    house(Read, "GET /v1/alerts"),
    house(Operate, "POST /v1/alerts/{id}/silence"),
    house(Operate, "POST /v1/alerts/{id}/test"),
    house(Read, "GET /v1/targets"),
    house(Read, "GET /v1/channels"),
    house(Operate, "POST /v1/channels/{name}/resume"),
    tenants(Read, "GET /v1/customers"),
    tenants(Write, "POST /v1/customers"),
    tenants(Read, "GET /v1/customers/{id}"),
    tenants(Write, "DELETE /v1/customers/{id}"),
    house(Read, "GET /v1/dead-letters"),
    house(Read, "GET /v1/dead-letters/groups"),
    house(Read, "GET /v1/dead-letters/{id}"),
    house(Operate, "POST /v1/dead-letters/retry"),
    house(Operate, "POST /v1/dead-letters/discard"),
    house(Read, "GET /v1/deliveries"),
    house(Operate, "POST /v1/deliveries/cancel"),
    house(Read, "GET /v1/events"),
    house(Read, "GET /v1/events/{id}"),
    house(Read, "GET /v1/events/{id}/trace"),
    house(Operate, "POST /v1/events/replay"),
    house(Read, "GET /v1/counts"),
    tenants(Write, "POST /v1/import"),
    house(Admin, "GET /v1/keys"),
    house(Admin, "POST /v1/keys"),
    house(Admin, "POST /v1/keys/revoke"),
    house(Read, "GET /v1/messages/{id}"),
    tenants(Read, "GET /v1/notices"),
    tenants(Read, "GET /v1/notices/{id}"),
    tenants(Operate, "POST /v1/notices/{id}/resend"),
    tenants(Read, "GET /v1/fulfilments"),
    tenants(Write, "POST /v1/fulfilments"),
    tenants(Read, "GET /v1/fulfilments/{id}"),
    tenants(Write, "POST /v1/fulfilments/{id}/result"),
    tenants(Operate, "POST /v1/fulfilments/{id}/retry"),
    tenants(Read, "GET /v1/inquiries"),
    tenants(Operate, "POST /v1/inquiries/{id}/close"),
    tenants(Write, "GET /v1/order_links/{id}"),
    tenants(Operate, "POST /v1/order_links/{id}/revoke"),
    tenants(Read, "GET /v1/payments"),
    tenants(Write, "POST /v1/payments"),
    tenants(Read, "GET /v1/payments/{id}"),
    tenants(Read, "GET /v1/payments/{id}/history"),
    house(Read, "GET /v1/payments/{id}/proof"),
    tenants(Operate, "POST /v1/payments/{id}/refunds"),
    tenants(Operate, "POST /v1/payments/{id}/release"),
    house(Read, "GET /v1/reconciliations"),
    house(Operate, "POST /v1/reconciliations"),
    house(Read, "GET /v1/rejections"),
    tenants(Operate, "POST /v1/reminders"),
    tenants(Read, "GET /v1/reminders/{date}"),
    tenants(Read, "GET /v1/reservations"),
    tenants(Write, "POST /v1/reservations"),
    tenants(Read, "GET /v1/reservations/{id}"),
    tenants(Write, "POST /v1/reservations/{id}/cancel"),
    tenants(Write, "POST /v1/reservations/{id}/checkout"),
    tenants(Operate, "POST /v1/reservations/{id}/confirm"),
    tenants(Write, "POST /v1/reservations/{id}/extend"),
    house(Read, "GET /v1/routes"),
    house(Operate, "POST /v1/routes/{name}/reset"),
    house(Read, "GET /v1/schedules"),
    tenants(Read, "GET /v1/slots"),
    tenants(Write, "POST /v1/slots"),
    tenants(Read, "GET /v1/slots/{id}"),
    house(Read, "GET /v1/sources"),
    tenants(Read, "GET /v1/staff"),
    tenants(Write, "POST /v1/staff"),
    tenants(Read, "GET /v1/staff/{id}"),
    tenants(Write, "DELETE /v1/staff/{id}"),
    tenants(Read, "GET /v1/subjects"),
    tenants(Write, "POST /v1/subjects"),
    tenants(Read, "GET /v1/subjects/{id}"),
    tenants(Write, "DELETE /v1/subjects/{id}"),
    house(Read, "GET /v1/suppressions"),
    house(Operate, "POST /v1/suppressions"),
    house(Operate, "POST /v1/suppressions/release"),
    house(Read, "GET /v1/tenants"),
    house(Write, "POST /v1/tenants"),
    house(Read, "GET /v1/tenants/{id}"),
    house(Write, "DELETE /v1/tenants/{id}"),
    house(Machine, "GET /v1/users"),
    house(Machine, "POST /v1/users/invite"),
    house(Machine, "POST /v1/users/{name}/rank"),
    house(Machine, "POST /v1/users/{name}/disable"),
    house(Machine, "POST /v1/users/{name}/enable"),
    house(Machine, "POST /v1/users/{name}/end-sessions"),
];

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "rights: endpoints × callers";
    let document = attack.house.see("/v1/openapi.json")?;
    let keys = &attack.house.keys;
    attack.book.line(kind).tried(keys.admin.is_none(), || "there is no scope admin: who makes keys?".into());
    let mut callers: Vec<(&str, Scope, bool, Option<&str>)> = vec![
        ("nobody", Nobody, false, None),
        ("a key nobody made", Nobody, false, Some("sk_0123456789abcdef0123456789abcdef0123456789abcdef")),
        ("read", Read, false, Some(&keys.read)),
        ("write", Write, false, Some(&keys.write)),
        ("operate", Operate, false, Some(&keys.operate)),
        ("a tenant's operate", Operate, true, Some(&keys.tenant_b)),
    ];
    callers.extend(keys.admin.as_deref().map(|key| ("admin", Admin, false, Some(key))));
    for asks in endpoints(&document) {
        let Some(right) = RIGHTS.iter().find(|right| right.asks == asks) else {
            attack.book.line(kind).tried(true, || format!("{asks} is new: say in the lab who may use it"));
            continue;
        };
        for (name, scope, is_tenants, key) in &callers {
            let (method, path) = asks.split_once(' ').unwrap_or_default();
            let answer = attack.house.ask(*key, method, &example(path), &body(&asks));
            let is_known = *scope > Nobody;
            let may = right.needs == Nobody
                || (*scope >= right.needs && (!is_tenants || right.whose == Whose::Tenants));
            let line = attack.book.line(kind);
            line.asked(
                &answer,
                || format!("{asks} by {name}"),
                |answer| match (may, is_known) {
                    (true, _) => matches!(answer.status, 401 | 403),
                    (false, true) => answer.status != 403,
                    // Who guesses keys may be told to wait.
                    (false, false) => !matches!(answer.status, 401 | 429),
                },
            );
        }
    }
    Ok(())
}

pub fn endpoints(document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let each = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flat_map(serde_json::Map::keys);
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    each.collect()
}

/// A path to something that is not there.
pub fn example(path: &str) -> String {
    let part = |part: &str| match part {
        "{date}" => "2026-02-02".to_owned(),
        "{id}" => "none".to_owned(),
        part if part.starts_with('{') => "none".to_owned(),
        part => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// An order that changes nothing.
fn body(asks: &str) -> Value {
    match asks {
        "POST /v1/keys/revoke" => json!({ "key": "none" }),
        "POST /v1/dead-letters/retry" | "POST /v1/dead-letters/discard" | "POST /v1/events/replay" => {
            json!({ "ids": ["none"], "dry_run": true })
        }
        _ if asks.starts_with("POST") => json!({ "no such field": 1 }),
        _ => Value::Null,
    }
}
