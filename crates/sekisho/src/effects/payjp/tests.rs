use sekisho_lab::providers::{Fake, payjp as lab};
use serde_json::json;

use super::*;
use crate::effects::provider_api::checks::{
    LONG, NOW, all_events, all_objects, nothing_leaks, refusals, wrong_key,
};

fn client(fake: &Fake, key: &str) -> Client {
    Client::new(&fake.url(), Secret::new(key), LONG).unwrap()
}

fn fake(kind: &'static str, count: i64) -> (Fake, Client) {
    let fake = lab::start().unwrap();
    for n in 0..count {
        fake.put(kind, json!({ "id": format!("one_{n}"), "object": kind, "created": 1_000 + n }));
    }
    let client = client(&fake, lab::KEY);
    (fake, client)
}

#[tokio::test]
async fn e2_events_are_listed_page_by_page_within_their_time() {
    let (_fake, client) = fake("event", 250);
    let (since, until) = (Time::from_seconds(1_010), Time::from_seconds(1_229));
    let (found, pages) = all_events(&client, since, until, "id").await;
    assert_eq!((found.len(), pages), (220, 3));
    assert_eq!((&*found[0], &*found[219]), ("one_229", "one_10"));
}

#[tokio::test]
async fn e2_what_is_new_meanwhile_hides_nothing() {
    let (fake, client) = fake("charge", 150);
    let since = Time::from_seconds(0);
    let first = client.list("charge", since, None, NOW).await.result.unwrap();
    fake.put("charge", json!({ "id": "one_150", "object": "charge", "created": 1_150 }));
    let second = client.list("charge", since, first.next.as_deref(), NOW).await.result.unwrap();
    assert_eq!((first.items.len(), second.items.len(), second.next), (100, 51, None));
}

#[tokio::test]
async fn e2_charges_are_listed() {
    let (fake, client) = fake("charge", 120);
    assert_eq!(client.objects(), ["charge"]);
    let (found, pages) = all_objects(&client, "charge", Time::from_seconds(1_005)).await;
    assert_eq!((found.len(), pages), (115, 2));
    let failure = client.list("refund", NOW, None, NOW).await.result.err().unwrap();
    assert_eq!((failure.reason, fake.calls().len()), ("provider_lists_none", 2));
}

#[tokio::test]
async fn e1_every_answer_has_its_meaning() {
    let (fake, client) = fake("event", 1);
    refusals(&fake, async || client.events(NOW, NOW, None, NOW).await).await;
    let stranger = self::client(&fake, "sk_test_stranger");
    wrong_key(stranger.events(NOW, NOW, None, NOW).await, "Invalid API Key (invalid_key)").await;
}

#[tokio::test]
async fn e1_no_secret_is_kept() {
    let (fake, client) = fake("event", 1);
    let basic = provider_api::basic(lab::KEY, "").expose().to_owned();
    nothing_leaks(&fake, &[lab::KEY, &basic], async || client.events(NOW, NOW, None, NOW).await).await;
    assert!(!format!("{client:?}").contains(lab::KEY));
}
