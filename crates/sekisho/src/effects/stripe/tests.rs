use sekisho_core::delivery::BODY_KEPT_BYTES;
use sekisho_core::job::Class;
use sekisho_lab::app::{Behaviour, DemoApp, Reply};
use sekisho_lab::stripe::{self as lab, Stripe};
use serde_json::{Value, json};

use super::*;
use crate::effects::provider_api::{BODY_MAX, ID_MAX};
use sekisho_core::queue::Failure;

/// Far away: no test waits for it.
const LONG: Duration = Duration::from_secs(20);
/// What a stalling server costs a test.
const SHORT: Duration = Duration::from_millis(200);
const NOW: Time = Time::from_ms(1_770_000_000_000);
const ID: &str = "obj_1";

fn client(url: &str) -> Client {
    Client::new(url, Secret::new(lab::KEY), LONG).unwrap()
}

fn text(value: &Value) -> String {
    value.to_string()
}

/// A fake with one charge.
fn fake() -> (Stripe, Client) {
    let stripe = Stripe::start().unwrap();
    stripe.put(json!({ "id": ID, "object": "charge", "created": 1 }));
    let client = client(&stripe.url());
    (stripe, client)
}

/// A server that gives one answer to everything.
fn answering(reply: Reply) -> (DemoApp, Client) {
    let app = DemoApp::start(Behaviour::Answer(reply)).unwrap();
    let client = client(&app.url());
    (app, client)
}

async fn failure(client: &Client) -> Failure {
    let call = client.retrieve(Collection::Charges, ID, NOW).await;
    let failure = call.result.unwrap_err();
    assert_eq!(call.attempt.reason.as_deref(), Some(failure.reason));
    assert_eq!(call.attempt.error.as_deref(), Some(failure.error.as_str()));
    failure
}

fn verdict(failure: &Failure) -> (Class, &str, bool) {
    (failure.class, failure.reason, failure.blames_destination)
}

#[tokio::test]
async fn e1_every_object_is_read_as_stripe_wrote_it() {
    let stripe = Stripe::start().unwrap();
    let client = client(&stripe.url());
    let kinds = ["checkout.session", "payment_intent", "charge", "balance_transaction", "refund"];
    for (n, kind) in kinds.into_iter().enumerate() {
        stripe.put(json!({ "id": format!("obj_{n}"), "object": kind, "amount": 1200 }));
    }
    let calls = [
        client.retrieve(Collection::CheckoutSessions, "obj_0", NOW).await,
        client.retrieve(Collection::PaymentIntents, "obj_1", NOW).await,
        client.retrieve(Collection::Charges, "obj_2", NOW).await,
        client.retrieve(Collection::BalanceTransactions, "obj_3", NOW).await,
        client.retrieve(Collection::Refunds, "obj_4", NOW).await,
    ];
    for (n, call) in calls.into_iter().enumerate() {
        let object = call.result.unwrap();
        assert_eq!(object.get(), text(&stripe.object(&format!("obj_{n}")).unwrap()));
        assert_eq!((call.attempt.status, &call.attempt.reason, call.attempt.at), (Some(200), &None, NOW));
        assert_eq!(call.attempt.body.unwrap(), object.get().as_bytes());
        assert!(call.attempt.headers.unwrap().contains("request-id"));
    }
}

