//! E1: money goes back once, ordered by the API, by command or at the console; and what can't be ordered is told why.

use std::path::PathBuf;
use std::process::Command;

use sekisho_lab::browser::Look;
use sekisho_lab::stripe::{self, Sold, Stripe, StripeFault};
use serde_json::{Value, json};

use crate::support::{Gateway, Person, Place, Provider, Response, each_store, stripe_source, wait_until};

const OPERATE: &str = "canary-operate-key-0123456789";
const READ: &str = "canary-read-key-0123456789";

struct Shop {
    gateway: Gateway,
    stripe: Stripe,
}

impl Shop {
    fn open(place: &Place, more: &str) -> Self {
        let stripe = Stripe::start().unwrap();
        let api = format!("api_key = \"{}\"\napi_url = \"{}\"\n{more}", stripe::KEY, stripe.url());
        let key = |name: &str, scope: &str| {
            format!("[[key]]\nname = \"{name}\"\nsecret = \"env:{name}\"\nscopes = [\"{scope}\"]\n")
        };
        let config = stripe_source(&api) + &key("LOOKER", "read") + &key("DOER", "operate");
        let env = [("LOOKER", READ), ("DOER", OPERATE)];
        Self { gateway: Gateway::with_env(place, &config, &env), stripe }
    }

    fn allowed(place: &Place) -> Self {
        Self::open(place, "refunds = true")
    }

    /// Stripe's webhooks, as many as there are.
    fn hear(&self) {
        for event in self.stripe.take_unsent() {
            assert_eq!(self.gateway.send(&Provider::stripe().body(&event.to_string())).status, 204);
        }
    }

    fn sell(&self, amount: i64) -> (Sold, String) {
        self.sell_with(amount, json!({}))
    }

    fn sell_with(&self, amount: i64, metadata: Value) -> (Sold, String) {
        let sold = self.stripe.sell(amount, "jpy", metadata);
        self.hear();
        let mut id = None;
        wait_until("the payment", || {
            let found = self.get(&format!("/v1/payments?reference={}", sold.payment_intent));
            // With its fee nothing more is on its way that would have a refund's run decided again.
            let paid = found["items"][0]["status"] == "paid" && found["items"][0]["fee"].is_i64();
            id = found["items"][0]["id"].as_str().filter(|_| paid).map(str::to_owned);
            id.is_some()
        });
        (sold, id.unwrap())
    }

    fn ask(&self, method: &str, path: &str, key: &str, more: &[(&str, &str)], body: &str) -> Response {
        let bearer = format!("Bearer {key}");
        let headers = [&[("authorization", bearer.as_str())], more].concat();
        sekisho_lab::http::request(self.gateway.address(), method, path, &headers, body.as_bytes()).unwrap()
    }

    fn get(&self, path: &str) -> Value {
        json_of(&self.ask("GET", path, READ, &[], ""))
    }

    fn payment(&self, id: &str) -> Value {
        self.get(&format!("/v1/payments/{id}"))
    }

    fn refund(&self, id: &str, body: &Value, once: Option<&str>) -> Response {
        let more: Vec<_> = once.map(|key| ("idempotency-key", key)).into_iter().collect();
        self.ask("POST", &format!("/v1/payments/{id}/refunds"), OPERATE, &more, &body.to_string())
    }

    /// Orders, and gives back the order's key.
    fn orders(&self, id: &str, body: &Value) -> String {
        let answer = self.refund(id, body, None);
        assert_eq!(answer.status, 202, "{}", answer.text());
        json_of(&answer)["order"].as_str().unwrap().to_owned()
    }

    fn order(&self, id: &str, key: &str) -> Value {
        let orders = self.payment(id)["refund_orders"].clone();
        orders.as_array().unwrap().iter().find(|order| order["order"] == key).cloned().unwrap_or_default()
    }

    fn wait_for(&self, id: &str, key: &str, status: &str) {
        wait_until(&format!("the order to be {status}"), || self.order(id, key)["status"] == status);
    }
}

