//! Finding what is in the books by whatever name is at hand: our own id, the provider's, or the app's. API and CLI read
//! here, so both find the same.

use std::collections::BTreeSet;

use sekisho_core::settlement::PROVIDERS;
use sekisho_core::settlement::order::{billing_known_as, object_known_as, objects_of, payment_known_as};
use sekisho_core::settlement::payment::Facts;
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{Error, FIND_MAX, Result, Store};

use super::states;

/// How often what a payment became may have been merged in its turn.
const MERGES_MAX: usize = 1_000;
/// In so many accounts of one provider an id is looked for.
const ACCOUNTS_MAX: usize = FIND_MAX;

/// Payments by our id, or by that of an intent, session, charge, refund or order. A reference can lead to one live
/// payment and one of the test mode: both are found. `account` is the account at the provider whose words are meant;
/// without one, a provider's id is looked for in every account that is known, and an order is not.
pub async fn payments_by_reference(
    store: &dyn Store,
    reference: &str,
    account: Option<&str>,
) -> Result<Vec<State>> {
    let mut found: Vec<State> = payment_state(store, reference).await?.into_iter().collect();
    found.extend(named(store, payment_known_as(reference, account)).await?);
    if found.is_empty() && account.is_none() {
        found = of_any_account(store, reference).await?;
    }
    let mut seen = BTreeSet::new();
    found.retain(|state| seen.insert(state.key.clone()));
    Ok(found)
}

/// Square's objects belong to a merchant, and Stripe's may to a connected account; whoever searches knows only the id.
async fn of_any_account(store: &dyn Store, id: &str) -> Result<Vec<State>> {
    let mut names = Vec::new();
    for provider in PROVIDERS {
        for account in store.find_branches(objects_of(provider), ACCOUNTS_MAX).await? {
            names.extend(object_known_as(id, provider, &account));
        }
    }
    named(store, names).await
}

/// What these names lead to, in their order.
async fn named(store: &dyn Store, names: Vec<String>) -> Result<Vec<State>> {
    let mut loaded = store.load(names.clone(), Vec::new()).await?;
    let mut found = Vec::new();
    let mut ids = Vec::new();
    for name in &names {
        let key = loaded.names.remove(name);
        let Some(state) = key.and_then(|key| loaded.states.remove(&key)) else { continue };
        ids.extend(Facts::parse(&state.facts).map_err(Error::corrupt)?.namesakes);
        found.push(state);
    }
    for id in ids {
        found.extend(payment_state(store, &id).await?);
    }
    // What a name once led to may have parted from it.
    let is_called = |state: &State| {
        let facts = Facts::parse(&state.facts).unwrap_or_default();
        state.is_shown() && facts.all_names().any(|name| names.contains(&name))
    };
    found.retain(is_called);
    Ok(found)
}

/// What a tenant subscribed to, as it is stored. Without a mode: the live one, or else that of the test mode.
pub async fn billing_state(store: &dyn Store, tenant: &str, livemode: Option<bool>) -> Result<Option<State>> {
    let names = billing_known_as(tenant, livemode);
    let mut loaded = store.load(names.clone(), Vec::new()).await?;
    let mut found = names.iter().filter_map(|name| loaded.states.remove(loaded.names.get(name)?));
    Ok(found.find(State::is_shown))
}

