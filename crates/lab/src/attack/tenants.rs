//! A tenant's key, and all that is another tenant's.

use serde_json::{Value, json};

use super::Attack;
use super::letter::charge;
use super::rights::endpoints;

/// Stands in everything that is tenant A's.
const CANARY: &str = "canary-of-a";
const KIND: &str = "another tenant's things";

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    let house = attack.house;
    let (a, b) = (&house.keys.tenant_a, &house.keys.tenant_b);
    let make = |key: &str, path: &str, order: &Value| -> Result<Value, String> {
        let made = house.ask(Some(key), "POST", path, order).map_err(|error| error.to_string())?;
        if made.status != 201 {
            return Err(format!("{path}: {} {}", made.status, made.text()));
        }
        serde_json::from_slice(&made.body).map_err(|error| error.to_string())
    };
    let own = |list: &str| {
        json!({ "id": format!("{CANARY}-{list}"), "name": CANARY, "family_name": CANARY,
        "email": format!("{CANARY}@example.jp"), "renewal_due_on": "2026-12-01" })
    };
    let fields = |list: &str, names: &[&str]| {
        let mut order = own(list);
        if let Some(order) = order.as_object_mut() {
            order.retain(|name, _| names.contains(&&**name));
        }
        order
    };
    make(a, "/v1/customers", &fields("customers", &["id", "name", "email"]))?;
    make(a, "/v1/staff", &fields("staff", &["id", "family_name", "email"]))?;
    make(a, "/v1/subjects", &fields("subjects", &["id", "name", "renewal_due_on"]))?;
    let order = json!({ "reference": format!("{CANARY}-order"), "amount": 5000, "currency": "jpy",
        "customer": format!("{CANARY}-customers") });
    let payment = make(a, "/v1/payments", &order)?;
    let metadata = json!({ "tenant_id": "a", "order_id": format!("{CANARY}-order"), "customer_id": format!("{CANARY}-customers") });
    let paid = house.send(&charge("of_a", &metadata, &format!("{CANARY}@example.jp")));
    let paid = paid.map_err(|error| error.to_string())?;
    house.rest()?;
    let notices = house.see("/v1/notices?tenant=a&limit=10")?;
    let notice = notices["items"][0]["id"].as_str().unwrap_or("none").to_owned();
    let payment = payment["id"].as_str().unwrap_or_default().to_owned();
    let event = paid.header("sekisho-message-id").unwrap_or_default().to_owned();
    let before = things(attack)?;

    let ids = [
        &*payment,
        &*notice,
        &*event,
        "a",
        "canary-of-a-customers",
        "canary-of-a-staff",
        "canary-of-a-subjects",
    ];
    let document = house.see("/v1/openapi.json")?;
    for asks in endpoints(&document) {
        let (method, path) = asks.split_once(' ').unwrap_or_default();
        if path == "/v1/openapi.json" {
            continue;
        }
        for id in ids {
            for query in ["", "?tenant=a", "?tenant=", "?livemode=true&tenant=a"] {
                let filled = fill(path, id);
                if filled == path && id != ids[0] {
                    continue;
                }
                let order = if method == "POST" { theft(path, id) } else { Value::Null };
                let answer = house.ask(Some(b), method, &format!("{filled}{query}"), &order);
                let line = attack.book.line(KIND);
                line.asked(
                    &answer,
                    || format!("{method} {filled}{query}"),
                    |answer| shows(answer.status, &answer.text(), &filled),
                );
            }
        }
    }
    injected(attack, b);
    house.rest()?;
    let after = things(attack)?;
    attack.book.line(KIND).tried(before != after, || format!("A's things changed: {before} → {after}"));
    redirected(attack)
}

/// Whatever was asked for may be repeated; anything else of A's is a leak.
fn shows(status: u16, text: &str, asked: &str) -> bool {
    let id = asked.rsplit('/').next().unwrap_or_default();
    status < 300 && text.replace(id, "").replace(&format!("{CANARY}-customers"), "").contains(CANARY)
}

