//! Bodies that are rightly signed and mean no money, whatever they look like.

use serde_json::{Value, json};

use super::Attack;
use super::letter::{charge, genuine, word};

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "odd bodies, rightly signed";
    let house = attack.house;
    let charge = |n: usize| {
        let letter =
            charge(&format!("odd_{n}"), &json!({ "order_id": format!("odd-{n}") }), "odd@example.jp");
        String::from_utf8_lossy(&letter.body).into_owned()
    };
    let amount = |n: usize, new: &str| {
        charge(n)
            .replace("\"amount\":5000", &format!("\"amount\":{new}"))
            .replace("\"amount_captured\":5000", &format!("\"amount_captured\":{new}"))
    };
    let deep = |n: usize, open: &str, close: &str, times: usize| {
        charge(n).replace(
            "\"status\":\"succeeded\"",
            &format!("\"x\":{}1{}", open.repeat(times), close.repeat(times)),
        )
    };
    let amounts = [
        "-5000",
        "0",
        "5000.0",
        "5e3",
        "\"5000\"",
        "null",
        "true",
        "[]",
        "{}",
        "1e999999999",
        "5000.5",
        "99999999999999999999999999",
        "-0",
        "9223372036854775808",
        "\"５０００\"",
    ];
    let mut bodies: Vec<String> = amounts.iter().enumerate().map(|(n, new)| amount(n, new)).collect();
    let start = bodies.len();
    bodies.extend([
        charge(start).replace("\"amount\":5000", "\"amount\":1,\"amount\":5000"),
        charge(start + 1).replace("\"paid\":true", "\"paid\":false,\"paid\":\"true\""),
        charge(start + 2).replace("\"jpy\"", "\"xxxx\""),
        charge(start + 3).replace("\"jpy\"", "\"JP\\u0000Y\""),
        deep(start + 4, "[", "]", 200_000),
        deep(start + 5, "{\"a\":", "}", 100_000),
        charge(start + 6).replace("\"livemode\":true", "\"livemode\":\"true\""),
        charge(start + 7).replace("odd@example.jp", "\\ud800"),
        "[]".into(),
        "null".into(),
        "\"evt\"".into(),
        "{".into(),
        String::new(),
        "\u{0}".into(),
        "{\"id\":\"evt_\\u202e\",\"type\":\"x\"}".into(),
        format!("{{\"id\":\"{}\",\"type\":\"x\"}}", "e".repeat(5_000)),
        format!("{{\"id\":\"evt_n\",\"type\":\"x\",\"n\":{}}}", "9".repeat(5_000)),
        "{\"id\":\"evt_a\",\"id\":\"evt_b\",\"type\":\"x\"}".into(),
        "{\"i\\u0064\":\"evt_c\",\"type\":\"x\"}".into(),
    ]);
    let random = attack.depth.of(100, 4_000);
    for n in 0..random {
        let mut body = charge(1_000 + n)
            .replace("\"paid\":true", "\"paid\":false")
            .replace("succeeded", "pending")
            .into_bytes();
        for _ in 0..attack.rng.between(1, 4) {
            let at = attack.rng.below(body.len() as u64) as usize;
            body[at] = attack.rng.next_u64() as u8;
        }
        bodies.push(String::from_utf8_lossy(&body).into_owned());
    }
    for body in &bodies {
        let answer = house.send(&genuine("stripe", "evt", "odd", body));
        let what = || body.chars().take(120).collect();
        attack.book.line(kind).asked(&answer, what, |_| false);
    }
    for body in
        [&b"\xff\xfe{\0}\0"[..], b"\xef\xbb\xbf{}", b"\x80\x81", b"{\"id\":\"\xed\xa0\x80\",\"type\":\"x\"}"]
    {
        let letter = genuine("github", &word(&format!("{body:?}")), "push", body);
        attack.book.line(kind).asked(&house.send(&letter), || format!("{body:?}"), |_| false);
    }
    house.rest()?;
    for status in ["paid", "partially_paid"] {
        let page = house.see(&format!("/v1/payments?status={status}&limit=1000"))?;
        for payment in page["items"].as_array().into_iter().flatten() {
            let odd = payment["reference"].as_str().is_some_and(|reference| reference.starts_with("odd-"));
            let received = payment["amount_received"].as_i64().unwrap_or_default();
            let line = attack.book.line(kind);
            line.tried(odd && received != 5000 || received < 0, || format!("money was made: {payment}"));
        }
    }
    let odd = json!({ "lists still read": house.see("/v1/events?limit=1000")?["items"].is_array() });
    attack
        .book
        .line(kind)
        .tried(odd["lists still read"] != Value::Bool(true), || "events can't be listed".into());
    Ok(())
}
