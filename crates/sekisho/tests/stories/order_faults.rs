//! F2, F4: what happens when webhooks are late, when places can't be held, when a person confirms or cancels; and what `doctor`
//! says of a shop that lacks something.

use sekisho_lab::chat::{Chat, SLACK_PATH};
use serde_json::json;

use crate::reservations::{Shop, id_of, json_of};
use crate::support::{Gateway, Provider, each_store, stripe_source, wait_until};

#[test]
fn f4_a_payment_whose_webhook_never_comes_is_asked_for_at_its_provider() {
    each_store(|place| {
        let rule = "[[compensation]]\nname = \"WEBHOOK_DELAY\"\nafter = \"1s\"\n";
        let shop = Shop::open(place, rule);
        let id = id_of(&shop.hold("s", "D-1"));
        shop.stripe.sell(4_800, "jpy", json!({ "order_id": "D-1" }));
        // Of all that Stripe tells, only the first comes.
        let events = shop.stripe.take_unsent();
        let created = events.iter().find(|event| event["type"] == "payment_intent.created").unwrap();
        assert_eq!(shop.gateway.send(&Provider::stripe().body(&created.to_string())).status, 204);
        shop.wait_for(&id, "confirmed");
        let fetched = shop.get("/v1/events?source=fetched&type=stripe.payment_intent");
        assert!(!fetched["items"].as_array().unwrap().is_empty(), "{fetched}");
        assert_eq!(shop.get("/v1/cases")["items"], json!([]), "that is nobody's trouble");
    });
}

#[test]
fn f2_what_an_operator_confirms_is_made_and_what_is_cancelled_is_stopped() {
    each_store(|place| {
        let shop = Shop::open(place, "[fulfilment]\ntimeout = \"2s\"\n");
        let held = shop.hold_with("s", "C-1", json!({ "fulfilment": { "kind": "video" } }));
        let (id, made) = (id_of(&held), json_of(&held)["fulfilment"].as_str().unwrap().to_owned());
        let made = format!("/v1/fulfilments/{made}");
        assert_eq!(shop.get(&made)["status"], "waiting");
        shop.post(&format!("/v1/reservations/{id}/confirm"), &json!({ "reason": "paid in cash" }));
        let begun = shop.get(&made);
        assert_eq!((&begun["status"], &begun["stopped_at"]), (&json!("processing"), &json!(null)), "{begun}");
        let requested = shop.get("/v1/events?source=sekisho&type=fulfilment.requested");
        assert_eq!(requested["items"].as_array().unwrap().len(), 1);
        shop.post(&format!("/v1/reservations/{id}/cancel"), &json!({ "reason": "ill" }));
        let stopped = shop.get(&made);
        assert_eq!((&stopped["status"], stopped["stopped_at"].is_string()), (&json!("processing"), true));
        // No run of it fails any more, and nobody is told that one did.
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!(shop.get(&made)["retry_count"], 0);
        assert_eq!(shop.get("/v1/cases")["items"], json!([]));
    });
}

#[test]
fn f4_places_that_cannot_be_held_are_a_case_that_closes_itself_and_leaves_nothing_behind() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let url = format!("{}{SLACK_PATH}", chat.url());
        let channel = format!(
            "[[channel]]\nname = \"alerts\"\nkind = \"slack\"\nurl = \"{url}\"\nallow_private = true\n"
        );
        let later = "[[compensation]]\nname = \"SYSTEM_FAULT_UNRESOLVED\"\nafter = \"4s\"\n";
        let shop = Shop::open(place, &format!("[reservations]\nprobe_every = \"200ms\"\n{channel}{later}"));
        let probes = |result: &str| {
            let text = shop.gateway.get("/metrics").text();
            let line = format!("sekisho_probes_total{{result=\"{result}\"}} ");
            let found = text.lines().find_map(|text| text.strip_prefix(&line));
            found.map_or(0, |count| count.parse::<u64>().unwrap())
        };
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert_eq!(probes("good"), 0, "whoever sells no places has none of it");
        shop.post("/v1/slots", &json!({ "id": "dome", "livemode": false }));
        wait_until("probes succeed", || probes("good") >= 3);
        let rows = || place.sql("SELECT kind, count(*) FROM state GROUP BY kind ORDER BY kind");
        let audit = || place.sql("SELECT count(*) FROM audit");
        let (before, entries, good) = (rows(), audit(), probes("good"));
        wait_until("more probes", || probes("good") >= good + 5);
        assert_eq!((rows(), audit()), (before, entries), "a probe leaves nothing behind");
        for path in ["/v1/slots", "/v1/reservations", "/v1/compensations", "/v1/cases"] {
            assert!(!shop.get(path).to_string().contains("probe"), "{path}");
        }

        // All its places are taken: no probe finds one.
        let set = |facts: &str| {
            place.sql(&format!(
                "UPDATE state SET facts = '{facts}' WHERE kind = 'slot_block' AND id LIKE '%sekisho-probe%'"
            ))
        };
        let full = r#"{"x":{"n":1,"q":256,"until":"2126-01-01T00:00:00.000Z","sold":true}}"#;
        wait_until("a probe fails", || {
            set(full);
            std::thread::sleep(std::time::Duration::from_millis(300));
            probes("failed") > 0
        });
        let case = || shop.get("/v1/cases")["items"][0].clone();
        wait_until("the case", || case()["trigger"] == "SYSTEM_FAULT");
        let opened = case();
        assert_eq!(opened["subject"], "holds", "{opened}");
        wait_until("operators hear of it", || {
            chat.received().iter().any(|got| got.json().to_string().contains("SYSTEM_FAULT"))
        });
        assert!(shop.gateway.metric("sekisho_cases_total", &["level=\"2\""]) > 0);
        wait_until("it goes on too long", || case()["level"] == 3);
        set("{}");
        wait_until("the case closes itself", || case()["status"] == "resolved");
        assert_eq!(case()["resolved"]["how"], "cleared");
    });
}

