//! E1, F1, F8: customers pay in Checkout Sessions that Sekisho makes: one at a time, expired before their places are given away,
//! and never taken for cancelled once they are complete.

use std::thread;

use sekisho_lab::stripe::{StripeFault, VOUCHER_S};
use serde_json::{Value, json};

use crate::reservations::{Shop, json_of};
use crate::support::{Place, Response, each_store, wait_until};

const TILL: &str = "[checkout]\nsource = \"stripe\"\n[pages]\nurl = \"http://pay.example.jp\"\n";
const MAKE: &str = "POST /v1/checkout/sessions";

/// An order whose customer is sent to the till.
struct Order {
    id: String,
    payment: String,
    /// Of its page.
    path: String,
    url: String,
    session: String,
}

fn open(place: &Place) -> Shop {
    Shop::open(place, TILL)
}

fn order(shop: &Shop, reference: &str, more: &Value) -> Order {
    let mut body = json!({ "checkout": {}, "language": "ja", "email": "taro@example.jp" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let held = shop.hold_with(&format!("slot-{reference}"), reference, body);
    assert_eq!(held.status, 201, "{}", held.text());
    let held = json_of(&held);
    let text = |name: &str| held[name].as_str().unwrap_or_else(|| panic!("{name} in {held}")).to_owned();
    let url = text("checkout_url");
    Order {
        id: text("id"),
        payment: text("payment"),
        path: text("customer_url").strip_prefix("http://pay.example.jp").unwrap().to_owned(),
        session: session_of(&url),
        url,
    }
}

fn session_of(url: &str) -> String {
    url.strip_prefix("https://checkout.stripe.com/c/pay/").unwrap_or_else(|| panic!("{url}")).to_owned()
}

fn visit(shop: &Shop, method: &str, path: &str, form: &str) -> Response {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    sekisho_lab::http::request(shop.gateway.address(), method, path, &headers, form.as_bytes()).unwrap()
}

/// The customer clicks; where they are sent.
fn retry(shop: &Shop, order: &Order, after: u32) -> String {
    let answer = visit(shop, "POST", &format!("{}/retry", order.path), &format!("after={after}"));
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.header("location").unwrap().to_owned()
}

fn statuses(shop: &Shop) -> Vec<String> {
    shop.stripe.sessions().iter().map(|one| one["status"].as_str().unwrap().to_owned()).collect()
}

fn told(shop: &Shop, kind: &str) -> usize {
    let found = shop.get(&format!("/v1/events?source=sekisho&type={kind}"));
    found["items"].as_array().unwrap().len()
}

#[test]
fn f1_a_customer_pays_in_the_session_that_was_made_for_the_hold() {
    each_store(|place| {
        let shop = open(place);
        let order = order(&shop, "A-1", &json!({}));
        let shown = shop.get(&format!("/v1/reservations/{}", order.id));
        assert_eq!(shown["checkout_url"], json!(order.url));
        let [session] = &shop.stripe.sessions()[..] else { panic!("one session is made") };
        for (field, wanted) in [
            ("mode", json!("payment")),
            ("amount_total", json!(4_800)),
            ("currency", json!("jpy")),
            ("client_reference_id", json!("A-1")),
            ("customer_email", json!("taro@example.jp")),
            ("locale", json!("ja")),
            ("success_url", json!(format!("http://pay.example.jp{}/thanks", order.path))),
            ("cancel_url", json!(format!("http://pay.example.jp{}/failed?try=1", order.path))),
        ] {
            assert_eq!(session[field], wanted, "{field}");
        }
        assert_eq!(session["metadata"]["order_id"], json!(order.payment));
        assert_eq!(session["metadata"]["sekisho_checkout"], json!(format!("{}/1", order.payment)));
        let until = session["expires_at"].as_i64().unwrap() - session["created"].as_i64().unwrap();
        assert!((1_855..=1_861).contains(&until), "a minute more than the provider asks for: {until}");
        // Whoever asks again gets the same.
        let again = shop.post(&format!("/v1/reservations/{}/checkout", order.id), &json!({}));
        assert_eq!(
            (&again["url"], &again["try"], &again["status"]),
            (&json!(order.url), &json!(1), &json!("open"))
        );
        shop.stripe.pay_session(&order.session);
        let events = shop.stripe.take_unsent();
        for event in events.iter().rev().chain(&events) {
            let sent = shop.gateway.send(&crate::support::Provider::stripe().body(&event.to_string()));
            assert!([200, 204].contains(&sent.status));
        }
        shop.wait_for(&order.id, "confirmed");
        let paid = shop.get(&format!("/v1/payments/{}", order.payment));
        assert_eq!(
            (&paid["status"], &paid["amount_received"], &paid["attention"]),
            (&json!("paid"), &json!(4_800), &Value::Null)
        );
        let late = shop.ask("POST", &format!("/v1/reservations/{}/checkout", order.id), &[], &json!({}));
        assert_eq!(late.status, 409, "{}", late.text());
        assert_eq!((told(&shop, "payment.checkout_ready"), shop.stripe.sessions().len()), (1, 1));
        assert!(shop.get(&format!("/v1/reservations/{}", order.id))["checkout_url"].is_null());
        shop.gateway.type_in(&["audit", "verify"]).done();
    });
}

#[test]
fn e1_an_answer_that_is_lost_costs_no_second_session() {
    for forgets in [false, true] {
        each_store(|place| {
            let shop = open(place);
            for fault in [StripeFault::Cut { after_bytes: 0 }, StripeFault::Error] {
                shop.stripe.order_for(MAKE, fault);
            }
            let made = thread::scope(|scope| {
                let asked = scope.spawn(|| order(&shop, "A-1", &json!({})));
                let posts = || shop.stripe.calls().iter().filter(|call| call.method == "POST").count();
                wait_until("the first call", || posts() > 0);
                if forgets {
                    shop.stripe.forget_keys();
                }
                asked.join().unwrap()
            });
            assert_eq!(shop.stripe.sessions().len(), 1, "keys forgotten: {forgets}");
            assert_eq!(shop.stripe.sessions()[0]["id"], json!(made.session));
            shop.stripe.pay_session(&made.session);
            shop.hear();
            shop.wait_for(&made.id, "confirmed");
        });
    }
}

#[test]
fn f8_a_retry_expires_the_old_session_first_and_two_clicks_make_one() {
    each_store(|place| {
        let shop = open(place);
        let order = order(&shop, "A-1", &json!({}));
        let failed = visit(&shop, "GET", &format!("{}/failed?try=1", order.path), "").text();
        for words in [
            "決済処理中にエラーが発生しました。再度お試しください。",
            "再試行",
            "name=\"after\" value=\"1\"",
            "/retry",
        ] {
            assert!(failed.contains(words), "{words} in {failed}");
        }
        assert_eq!(statuses(&shop), ["open"], "a page that is looked at changes nothing");
        let places: Vec<String> = thread::scope(|scope| {
            let clicks: Vec<_> = (0..3).map(|_| scope.spawn(|| retry(&shop, &order, 1))).collect();
            clicks.into_iter().map(|click| click.join().unwrap()).collect()
        });
        assert!(places.iter().all(|url| *url == places[0] && *url != order.url), "{places:?}");
        assert_eq!(statuses(&shop), ["expired", "open"]);
        let calls = shop.stripe.calls();
        let at = |wanted: &str, nth: usize| {
            let mut found = calls.iter().filter(|call| call.method == "POST" && call.path.ends_with(wanted));
            found.nth(nth).map(|call| call.answered).unwrap()
        };
        assert!(at("/expire", 0) < at("/sessions", 1), "expired first, then made");
        assert_eq!(shop.get(&format!("/v1/reservations/{}", order.id))["status"], "hold");
        shop.stripe.pay_session(&session_of(&places[0]));
        shop.hear();
        shop.wait_for(&order.id, "confirmed");
        assert_eq!(retry(&shop, &order, 2), format!("{}/paying", order.path), "there is nothing to pay");
        assert_eq!(shop.stripe.sessions().len(), 2);
    });
}

#[test]
fn f8_whoever_has_paid_the_old_session_is_not_asked_to_pay_again() {
    each_store(|place| {
        let shop = open(place);
        let order = order(&shop, "A-1", &json!({}));
        // The customer pays, no webhook comes, and they click all the same.
        shop.stripe.pay_session(&order.session);
        let paying = retry(&shop, &order, 1);
        assert_eq!(paying, format!("{}/paying", order.path));
        shop.wait_for(&order.id, "confirmed");
        assert_eq!(statuses(&shop), ["complete"], "no second session");
        assert_eq!(visit(&shop, "GET", &paying, "").header("location"), Some(&*order.path));
        shop.hear();
        let paid = shop.get(&format!("/v1/payments/{}", order.payment));
        assert_eq!((&paid["status"], &paid["amount_received"]), (&json!("paid"), &json!(4_800)));
        // Money that comes on top needs a person, and cancels nothing.
        shop.stripe.sell(4_800, "jpy", json!({ "order_id": order.payment }));
        shop.hear();
        wait_until("attention", || {
            shop.get(&format!("/v1/payments/{}", order.payment))["attention"] == "overpaid"
        });
        assert_eq!(shop.get(&format!("/v1/reservations/{}", order.id))["status"], "confirmed");
    });
}

#[test]
fn f1_the_till_is_closed_before_the_seat_is_given_away() {
    each_store(|place| {
        let shop = open(place);
        let left = order(&shop, "A-1", &json!({ "hold": "2s" }));
        let paid = order(&shop, "A-2", &json!({ "hold": "2s" }));
        shop.stripe.pay_session(&paid.session);
        shop.wait_for(&left.id, "expired");
        assert_eq!(shop.stripe.object(&left.session).unwrap()["status"], "expired", "within the grace");
        // Whose session is complete has the place, though nobody told of it.
        shop.wait_for(&paid.id, "confirmed");
        let other = shop.hold("slot-A-1", "B-1");
        assert_eq!(other.status, 201, "{}", other.text());
        // Who comes back too late is told that the places are gone, and pays nothing.
        let gone = visit(&shop, "POST", &format!("{}/retry", left.path), "after=1");
        assert_eq!(gone.status, 409, "{}", gone.text());
        assert!(gone.text().contains("満席"), "{}", gone.text());
        assert_eq!(shop.stripe.sessions().len(), 2);
        shop.post(
            &format!("/v1/reservations/{}/cancel", json_of(&other)["id"].as_str().unwrap()),
            &json!({ "reason": "x" }),
        );
        let url = retry(&shop, &left, 1);
        assert_eq!(
            shop.get(&format!("/v1/reservations/{}", left.id))["status"],
            "hold",
            "a place is free again"
        );
        shop.stripe.pay_session(&session_of(&url));
        shop.hear();
        shop.wait_for(&left.id, "confirmed");
    });
}

#[test]
fn f1_who_pays_at_the_konbini_has_as_long_as_the_voucher() {
    each_store(|place| {
        let shop = open(place);
        let order = order(&shop, "A-1", &json!({ "checkout": { "methods": ["konbini"] } }));
        assert_eq!(shop.stripe.sessions()[0]["payment_method_types"], json!(["konbini"]));
        shop.stripe.take_voucher(&order.session);
        let now = sekisho::now().seconds();
        // The voucher's own event never comes: it is asked for.
        for event in shop.stripe.take_unsent() {
            if event["type"] == "checkout.session.completed" {
                shop.gateway.send(&crate::support::Provider::stripe().body(&event.to_string()));
            }
        }
        let until = || {
            let shown = shop.get(&format!("/v1/reservations/{}", order.id))["hold_expires_at"].clone();
            sekisho_core::Time::parse_rfc3339(shown.as_str().unwrap()).unwrap().seconds() - now
        };
        wait_until("the voucher's end", || (until() - VOUCHER_S - 3_600).abs() < 60);
        assert_eq!(
            retry(&shop, &order, 1),
            format!("{}/paying", order.path),
            "not while the voucher can be paid"
        );
        assert!(
            visit(&shop, "GET", &format!("{}/paying", order.path), "")
                .header("location")
                .unwrap()
                .contains("/thanks")
        );
        shop.stripe.pay_voucher(&order.session);
        shop.hear();
        shop.wait_for(&order.id, "confirmed");
    });
}

#[test]
fn f1_what_is_cancelled_can_not_be_paid_and_sessions_of_the_app_count() {
    each_store(|place| {
        let shop = open(place);
        let order = order(&shop, "A-1", &json!({}));
        shop.post(&format!("/v1/reservations/{}/cancel", order.id), &json!({ "reason": "x" }));
        wait_until("the session's end", || {
            shop.stripe.object(&order.session).unwrap()["status"] == "expired"
        });
        let held = shop.hold("slot-B", "B-1");
        let id = json_of(&held)["id"].as_str().unwrap().to_owned();
        let session = shop.stripe.open_session(4_800, "jpy", json!({}));
        let told = shop
            .gateway
            .type_in(&["reservations", "checkout", &id, "--session", &session, "--json"])
            .done()
            .lines();
        assert_eq!((&told[0]["try"], &told[0]["status"]), (&json!(1), &json!("open")), "{told:?}");
        shop.stripe.pay_session(&session);
        shop.hear();
        shop.wait_for(&id, "confirmed");
        let held = shop.hold_with("slot-C", "C-1", json!({ "hold": "2s" }));
        let id = json_of(&held)["id"].as_str().unwrap().to_owned();
        let session = shop.stripe.open_session(4_800, "jpy", json!({}));
        shop.post(&format!("/v1/reservations/{id}/checkout"), &json!({ "session": session }));
        shop.wait_for(&id, "expired");
        assert_eq!(shop.stripe.object(&session).unwrap()["status"], "expired");
    });
}

#[test]
fn e1_what_cannot_be_checked_out_is_told_why_and_nothing_is_sent() {
    each_store(|place| {
        let more = "[[source]]\nname = \"keyless\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_SECRET\"]\npath = \"/webhooks/keyless\"\n";
        let shop = Shop::open(place, &format!("{more}{TILL}"));
        let hold = |more: Value| shop.hold_with("slot-1", "A-1", more);
        for (more, status, words) in [
            (json!({ "checkout": { "source": "nobody" } }), 422, "there is no source"),
            (json!({ "checkout": { "source": "keyless" } }), 422, "has no api_key"),
            (json!({ "checkout": { "methods": ["Card!"] } }), 422, "expected words"),
            (json!({ "checkout": { "success_url": "javascript:alert(1)" } }), 422, "https://"),
            (json!({ "checkout": { "colour": "red" } }), 422, "colour"),
            (json!({ "checkout": {}, "livemode": true }), 422, "is for test payments"),
            (
                json!({ "checkout": {}, "payment": { "amount": 0, "currency": "jpy" } }),
                422,
                "nothing is to be paid",
            ),
        ] {
            let answer = hold(more.clone());
            assert_eq!(answer.status, status, "{more}: {}", answer.text());
            assert!(answer.text().contains(words), "{more}: {}", answer.text());
        }
        let free = shop.hold_with("slot-2", "F-1", json!({ "payment": null }));
        let free = json_of(&free)["id"].as_str().unwrap().to_owned();
        let held = json_of(&hold(json!({ "tenant": "office-1" })))["id"].as_str().unwrap().to_owned();
        let gone = json_of(&shop.hold("slot-3", "G-1"))["id"].as_str().unwrap().to_owned();
        shop.post(&format!("/v1/reservations/{gone}/cancel"), &json!({ "reason": "x" }));
        for (id, body, status, words) in [
            ("rsv_nobody", json!({}), 404, "no reservation"),
            (&*free, json!({}), 409, "nothing is to be paid"),
            (&*gone, json!({}), 409, "was cancelled"),
            (&*held, json!({ "session": "cs_live_1" }), 422, "cs_test_"),
            (&*held, json!({ "session": "cs_test_1", "methods": ["card"] }), 422, "stands alone"),
            (&*held, json!({ "source": "nobody" }), 422, "there is no source"),
        ] {
            let answer = shop.ask("POST", &format!("/v1/reservations/{id}/checkout"), &[], &body);
            assert_eq!(answer.status, status, "{id} {body}: {}", answer.text());
            assert!(answer.text().contains(words), "{id} {body}: {}", answer.text());
        }
        let made = shop.gateway.type_in(&[
            "keys", "create", "--name", "office-2", "--scopes", "write", "--tenant", "office-2", "--json",
        ]);
        let foreign = format!("Bearer {}", made.done().lines()[0]["key"].as_str().unwrap());
        let path = format!("/v1/reservations/{held}/checkout");
        let headers = [("authorization", foreign.as_str())];
        let answer =
            sekisho_lab::http::request(shop.gateway.address(), "POST", &path, &headers, b"{}").unwrap();
        assert_eq!(answer.status, 404, "as if it were not there");
        let posts = shop.stripe.calls().into_iter().filter(|call| call.method == "POST").count();
        assert_eq!(posts, 0, "nothing was sent");
        let own = shop.post(&path, &json!({}));
        assert_eq!(own["try"], 1, "{own}");
    });
}

#[test]
fn f8_after_three_failures_the_customer_is_asked_to_write_and_nobody_clicks_for_ever() {
    each_store(|place| {
        let shop = open(place);
        let order = order(&shop, "A-1", &json!({}));
        for after in 1..=5 {
            assert_ne!(retry(&shop, &order, after), order.url);
        }
        let third = visit(&shop, "GET", &format!("{}/failed?try=3", order.path), "").text();
        assert!(third.contains("お問い合わせください") && !third.contains("再試行"), "{third}");
        let sixth = visit(&shop, "POST", &format!("{}/retry", order.path), "after=6");
        assert_eq!((sixth.status, sixth.header("retry-after").is_some()), (429, true));
        assert_eq!(visit(&shop, "GET", &format!("{}/retry", order.path), "").status, 405);
        let open = statuses(&shop).iter().filter(|status| *status == "open").count();
        assert_eq!((shop.stripe.sessions().len(), open), (6, 1), "one can be paid");
    });
}