fn json_of(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn e1_a_refund_is_made_once_and_everybody_says_the_same_of_it() {
    each_store(|place| {
        let shop = Shop::allowed(place);
        let (sold, id) = shop.sell(1_200);
        let body = json!({ "amount": 500, "reason": "requested_by_customer", "notes": "came late" });
        let first = shop.refund(&id, &body, Some("k1"));
        assert_eq!(first.status, 202, "{}", first.text());
        let ordered = json_of(&first);
        assert_eq!((&ordered["status"], &ordered["amount"]), (&json!("ordered"), &json!(500)));
        assert_eq!((&ordered["currency"], &ordered["payment"]), (&json!("jpy"), &json!(id)));
        assert_eq!(ordered["by"], "API:DOER");
        let key = ordered["order"].as_str().unwrap();
        shop.wait_for(&id, key, "done");
        let again = shop.refund(&id, &body, Some("k1"));
        assert_eq!((again.status, json_of(&again)["order"].as_str()), (202, Some(key)));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));

        // The webhook of our own refund comes too, twice.
        shop.hear();
        wait_until("the refund", || shop.payment(&id)["amount_refunded"] == 500);
        let shown = shop.payment(&id);
        assert_eq!(
            (&shown["status"], &shown["amount_refund_pending"]),
            (&json!("partially_refunded"), &json!(0))
        );
        let refunds = shop.stripe.refunds_of(&sold.payment_intent);
        assert_eq!(refunds.len(), 1);
        assert_eq!(refunds[0]["metadata"]["sekisho_refund"], *key);
        assert_eq!(refunds[0]["reason"], "requested_by_customer");
        assert_eq!(shown["refund_orders"][0]["refunds"], json!([refunds[0]["id"]]));
        assert!(shop.stripe.ledger().first_posts_without_list().is_empty());

        let rest = shop.orders(&id, &json!({ "reason": "duplicate" }));
        shop.wait_for(&id, &rest, "done");
        wait_until("all of it", || shop.payment(&id)["status"] == "refunded");
        let told: Vec<_> = shop.gateway.type_in(&["events", "list", "--own", "--json"]).done().lines();
        let count = |kind: &str| told.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((count("payment.refund_ordered"), count("payment.refunded")), (2, 1));
        shop.gateway.type_in(&["books", "check"]).done();
        shop.gateway.type_in(&["audit", "verify"]).done();
    });
}

#[test]
fn e1_what_cannot_be_refunded_is_told_why_and_nothing_is_sent() {
    each_store(|place| {
        let shop = Shop::allowed(place);
        let (_, id) = shop.sell_with(1_200, json!({ "tenant_id": "office-1" }));
        let reason = json!({ "reason": "x" });
        let with = |field: &str, value: Value| {
            let mut body = reason.clone();
            body[field] = value;
            body
        };
        for (path, body, status, word) in [
            ("pay_nobody", reason.clone(), 404, "no payment"),
            (&*id, json!({}), 422, "reason"),
            (&*id, with("amount", json!(0)), 422, "amount"),
            (&*id, with("amount", json!(-5)), 422, "amount"),
            (&*id, with("amount", json!("5")), 422, "amount"),
            (&*id, with("amount", json!(1_201)), 409, "only 1200 is left"),
            (&*id, with("currency", json!("usd")), 422, "jpy"),
            (&*id, with("currency", json!("zzz")), 422, "currency"),
            (&*id, with("colour", json!("red")), 422, "colour"),
        ] {
            let answer = shop.refund(path, &body, None);
            assert_eq!(answer.status, status, "{body}: {}", answer.text());
            assert!(answer.text().contains(word), "{body}: {}", answer.text());
        }
        let made = shop.gateway.type_in(&[
            "keys", "create", "--name", "office-2", "--scopes", "operate", "--tenant", "office-2", "--json",
        ]);
        let foreign = made.done().lines()[0]["key"].as_str().unwrap().to_owned();
        let path = format!("/v1/payments/{id}/refunds");
        assert_eq!(
            shop.ask("POST", &path, &foreign, &[], &reason.to_string()).status,
            404,
            "as if it were not there"
        );
        assert_eq!(shop.ask("POST", &path, READ, &[], &reason.to_string()).status, 403);
        let once = |body: &Value| shop.refund(&id, body, Some("same"));
        assert_eq!(once(&with("dry_run", json!(true))).status, 202);
        assert_eq!(once(&with("amount", json!(1))).status, 202, "a dry run used no key up");
        assert_eq!(once(&with("amount", json!(2))).status, 409, "the same key for something else");
        wait_until("the one refund", || shop.payment(&id)["amount_refunded"] == 1);
        let posts = shop.stripe.calls().into_iter().filter(|call| call.method == "POST").count();
        assert_eq!(posts, 1, "nothing else was sent");
        let all = shop.orders(&id, &reason);
        let late = shop.refund(&id, &reason, None);
        assert_eq!(late.status, 409);
        assert!(late.text().contains(&all) || late.text().contains("refunded by"), "{}", late.text());
    });
}

