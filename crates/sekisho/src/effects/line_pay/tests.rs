use sekisho_core::job::Class;
use sekisho_lab::app::Reply;
use sekisho_lab::providers::{Fake, line_pay as lab};
use serde_json::json;

use super::*;
use crate::effects::provider_api::checks::{LONG, NOW, nothing_leaks, refusals};

const ID: &str = "2021121600698709510";

fn client(fake: &Fake, channel: &str, key: &str) -> Client {
    Client::new(&fake.url(), channel, Secret::new(key), LONG).unwrap()
}

fn fake() -> (Fake, Client) {
    let fake = lab::start().unwrap();
    fake.put("payment", json!({ "transactionId": 2_021_121_600_698_709_510_u64, "payStatus": "CAPTURE" }));
    let client = client(&fake, lab::CHANNEL, lab::KEY);
    (fake, client)
}

#[tokio::test]
async fn e1_a_transaction_is_read_as_line_pay_wrote_it() {
    let (fake, client) = fake();
    let payment = client.payment(ID, NOW).await.result.unwrap();
    assert_eq!(payment.get(), r#"{"payStatus":"CAPTURE","transactionId":2021121600698709510}"#);
    assert_eq!(client.payment("1", NOW).await.result.unwrap_err().reason, NOT_FOUND);
    assert_eq!(client.payment("1&x=2", NOW).await.result.unwrap_err().reason, "provider_bad_id");
    let calls = fake.calls();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| call.headers.iter().all(|(_, value)| !value.contains(lab::KEY))));
}

#[tokio::test]
async fn e1_every_answer_has_its_meaning() {
    let (fake, client) = fake();
    refusals(&fake, async || client.payment(ID, NOW).await).await;
    for stranger in [self::client(&fake, "1", lab::KEY), self::client(&fake, lab::CHANNEL, "stranger")] {
        let failure = stranger.payment(ID, NOW).await.result.unwrap_err();
        assert_eq!((failure.class, failure.reason), (Class::Terminal, FORBIDDEN));
    }
    for (code, class, reason) in
        [("9000", Class::Transient, UNAVAILABLE), ("1177", Class::Terminal, "provider_refused")]
    {
        let body = json!({ "returnCode": code, "returnMessage": "so it is" });
        fake.order(Reply::status(200).with_body(&body.to_string()));
        let failure = client.payment(ID, NOW).await.result.unwrap_err();
        assert_eq!((failure.class, failure.reason), (class, reason), "{}", failure.error);
    }
}

#[tokio::test]
async fn e1_no_secret_is_kept() {
    let (fake, client) = fake();
    nothing_leaks(&fake, &[lab::KEY], async || client.payment(ID, NOW).await).await;
    assert!(!format!("{client:?}").contains(lab::KEY));
}
