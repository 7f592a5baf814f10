//! What customers have with us. A balance belongs to a customer of one tenant, or of none: the same id in two tenants has
//! two.

use std::collections::BTreeSet;

use sekisho_core::directory::Register;
use sekisho_core::settlement::payment::customer_account;
use sekisho_core::state::{Kind, State};
use sekisho_store::{FIND_MAX, LineFilter, StateFilter, Store};

use crate::queries::{NAMED_MAX, every_of_id, load, several};
use crate::refusal::{Refusal, Result};
use crate::types::Balance;
use crate::view;

/// Entries that are shown with a balance.
const ENTRIES_MAX: usize = 50;
/// Payments that are looked through for whose customer has an id.
const LOOKED_MAX: usize = 10_000;

/// What the customer of a tenant has; without a tenant that of none, or else of the only one who has such a customer.
/// `None` when nobody has heard of it.
pub async fn find_balance(
    store: &dyn Store,
    tenant: Option<&str>,
    customer: &str,
) -> Result<Option<Balance>> {
    let exact = of(store, tenant, customer).await?;
    if exact.is_some() || tenant.is_some() {
        return Ok(exact);
    }
    let mut found = of_tenants(store, customer).await?;
    if found.len() > 1 {
        let tenants = found.iter().filter_map(|one| one.tenant.clone());
        return Err(several("customer", customer, tenants.collect()));
    }
    Ok(found.pop())
}

/// What every customer of this id has: the one of no tenant first, then those of tenants.
pub async fn find_balances(store: &dyn Store, customer: &str) -> Result<Vec<Balance>> {
    let mut found: Vec<_> = of(store, None, customer).await?.into_iter().collect();
    found.extend(of_tenants(store, customer).await?);
    Ok(found)
}

async fn of_tenants(store: &dyn Store, customer: &str) -> Result<Vec<Balance>> {
    let mut found = Vec::new();
    for tenant in tenants(store, customer).await? {
        found.extend(of(store, Some(&tenant), customer).await?);
    }
    Ok(found)
}

async fn of(store: &dyn Store, tenant: Option<&str>, customer: &str) -> Result<Option<Balance>> {
    let account = customer_account(tenant, customer);
    let filter = LineFilter { account: Some(account.clone()), limit: ENTRIES_MAX, ..LineFilter::default() };
    let lines = store.find_lines(filter).await?;
    if lines.is_empty() {
        let known = load(store, &Register::Customers.key(tenant, customer)).await?;
        if !known.is_some_and(|state| state.is_shown()) {
            return Ok(None);
        }
    }
    let sums = store.find_sums(Some(account)).await?;
    Ok(Some(view::balance(tenant, customer, &sums, &lines)))
}

/// Which tenants have a customer of this id, by the directory and by payments; at most one more than can be named.
async fn tenants(store: &dyn Store, customer: &str) -> Result<BTreeSet<String>> {
    let of =
        |states: &[State]| states.iter().filter_map(|state| state.index.tenant.clone()).collect::<Vec<_>>();
    let mut tenants: BTreeSet<_> =
        of(&every_of_id(store, Register::Customers, customer).await?).into_iter().collect();
    let (mut before, mut looked) = (None, 0);
    while tenants.len() <= NAMED_MAX {
        if looked >= LOOKED_MAX {
            let detail =
                format!("the customer {customer} has too many payments to tell whose; specify `tenant`");
            return Err(Refusal::Conflict(detail));
        }
        let all = StateFilter::all(Kind::Payment, FIND_MAX);
        let page =
            store.find_states(StateFilter { customer: Some(customer.to_owned()), before, ..all }).await?;
        tenants.extend(of(&page));
        looked += page.len();
        before = page.last().map(|last| last.key.id.clone());
        if page.len() < FIND_MAX {
            break;
        }
    }
    while tenants.len() > NAMED_MAX + 1 {
        tenants.pop_last();
    }
    Ok(tenants)
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;
    use sekisho_core::change::{ChangeSet, Committed};
    use sekisho_core::state::{Index, Key, Posting, Write};
    use sekisho_store::memory::MemoryStore;

    use super::*;

    /// A payment of a tenant's customer, and what it brought to the balance.
    async fn paid(store: &MemoryStore, id: &str, tenant: Option<&str>, customer: &str, amount: i64) {
        let index = Index {
            tenant: tenant.map(str::to_owned),
            customer: Some(customer.to_owned()),
            ..Index::default()
        };
        let write = Write { key: Key::new(Kind::Payment, id), version: 0, facts: "{}".into(), index };
        let posting = |account: String, amount| Posting {
            account,
            currency: "jpy".into(),
            livemode: Some(true),
            amount,
            payment: id.into(),
            cause: "captured".into(),
        };
        let account = customer_account(tenant, customer);
        let postings = vec![posting("provider/x".into(), amount), posting(account, -amount)];
        let postings = if amount == 0 { Vec::new() } else { postings };
        let at = Time::from_ms(1_780_000_000_000);
        let set = ChangeSet { writes: vec![write], postings, ..ChangeSet::nothing(at) };
        assert!(matches!(&*store.commit(vec![set]).await.unwrap(), [Committed::Applied { .. }]));
    }

    async fn has(store: &MemoryStore, tenant: Option<&str>, customer: &str) -> Option<(Option<String>, i64)> {
        let found = find_balance(store, tenant, customer).await.unwrap()?;
        Some((found.tenant, found.balances[0].balance))
    }

    #[tokio::test]
    async fn d7_a_balance_is_of_one_tenants_customer() {
        let store = MemoryStore::default();
        paid(&store, "pay_1", Some("a"), "ann", 100).await;
        paid(&store, "pay_2", Some("a"), "ann", 20).await;
        paid(&store, "pay_3", Some("b"), "ann", 0).await;
        assert_eq!(has(&store, None, "ann").await, Some((Some("a".into()), 120)), "the only one");
        assert_eq!(has(&store, Some("b"), "ann").await, None, "nothing was booked for it");
        paid(&store, "pay_4", Some("b"), "ann", 7).await;
        assert_eq!(has(&store, Some("b"), "ann").await, Some((Some("b".into()), 7)));
        assert_eq!(has(&store, Some("c"), "ann").await, None);
        let Err(Refusal::Conflict(asked)) = find_balance(&store, None, "ann").await else {
            panic!("not asked")
        };
        assert!(asked.contains("several tenants have a customer ann: a, b;"), "{asked}");
        paid(&store, "pay_5", None, "ann", 3).await;
        assert_eq!(has(&store, None, "ann").await, Some((None, 3)), "of no tenant");
        assert_eq!(has(&store, Some(""), "ann").await, Some((None, 3)));
        assert_eq!(find_balances(&store, "ann").await.unwrap().len(), 3);
        assert_eq!(has(&store, None, "bob").await, None);
    }
}
