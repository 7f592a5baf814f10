//! E2: what a provider has and never sent is found, taken in once, and told; what only we say is put before a person.

mod alarms;
mod pages;

use std::collections::BTreeMap;

use sekisho_lab::http;
use sekisho_lab::stripe::{self, Stripe, StripeFault};
use serde_json::{Value, json};

use crate::support::{Gateway, Place, Provider, each_store, stripe_source, wait_until};

const KEY: &str = "reconcilers-key-0123456789";

/// How many events the provider makes of which half is never sent.
fn gap_events() -> usize {
    let given = std::env::var("SEKISHO_GAP_EVENTS").ok();
    given.map_or(400, |text| text.parse().expect("SEKISHO_GAP_EVENTS is a number"))
}

/// A shop with Sekisho behind it, which can ask the provider.
struct Shop {
    gateway: Gateway,
}

impl Shop {
    fn open(place: &Place, stripe: &Stripe, more: &str) -> Self {
        let api = format!("api_key = \"{}\"\napi_url = \"{}\"", stripe::KEY, stripe.url());
        let key = format!("[[key]]\nname = \"ops\"\nsecret = \"{KEY}\"\nscopes = [\"operate\"]\n");
        // No run by itself within a story, and nothing counts as on its way.
        let settings = if more.is_empty() { "[reconcile]\nevery = \"24h\"\ngrace = \"0s\"\n" } else { more };
        Self { gateway: Gateway::with(place, &(settings.to_owned() + &stripe_source(&api) + &key)) }
    }

    fn ask(&self, method: &str, path: &str, order: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {KEY}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let body = if order.is_null() { Vec::new() } else { order.to_string().into_bytes() };
        let answer = http::request(self.gateway.address(), method, path, &headers, &body).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    fn reconcile(&self, dry_run: bool) -> Value {
        let order = json!({ "source": "stripe", "dry_run": dry_run });
        let (status, report) = self.ask("POST", "/v1/reconciliations", &order);
        assert_eq!(status, 200, "{report}");
        report
    }

    fn standing(&self) -> Value {
        self.get("/v1/reconciliations")["items"][0].clone()
    }

    /// The provider's webhook, signed.
    fn hears(&self, event: &Value) {
        let letter = Provider::stripe().body(&event.to_string());
        assert_eq!(self.gateway.send(&letter).status, 204);
    }

    /// Everything that is kept of payments, without what differs by itself.
    fn payments(&self) -> BTreeMap<String, Value> {
        let (mut payments, mut before) = (BTreeMap::new(), String::new());
        loop {
            let page = self.get(&format!("/v1/payments?limit=1000{before}"));
            for payment in page["items"].as_array().unwrap() {
                let mut payment = payment.clone();
                for own in ["id", "created_at", "changed_at", "links"] {
                    payment.as_object_mut().unwrap().remove(own);
                }
                payments.insert(payment["reference"].as_str().unwrap_or_default().to_owned(), payment);
            }
            let Some(next) = page["next"].as_str() else { return payments };
            before = format!("&before={next}");
        }
    }

    fn are_settled(&self, count: usize) {
        // Fees are read at the provider's pace: many take longer than one wait.
        for part in (0..count).step_by(500).skip(1).chain([count]) {
            wait_until(&format!("{part} payments are paid, with their fees"), || {
                let payments = self.payments();
                let is_settled = |one: &&Value| one["status"] == "paid" && !one["fee"].is_null();
                payments.values().filter(is_settled).count() >= part
            });
        }
        assert_eq!(self.payments().len(), count);
    }

    /// What operators were told, by type.
    fn told(&self, kind: &str) -> Vec<Value> {
        self.events(&format!("own=true&type={kind}"))
    }

    /// Every event that is found so: one page looks at a bounded number of them.
    fn events(&self, query: &str) -> Vec<Value> {
        let (mut found, mut before) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/v1/events?{query}&limit=1000{before}"));
            found.extend(page["items"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next"].as_str() else { return found };
            before = format!("&before={next}");
        }
    }
}

fn sell(stripe: &Stripe, n: usize) {
    stripe.sell(1_000 + n as i64, "jpy", json!({ "order_id": format!("O-{n}") }));
}

fn figures(report: &Value) -> [u64; 5] {
    ["listed", "known", "missing", "closed", "differing"].map(|name| report[name].as_u64().unwrap())
}

#[test]
fn e2_half_of_the_events_never_sent_one_reconciliation_leaves_none_missing() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let shop = Shop::open(place, &stripe, "");
        let control_place = Place::sqlite();
        let control = Shop::open(&control_place, &stripe, "");
        let sales = gap_events() / 4;
        for n in 0..sales {
            if n % 2 == 0 {
                sell(&stripe, n);
            } else {
                stripe.sell_by_checkout(1_000 + n as i64, "jpy", json!({ "order_id": format!("O-{n}") }));
            }
        }
        let events = stripe.take_unsent();
        for (n, event) in events.iter().enumerate() {
            control.hears(event);
            if n % 2 == 0 {
                shop.hears(event);
            }
        }
        control.are_settled(sales);
        let (all, half) = (events.len() as u64, events.len() as u64 / 2);
        let listed = shop.reconcile(true);
        assert_eq!(figures(&listed)[..4], [all, all - half, half, 0], "a dry run takes nothing in: {listed}");

        let report = shop.reconcile(false);
        assert_eq!(figures(&report), [all, all - half, half, half, 0], "{report}");
        assert_eq!(report["complete"], true);
        shop.are_settled(sales);
        assert_eq!(shop.payments(), control.payments());

        // What was taken in says so, and is known from now on.
        let again = shop.reconcile(false);
        assert_eq!(figures(&again), [all, all, 0, 0, 0], "{again}");
        let taken_in = shop.events("source=stripe");
        let fetched = taken_in.iter().filter(|event| event["via"] == "reconcile");
        assert_eq!(fetched.count() as u64, half);
        assert_eq!(shop.told("source.gap_closed").len(), 1);
        let standing = shop.standing();
        assert_eq!(standing["completeness"], 100, "{standing}");
        let missing =
            standing["days"].as_object().unwrap().values().map(|day| day["missing"].as_u64().unwrap());
        assert_eq!(missing.sum::<u64>(), half, "{standing}");
        assert_eq!(shop.gateway.metric("sekisho_reconcile_missing_total", &["stripe"]), half);
    });
}

