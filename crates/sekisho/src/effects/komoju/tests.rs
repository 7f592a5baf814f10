use sekisho_lab::providers::{Fake, komoju as lab};
use serde_json::json;

use super::*;
use crate::effects::provider_api::checks::{LONG, NOW, all_objects, nothing_leaks, refusals, wrong_key};

fn client(fake: &Fake, key: &str) -> Client {
    Client::new(&fake.url(), Secret::new(key), LONG).unwrap()
}

fn fake(count: i64) -> (Fake, Client) {
    let fake = lab::start().unwrap();
    for n in 0..count {
        let time = Time::from_seconds(1_000 + n).to_string();
        fake.put("payment", json!({ "id": format!("pay_{n}"), "resource": "payment", "created_at": time }));
    }
    let client = client(&fake, lab::KEY);
    (fake, client)
}

#[tokio::test]
async fn e2_payments_are_listed_page_by_page() {
    let (_fake, client) = fake(250);
    assert_eq!(client.objects(), ["payment"]);
    let (found, pages) = all_objects(&client, "payment", Time::from_seconds(1_010)).await;
    assert_eq!((found.len(), pages), (240, 3));
    assert_eq!((&*found[0], &*found[239]), ("pay_249", "pay_10"));
    let (_fake, client) = self::fake(0);
    assert_eq!(all_objects(&client, "payment", NOW).await, (Vec::new(), 1));
}

#[tokio::test]
async fn e2_nothing_else_is_listed() {
    let (fake, client) = fake(1);
    assert_eq!(client.events_kept_ms(), None);
    let calls = [client.events(NOW, NOW, None, NOW).await, client.list("refund", NOW, None, NOW).await];
    for call in calls {
        assert_eq!(call.result.err().unwrap().reason, "provider_lists_none");
    }
    assert!(fake.calls().is_empty());
}

#[tokio::test]
async fn e1_every_answer_has_its_meaning() {
    let (fake, client) = fake(1);
    refusals(&fake, async || client.list("payment", NOW, None, NOW).await).await;
    let stranger = self::client(&fake, "sk_test_stranger");
    wrong_key(stranger.list("payment", NOW, None, NOW).await, "The API key is not valid. (unauthorized)")
        .await;
}

#[tokio::test]
async fn e1_no_secret_is_kept() {
    let (fake, client) = fake(1);
    let basic = provider_api::basic(lab::KEY, "").expose().to_owned();
    nothing_leaks(&fake, &[lab::KEY, &basic], async || client.list("payment", NOW, None, NOW).await).await;
    assert!(!format!("{client:?}").contains(lab::KEY));
}