#[test]
fn e1_a_source_without_rights_sends_nothing_ever() {
    each_store(|place| {
        let shop = Shop::open(place, "");
        let (_, id) = shop.sell(1_200);
        let answer = shop.refund(&id, &json!({ "reason": "x" }), None);
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert!(answer.text().contains("refunds = true"), "{}", answer.text());
        assert!(shop.stripe.calls().iter().all(|call| call.method == "GET"));
        assert_eq!(shop.payment(&id)["refund_orders"], json!([]));
    });
}

#[test]
fn e1_two_requests_at_once_take_what_is_left_once() {
    each_store(|place| {
        let shop = Shop::allowed(place);
        let (sold, id) = shop.sell(1_000);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let ask = || shop.refund(&id, &json!({ "reason": "x" }), None).status;
            let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| matches!(status, 202 | 409)), "{statuses:?}");
        wait_until("the refund", || shop.payment(&id)["status"] == "refunded");
        assert_eq!(shop.stripe.refunds_of(&sold.payment_intent).len(), 1);
    });
}

#[test]
fn e1_row_1_a_time_out_after_success_and_a_kill_pay_nothing_twice() {
    each_store(|place| {
        let mut shop = Shop::allowed(place);
        let (sold, id) = shop.sell(1_000);
        shop.stripe.order_for("POST /v1/refunds", StripeFault::Cut { after_bytes: 0 });
        shop.stripe.order_for("POST /v1/refunds", StripeFault::ErrorAfterWork);
        let key = shop.orders(&id, &json!({ "reason": "x" }));
        wait_until("the first call", || shop.stripe.calls().iter().any(|call| call.method == "POST"));
        shop.gateway.server.restart().unwrap();
        shop.wait_for(&id, &key, "done");
        assert_eq!(shop.stripe.refunds_of(&sold.payment_intent).len(), 1);
        let posts = shop.stripe.calls().into_iter().filter(|call| call.method == "POST").count();
        assert_eq!(posts, 1, "it was found in the list");
    });
}

#[test]
fn e1_row_5_refunded_at_the_dashboard_is_met_in_the_first_run() {
    each_store(|place| {
        let shop = Shop::allowed(place);
        let (sold, id) = shop.sell(1_000);
        shop.stripe.refund_by_hand(&sold.payment_intent, None).unwrap();
        let key = shop.orders(&id, &json!({ "reason": "x" }));
        shop.wait_for(&id, &key, "met_elsewhere");
        assert!(shop.stripe.calls().iter().all(|call| call.method == "GET"), "nothing was asked for");
        assert_eq!(shop.payment(&id)["status"], "refunded", "known from the list, before any webhook");
    });
}

#[test]
fn e1_a_refused_key_holds_refunds_until_it_is_mended_and_spends_no_try() {
    let place = Place::sqlite();
    let shop = Shop::allowed(&place);
    let (sold, id) = shop.sell(1_000);
    shop.stripe.restrict_key();
    let key = shop.orders(&id, &json!({ "reason": "x" }));
    wait_until("the alert", || {
        let told = shop.gateway.type_in(&["events", "list", "--own", "--json"]).done().lines();
        told.iter().any(|event| event["type"] == "source.key_refused")
    });
    assert_eq!(shop.order(&id, &key)["status"], "ordered");
    assert!(shop.stripe.refunds_of(&sold.payment_intent).is_empty());
    let base = place.sql("SELECT attempt - base FROM job WHERE kind = 'refund'");
    assert_eq!(base.trim(), "0", "no try was spent");
    // What the key may read is read meanwhile, fees too.
    let (_, other) = shop.sell(700);
    wait_until("the other payment's fee", || !shop.payment(&other)["fee"].is_null());
    let told = shop.gateway.type_in(&["events", "list", "--own", "--json"]).done().lines();
    assert!(told.iter().all(|event| event["type"] != "source.key_accepted"), "{told:?}");
}