#[test]
fn e2_an_event_in_no_list_is_found_by_objects() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let shop = Shop::open(place, &stripe, "");
        sell(&stripe, 1);
        for event in stripe.take_unsent() {
            if event["type"] == "payment_intent.created" {
                shop.hears(&event);
            }
            stripe.forget(event["id"].as_str().unwrap());
        }
        wait_until("the intent is known", || shop.payments().len() == 1);
        let report = shop.reconcile(false);
        assert_eq!(figures(&report), [0, 0, 0, 0, 1], "{report}");
        let difference = &report["differences"][0];
        assert_eq!(
            (&difference["kind"], &difference["object"]),
            (&"theirs_only".into(), &"payment_intent".into())
        );
        wait_until("it is paid", || shop.payments().values().all(|one| one["status"] == "paid"));
        assert_eq!(figures(&shop.reconcile(false))[4], 0, "they agree now");
        assert_eq!(shop.told("source.gap_closed").len(), 1);
    });
}

#[test]
fn e2_the_late_webhook_is_a_duplicate() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let shop = Shop::open(place, &stripe, "");
        sell(&stripe, 1);
        let events = stripe.take_unsent();
        assert_eq!(figures(&shop.reconcile(false))[3] as usize, events.len());
        shop.are_settled(1);
        let before = shop.payments();
        events.iter().for_each(|event| shop.hears(event));
        let page = shop.get("/v1/events?source=stripe");
        assert_eq!(page["items"].as_array().unwrap().len(), events.len(), "no second copy of any");
        assert_eq!(shop.payments(), before);
    });
}

#[test]
fn e2_high_water_moves_only_after_every_page() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let shop = Shop::open(place, &stripe, "");
        (0..50).for_each(|n| sell(&stripe, n));
        let all = stripe.take_unsent().len() as u64;
        stripe.order_for("GET /v1/events", StripeFault::LateAnswer(std::time::Duration::ZERO));
        stripe.order_for("GET /v1/events", StripeFault::Error);
        let broken = shop.reconcile(false);
        assert_eq!((&broken["complete"], &broken["closed"]), (&false.into(), &100.into()), "{broken}");
        let standing = shop.standing();
        assert!(standing["high_water"].is_null() && standing["last_good_at"].is_null(), "{standing}");
        assert!(standing["error"].as_str().unwrap().contains("500"), "{standing}");

        let whole = shop.reconcile(false);
        assert_eq!(figures(&whole)[..4], [all, 100, all - 100, all - 100], "nothing twice, nothing lost");
        let standing = shop.standing();
        assert!(!standing["high_water"].is_null() && standing["error"].is_null(), "{standing}");
        shop.are_settled(50);
    });
}

