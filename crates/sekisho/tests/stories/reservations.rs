//! F1–F3: places are sold once, paid means confirmed or refunded, and what was paid for is made or tried again.

use std::thread;

use sekisho_lab::stripe::{self, Stripe};
use serde_json::{Value, json};

use crate::support::{Gateway, Place, Provider, Response, each_store, stripe_source, wait_until};

const OPERATE: &str = "canary-operate-key-0123456789";

/// A shop that sells places, with a provider behind it.
pub struct Shop {
    pub gateway: Gateway,
    pub stripe: Stripe,
}

impl Shop {
    pub fn open(place: &Place, more: &str) -> Self {
        let stripe = Stripe::start().unwrap();
        let api = format!("api_key = \"{}\"\napi_url = \"{}\"\nrefunds = true\n", stripe::KEY, stripe.url());
        let key = "[[key]]\nname = \"DOER\"\nsecret = \"env:DOER\"\nscopes = [\"operate\"]\n";
        let config = stripe_source(&api) + key + more;
        Self { gateway: Gateway::with_env(place, &config, &[("DOER", OPERATE)]), stripe }
    }

    pub fn hear(&self) {
        for event in self.stripe.take_unsent() {
            assert_eq!(self.gateway.send(&Provider::stripe().body(&event.to_string())).status, 204);
        }
    }

    pub fn ask(&self, method: &str, path: &str, more: &[(&str, &str)], body: &Value) -> Response {
        let bearer = format!("Bearer {OPERATE}");
        let headers = [&[("authorization", bearer.as_str())], more].concat();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        sekisho_lab::http::request(self.gateway.address(), method, path, &headers, body.as_bytes()).unwrap()
    }

