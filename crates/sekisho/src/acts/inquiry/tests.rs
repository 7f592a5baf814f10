use sekisho_core::language::Language;
use sekisho_core::time::DAY_MS;
use sekisho_store::memory::MemoryStore;

use super::*;

const NOW: Time = Time::from_ms(1_780_000_000_000);
const ACTOR: Actor<'static> = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };

#[tokio::test]
async fn f8_what_customers_ask_is_kept_for_its_time_and_then_names_nobody() {
    let (store, env) = (MemoryStore::default(), Env::system());
    let ask = async |at: Time| {
        let facts = InquiryFacts {
            at,
            order: "rsv_1".into(),
            payment: None,
            tenant: None,
            livemode: true,
            name: "Taro".into(),
            email: "taro@example.jp".parse().unwrap(),
            text: "When does it begin?".into(),
            language: Language::En,
            closed: None,
        };
        let actor = Actor { at, role: Role::Customer, ..ACTOR };
        receive_inquiry(&store, &env, NewInquiry { facts }, &actor).await.unwrap()
    };
    let old = ask(NOW).await;
    let closed = ask(NOW.plus_ms(1_000)).await;
    close_inquiry(&store, &closed, &ACTOR).await.unwrap();
    let young = ask(NOW.plus_ms(300 * DAY_MS)).await;
    let forget = async |at: Time| forget_inquiries(&store, at.plus_ms(-365 * DAY_MS), at).await.unwrap();
    assert_eq!(forget(NOW.plus_ms(364 * DAY_MS)).await, 0);
    let later = NOW.plus_ms(366 * DAY_MS);
    assert_eq!((forget(later).await, forget(later).await), (2, 0), "each once");
    for id in [&old, &closed] {
        let key = Key::new(Kind::Inquiry, &**id);
        let kept = store.load(Vec::new(), vec![key.clone()]).await.unwrap().states.remove(&key).unwrap();
        assert!(kept.is_deleted() && kept.facts.contains("rsv_1"), "{}", kept.facts);
        assert!(!kept.facts.contains("aro") && !kept.facts.contains("begin"), "{}", kept.facts);
    }
    assert!(close_inquiry(&store, &old, &ACTOR).await.is_err(), "nobody sees it any more");
    assert!(close_inquiry(&store, &young, &ACTOR).await.is_ok());
}