#[test]
fn e2_ours_only_is_told_and_nobody_overruled() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let shop = Shop::open(place, &stripe, "");
        let sold = stripe.sell(5_000, "jpy", json!({ "order_id": "O-1" }));
        stripe.take_unsent().iter().for_each(|event| shop.hears(event));
        shop.are_settled(1);
        let before = shop.payments();
        // The provider says now that nothing was received.
        let mut intent = stripe.object(&sold.payment_intent).unwrap();
        intent["status"] = "canceled".into();
        intent["amount_received"] = 0.into();
        stripe.put(intent);
        let report = shop.reconcile(false);
        let difference = &report["differences"][0];
        assert_eq!((&difference["kind"], figures(&report)[4]), (&"ours_only".into(), 1), "{report}");
        assert_eq!(difference["id"], sold.payment_intent.as_str());
        assert_eq!(shop.payments(), before, "nobody is overruled");
        shop.reconcile(false);
        wait_until("operators hear of it", || !shop.told("source.differs").is_empty());
        assert_eq!(shop.told("source.differs").len(), 1, "once");
        assert_eq!(shop.standing()["differences"][0]["kind"], "ours_only");
    });
}

#[test]
fn e2_a_refused_key() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let shop = Shop::open(place, &stripe, "");
        sell(&stripe, 1);
        stripe.refuse_key();
        let report = shop.reconcile(false);
        assert_eq!((&report["complete"], figures(&report)), (&false.into(), [0; 5]), "{report}");
        wait_until("operators hear of it", || shop.told("source.key_refused").len() == 1);
        shop.gateway.type_in(&["reconcile"]).failed(1).mentions(&["refuses the key"]);
        stripe.accept_key();
        assert!(shop.payments().is_empty());
    });
}

#[test]
fn e2_a_deaf_source_is_told_at_once() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let settings =
            "[reconcile]\nevery = \"24h\"\ngrace = \"0s\"\n[alerts]\nevery = \"1s\"\noff = [\"late*\"]\n";
        let shop = Shop::open(place, &stripe, settings);
        // What was before Sekisho looked says nothing of the provider.
        let looks = "SELECT 1 FROM state WHERE kind = 'alert' AND id = '-watch'";
        wait_until("it looks", || !place.sql(looks).is_empty());
        place.sql(LOOKED_SINCE);
        let told = || {
            let told = shop.told("alert.*");
            let of_source = told.iter().filter(|one| one["object"]["id"] == "silent/stripe");
            of_source.map(|one| one["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let now = sekisho::now().seconds();
        stripe.set_clock(now - 30 * 60);
        sell(&stripe, 1);
        stripe.take_unsent().iter().for_each(|event| shop.hears(event));
        shop.reconcile(false);
        assert!(told().is_empty(), "{:?}", told());
        stripe.set_clock(now - 20 * 60);
        sell(&stripe, 2);
        shop.reconcile(false);
        wait_until("operators hear of it", || told() == ["alert.fired"]);
        assert!(!shop.standing()["silent_since"].is_null());
        shop.reconcile(false);
        // The endpoint was mended.
        stripe.take_unsent();
        stripe.set_clock(now);
        sell(&stripe, 3);
        stripe.take_unsent().iter().for_each(|event| shop.hears(event));
        shop.reconcile(false);
        wait_until("it is over", || told() == ["alert.resolved", "alert.fired"]);
        assert!(shop.standing()["silent_since"].is_null());
        shop.are_settled(3);
    });
}

/// As if it had looked without a break for a while.
const LOOKED_SINCE: &str = "UPDATE state SET facts = '{\"last\":\"2999-01-01T00:00:00.000Z\",\"since\":\"2020-01-01T00:00:00.000Z\"}', \
                          version = version + 1 WHERE kind = 'alert' AND id = '-watch'";

#[test]
fn e2_a_source_is_compared_by_itself_and_by_the_command_line() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let shop = Shop::open(place, &stripe, "[reconcile]\nevery = \"1s\"\ngrace = \"0s\"\n");
        sell(&stripe, 1);
        shop.are_settled(1);
        sell(&stripe, 2);
        shop.are_settled(2);
        let said =
            shop.gateway.type_in(&["reconcile", "--source", "stripe", "--since", "30d", "--json"]).done();
        assert_eq!(figures(&said.lines()[0])[2..], [0, 0, 0]);
        shop.gateway.type_in(&["doctor"]).mentions(&["last compared", "100 % complete"]);
        shop.gateway.type_in(&["reconcile", "--source", "nobody"]).failed(1).mentions(&["no source nobody"]);
    });
}