#[tokio::test]
async fn e1_only_what_is_configured_is_sent() {
    let (stripe, client) = fake();
    client.retrieve(Collection::Charges, ID, NOW).await.result.unwrap();
    stripe.put_for("acct_1", json!({ "id": "ch_2", "object": "charge" }));
    let connected = client.for_account("acct_1").with_version("2026-10-28.endive").unwrap();
    connected.retrieve(Collection::Charges, "ch_2", NOW).await.result.unwrap();
    let calls = stripe.calls();
    for header in ["stripe-account", "stripe-version", "idempotency-key", "content-type"] {
        assert_eq!(calls[0].header(header), None, "{header}");
    }
    assert_eq!(calls[0].header("user-agent"), Some(concat!("Sekisho/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(calls[1].header("stripe-account"), Some("acct_1"));
    assert_eq!(calls[1].header("stripe-version"), Some("2026-10-28.endive"));
}

#[tokio::test]
async fn e1_refunds_are_listed_by_what_they_refund() {
    let stripe = Stripe::start().unwrap();
    let client = client(&stripe.url());
    for n in 0..3 {
        stripe.put(json!({
            "id": format!("re_{n}"), "object": "refund", "created": n,
            "payment_intent": format!("pi_{}", n % 2), "charge": "ch_1",
        }));
    }
    stripe.put(json!({ "id": "ch_2", "object": "charge" }));
    for (of, expected) in [
        (RefundsOf::PaymentIntent("pi_0".into()), vec!["re_2", "re_0"]),
        (RefundsOf::Charge("ch_1".into()), vec!["re_2", "re_1", "re_0"]),
        (RefundsOf::Charge("ch_2".into()), vec![]),
    ] {
        let page = client.refunds(&of, &Paging::default(), NOW).await.result.unwrap();
        assert_eq!(ids(&page), expected, "{of:?}");
    }
    let all = client.list(Collection::Refunds, &Paging::default(), NOW).await.result.unwrap();
    assert_eq!(ids(&all), ["re_2", "re_1", "re_0"]);
}

fn ids(page: &StripePage) -> Vec<String> {
    let id = |object: &ApiObject| {
        serde_json::from_str::<Value>(object.get()).unwrap()["id"].as_str().unwrap().to_owned()
    };
    page.data.iter().map(id).collect()
}

fn events() -> (Stripe, Client) {
    let (stripe, client) = fake();
    for n in 0..5 {
        let kind = if n == 3 { "charge.succeeded" } else { "refund.created" };
        stripe.put(json!({ "id": format!("evt_{n}"), "object": "event", "created": 100 + n, "type": kind }));
    }
    (stripe, client)
}

#[tokio::test]
async fn e2_events_are_paged_towards_the_past_and_towards_the_present() {
    let (_stripe, client) = events();
    let read = async |cursor: Cursor| {
        let paging = Paging { cursor, limit: 2, ..Paging::default() };
        client.events(&[], &paging, NOW).await.result.unwrap()
    };
    let newest = read(Cursor::Newest).await;
    assert_eq!((ids(&newest), newest.has_more), (vec!["evt_4".into(), "evt_3".into()], true));
    let older = read(newest.older().unwrap()).await;
    assert_eq!((ids(&older), older.has_more), (vec!["evt_2".into(), "evt_1".into()], true));
    let oldest = read(older.older().unwrap()).await;
    assert_eq!((ids(&oldest), oldest.has_more), (vec!["evt_0".into()], false));
    let back = read(oldest.newer().unwrap()).await;
    assert_eq!((ids(&back), back.has_more), (ids(&older), true));
    let none = read(newest.newer().unwrap()).await;
    assert!(none.data.is_empty() && none.older().is_none() && none.newer().is_none());
}

#[tokio::test]
async fn e2_lists_are_narrowed_by_type_and_age() {
    let (stripe, client) = events();
    let all = Paging::default();
    for (types, expected) in [(&["charge.*"][..], 1), (&["charge.succeeded", "refund.created"], 5)] {
        assert_eq!(client.events(types, &all, NOW).await.result.unwrap().data.len(), expected);
    }
    let recent = Paging { created_since: Some(Time::from_seconds(103)), ..Paging::default() };
    assert_eq!(client.events(&[], &recent, NOW).await.result.unwrap().data.len(), 2);
    stripe.put(json!({ "id": "pi_1", "object": "payment_intent", "created": 102 }));
    stripe.put(json!({ "id": "pi_2", "object": "payment_intent", "created": 103 }));
    assert_eq!(ids(&client.list(Collection::PaymentIntents, &recent, NOW).await.result.unwrap()), ["pi_2"]);
    assert_eq!(client.list(Collection::PaymentIntents, &all, NOW).await.result.unwrap().data.len(), 2);
}

#[tokio::test]
async fn e2_a_forgotten_cursor_is_told_apart() {
    let (stripe, client) = events();
    stripe.forget("evt_2");
    let paging = Paging { cursor: Cursor::NewerThan("evt_2".into()), ..Paging::default() };
    let failure = client.events(&[], &paging, NOW).await.result.unwrap_err();
    assert_eq!(verdict(&failure), (Class::Terminal, "provider_not_found", false));
    let failure =
        client.events(&[], &Paging { limit: 0, ..Paging::default() }, NOW).await.result.unwrap_err();
    assert_eq!(verdict(&failure), (Class::Terminal, "provider_refused", false));
}

#[tokio::test]
async fn e1_trouble_that_passes_is_transient() {
    let (stripe, client) = fake();
    let instead = |status: u16| lab::StripeFault::Instead(Reply::status(status).with_body("<html>"));
    for (fault, reason, blames) in [
        (lab::StripeFault::RateLimited { retry_after_s: None }, "provider_rate_limited", true),
        (lab::StripeFault::LockTimeout, "stripe_locked", false),
        (lab::StripeFault::KeyInUse, "provider_conflict", false),
        (lab::StripeFault::Error, "provider_unavailable", true),
        (lab::StripeFault::StoredError, "provider_unavailable", true),
        (lab::StripeFault::ErrorAfterWork, "provider_unavailable", true),
        (instead(503), "provider_unavailable", true),
        (instead(200), "broken", true),
        (lab::StripeFault::Cut { after_bytes: 0 }, "broken", true),
        (lab::StripeFault::Cut { after_bytes: 30 }, "broken", true),
        (lab::StripeFault::Cut { after_bytes: 110 }, "broken", true),
    ] {
        stripe.order(fault.clone());
        let failure = failure(&client).await;
        assert_eq!(verdict(&failure), (Class::Transient, reason, blames), "{fault:?}: {failure:?}");
        assert!(client.retrieve(Collection::Charges, ID, NOW).await.result.is_ok(), "after {fault:?}");
    }
}

#[tokio::test]
async fn e1_silence_ends_at_the_time_out() {
    let (stripe, _) = fake();
    let client = Client::new(&stripe.url(), Secret::new(lab::KEY), SHORT).unwrap();
    for fault in [lab::StripeFault::LateWork(LONG), lab::StripeFault::LateAnswer(LONG)] {
        stripe.order(fault);
        let call = client.retrieve(Collection::Charges, ID, NOW).await;
        let failure = call.result.unwrap_err();
        assert_eq!(verdict(&failure), (Class::Transient, "timeout", true));
        assert_eq!((call.attempt.status, call.attempt.body), (None, None));
        assert!((200..2_000).contains(&call.attempt.took_ms), "{} ms", call.attempt.took_ms);
    }
    drop(stripe);
    assert_eq!(verdict(&failure(&client).await), (Class::Transient, "connect", true));
}

#[tokio::test]
async fn e1_what_stays_wrong_is_terminal() {
    let (stripe, client) = fake();
    let failure = client.retrieve(Collection::Charges, "ch_9", NOW).await.result.unwrap_err();
    assert_eq!(verdict(&failure), (Class::Terminal, "provider_not_found", false));
    assert_eq!(failure.error, "Stripe answered 404: No such charge: 'ch_9' (resource_missing)");
    let failure =
        client.for_account("acct_9").retrieve(Collection::Charges, ID, NOW).await.result.unwrap_err();
    assert_eq!(verdict(&failure), (Class::Terminal, "provider_forbidden", false));
    let stranger = Client::new(&stripe.url(), Secret::new("sk_test_stranger"), LONG).unwrap();
    let failure = stranger.retrieve(Collection::Charges, ID, NOW).await.result.unwrap_err();
    assert_eq!(verdict(&failure), (Class::Terminal, "provider_unauthorized", false));
    for (status, reason) in [
        (302, "provider_redirect"),
        (400, "provider_refused"),
        (402, "provider_refused"),
        (404, "provider_not_found"),
        (422, "provider_refused"),
    ] {
        stripe.order(lab::StripeFault::Instead(
            Reply::status(status).with_header("location", "/v1/charges/obj_1"),
        ));
        let failure = self::failure(&client).await;
        assert_eq!(verdict(&failure), (Class::Terminal, reason, false), "{status}");
        assert_eq!(failure.error, format!("Stripe answered {status}"));
    }
}

#[tokio::test]
async fn e1_what_stripe_says_about_a_retry_goes_first() {
    let (stripe, client) = fake();
    for (status, says, class) in [
        (500, "false", Class::Terminal),
        (429, "false", Class::Terminal),
        (400, "true", Class::Transient),
        (409, "true", Class::Transient),
        (500, "perhaps", Class::Transient),
        (400, "perhaps", Class::Terminal),
    ] {
        let reply = Reply::status(status).with_header("Stripe-Should-Retry", says);
        stripe.order(lab::StripeFault::Instead(reply));
        assert_eq!(failure(&client).await.class, class, "{status} {says}");
    }
}

#[tokio::test]
async fn e1_a_retry_after_is_honoured() {
    let (stripe, client) = fake();
    stripe.order(lab::StripeFault::RateLimited { retry_after_s: Some(7) });
    assert_eq!(failure(&client).await.retry_after_ms, Some(7_000));
    stripe.order(lab::StripeFault::RateLimited { retry_after_s: None });
    assert_eq!(failure(&client).await.retry_after_ms, None);
}

#[tokio::test]
async fn e1_only_json_objects_are_objects_and_only_lists_are_pages() {
    for body in ["", "null", "[]", "5", "{\"id\":", "{} {}", "<html>ok</html>"] {
        let (_app, client) = answering(Reply::status(200).with_body(body));
        assert_eq!(failure(&client).await.reason, "broken", "{body}");
    }
    for body in ["{}", "{\"data\":[]}", "{\"data\":5,\"has_more\":true}"] {
        let (_app, client) = answering(Reply::status(200).with_body(body));
        let page = client.events(&[], &Paging::default(), NOW).await;
        assert_eq!(page.result.unwrap_err().reason, "broken", "{body}");
    }
}

#[tokio::test]
async fn e1_a_large_page_is_read_whole_and_kept_in_part() {
    let (stripe, client) = fake();
    let filling = "x".repeat(10_000);
    for n in 0..100 {
        stripe.put(json!({ "id": format!("evt_{n}"), "object": "event", "created": n, "filling": filling }));
    }
    let call = client.events(&[], &Paging::default(), NOW).await;
    assert_eq!(call.result.unwrap().data.len(), 100);
    assert_eq!(call.attempt.body.unwrap().len(), BODY_KEPT_BYTES);
}

#[tokio::test]
async fn e1_an_answer_beyond_all_measure_is_not_read_on() {
    let body = format!("{{\"filling\":\"{}\"}}", "x".repeat(BODY_MAX));
    let (_app, client) = answering(Reply::status(200).with_body(&body));
    assert_eq!(verdict(&failure(&client).await), (Class::Terminal, "provider_too_large", false));
}

#[tokio::test]
async fn e1_what_is_no_id_is_not_asked_for() {
    let (stripe, client) = fake();
    let long = "x".repeat(ID_MAX + 1);
    for id in ["", ".", "..", "../events", "a/b", "a?b", "a%2fb", "a b", "a\r\nx: y", "関", &long] {
        let call = client.retrieve(Collection::Charges, id, NOW).await;
        let failure = call.result.unwrap_err();
        assert_eq!(verdict(&failure), (Class::Terminal, "provider_bad_id", false), "{id:?}");
        assert_eq!((call.attempt.status, call.attempt.reason.as_deref()), (None, Some("provider_bad_id")));
        let failure = client.for_account(id).retrieve(Collection::Charges, ID, NOW).await.result.unwrap_err();
        assert_eq!(failure.reason, "provider_bad_id", "{id:?} as an account");
    }
    assert_eq!(stripe.calls().len(), 0);
}

#[tokio::test]
async fn e1_the_secret_key_is_nowhere_to_be_read() {
    let echo = |status| {
        let body = json!({ "error": { "message": format!("not {}", lab::KEY), "code": lab::KEY } });
        Reply::status(status).with_header("x-echo", lab::KEY).with_body(&text(&body))
    };
    for status in [200, 401, 500] {
        let (_app, client) = answering(echo(status));
        let call = client.retrieve(Collection::Charges, ID, NOW).await;
        let seen = format!("{:?} {:?} {client:?}", call.attempt, call.result.err());
        assert!(!seen.contains(lab::KEY) && seen.contains("(hidden)"), "{seen}");
    }
    let (_stripe, client) = fake();
    let unsent =
        client.retrieve(Collection::Charges, &format!("../{}", lab::KEY), NOW).await.result.unwrap_err();
    assert!(!unsent.error.contains(lab::KEY), "{}", unsent.error);
}

#[tokio::test]
async fn e1_the_key_travels_encrypted_or_not_at_all() {
    let open = |url: &str, key: &str| Client::new(url, Secret::new(key), LONG);
    for url in [
        BASE_URL,
        "https://stripe.test/mirror/",
        "http://127.0.0.1:1",
        "http://localhost:1",
        "http://[::1]:1",
    ] {
        assert!(open(url, "sk_1").is_ok(), "{url}");
    }
    for url in [
        "http://api.stripe.com",
        "http://10.0.0.1",
        "ftp://a.test",
        "https://a:b@c.test",
        "https://a.test/?b",
        "nothing",
    ] {
        assert!(open(url, "sk_1").is_err(), "{url}");
    }
    for key in ["", "two words", "line\nbreak", "関所"] {
        let error = format!("{:#}", open(BASE_URL, key).unwrap_err());
        assert!(key.is_empty() || !error.contains(key), "{error}");
    }
}

#[tokio::test]
async fn e1_a_base_url_may_have_a_path() {
    let app = DemoApp::start(Behaviour::Answer(Reply::status(200).with_body("{}"))).unwrap();
    client(&format!("{}/mirror/", app.url())).retrieve(Collection::Charges, ID, NOW).await.result.unwrap();
    assert_eq!(app.received()[0].path, "/mirror/v1/charges/obj_1");
}