#[test]
fn e1_a_disputed_payment_is_a_persons_and_refunds_follow_their_own_way() {
    let place = Place::sqlite();
    let shop = Shop::allowed(&place);
    let (_, disputed) = shop.sell(1_000);
    shop.stripe.order_for("POST /v1/refunds", StripeFault::Disputed);
    let key = shop.orders(&disputed, &json!({ "reason": "x" }));
    shop.wait_for(&disputed, &key, "failed");
    let shown = shop.payment(&disputed);
    assert_eq!(shown["attention"], "refund_given_up");
    let dead = shop.gateway.type_in(&["dead", "list", "--json"]).done().lines();
    assert_eq!(
        (&dead[0]["reason"], &dead[0]["about"]["payment"]),
        (&json!("charge_disputed"), &json!(disputed))
    );

    // Row 4: the balance is missing; row 3: a refund that fails later.
    shop.stripe.set_balance(0);
    let (sold, poor) = shop.sell(700);
    let key = shop.orders(&poor, &json!({ "reason": "x" }));
    shop.wait_for(&poor, &key, "pending");
    assert_eq!(shop.payment(&poor)["status"], "paid", "on its way is not back");
    shop.stripe.top_up(1_000);
    shop.hear();
    shop.wait_for(&poor, &key, "done");
    let refund = shop.stripe.refunds_of(&sold.payment_intent)[0]["id"].as_str().unwrap().to_owned();
    shop.stripe.finish_refund(&refund, "failed");
    shop.hear();
    shop.wait_for(&poor, &key, "failed");
    assert_eq!(shop.payment(&poor)["attention"], "refund_failed");
    let told: Vec<_> = shop.gateway.type_in(&["events", "list", "--own", "--json"]).done().lines();
    let count = |kind: &str| told.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("payment.refund_waiting"), count("payment.refund_failed")), (1, 1));
    assert_eq!(count("payment.refund_given_up"), 1);
}

#[test]
fn e1_too_many_automatic_refunds_wait_for_a_person() {
    each_store(|place| {
        let shop = Shop::open(place, "refunds = true\n[refunds]\nautomatic_per_hour = 1");
        let (_, first) = shop.sell(100);
        let (sold, second) = shop.sell(200);
        let automatic = json!({ "reason": "no_show", "automatic": true });
        let one = shop.orders(&first, &automatic);
        let two = shop.orders(&second, &automatic);
        shop.wait_for(&first, &one, "done");
        assert_eq!(shop.order(&second, &two)["status"], "held_back");
        assert_eq!(shop.payment(&second)["attention"], "refund_held_back");
        assert!(shop.stripe.refunds_of(&sold.payment_intent).is_empty());
        shop.gateway
            .type_in(&["payments", "release", &second, &two])
            .done()
            .mentions(&["released", "ordered"]);
        shop.wait_for(&second, &two, "done");
        shop.gateway.type_in(&["payments", "release", &second, &two]).failed(1).mentions(&["not held back"]);
    });
}

#[test]
fn e1_by_command_with_and_without_a_server() {
    let place = Place::sqlite();
    let shop = Shop::allowed(&place);
    let (sold, id) = shop.sell(1_200);
    let says = |words: &[&str]| shop.gateway.type_in(words);
    says(&["payments", "refund", &id, "--amount", "200", "--dry-run"])
        .done()
        .mentions(&["200 jpy", "nothing was ordered"]);
    says(&["payments", "refund", &sold.payment_intent, "--amount", "5000"])
        .failed(1)
        .mentions(&["only 1200 is left"]);
    says(&["payments", "refund", "pay_nobody"]).failed(1);
    says(&["payments", "refund", &id, "--amount", "0"]).failed(2).mentions(&["whole number"]);
    says(&["payments", "refund", &sold.payment_intent, "--amount", "200"])
        .done()
        .mentions(&["ordered", "request/"]);
    wait_until("the refund", || shop.payment(&id)["amount_refunded"] == 200);
    says(&["payments", "show", &id]).done().mentions(&["REFUND ORDER", "done"]);
}