/// What each of the other providers has and never sent, as it lists it.
#[test]
fn e2_what_the_four_others_never_sent_is_found_in_their_lists() {
    use sekisho_lab::providers::{Fake, komoju, payjp, paypal, square};

    let now = sekisho::now();
    let yen = |amount: i64| json!({ "amount": amount, "currency": "JPY" });
    let source = |provider: &str, fake: &Fake, key: &str, more: &str| {
        format!(
            "[[source]]\nname = \"{provider}\"\nprovider = \"{provider}\"\napi_key = \"{key}\"\napi_url = \"{}\"\nlivemode = false\n{more}",
            fake.url()
        )
    };
    let (square, komoju) = (square::start().unwrap(), komoju::start().unwrap());
    let (payjp, paypal) = (payjp::start().unwrap(), paypal::start().unwrap());
    square.put(
        "payment",
        json!({
            "id": "sq_1", "status": "COMPLETED", "amount_money": yen(1_100), "total_money": yen(1_100), "order_id": "so_1",
            "reference_id": "square", "created_at": now.to_string(), "updated_at": now.to_string(),
        }),
    );
    komoju.put(
        "payment",
        json!({
            "id": "kp_1", "resource": "payment", "status": "captured", "amount": 1_000, "tax": 100, "total": 1_100,
            "currency": "JPY", "external_order_num": "komoju", "created_at": now.to_string(), "refunds": [],
        }),
    );
    payjp.put(
        "event",
        json!({
            "id": "evnt_1", "object": "event", "type": "charge.succeeded", "livemode": false, "created": now.seconds(),
            "data": {
                "id": "ch_1", "object": "charge", "amount": 1_100, "amount_refunded": 0, "captured": true, "paid": true,
                "currency": "jpy", "livemode": false, "metadata": { "order_id": "payjp" },
            },
        }),
    );
    paypal.put(
        "event",
        json!({
            "id": "WH-1", "create_time": now.to_string(), "event_type": "PAYMENT.CAPTURE.COMPLETED",
            "resource_type": "capture", "resource": {
                "id": "PC1", "status": "COMPLETED", "amount": { "currency_code": "JPY", "value": "1100" },
                "custom_id": "paypal", "final_capture": true,
            },
        }),
    );
    let key = format!("[[key]]\nname = \"ops\"\nsecret = \"{KEY}\"\nscopes = [\"operate\"]\n");
    let config = [
        "[reconcile]\nevery = \"24h\"\ngrace = \"0s\"\n".to_owned(),
        source(
            "square",
            &square,
            square::KEY,
            "secrets = [\"square-signature-key\"]\npublic_url = \"https://shop.example.test/webhooks/square\"\naccount = \"6SSW7HV8K2ST5\"\n",
        ),
        source("komoju", &komoju, komoju::KEY, "secrets = [\"komoju-secret\"]\n"),
        source("payjp", &payjp, payjp::KEY, "secrets = [\"whook_0123456789\"]\n"),
        source(
            "paypal",
            &paypal,
            paypal::KEY,
            &format!("client_id = \"{}\"\nwebhook_id = \"1JE4291016473214C\"\n", paypal::CLIENT_ID),
        ),
        key,
    ];
    each_store(|place| {
        let shop = Shop { gateway: Gateway::with(place, &config.concat()) };
        for provider in ["square", "komoju", "payjp", "paypal"] {
            let order = json!({ "source": provider, "since": now.plus_ms(-3_600_000) });
            let (status, report) = shop.ask("POST", "/v1/reconciliations", &order);
            assert_eq!(status, 200, "{provider}: {report}");
            assert_eq!(report["failure"], Value::Null, "{provider}: {report}");
            let payment = || shop.get(&format!("/v1/payments?reference={provider}"))["items"][0].clone();
            wait_until(provider, || payment()["amount_received"] == 1_100);
            let (_, again) = shop.ask("POST", "/v1/reconciliations", &order);
            assert_eq!(
                (&again["missing"], &again["differing"]),
                (&json!(0), &json!(0)),
                "{provider}: {again}"
            );
        }
        shop.gateway.type_in(&["books", "check"]).done();
    });
}
