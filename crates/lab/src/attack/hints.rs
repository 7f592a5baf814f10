//! What proves nothing, or is proven by somebody else, must not reach the app as a provider's word.

use serde_json::{Value, json};

use super::Attack;
use super::letter::{Letter, charge, genuine};

/// Stands in everything that must not be believed.
const MARK: &str = "laundered";

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    let house = attack.house;
    laundered(attack)?;
    pre_empted(attack);
    let mails = house.smtp.accepted().len();
    // A stranger's event that is called as our announcements are.
    let body =
        json!({ "id": MARK, "type": "payment.paid", "data": { "amount": 1 }, "email": "m@evil.example" });
    let letter = genuine("github", "believed", "payment.paid", body.to_string());
    let letter = letter.with("x-github-event", "payment.paid");
    let answer = house.send(&letter);
    attack.book.line("types believed across sources").asked(&answer, || "payment.paid".into(), |_| false);
    house.rest()?;
    let told = house.smtp.accepted().len() > mails;
    attack
        .book
        .line("types believed across sources")
        .tried(told, || "somebody was mailed payment.paid of GitHub".into());
    let delivered = house.app.received().iter().any(|one| one.path == "/paid" && has(&one.body, MARK));
    let line = attack.book.line("types believed across sources");
    line.tried(delivered, || "payment.paid of GitHub was delivered as ours".into());
    headers(attack)
}

fn has(bytes: &[u8], word: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(word)
}

/// Bodies of Stripe's shape, by doors where nothing or something else is proven.
fn laundered(attack: &mut Attack<'_>) -> Result<(), String> {
    let house = attack.house;
    let kind = "hints laundered";
    let stripe =
        format!(r#"{{"x":"&id=tr_1&y","id":"evt_{MARK}","type":"payment_intent.succeeded","data":{{}}}}"#);
    let json = [("content-type".to_owned(), "application/json".to_owned())];
    let mollie = Letter { headers: json.to_vec(), ..Letter::post("/webhooks/mollie_classic", &stripe) };
    let line_pay = Letter {
        method: "GET".into(),
        headers: json.to_vec(),
        ..Letter::post(&format!("/webhooks/line_pay?transactionId=7&orderId={MARK}"), &stripe)
    };
    let github = genuine("github", "laundered-1", "payment_intent.succeeded", &stripe);
    let github = github.with("x-github-event", "payment_intent.succeeded");
    let empty = Letter { body: Vec::new(), path: line_pay.path.replace(MARK, "plain"), ..line_pay.clone() };
    for letter in [&mollie, &empty, &github] {
        let answer = house.send(letter);
        attack.book.line(kind).asked(&answer, || letter.path.clone(), |_| false);
    }
    let answer = house.send(&line_pay);
    let line = attack.book.line(kind);
    line.asked(&answer, || "a GET of LINE Pay with a body".into(), |answer| answer.status < 300);
    // A genuine one, to see that the door is open at all.
    let good =
        house.send(&charge("honest", &json!({}), "taro@example.jp")).map_err(|error| error.to_string())?;
    if good.status != 204 {
        return Err(format!("an honest event was answered {}: {}", good.status, good.text()));
    }
    house.rest()?;
    let received = house.app.received();
    let honest = received.iter().find(|one| one.path == "/stripe" && has(&one.body, "evt_honest"));
    let honest = honest.ok_or("the honest event was not delivered")?;
    let header = |headers: &[(String, String)], name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let line = attack.book.line(kind);
    for one in received.iter().filter(|one| one.path == "/stripe") {
        let source = header(&one.headers, "sekisho-source").unwrap_or_default();
        line.tried(!["stripe", "sekisho"].contains(&&*source), || {
            format!("{source} was signed as Stripe's: {}", String::from_utf8_lossy(&one.body))
        });
    }
    for one in received.iter().filter(|one| one.path == "/named") {
        line.tried(has(&one.body, "payment_intent"), || {
            format!("the body of a hint was kept: {}", String::from_utf8_lossy(&one.body))
        });
        let trust = header(&one.headers, "sekisho-trust");
        line.tried(trust.as_deref() != Some("hint"), || format!("a hint says Sekisho-Trust: {trust:?}"));
    }
    let trust = header(&honest.headers, "sekisho-trust");
    line.tried(trust.as_deref() != Some("signed"), || {
        format!("a signed event says Sekisho-Trust: {trust:?}")
    });
    Ok(())
}

/// A callback that was sent before the buyer approved must not take the place of the real one.
fn pre_empted(attack: &mut Attack<'_>) {
    let line_pay = Letter {
        method: "GET".into(),
        ..Letter::post("/webhooks/line_pay?transactionId=2026020100000000001&orderId=pre-empted", "")
    };
    let mollie = Letter::post("/webhooks/mollie_classic", "id=tr_preempted")
        .with("content-type", "application/x-www-form-urlencoded");
    for letter in [line_pay, mollie] {
        let first = attack.house.send(&letter);
        let line = attack.book.line("hints pre-empted");
        line.asked(&first, || letter.path.clone(), |_| false);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let real = attack.house.send(&letter);
        let line = attack.book.line("hints pre-empted");
        line.asked(
            &real,
            || letter.path.clone(),
            |answer| answer.status >= 300 || answer.header("sekisho-outcome") == Some("duplicate"),
        );
    }
}

/// What a stranger writes about where a request came from, and as whom, does not reach the app from our address.
fn headers(attack: &mut Attack<'_>) -> Result<(), String> {
    const ODD: [&str; 12] = [
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "forwarded",
        "x-real-ip",
        "remote-user",
        "x-remote-user",
        "x-http-method-override",
        "x-original-url",
        "x-rewrite-url",
        "sekisho-trust",
        "sekisho-source",
    ];
    let mut letter = genuine("github", "headers-1", "push", json!({ "x": "headers" }).to_string());
    for name in ODD {
        letter = letter.and(name, "203.0.113.66");
    }
    let answer = attack.house.send(&letter);
    attack.book.line("strangers' headers handed on").asked(&answer, || "GitHub".into(), |_| false);
    attack.house.rest()?;
    let received = attack.house.app.received();
    let mut delivered = received.iter().filter(|one| one.path == "/github" && has(&one.body, "headers"));
    let one = delivered.next().ok_or("the event with odd headers was not delivered")?;
    for name in ODD {
        let came = one.headers.iter().any(|(known, value)| known == name && value == "203.0.113.66");
        attack.book.line("strangers' headers handed on").tried(came, || name.into());
    }
    let _: Value = serde_json::from_slice(&one.body).map_err(|error| error.to_string())?;
    Ok(())
}
