//! Every endpoint, asked for random things in random shapes: no answer may be 500 or above.

use serde_json::{Value, json};

use super::Attack;
use super::rights::endpoints;
use crate::rng::Rng;

const KIND: &str = "API fuzz";

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    let document = attack.house.see("/v1/openapi.json")?;
    let names = names(&document);
    // What would take away what the others need is left alone.
    let spared = ["POST /v1/keys/revoke", "DELETE /v1/tenants/{id}"];
    let all: Vec<_> = endpoints(&document).into_iter().filter(|asks| !spared.contains(&&**asks)).collect();
    for n in 0..attack.depth.of(1_500, 60_000) {
        let asks = &all[n % all.len()];
        let (method, path) = asks.split_once(' ').unwrap_or_default();
        let path = filled(path, &mut attack.rng) + &query(&document, method, path, &mut attack.rng);
        let order = if method == "POST" { order(&names, &mut attack.rng, 3) } else { Value::Null };
        let key = attack.house.keys.admin.as_deref().unwrap_or(&attack.house.keys.operate);
        let answer = attack.house.ask(Some(key), method, &path, &order);
        attack.book.line(KIND).asked(&answer, || format!("{method} {path} {order}"), |_| false);
    }
    Ok(())
}

/// Every field that any order has.
fn names(document: &Value) -> Vec<String> {
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    let fields = schemas.flat_map(|(_, schema)| schema["properties"].as_object().into_iter().flatten());
    let mut names: Vec<_> = fields.map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

fn filled(path: &str, rng: &mut Rng) -> String {
    let part = |part: &str, rng: &mut Rng| if part.starts_with('{') { odd(rng) } else { part.to_owned() };
    path.split('/').map(|one| part(one, rng)).collect::<Vec<_>>().join("/")
}

fn query(document: &Value, method: &str, path: &str, rng: &mut Rng) -> String {
    let operation = &document["paths"][path][method.to_lowercase()];
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let names: Vec<_> =
        parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str()).collect();
    let mut out = String::new();
    for n in 0..rng.below(3) {
        let Some(name) = rng.pick(&names) else { break };
        out += &format!("{}{name}={}", if n == 0 { '?' } else { '&' }, odd(rng));
    }
    out
}

/// Something in a path or a query, percent-encoded.
fn odd(rng: &mut Rng) -> String {
    const ODD: [&str; 18] = [
        "",
        "0",
        "-1",
        "true",
        "null",
        "a",
        "none",
        "2026-02-30",
        "2026-02-02",
        "msg_0000000000000",
        "evt_zzzzzzzzzzzzz",
        "%00",
        "%ff",
        "%F0%9F%92%A9",
        "%e2%80%ae",
        "%27%3B--",
        "9223372036854775807",
        "1e99",
    ];
    let mut text = (*rng.pick(&ODD).expect("there are some")).to_owned();
    if rng.chance(0.1) {
        text += &"x".repeat(rng.below(3_000) as usize);
    }
    text
}

fn order(names: &[String], rng: &mut Rng, depth: u32) -> Value {
    let fields = (0..rng.below(7)).filter_map(|_| Some((rng.pick(names)?.clone(), value(names, rng, depth))));
    Value::Object(fields.collect())
}

fn value(names: &[String], rng: &mut Rng, depth: u32) -> Value {
    match rng.below(14) {
        0 => Value::Null,
        1 => true.into(),
        2 => json!(rng.next_u64() as i64),
        3 => json!(1e300),
        4 => json!(0),
        5 => "jpy".into(),
        6 => "a\u{0}b".into(),
        7 => "関所\u{202e}".into(),
        8 => "x".repeat(rng.below(20_000) as usize).into(),
        9 => "2026-02-02T02:40:00Z".into(),
        10 => "taro@example.jp".into(),
        11 if depth > 0 => (0..rng.below(4)).map(|_| value(names, rng, depth - 1)).collect(),
        12 if depth > 0 => order(names, rng, depth - 1),
        _ => (*rng.pick(&["read", "a", "b", "none", "customer", "tenant"]).expect("there are some")).into(),
    }
}