#[test]
fn f1_what_becomes_of_holds_refunds_cases_and_pages_is_counted() {
    each_store(|place| {
        let pages = "[pages]\nurl = \"http://127.0.0.1:9\"\n[reservations]\ngrace = \"1s\"\n";
        let shop = Shop::open(place, pages);
        let held = shop.hold("s", "M-1");
        let id = id_of(&held);
        assert_eq!(shop.hold("s", "M-2").status, 409);
        id_of(&shop.hold_with("other", "M-3", json!({ "hold": "1s" })));
        let url = json_of(&held)["customer_url"].as_str().unwrap().to_owned();
        let path = url.strip_prefix("http://127.0.0.1:9").unwrap();
        assert_eq!(shop.gateway.get(path).status, 200);
        assert_eq!(shop.gateway.get("/o/nothing").status, 404);
        shop.pay("M-1");
        shop.wait_for(&id, "confirmed");
        shop.post(&format!("/v1/reservations/{id}/cancel"), &json!({ "reason": "ill" }));
        shop.wait_for_refund(&id);
        shop.hear();
        let is_there = |line: &str| shop.gateway.get("/metrics").text().contains(line);
        for line in [
            "sekisho_holds_total{result=\"held\"} 2",
            "sekisho_holds_total{result=\"full\"} 1",
            "sekisho_hold_seconds_count 3",
            "sekisho_lapses_total 1",
            "sekisho_refund_orders_total{status=\"ordered\"} 1",
            "sekisho_refund_orders_total{status=\"done\"} 1",
            "sekisho_page_answers_total{page=\"order\",answer=\"2xx\"} 1",
            "sekisho_page_answers_total{page=\"order\",answer=\"4xx\"} 1",
        ] {
            wait_until(line, || is_there(line));
        }
    });
}

#[test]
fn h5_doctor_says_what_a_shop_lacks_and_how_to_mend_it() {
    each_store(|place| {
        let key = "[[key]]\nname = \"DOER\"\nsecret = \"env:DOER\"\nscopes = [\"operate\"]\n";
        let config = stripe_source("") + key;
        let env = [("DOER", "canary-operate-key-0123456789")];
        let gateway = Gateway::with_env(place, &config, &env);
        let said = gateway.type_in(&["doctor"]).done().all();
        assert!(!said.contains("customers hear nothing"), "nothing is sold yet: {said}");
        drop(gateway);
        let pages = "[pages]\nurl = \"http://pay.example.jp\"\n";
        let gateway = Gateway::with_env(place, &format!("{config}{pages}"), &env);
        let hold = json!({ "slot": "s", "reference": "o1", "livemode": false,
            "payment": { "amount": 100, "currency": "jpy" }, "fulfilment": { "kind": "video" } });
        let headers = [("authorization", "Bearer canary-operate-key-0123456789")];
        let made = sekisho_lab::http::request(
            gateway.address(),
            "POST",
            "/v1/reservations",
            &headers,
            hold.to_string().as_bytes(),
        );
        assert_eq!(made.unwrap().status, 201);
        gateway.type_in(&["doctor"]).failed(1).mentions(&[
            "RENDER_FAILURE_TIMEOUT, EXPIRED_AFTER_PAYMENT",
            "write refunds = true",
            "there is no channel alerts",
            "name yours in [escalation] pager",
            "set [notifications] customers = \"mail\"",
            "customers' links travel without TLS",
            "no route takes fulfilment.requested",
        ]);
    });
}
