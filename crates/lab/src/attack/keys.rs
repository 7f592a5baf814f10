//! What a key can make of itself, and what open doors tell.

use serde_json::{Value, json};

use super::Attack;
use super::letter::{charge, genuine};

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    more_rights(attack)?;
    whole_addresses(attack)?;
    open_doors(attack);
    Ok(())
}

fn more_rights(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "keys that make more of themselves";
    let house = attack.house;
    let keys = &house.keys;
    for (name, key) in [("read", &keys.read), ("write", &keys.write), ("operate", &keys.operate)] {
        for scope in ["read", "operate", "admin"] {
            let order = json!({ "name": format!("{name}-made-{scope}"), "scopes": [scope] });
            let answer = house.ask(Some(key), "POST", "/v1/keys", &order);
            let line = attack.book.line(kind);
            line.asked(&answer, || format!("{name} makes {scope}"), |answer| answer.status < 300);
        }
        let answer = house.ask(Some(key), "POST", "/v1/keys/revoke", &json!({ "key": "admins" }));
        attack.book.line(kind).asked(&answer, || format!("{name} revokes"), |answer| answer.status < 300);
        let acting = [("authorization", &*format!("Bearer {key}")), ("sekisho-actor", "cli:root")];
        let answer = house.get("/v1/users", &acting);
        attack.book.line(kind).asked(&answer, || format!("{name} acts as cli"), |answer| answer.status < 300);
    }
    // Two keys of one name share what is kept by it.
    let makers = [Some(keys.operate.as_str()), keys.admin.as_deref()];
    for maker in makers.into_iter().flatten() {
        let answer =
            house.ask(Some(maker), "POST", "/v1/keys", &json!({ "name": "operate", "scopes": ["read"] }));
        let line = attack.book.line(kind);
        line.asked(&answer, || "the name of a configured key".into(), |answer| answer.status < 300);
    }
    let made = house.run(&["keys", "create", "--scopes", "read", "--name", "operate"], &[]);
    attack.book.line(kind).tried(made.good, || "the name of a configured key, by command".into());
    // Who deletes a tenant takes no key away that is stronger than their own.
    house.run(&["tenants", "create", "c"], &[]).done()?;
    let strong = house.make_key(&["--scopes", "operate", "--tenant", "c"])?;
    let answer = house.ask(Some(&keys.write), "DELETE", "/v1/tenants/c", &Value::Null);
    attack.book.line(kind).asked(&answer, || "write deletes a tenant".into(), |_| false);
    let left = house.ask(Some(&strong), "GET", "/v1/payments", &Value::Null);
    let line = attack.book.line(kind);
    line.asked(&left, || "write revokes operate".into(), |answer| answer.status == 401);
    Ok(())
}

/// What is masked everywhere is masked in bodies, too.
fn whole_addresses(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "addresses that read may not see";
    let house = attack.house;
    let address = "hanako.canary@example.jp";
    let event = house.send(&charge("address", &json!({}), address)).map_err(|error| error.to_string())?;
    let odd = genuine("stripe", "evt_no", "no", format!("no event of {address}"));
    let odd = house.send(&odd).map_err(|error| error.to_string())?;
    house.rest()?;
    let mut paths = vec![
        "/v1/events?limit=1000".to_owned(),
        "/v1/notices?limit=1000".to_owned(),
        "/v1/payments?limit=1000".to_owned(),
        "/v1/dead-letters?limit=1000".to_owned(),
        "/v1/suppressions".to_owned(),
        "/v1/notices?addresses=full".to_owned(),
    ];
    for answer in [&event, &odd] {
        let id = answer.header("sekisho-message-id").unwrap_or_default();
        paths.push(format!("/v1/events/{id}"));
    }
    let letters = house.see("/v1/dead-letters?limit=1000")?;
    for letter in letters["items"].as_array().into_iter().flatten() {
        paths.push(format!("/v1/dead-letters/{}", letter["id"].as_str().unwrap_or_default()));
        paths.push(format!("/v1/messages/{}", letter["id"].as_str().unwrap_or_default()));
    }
    for path in paths {
        let answer = house.ask(Some(&house.keys.read), "GET", &path, &Value::Null);
        let line = attack.book.line(kind);
        line.asked(
            &answer,
            || path.clone(),
            |answer| {
                let text = answer.text();
                text.contains(address) || text.contains("aGFuYWtvLmNhbmFyeUB")
            },
        );
    }
    Ok(())
}

/// For everybody: what is at the doors that ask for no key.
fn open_doors(attack: &mut Attack<'_>) {
    let kind = "what open doors tell";
    for from in ["203.0.113.9", "2001:db8::9", "8.8.8.8"] {
        let answer = attack.house.get("/metrics", &[("x-forwarded-for", from)]);
        let line = attack.book.line(kind);
        line.asked(&answer, || format!("/metrics from {from}"), |answer| answer.status < 300);
    }
    for path in ["/health/ready", "/health/live", "/", "/v1", "/webhooks", "/console/login", "/v1/none"] {
        let answer = attack.house.get(path, &[("x-forwarded-for", "203.0.113.9")]);
        let line = attack.book.line(kind);
        line.asked(
            &answer,
            || path.into(),
            |answer| {
                let text = answer.text().to_lowercase();
                ["sqlite", "postgres", "panicked", ".rs:", "secret"].iter().any(|word| text.contains(word))
            },
        );
    }
}