/// The same as it is stored.
pub async fn payment_state(store: &dyn Store, id: &str) -> Result<Option<State>> {
    let mut id = id.to_owned();
    for _ in 0..MERGES_MAX {
        let found = states::load(store, &Key::new(Kind::Payment, &*id)).await?;
        let Some(state) = found.filter(|state| !state.is_deleted()) else { return Ok(None) };
        let facts = Facts::parse(&state.facts).map_err(Error::corrupt)?;
        match facts.merged_into {
            Some(into) => id = into,
            None => return Ok(Some(state)),
        }
    }
    Err(Error::corrupt(format!("payments are merged in a circle at {id}")))
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;
    use sekisho_core::change::{ChangeSet, Committed};
    use sekisho_core::state::{Index, Naming, Write};
    use sekisho_store::memory::MemoryStore;

    use super::*;
    use crate::view::find_payment;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    /// Keeps a thing with a name, as settlement does.
    async fn keep(store: &dyn Store, key: Key, name: Option<&str>, facts: &str, index: Index) {
        let names = name.map(|name| Naming { name: name.into(), key: key.clone(), was: None });
        let write = Write { key, version: 0, facts: facts.into(), index };
        let names = names.into_iter().collect();
        let set = ChangeSet { writes: vec![write], names, ..ChangeSet::nothing(NOW) };
        let [Committed::Applied { .. }] = &*store.commit(vec![set]).await.unwrap() else {
            panic!("not kept")
        };
    }

    async fn keep_payment(store: &dyn Store, id: &str, name: Option<&str>, facts: &str) {
        keep(store, Key::new(Kind::Payment, id), name, facts, Index::default()).await;
    }

    async fn found(store: &dyn Store, reference: &str, account: Option<&str>) -> Vec<String> {
        let found = payments_by_reference(store, reference, account).await.unwrap();
        found.into_iter().map(|state| state.key.id).collect()
    }

    #[tokio::test]
    async fn d1_a_reference_leads_to_every_mode_and_an_id_to_whichever_account_has_it() {
        let store = MemoryStore::default();
        for (id, name, facts) in [
            ("pay_1", "p:test/-/order/-/ORD-1", r#"{"livemode":false,"orders":["ORD-1"]}"#),
            (
                "pay_2",
                "p:live/-/order/-/ORD-1",
                r#"{"livemode":true,"orders":["ORD-1"],"namesakes":["pay_8"]}"#,
            ),
            ("pay_3", "p:any/-/order/-/ORD-2", r#"{"orders":["ORD-2"]}"#),
            ("pay_4", "p:stripe/-/live/pi_1", r#"{"names":["stripe/-/live/pi_1"]}"#),
            ("pay_5", "p:stripe/acct_1/live/pi_1", r#"{"names":["stripe/acct_1/live/pi_1"]}"#),
            ("pay_6", "p:square/MERCHANT/any/sq_1", r#"{"names":["square/MERCHANT/any/sq_1"]}"#),
            ("pay_7", "b:stripe/-/live/sub_1", "{}"),
            // Of another tenant, and found by the first that has the reference.
            ("pay_8", "p:live/-/order/b/ORD-1", r#"{"livemode":true,"orders":["ORD-1"],"tenants":["b"]}"#),
            ("pay_9", "p:live/-/order/-/ORD-9", r#"{"livemode":true,"orders":["ORD-8"]}"#),
            ("pay_a", "p:stripe/acct_2/test/pi_2", r#"{"names":["stripe/acct_2/test/pi_2"]}"#),
            (
                "pay_b",
                "p:live/acct_2/order/-/ORD-3",
                r#"{"livemode":true,"account":"acct_2","orders":["ORD-3"]}"#,
            ),
        ] {
            keep_payment(&store, id, Some(name), facts).await;
        }
        assert_eq!(found(&store, "ORD-1", None).await, ["pay_2", "pay_1", "pay_8"], "live before test");
        assert_eq!(found(&store, "ORD-2", Some("acct_1")).await, ["pay_3"], "orders have no account");
        assert_eq!(found(&store, "pi_1", None).await, ["pay_4"]);
        assert_eq!(found(&store, "pi_1", Some("acct_1")).await, ["pay_5"]);
        assert_eq!(found(&store, "ORD-9", None).await, [""; 0], "it parted from what had the reference");
        assert_eq!(found(&store, "sq_1", None).await, ["pay_6"], "whoever the merchant is");
        assert_eq!(found(&store, "sq_1", Some("MERCHANT")).await, ["pay_6"]);
        assert_eq!(found(&store, "pi_2", None).await, ["pay_a"]);
        assert!(found(&store, "pi_2", Some("acct_1")).await.is_empty(), "another account was named");
        assert_eq!(found(&store, "ORD-3", Some("acct_2")).await, ["pay_b"]);
        assert!(found(&store, "ORD-3", None).await.is_empty(), "an order is its account's");
        for nothing in ["sub_1", "", "live/-/order/-/ORD-1", "pay_10"] {
            assert!(found(&store, nothing, None).await.is_empty(), "{nothing}");
        }
    }

    #[tokio::test]
    async fn d1_a_payment_that_was_merged_is_shown_as_what_it_became() {
        let store = MemoryStore::default();
        keep_payment(&store, "pay_3", None, r#"{"merged_into":"pay_2"}"#).await;
        keep_payment(&store, "pay_2", None, r#"{"merged_into":"pay_1"}"#).await;
        keep_payment(&store, "pay_1", Some("p:live/id/pay_3"), r#"{"names":["live/id/pay_3"]}"#).await;
        keep_payment(&store, "pay_8", None, r#"{"merged_into":"pay_8"}"#).await;
        assert_eq!(find_payment(&store, "pay_3").await.unwrap().unwrap().thing.id, "pay_1");
        assert_eq!(found(&store, "pay_3", None).await, ["pay_1"], "by both ways, and once");
        assert!(find_payment(&store, "pay_9").await.unwrap().is_none());
        assert!(find_payment(&store, "pay_8").await.is_err(), "a circle has an end");
    }

    #[tokio::test]
    async fn d3_live_billing_comes_before_that_of_the_test_mode() {
        let store = MemoryStore::default();
        for (id, mode) in [("bil_1", "any"), ("bil_2", "test"), ("bil_3", "live")] {
            let name = format!("b:{mode}/billing/office");
            keep(&store, Key::new(Kind::Billing, id), Some(&name), "{}", Index::default()).await;
            let shown = billing_state(&store, "office", None).await.unwrap().unwrap();
            assert_eq!(shown.key.id, id, "the best there is so far");
        }
        let test = billing_state(&store, "office", Some(false)).await.unwrap().unwrap();
        assert_eq!(test.key.id, "bil_2");
        assert!(billing_state(&store, "nobody", None).await.unwrap().is_none());
    }
}
