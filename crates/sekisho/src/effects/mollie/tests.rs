use sekisho_lab::providers::{Fake, mollie as lab};
use serde_json::json;

use super::*;
use crate::effects::provider_api::NOT_FOUND;
use crate::effects::provider_api::checks::{LONG, NOW, nothing_leaks, refusals, wrong_key};

fn client(fake: &Fake, key: &str) -> Client {
    Client::new(&fake.url(), Secret::new(key), LONG).unwrap()
}

fn fake() -> (Fake, Client) {
    let fake = lab::start().unwrap();
    fake.put("payment", json!({ "id": "tr_1", "resource": "payment", "status": "paid" }));
    let client = client(&fake, lab::KEY);
    (fake, client)
}

#[tokio::test]
async fn e1_a_payment_is_read_as_mollie_wrote_it() {
    let (fake, client) = fake();
    let payment = client.payment("tr_1", NOW).await.result.unwrap();
    assert_eq!(payment.get(), r#"{"id":"tr_1","resource":"payment","status":"paid"}"#);
    assert_eq!(client.payment("tr_2", NOW).await.result.unwrap_err().reason, NOT_FOUND);
    assert_eq!(client.payment("../x", NOW).await.result.unwrap_err().reason, "provider_bad_id");
    assert_eq!(fake.calls().len(), 2);
}

#[tokio::test]
async fn e1_every_answer_has_its_meaning() {
    let (fake, client) = fake();
    refusals(&fake, async || client.payment("tr_1", NOW).await).await;
    let stranger = self::client(&fake, "test_stranger");
    wrong_key(stranger.payment("tr_1", NOW).await, "failed to authenticate (Unauthorized Request)").await;
}

#[tokio::test]
async fn e1_no_secret_is_kept() {
    let (fake, client) = fake();
    nothing_leaks(&fake, &[lab::KEY], async || client.payment("tr_1", NOW).await).await;
    assert!(!format!("{client:?}").contains(lab::KEY));
}
