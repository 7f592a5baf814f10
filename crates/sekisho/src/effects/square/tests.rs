use sekisho_lab::providers::{Fake, square as lab};
use serde_json::{Value, json};

use super::*;
use crate::effects::provider_api::checks::{
    LONG, NOW, all_events, all_objects, nothing_leaks, refusals, wrong_key,
};

fn client(fake: &Fake, key: &str) -> Client {
    Client::new(&fake.url(), Secret::new(key), LONG).unwrap()
}

fn fake(kind: &'static str, id: &str, count: i64) -> (Fake, Client) {
    let fake = lab::start().unwrap();
    for n in 0..count {
        let time = Time::from_seconds(1_000 + n).to_string();
        fake.put(kind, json!({ id: format!("sq-{n}"), "created_at": time }));
    }
    let client = client(&fake, lab::KEY);
    (fake, client)
}

#[tokio::test]
async fn e2_events_are_searched_page_by_page_within_their_time() {
    let (fake, client) = fake("event", "event_id", 250);
    let (since, until) = (Time::from_seconds(1_010), Time::from_seconds(1_229));
    let (found, pages) = all_events(&client, since, until, "event_id").await;
    assert_eq!((found.len(), pages), (220, 3));
    assert_eq!((&*found[0], &*found[219]), ("sq-229", "sq-10"));
    let searches: Vec<Value> =
        fake.calls().iter().map(|call| serde_json::from_slice(&call.body).unwrap()).collect();
    assert!(
        searches.iter().all(|search| search["query"] == searches[0]["query"]),
        "the question stays the same"
    );
    assert_eq!(fake.calls()[0].header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn e2_payments_and_refunds_are_listed() {
    // Payments by location: where these are, the main one's two pages, the other's one.
    for (kind, expected) in [("payment", 4), ("refund", 2)] {
        let (_fake, client) = fake(kind, "id", 120);
        let (found, pages) = all_objects(&client, kind, Time::from_seconds(1_005)).await;
        assert_eq!((found.len(), pages), (115, expected), "{kind}");
        assert!(client.objects().contains(&kind));
    }
    let (fake, client) = fake("refund", "id", 0);
    assert_eq!(all_objects(&client, "refund", NOW).await, (Vec::new(), 1), "an empty list is left out");
    let failure = client.list("invoice", NOW, None, NOW).await.result.err().unwrap();
    assert_eq!((failure.reason, fake.calls().len()), ("provider_lists_none", 1));
}

#[tokio::test]
async fn e2_payments_of_every_location_are_listed() {
    let (fake, client) = fake("payment", "id", 120);
    for n in 0..130 {
        let made = Time::from_seconds(1_000).to_string();
        let at = lab::LOCATIONS[1];
        fake.put("payment", json!({ "id": format!("far-{n}"), "created_at": made, "location_id": at }));
    }
    let (found, pages) = all_objects(&client, "payment", Time::from_seconds(0)).await;
    let far = found.iter().filter(|id| id.starts_with("far-")).count();
    assert_eq!((found.len(), far, pages), (250, 130, 5));
    fake.order(sekisho_lab::app::Reply::status(200).with_body("{}"));
    assert_eq!(all_objects(&client, "payment", NOW).await, (Vec::new(), 1), "no location, no payments");
}

#[tokio::test]
async fn e1_every_answer_has_its_meaning() {
    let (fake, client) = fake("event", "event_id", 1);
    refusals(&fake, async || client.events(NOW, NOW, None, NOW).await).await;
    refusals(&fake, async || client.list("payment", NOW, None, NOW).await).await;
    let stranger = self::client(&fake, "stranger");
    let words = "This request could not be authorized. (UNAUTHORIZED)";
    wrong_key(stranger.list("refund", NOW, None, NOW).await, words).await;
}

#[tokio::test]
async fn e1_no_secret_is_kept() {
    let (fake, client) = fake("event", "event_id", 1);
    nothing_leaks(&fake, &[lab::KEY], async || client.events(NOW, NOW, None, NOW).await).await;
    assert!(!format!("{client:?}").contains(lab::KEY));
}
