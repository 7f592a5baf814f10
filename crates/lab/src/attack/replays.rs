//! One genuine request, and what whoever saw it makes of it.

use serde_json::json;

use super::Attack;
use super::letter::{self, genuine, now};
use crate::http::Response;
use sekisho_core::Time;

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    unsigned_ids(attack)?;
    paypal(attack)
}

fn is_duplicate(answer: &Response) -> bool {
    answer.header("sekisho-outcome") == Some("duplicate")
}

/// Whose ids stand in a header that nothing proves.
const OPEN_IDS: [&str; 5] = ["github", "gitlab_token", "razorpay", "shopify", "qstash"];

/// An old body under ids that are yet to come must not swallow the genuine events.
fn unsigned_ids(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "dedupe by an unsigned id";
    let body = |order: &str| json!({ "event": "order.paid", "order": order }).to_string();
    for name in OPEN_IDS {
        for id in ["7001", "7002", "7003"] {
            let mut replayed = genuine(name, "7000", "push", body("old"));
            for (_, value) in replayed.headers.iter_mut().filter(|(_, value)| value == "7000") {
                id.clone_into(value);
            }
            let answer = attack.house.send(&replayed);
            attack.book.line(kind).asked(&answer, || format!("{name} {id}"), |_| false);
            let taken = answer.is_ok_and(|answer| answer.header("sekisho-event-id") == Some(id));
            if !taken {
                return Err(format!("{name}: a request that was seen could not be sent again as {id}"));
            }
            let real = attack.house.send(&genuine(name, id, "push", body("new")));
            let line = attack.book.line(kind);
            line.asked(
                &real,
                || format!("{name} {id}"),
                |answer| answer.status >= 300 || is_duplicate(answer),
            );
        }
    }
    Ok(())
}

/// Who can write another body for a transmission's checksum has its signature. Here the other body is simply signed as well:
/// what is checked behind the signature is the same.
fn paypal(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "PayPal transmissions replayed";
    let body = |event: &str, value: &str| {
        json!({
            "id": event, "event_type": "PAYMENT.CAPTURE.COMPLETED", "resource_type": "capture",
            "create_time": now().to_string(), "resource_version": "2.0",
            "resource": { "id": format!("PC-{event}"), "status": "COMPLETED", "custom_id": format!("ORD-{event}"),
                "amount": { "currency_code": "USD", "value": value }, "final_capture": true },
        })
        .to_string()
    };
    let signer = &attack.house.signer;
    let time = now().to_string();
    let good = attack.house.send(&letter::paypal(signer, "T-1", &time, &body("WH-1", "0.01"))?);
    let good = good.map_err(|error| error.to_string())?;
    if good.status != 204 {
        return Err(format!("an honest capture was answered {}: {}", good.status, good.text()));
    }
    let ages_ago = Time::from_ms(now().ms() - 5 * 86_400_000).to_string();
    for (how, id, time, event, value) in [
        ("another amount", "T-1", &*time, "WH-2", "99999.00"),
        ("another amount of the same event", "T-1", &*time, "WH-1", "99999.00"),
        ("a time long past", "T-2", "2020-01-01T00:00:00Z", "WH-3", "1.00"),
        ("five days ago", "T-3", &*ages_ago, "WH-4", "1.00"),
        ("a line in the id", "T|4", &*time, "WH-5", "1.00"),
        ("no time", "T-5", "", "WH-6", "1.00"),
    ] {
        let answer = attack.house.send(&letter::paypal(signer, id, time, &body(event, value))?);
        let line = attack.book.line(kind);
        line.asked(&answer, || how.into(), |answer| answer.status < 300 && !is_duplicate(answer));
    }
    attack.house.rest()?;
    let rich = attack.house.see("/v1/payments?limit=1000")?.to_string();
    attack.book.line(kind).tried(rich.contains("9999900"), || "the amount was believed".into());
    Ok(())
}
