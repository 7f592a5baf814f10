use sekisho_core::audit::{Entry, Hash, link};
use sekisho_store::memory::MemoryStore;

use super::super::samples::{NOW, paid, settle};
use super::*;

async fn store() -> (MemoryStore, String) {
    let store = MemoryStore::default();
    settle(&store, &paid("other", 500, &json!({}))).await;
    let more =
        json!({ "receipt_email": "taro.yamada@example.com", "description": "for taro.yamada@example.com" });
    let id = settle(&store, &paid("o_1", 1200, &more)).await;
    let refund = json!({
        "id": "evt_re", "object": "event", "type": "refund.created", "created": NOW.ms() / 1000, "livemode": true,
        "data": { "object": {
            "id": "re_1", "object": "refund", "status": "succeeded", "amount": 300, "currency": "jpy",
            "payment_intent": "pi_o_1",
        } },
    });
    assert_eq!(settle(&store, &refund).await, id);
    (store, id)
}

async fn evidence(store: &MemoryStore, id: &str) -> Evidence {
    let state = payment_state(store, id).await.unwrap().unwrap();
    Evidence::gather(store, state, NOW).await.unwrap()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_str().unwrap().as_bytes().chunks(2).map(byte).collect()
}

fn hash(hex: &Value) -> Hash {
    bytes(hex).try_into().unwrap()
}

/// The entry as a reader of the report has it.
fn entry(shown: &Value) -> Entry {
    let text = |name: &str| shown[name].as_str().map(str::to_owned);
    Entry {
        at: Time::parse_rfc3339(shown["at"].as_str().unwrap()).unwrap(),
        actor: text("actor"),
        role: text("role"),
        action: text("action").unwrap(),
        target: (text("target_type").unwrap(), text("target").unwrap()),
        tenant: text("tenant"),
        event: shown["event_number"].as_i64().map(Seq::from_i64),
        details: text("details_text").unwrap(),
    }
}

#[tokio::test]
async fn d7_a_reader_can_compute_every_hash_of_a_proof_again() {
    let (store, id) = store().await;
    let report = json!(proof(&store, &id, NOW).await.unwrap().unwrap());
    assert_eq!(
        (&report["passed"], &report["complete"]),
        (&true.into(), &true.into()),
        "{:#}",
        report["checks"]
    );
    let links = report["chain"]["links"].as_array().unwrap();
    assert_eq!(links.len(), 2, "one for each commit about it");
    let mut own = 0;
    for one in links {
        let entries = one["entries"].as_array().unwrap();
        for shown in entries.iter().filter(|shown| shown["masked"] == false) {
            assert_eq!(entry(shown).digest(), hash(&shown["digest"]));
            own += 1;
        }
        let digests = entries.iter().map(|shown| hash(&shown["digest"]));
        assert_eq!(link(&hash(&one["previous"]), digests), hash(&one["hash"]));
    }
    assert_eq!(own, report["decisions"].as_array().unwrap().len());
    let record =
        store.find_event(report["events"][0]["id"].as_str().unwrap().parse().unwrap()).await.unwrap();
    assert_eq!(report["events"][0]["body_sha256"], seal(&record.unwrap().body));
    assert_eq!(report["events"][0]["sealed_sha256"], report["events"][0]["body_sha256"]);
    assert_eq!(report["payment"]["status"], "partially_refunded");
    assert_eq!(report["books"]["sums"][0]["balanced"], true);
    let types: Vec<_> = report["events"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert!(types.contains(&&"payment.paid".into()), "what was announced is there, too: {types:?}");
}

#[tokio::test]
async fn d7_whatever_was_touched_fails_the_check_of_a_proof() {
    let (store, id) = store().await;
    let check = async |name: &str, tamper: fn(&mut Evidence)| {
        let mut evidence = evidence(&store, &id).await;
        tamper(&mut evidence);
        let report = evidence.report(&store, NOW).await.unwrap();
        let checks = &report.checks;
        let failed: Vec<_> = checks.iter().filter(|one| !one.passed).map(|one| &*one.name).collect();
        assert_eq!(report.passed, failed.is_empty(), "{report:#?}");
        assert_eq!(failed.first().copied().unwrap_or_default(), name, "{checks:?}");
    };
    check("", |_| {}).await;
    check("bodies", |evidence| {
        let event = evidence.dossier.events[0].seq;
        evidence.digests.insert(event, RequestDigest::of("[]", b"{\"amount\":1}"));
    })
    .await;
    check("links", |evidence| evidence.hooks[0].link.entries[0].entry.details = "{}".into()).await;
    check("entries", |evidence| drop(evidence.hooks[0].link.entries.pop())).await;
    check("entries", |evidence| evidence.hooks[0].link.hash.clear()).await;
    check("entries", |evidence| drop(evidence.hooks.remove(0))).await;
    check("order", |evidence| evidence.hooks[0].followed_as = Some(vec![7; 32])).await;
    check("order", |evidence| evidence.heads[0].hash = vec![7; 32]).await;
    check("standing", |evidence| {
        evidence.dossier.state.facts = evidence.dossier.state.facts.replace("1200", "1300");
    })
    .await;
    check("books", |evidence| evidence.differences.push(Difference::Orphaned { payment: "pay_1".into() }))
        .await;
}

#[tokio::test]
async fn g5_a_proof_holds_no_mail_address_and_nothing_that_was_signed_with() {
    let (store, id) = store().await;
    let mut evidence = evidence(&store, &id).await;
    evidence.dossier.entries[0].entry.actor = Some("hanako@example.com".into());
    evidence.hooks[0].link.entries[0].entry.actor = Some("hanako@example.com".into());
    let report = json!(evidence.report(&store, NOW).await.unwrap());
    let text = report.to_string();
    for secret in ["taro.yamada", "hanako@", "canary_signature"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("stripe-signature") && text.contains("h***@example.com"));
    assert_eq!(
        report["chain"]["links"][0]["entries"][0]["masked"], true,
        "its digest can't be computed again"
    );
}

#[tokio::test]
async fn d7_what_is_not_there_has_no_proof() {
    assert!(proof(&MemoryStore::default(), "pay_none", NOW).await.unwrap().is_none());
}