fn fill(path: &str, id: &str) -> String {
    let part = |part: &str| match part {
        "{date}" => "2026-02-02".to_owned(),
        part if part.starts_with('{') => id.to_owned(),
        part => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Orders that speak of A's things in B's name.
fn theft(path: &str, id: &str) -> Value {
    match path {
        "/v1/payments" => {
            json!({ "reference": format!("{CANARY}-order"), "amount": 1, "currency": "jpy", "tenant": "a" })
        }
        "/v1/customers" | "/v1/staff" | "/v1/subjects" => {
            json!({ "id": format!("{CANARY}-{}", path.rsplit('/').next().unwrap_or_default()), "name": "stolen", "tenant": "a" })
        }
        "/v1/import" => {
            json!({ "kind": "customer", "rows": [{ "id": format!("{CANARY}-customers"), "name": "stolen", "tenant": "a" }] })
        }
        "/v1/reminders" => json!({ "tenant": "a", "date": "2026-02-02" }),
        "/v1/notices/{id}/resend" => json!({ "to": "mallory@evil.example" }),
        _ => {
            json!({ "ids": [id], "key": "operate", "name": "a", "tenant": "a", "address": format!("{CANARY}@example.jp"), "reason": "x" })
        }
    }
}

/// All that A has, as the house sees it.
fn things(attack: &Attack<'_>) -> Result<Value, String> {
    let mut seen = Vec::new();
    for list in ["customers", "staff", "subjects", "payments", "notices"] {
        let mut page = attack.house.see(&format!("/v1/{list}?tenant=a&limit=1000"))?;
        seen.push(page["items"].take());
    }
    Ok(seen.into())
}

/// Parameters that mean something to a database, a shell, a template or a path.
fn injected(attack: &mut Attack<'_>, key: &str) {
    const ODD: [&str; 16] = [
        "' OR '1'='1",
        "a' OR 1=1--",
        "a'; DROP TABLE state;--",
        "a') UNION SELECT facts FROM state--",
        "\" OR \"\"=\"",
        "%25",
        "_",
        "*",
        "$(id)",
        "{{7*7}}",
        "../../etc/passwd",
        "\\",
        "%E2%80%AE",
        "a%27%20OR%201=1",
        "9223372036854775808",
        "-1",
    ];
    let lists = ["customers", "staff", "subjects", "payments", "notices", "billing", "audit"];
    let names =
        ["tenant", "before", "customer", "reference", "status", "limit", "target", "action", "q", "livemode"];
    for list in lists {
        for name in names {
            let times = attack.depth.of(3, ODD.len());
            for _ in 0..times {
                let odd = attack.rng.pick(&ODD).expect("there are some");
                let odd: String = odd
                    .bytes()
                    .map(|byte| match byte {
                        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'%' => char::from(byte).to_string(),
                        byte => format!("%{byte:02X}"),
                    })
                    .collect();
                let path = format!("/v1/{list}?{name}={odd}");
                let answer = attack.house.ask(Some(key), "GET", &path, &Value::Null);
                let line = attack.book.line("injected parameters");
                line.asked(&answer, || path.clone(), |answer| answer.text().contains(CANARY));
            }
        }
    }
}

/// B enters A's customer under its own address: A's mail must not go there.
fn redirected(attack: &mut Attack<'_>) -> Result<(), String> {
    let house = attack.house;
    let mallory = json!({ "id": format!("{CANARY}-till"), "email": "mallory@evil.example" });
    let entered = house.ask(Some(&house.keys.tenant_b), "POST", "/v1/customers", &mallory);
    attack.book.line("another tenant's mail and money").asked(&entered, || "enters the id".into(), |_| false);
    let metadata =
        json!({ "tenant_id": "a", "customer_id": format!("{CANARY}-till"), "order_id": "SECRET-ORDER-OF-A" });
    house.send(&charge("till", &metadata, "real@example.jp")).map_err(|error| error.to_string())?;
    // An order that B names first, and a payment of nobody's: B must not have it.
    let first = json!({ "reference": "ORD-V", "amount": 5000, "currency": "jpy" });
    let named = house.ask(Some(&house.keys.tenant_b), "POST", "/v1/payments", &first);
    attack.book.line("another tenant's mail and money").asked(&named, || "names the order".into(), |_| false);
    let whose = json!({ "tenant_id": "a", "order_id": "ORD-V" });
    house.send(&charge("ord_v", &whose, "real@example.jp")).map_err(|error| error.to_string())?;
    house
        .send(&charge("ord_v2", &json!({ "order_id": "ORD-V" }), "real@example.jp"))
        .map_err(|error| error.to_string())?;
    house.rest()?;
    let told = |name: &str| house.smtp.accepted().iter().any(|mail| mail.to.concat().contains(name));
    house.wait("A's customer is told", || Ok(told("real@") || told("mallory@")))?;
    let stolen = told("mallory@");
    let line = attack.book.line("another tenant's mail and money");
    line.tried(stolen, || "A's mail went to an address of B's".into());
    let seen = house.ask(Some(&house.keys.tenant_b), "GET", "/v1/payments?limit=1000", &Value::Null);
    let line = attack.book.line("another tenant's mail and money");
    line.asked(
        &seen,
        || "B's payments".into(),
        |answer| {
            let text = answer.text();
            text.contains("pi_ord_v") || text.contains("SECRET-ORDER-OF-A")
        },
    );
    Ok(())
}