#[test]
fn e1_at_the_console_a_refund_is_previewed_and_two_clicks_are_one() {
    let place = Place::sqlite();
    let shop = Shop::allowed(&place);
    for (n, look) in [Look::desk("en"), Look::phone("ja")].into_iter().enumerate() {
        let (sold, id) = shop.sell_with(4_800, json!({ "order_id": format!("order-200{n}") }));
        let is_ja = look.language == "ja";
        let viewer = Person::join(&shop.gateway, &format!("looks{n}"), "viewer", look);
        viewer.go(&format!("/console/payments/{id}"));
        assert!(!viewer.browser.page_text().contains(if is_ja { "返金する" } else { "Refund" }));
        let person = Person::join(&shop.gateway, &format!("mika{n}"), "operator", look);
        let picture = |name: &str| person.picture(&format!("refund-{name}-{}", look.language));
        person.go(&format!("/console/payments/{id}"));
        person.browser.click(&format!("main a[href$='{id}/refund']"));
        person.browser.wait_for("input[name=amount]");
        person.check_page("the refund's form");
        picture("form");
        person.browser.fill("input[name=amount]", "99999");
        person.browser.press("Enter");
        person.browser.wait_for(".flash.bad");
        picture("refused");
        assert!(person.browser.page_text().contains("4800"), "{}", person.browser.page_text());
        person.browser.fill("input[name=amount]", "1,800");
        person.browser.press("Enter");
        person.browser.wait_for("main form[method=post] button.primary");
        person.check_page("the refund's preview");
        picture("preview");
        assert!(shop.stripe.refunds_of(&sold.payment_intent).is_empty(), "a preview orders nothing");
        person.browser.click("main form[method=post] button.primary");
        person.browser.wait_for_text(if is_ja {
            "返金を指示しました"
        } else {
            "The refund was ordered"
        });
        wait_until("the refund", || shop.payment(&id)["amount_refunded"] == 1_800);
        // The same form again, as by a second click.
        person.browser.back();
        person.browser.wait_for_text(if is_ja { "すでに指示済み" } else { "was ordered already" });
        assert_eq!(shop.payment(&id)["refund_orders"].as_array().unwrap().len(), 1);
        assert_eq!(shop.stripe.refunds_of(&sold.payment_intent).len(), 1);
        person.go(&format!("/console/payments/{id}"));
        person.check_page("the payment");
        picture("done");
        let said = person.browser.page_text();
        assert!(said.contains("¥1,800") && said.contains(&format!("ADMIN:mika{n}")), "{said}");
    }
}

/// Stripe gives an answer again only to the very same request: whatever its own libraries would send, we send.
#[test]
fn e1_what_we_send_is_what_stripes_own_libraries_send() {
    let place = Place::sqlite();
    let shop = Shop::allowed(&place);
    let (sold, id) = shop.sell(1_200);
    let key = shop.orders(&id, &json!({ "amount": 500, "reason": "requested_by_customer" }));
    shop.wait_for(&id, &key, "done");
    let calls = shop.stripe.calls();
    let sent = calls.iter().find(|call| call.method == "POST").unwrap();
    assert_eq!(sent.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert!(sent.header("stripe-version").is_some());
    let mut params = sent.params.clone();
    params["amount"] = 500.into();
    let words = [shop.stripe.url(), stripe::KEY.into(), params.to_string(), sent.key.clone().unwrap()];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("same.mjs");
    std::fs::write(&file, include_str!("refunds/same.mjs")).unwrap();
    let node = PathBuf::from(std::env::var_os("SEKISHO_TEST_NODE_APPS").expect("./check sets it"));
    std::os::unix::fs::symlink(node.join("node_modules"), folder.path().join("node_modules")).unwrap();
    let python = std::env::var_os("SEKISHO_TEST_PYTHON").expect("./check sets it");
    let made = shop.stripe.refunds_of(&sold.payment_intent);
    for library in
        [Command::new("node").arg(&file), Command::new(python).args(["-c", include_str!("refunds/same.py")])]
    {
        let output = library.args(&words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said, json!([made[0]["id"], true]), "the same request");
    }
    assert_eq!(shop.stripe.refunds_of(&sold.payment_intent).len(), 1);
}
