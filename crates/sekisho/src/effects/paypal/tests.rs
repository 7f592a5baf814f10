use sekisho_lab::providers::{Fake, paypal as lab};
use serde_json::json;

use super::*;
use crate::effects::provider_api::checks::{LONG, NOW, all_events, nothing_leaks, refusals, wrong_key};

fn client(fake: &Fake, key: &str) -> Client {
    Client::new(&fake.url(), lab::CLIENT_ID, Secret::new(key), LONG).unwrap()
}

/// With events of one second each.
fn fake(events: i64) -> (Fake, Client) {
    let fake = lab::start().unwrap();
    for n in 0..events {
        let time = Time::from_seconds(1_000 + n).to_string();
        fake.put("event", json!({ "id": format!("WH-{n}"), "create_time": time, "event_type": "PAYMENT.CAPTURE.COMPLETED" }));
    }
    let client = client(&fake, lab::KEY);
    (fake, client)
}

async fn first_page(client: &Client, now: Time) -> ApiCall<ListedPage> {
    client.events(Time::from_seconds(0), NOW, None, now).await
}

#[tokio::test]
async fn e2_events_are_listed_page_by_page_within_their_time() {
    let (fake, client) = fake(250);
    let (found, pages) =
        all_events(&client, Time::from_seconds(1_010), Time::from_seconds(1_229), "id").await;
    assert_eq!((found.len(), pages), (220, 3));
    assert_eq!((&*found[0], &*found[219]), ("WH-229", "WH-10"));
    let calls = fake.calls();
    assert_eq!(calls.len(), 4, "one token, three pages");
    assert_eq!(calls[0].header("content-type"), Some("application/x-www-form-urlencoded"));
}

#[tokio::test]
async fn e1_a_token_is_kept_until_shortly_before_its_end() {
    let (fake, client) = fake(1);
    let tokens = || fake.calls().iter().filter(|call| call.path == "/v1/oauth2/token").count();
    for (now, expected) in [
        (NOW, 1),
        (NOW.plus_ms(lab::TOKEN_S * 1_000 - EARLY_MS - 1), 1),
        (NOW.plus_ms(lab::TOKEN_S * 1_000 - EARLY_MS), 2),
    ] {
        assert_eq!(first_page(&client, now).await.result.unwrap().items.len(), 1);
        assert_eq!(tokens(), expected, "{now}");
    }
    fake.revoke();
    assert!(first_page(&client, NOW).await.result.is_ok(), "a token that was taken back is asked for anew");
    assert_eq!(tokens(), 3);
}

#[tokio::test]
async fn e1_every_answer_has_its_meaning() {
    let (fake, client) = fake(1);
    first_page(&client, NOW).await.result.unwrap();
    refusals(&fake, async || first_page(&client, NOW).await).await;
    let stranger = self::client(&fake, "stranger");
    wrong_key(first_page(&stranger, NOW).await, "Client Authentication failed (invalid_client)").await;
}

#[tokio::test]
async fn e1_no_secret_is_kept() {
    let (fake, client) = fake(1);
    first_page(&client, NOW).await.result.unwrap();
    let basic = client.basic.expose().to_owned();
    nothing_leaks(&fake, &[lab::KEY, &basic, "A21AA-lab-1"], async || first_page(&client, NOW).await).await;
    assert!(!format!("{client:?}").contains(lab::KEY));
}

#[tokio::test]
async fn e2_no_objects_are_listed() {
    let (fake, client) = fake(0);
    assert!(client.objects().is_empty());
    let failure = client.list("capture", NOW, None, NOW).await.result.err().unwrap();
    assert_eq!(failure.reason, "provider_lists_none");
    assert!(fake.calls().is_empty());
}