    pub fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, &[], &Value::Null);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        json_of(&answer)
    }

    pub fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.ask("POST", path, &[], body);
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
        json_of(&answer)
    }

    pub fn hold(&self, slot: &str, reference: &str) -> Response {
        self.hold_with(slot, reference, json!({}))
    }

    pub fn hold_with(&self, slot: &str, reference: &str, more: Value) -> Response {
        let mut body = json!({
            "slot": slot, "reference": reference, "livemode": false,
            "payment": { "amount": 4_800, "currency": "jpy", "description": "Planetarium" },
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("POST", "/v1/reservations", &[], &body)
    }

    /// The customer pays, and Stripe says so.
    pub fn pay(&self, reference: &str) {
        self.stripe.sell(4_800, "jpy", json!({ "order_id": reference }));
        self.hear();
    }

    /// Until its payment has one refund order, and that is done.
    pub fn wait_for_refund(&self, id: &str) {
        let payment = self.get(&format!("/v1/reservations/{id}"))["payment"].as_str().unwrap().to_owned();
        wait_until("the refund", || {
            let orders = self.get(&format!("/v1/payments/{payment}"))["refund_orders"].clone();
            orders.as_array().is_some_and(|orders| orders.len() == 1 && orders[0]["status"] == "done")
        });
    }

    pub fn wait_for(&self, id: &str, status: &str) {
        let path = format!("/v1/reservations/{id}");
        wait_until(&format!("{id} to be {status}"), || self.get(&path)["status"] == status);
    }
}

pub fn json_of(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

pub fn id_of(answer: &Response) -> String {
    assert_eq!(answer.status, 201, "{}", answer.text());
    json_of(answer)["id"].as_str().unwrap().to_owned()
}

#[test]
fn f1_of_many_who_want_the_last_place_one_has_it_and_whoever_pays_is_confirmed() {
    each_store(|place| {
        let shop = Shop::open(place, "");
        let slot =
            shop.post("/v1/slots", &json!({ "id": "dome-1:19:00", "livemode": false, "title": "Stars" }));
        assert_eq!((&slot["capacity"], &slot["free"]), (&json!(1), &json!(1)));
        let answers: Vec<Response> = thread::scope(|scope| {
            let ask = |n: usize| shop.hold("dome-1:19:00", &format!("o{n}"));
            let all: Vec<_> = (0..16).map(|n| scope.spawn(move || ask(n))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let won: Vec<&Response> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(won.len(), 1);
        for lost in answers.iter().filter(|answer| answer.status != 201) {
            let problem = json_of(lost);
            assert_eq!((lost.status, &problem["type"]), (409, &json!("urn:sekisho:problem:slot_full")));
            assert_eq!(problem["free"], 0);
            assert!(problem["retry_after_seconds"].as_u64().is_some_and(|seconds| seconds > 1_700));
        }
        let held = json_of(won[0]);
        let (id, reference) = (held["id"].as_str().unwrap(), held["reference"].as_str().unwrap());
        assert_eq!(held["status"], "hold");
        shop.pay(reference);
        shop.wait_for(id, "confirmed");
        let slot = shop.get("/v1/slots/dome-1:19:00?livemode=false");
        assert_eq!((&slot["sold"], &slot["held"], &slot["free"]), (&json!(1), &json!(0), &json!(0)));
        wait_until("the news", || {
            let events = shop.get("/v1/events?source=sekisho&type=reservation.confirmed");
            events["items"].as_array().is_some_and(|items| items.len() == 1)
        });
        // Who lost owes nothing.
        let payments = shop.get("/v1/payments?livemode=false");
        assert_eq!(payments["items"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn f1_a_repeated_request_holds_once() {
    each_store(|place| {
        let shop = Shop::open(place, "");
        let body = json!({ "slot": "s", "reference": "o1", "payment": { "amount": 100, "currency": "jpy" } });
        let once = [("idempotency-key", "k1")];
        let first = shop.ask("POST", "/v1/reservations", &once, &body);
        let again = shop.ask("POST", "/v1/reservations", &once, &body);
        assert_eq!((first.status, again.status), (201, 201), "{}", first.text());
        assert_eq!(json_of(&first)["id"], json_of(&again)["id"]);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        let other = json!({ "slot": "s", "reference": "o2" });
        assert_eq!(shop.ask("POST", "/v1/reservations", &once, &other).status, 409);
    });
}

#[test]
fn f1_a_hold_ends_by_itself_and_its_place_is_free_for_others() {
    each_store(|place| {
        let shop = Shop::open(place, "[reservations]\ngrace = \"1s\"\n");
        let id = id_of(&shop.hold_with("s", "o1", json!({ "hold": "1s" })));
        assert_eq!(shop.hold("s", "o2").status, 409);
        shop.wait_for(&id, "expired");
        let second = id_of(&shop.hold("s", "o2"));
        // The timer has told it, too.
        wait_until("the news", || {
            let events = shop.get("/v1/events?source=sekisho&type=reservation.expired");
            events["items"].as_array().is_some_and(|items| items.len() == 1)
        });
        // Money that comes now for what is another's goes back, once.
        shop.pay("o1");
        shop.wait_for_refund(&id);
        shop.hear();
        shop.pay("o2");
        shop.wait_for(&second, "confirmed");
    });
}

#[test]
fn f3_who_cancels_gets_the_money_back_once_and_the_place_is_free() {
    each_store(|place| {
        let shop = Shop::open(place, "");
        let id = id_of(&shop.hold("s", "o1"));
        shop.pay("o1");
        shop.wait_for(&id, "confirmed");
        let cancel = json!({ "reason": "ill" });
        for _ in 0..2 {
            let cancelled = shop.post(&format!("/v1/reservations/{id}/cancel"), &cancel);
            assert_eq!(cancelled["status"], "cancelled");
            assert_eq!(cancelled["cancelled"]["by"], "API:DOER");
        }
        let payment = shop.get(&format!("/v1/reservations/{id}"))["payment"].as_str().unwrap().to_owned();
        shop.wait_for_refund(&id);
        shop.hear();
        wait_until("the money to be back", || {
            shop.get(&format!("/v1/payments/{payment}"))["status"] == "refunded"
        });
        assert_eq!(shop.hold("s", "o2").status, 201);
    });
}

#[test]
fn f2_a_run_that_fails_thrice_is_final_and_a_result_counts_once() {
    each_store(|place| {
        let shop = Shop::open(place, "");
        let held =
            shop.hold_with("s", "o1", json!({ "fulfilment": { "kind": "video", "input": { "scene": 3 } } }));
        let id = id_of(&held);
        let made = json_of(&held)["fulfilment"].as_str().unwrap().to_owned();
        let path = format!("/v1/fulfilments/{made}");
        assert_eq!(shop.get(&path)["status"], "waiting");
        shop.pay("o1");
        shop.wait_for(&id, "confirmed");
        wait_until("the first run", || shop.get(&path)["status"] == "processing");
        for run in 1..=3 {
            let result = json!({ "run": run, "status": "failed", "error": "out of memory" });
            let answer = shop.post(&format!("{path}/result"), &result);
            assert_eq!(answer["counted"], true, "{answer}");
            let again = shop.post(&format!("{path}/result"), &result);
            assert_eq!(again["counted"], false, "{again}");
        }
        let failed = shop.get(&path);
        assert_eq!((&failed["status"], &failed["retry_count"]), (&json!("failed"), &json!(3)));
        assert_eq!((&failed["tier"], &failed["last_error"]), (&json!("paid"), &json!("out of memory")));
        let retried = shop.post(&format!("{path}/retry"), &json!({ "reason": "mended" }));
        assert_eq!(retried["status"], "processing");
        let older = json!({ "run": 1, "status": "done" });
        let answer = shop.post(&format!("{path}/result"), &older);
        assert_eq!((&answer["counted"], &answer["why"]), (&json!(false), &json!("older_run")));
        let done = json!({ "run": 4, "status": "done", "url": "https://example.jp/v.mp4" });
        assert_eq!(shop.post(&format!("{path}/result"), &done)["status"], "done");
        assert_eq!(shop.get(&path)["url"], "https://example.jp/v.mp4");
    });
}

#[test]
fn f1_what_cannot_be_reserved_is_told_why() {
    each_store(|place| {
        let shop = Shop::open(place, "");
        let wrong = |body: Value| {
            let answer = shop.ask("POST", "/v1/reservations", &[], &body);
            (answer.status, json_of(&answer)["errors"][0]["field"].as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(wrong(json!({})), (422, "slot".into()));
        assert_eq!(wrong(json!({ "slot": "a b" })), (422, "slot".into()));
        assert_eq!(wrong(json!({ "slot": "s", "quantity": 0 })), (422, "quantity".into()));
        assert_eq!(wrong(json!({ "slot": "s", "quantity": 21 })), (422, "quantity".into()));
        assert_eq!(wrong(json!({ "slot": "s", "hold": "soon" })), (422, "hold".into()));
        assert_eq!(wrong(json!({ "slot": "s", "hold": "30d" })), (422, "hold".into()));
        assert_eq!(wrong(json!({ "slot": "s", "email": "nobody" })), (422, "email".into()));
        assert_eq!(wrong(json!({ "slot": "s", "seat": 1 })), (422, "seat".into()));
        let payment = json!({ "amount": -1, "currency": "jpy" });
        assert_eq!(wrong(json!({ "slot": "s", "payment": payment })), (422, "payment.amount".into()));
        let answer = shop.ask("POST", "/v1/reservations", &[], &json!({ "slot": "s", "quantity": 2 }));
        assert_eq!((answer.status, &json_of(&answer)["free"]), (409, &json!(1)));

        let slot = |body: Value| shop.ask("POST", "/v1/slots", &[], &body).status;
        assert_eq!(slot(json!({ "id": "big", "capacity": 600 })), 201);
        id_of(&shop.ask("POST", "/v1/reservations", &[], &json!({ "slot": "big", "quantity": 20 })));
        assert_eq!(slot(json!({ "id": "big", "capacity": 1 })), 409);
        assert_eq!(slot(json!({ "id": "big", "capacity": 0 })), 422);
        assert_eq!(shop.get("/v1/slots/big")["sold"], 20, "for free it is sold at once");

        let id = id_of(&shop.hold("t", "o1"));
        let until =
            |body: Value| shop.ask("POST", &format!("/v1/reservations/{id}/extend"), &[], &body).status;
        assert_eq!(until(json!({ "until": "2020-01-01T00:00:00Z" })), 422);
        assert_eq!(until(json!({ "until": "2099-01-01T00:00:00Z" })), 422);
        assert_eq!(shop.hold("u", "o1").status, 409, "the reference is another's");
        assert_eq!(
            shop.ask("POST", "/v1/reservations/rsv_x/cancel", &[], &json!({ "reason": "x" })).status,
            404
        );
        let confirmed =
            shop.post(&format!("/v1/reservations/{id}/confirm"), &json!({ "reason": "paid in cash" }));
        assert_eq!(confirmed["status"], "confirmed");
    });
}

/// Has something made that fails three times; says the reservation, and the fulfilment.
fn fails_thrice(shop: &Shop) -> (String, String) {
    let held = shop.hold_with("s", "o1", json!({ "fulfilment": { "kind": "video" } }));
    let (id, made) = (id_of(&held), json_of(&held)["fulfilment"].as_str().unwrap().to_owned());
    shop.pay("o1");
    shop.wait_for(&id, "confirmed");
    let path = format!("/v1/fulfilments/{made}");
    wait_until("the first run", || shop.get(&path)["status"] == "processing");
    for run in 1..=3 {
        shop.post(
            &format!("{path}/result"),
            &json!({ "run": run, "status": "failed", "error": "no memory" }),
        );
    }
    (id, made)
}

#[test]
fn f5_a_failed_render_is_a_case_that_is_refunded_in_time_and_recorded() {
    each_store(|place| {
        let shop = Shop::open(place, "[[compensation]]\nname = \"RENDER_FAILURE_TIMEOUT\"\nafter = \"1s\"\n");
        let (id, made) = fails_thrice(&shop);
        let cases = shop.get("/v1/cases");
        let case = &cases["items"][0];
        assert_eq!((&case["trigger"], &case["subject"]), (&json!("RENDER_FAILURE"), &json!(made)));
        assert!(case["respond_by"].is_string());
        shop.wait_for_refund(&id);
        shop.hear();
        shop.wait_for(&id, "cancelled");
        let made = shop.get(&format!("/v1/fulfilments/{made}"));
        assert_eq!((&made["downgraded"], &made["tier"]), (&json!(true), &json!("free")));
        let case = shop.get(&format!("/v1/cases/{}", case["id"].as_str().unwrap()));
        assert_eq!((&case["status"], &case["level"]), (&json!("resolved"), &json!(3)));
        let log = shop.get("/v1/compensations?type=REFUND&trigger=RENDER_FAILURE");
        assert_eq!(log["items"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&log["items"][0]["amount"], &log["items"][0]["resolved_by"]),
            (&json!(4_800), &json!("SYSTEM"))
        );
        let question =
            "SELECT type, \"trigger\", reservation_id, amount, currency, resolved_by FROM compensation_logs";
        assert_eq!(place.sql(question), format!("REFUND|RENDER_FAILURE|{id}|4800|jpy|SYSTEM"));
        assert_eq!(place.sql("SELECT status FROM reservations"), "cancelled");
        assert_eq!(place.sql("SELECT status, \"trigger\" FROM cases"), "resolved|RENDER_FAILURE");
        assert_eq!(place.sql("SELECT capacity FROM slots"), "1");
    });
}

#[test]
fn f5_a_person_acknowledges_and_resolves_and_nothing_is_refunded() {
    each_store(|place| {
        let shop =
            Shop::open(place, "[[compensation]]\nname = \"RENDER_FAILURE_TIMEOUT\"\nafter = \"30s\"\n");
        let (id, _) = fails_thrice(&shop);
        let case = shop.get("/v1/cases?status=open")["items"][0]["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/cases/{case}");
        assert_eq!(shop.get(&path)["next"][0]["action"], "refund");
        let seen = shop.post(&format!("{path}/acknowledge"), &json!({ "note": "on it" }));
        assert_eq!(
            (&seen["status"], &seen["acknowledged"]["by"]),
            (&json!("acknowledged"), &json!("API:DOER"))
        );
        let wrong = shop.ask("POST", &format!("{path}/resolve"), &[], &json!({ "how": "magic" }));
        assert_eq!(wrong.status, 422);
        let over = shop.post(&format!("{path}/resolve"), &json!({ "how": "by_hand", "note": "sent a DVD" }));
        assert_eq!((&over["status"], &over["next"]), (&json!("resolved"), &json!([])));
        let late = shop.ask("POST", &format!("{path}/acknowledge"), &[], &json!({}));
        assert_eq!(late.status, 409);
        let log = shop.get("/v1/compensations");
        assert_eq!(log["items"][0]["type"], "MANUAL_RESOLUTION");
        assert_eq!(log["items"][0]["notes"], "sent a DVD");
        let payment = shop.get(&format!("/v1/reservations/{id}"))["payment"].as_str().unwrap().to_owned();
        assert_eq!(shop.get(&format!("/v1/payments/{payment}"))["refund_orders"], json!([]));
    });
}
