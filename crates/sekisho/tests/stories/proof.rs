//! D7, D8: one payment with all the evidence for it, beside a running server and without one. What somebody changes behind
//! our back in the database is seen in the report.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, Provider, each_store, route_to, stripe_source, wait_until};

/// Stripe says that an order was paid; whoever paid left an address.
fn pay(gateway: &Gateway, order: &str, amount: i64) {
    let body = json!({
        "id": format!("evt_{order}"), "object": "event", "type": "payment_intent.succeeded",
        "created": 2_100_000_000, "livemode": true,
        "data": { "object": {
            "id": format!("pi_{order}"), "object": "payment_intent", "status": "succeeded", "amount": amount,
            "amount_received": amount, "currency": "jpy", "receipt_email": "taro.yamada@example.com",
            "metadata": { "order_id": order },
        } },
    });
    assert_eq!(gateway.send(&Provider::stripe().body(&body.to_string())).status, 204);
    // Nobody listens where the announcement goes: its delivery is a dead letter.
    wait_until("it was announced", || {
        let said = gateway.type_in(&[
            "events",
            "list",
            "--own",
            "--json",
            "--type",
            "payment.paid",
            "--status",
            "failed",
        ]);
        said.code == 0 && said.stdout.contains(&format!("pi_{order}/"))
    });
}

fn prove(gateway: &Gateway, called: &str) -> Value {
    gateway.type_in(&["payments", "prove", called, "--json"]).done().lines().remove(0)
}

fn failed(gateway: &Gateway, called: &str, check: &str, words: &str) {
    let report = gateway.type_in(&["payments", "prove", called, "--json"]).failed(1).lines().remove(0);
    let checks = report["checks"].as_array().unwrap();
    let failed: Vec<_> = checks.iter().filter(|one| one["passed"] == false).collect();
    assert_eq!((failed.len(), &failed[0]["name"]), (1, &check.into()), "{checks:?}");
    assert!(failed[0]["fault"].as_str().unwrap().contains(words), "{failed:?}");
    gateway.type_in(&["payments", "prove", called]).failed(1).mentions(&["does not hold together", words]);
}

/// In both forms and both languages, and with nothing in them that must not be handed on.
fn is_printed(gateway: &Gateway, called: &str) {
    for (language, words) in [("en", "The evidence is consistent"), ("ja", "決済証明書")] {
        let files = ["proof.html", "proof.json"];
        let words_typed = ["--html", files[0], "--out", files[1], "--language", language];
        let said = gateway.type_in(&[&["payments", "prove", called], &words_typed[..]].concat()).done();
        said.mentions(&["the evidence holds together", "written to proof.html"]);
        let [html, json] = files.map(|file| std::fs::read_to_string(gateway.folder().join(file)).unwrap());
        assert!(html.contains(words) && !html.contains("<script") && !html.contains("src="), "{html}");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["passed"], true);
        for text in [html, json] {
            gateway.search("the proof", &text);
            assert!(!text.contains("taro.yamada"), "{text}");
        }
    }
}

#[test]
fn d7_a_payment_proves_itself() {
    each_store(|place: &Place| {
        let route = route_to("app", "http://127.0.0.1:9/", "send = \"settled\"\nretries = 0");
        let mut gateway = Gateway::with(place, &format!("{}{route}", stripe_source("")));
        pay(&gateway, "o_1", 1200);
        pay(&gateway, "o_2", 500);
        let beside = prove(&gateway, "o_1");
        is_printed(&gateway, "pi_o_1");
        assert!(gateway.server.terminate().unwrap().success());
        let alone = prove(&gateway, "o_1");
        for part in ["payment", "decisions", "books", "checks"] {
            assert_eq!(beside[part], alone[part], "{part}");
        }
        is_printed(&gateway, "o_1");
        assert_eq!(alone["payment"]["status"], "paid");
        assert_eq!(alone["deliveries"][0]["route"], "app");
        let types: Vec<_> = alone["events"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
        assert_eq!(types, ["payment_intent.succeeded", "payment.paid"]);
        gateway.type_in(&["payments", "prove", "pay_0"]).failed(1).mentions(&["no payment is called pay_0"]);

        place.sql(
            "UPDATE event SET body = (SELECT body FROM event WHERE event_id = 'evt_o_2') WHERE event_id = 'evt_o_1'",
        );
        failed(&gateway, "o_1", "bodies", "is not the one that was processed");
        let other = prove(&gateway, "o_2")["payment"]["id"].as_str().unwrap().to_owned();
        place.sql(&format!(
            "UPDATE audit SET actor = 'kei' WHERE target_id = '{other}' AND action = 'payment.found'"
        ));
        failed(&gateway, "o_2", "links", "one was changed, removed or added");
        place.sql(&format!(
            "UPDATE audit SET actor = NULL WHERE target_id = '{other}' AND action = 'payment.found'"
        ));
        prove(&gateway, "o_2");
        place.sql(&format!("UPDATE posting SET amount = amount * 2 WHERE payment = '{other}'"));
        failed(&gateway, "o_2", "books", &other);
    });
}
