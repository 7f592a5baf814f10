//! An order as operators see it: all that belongs to it, its cases, and what was done for it. And who has the places of a slot.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::Time;
use sekisho_core::case::{self, CaseFacts};
use sekisho_core::settlement::follow::{OrderFacts, OrderPolicy};
use sekisho_core::slot::{Block, block_key};
use sekisho_core::state::{Key, Kind};
use sekisho_store::{CLAIM_MAX, Result, Store};

use super::compensation::order;
use super::orders::compensation_view;
use super::states::read;
use crate::types::Compensation;

/// Most records that are looked for, of one order.
const RECORDS_MAX: usize = CLAIM_MAX;

pub struct OrderRecords {
    pub order: OrderFacts,
    /// What was done for it, the newest first.
    pub compensations: Vec<Compensation>,
}

/// All that belongs to the order of this payment, reservation or fulfilment; none, if there is no such thing.
pub async fn order_records(
    store: &dyn Store,
    policy: &OrderPolicy,
    id: &str,
) -> Result<Option<OrderRecords>> {
    let Some(mut order) = order(store, id).await? else { return Ok(None) };
    let mut cases = order.case_ids(policy);
    cases.extend(order.reservations.values().flat_map(|one| one.cases.iter().cloned()));
    cases.extend(order.fulfilments.values().flat_map(|one| one.cases.iter().cloned()));
    let members = order.payment.iter().flat_map(|(_, facts)| &facts.members);
    cases.extend(members.filter(|id| id.starts_with(case::TAG)).cloned());
    for state in load_all(store, Kind::Case, cases).await? {
        order.cases.insert(state.key.id.clone(), read::<CaseFacts>(&state)?);
    }
    let records = load_all(store, Kind::Compensation, order.compensation_ids()).await?;
    let mut compensations: Vec<Compensation> =
        records.iter().map(compensation_view).collect::<Result<_>>()?;
    compensations.sort_by_key(|one| std::cmp::Reverse(one.at));
    Ok(Some(OrderRecords { order, compensations }))
}

async fn load_all(
    store: &dyn Store,
    kind: Kind,
    ids: BTreeSet<String>,
) -> Result<Vec<sekisho_core::state::State>> {
    let keys: Vec<Key> = ids.into_iter().take(RECORDS_MAX).map(|id| Key::new(kind, id)).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    Ok(store.load(Vec::new(), keys).await?.states.into_values().collect())
}

/// Places of a slot that a reservation has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotClaim {
    pub reservation: String,
    pub places: u32,
    pub until: Time,
    pub sold: bool,
}

/// Who has places of a slot now, by the blocks before `blocks`: holds by when they end, then what is sold.
pub async fn slot_claims(
    store: &dyn Store,
    policy: &OrderPolicy,
    slot: &Key,
    blocks: u32,
    at: Time,
) -> Result<Vec<SlotClaim>> {
    let keys: Vec<Key> = (0..blocks).map(|n| block_key(slot, n)).collect();
    let mut claims: BTreeMap<String, SlotClaim> = BTreeMap::new();
    for piece in keys.chunks(CLAIM_MAX) {
        for state in store.load(Vec::new(), piece.to_vec()).await?.states.values() {
            let Block(own) = read(state)?;
            for (id, claim) in own.into_iter().filter(|(_, claim)| claim.holds(at, policy.grace_ms)) {
                let entry = claims.entry(id.clone()).or_insert(SlotClaim {
                    reservation: id,
                    places: 0,
                    until: claim.until,
                    sold: claim.sold,
                });
                entry.places += claim.quantity;
            }
        }
    }
    let mut claims: Vec<SlotClaim> = claims.into_values().collect();
    claims.sort_by(|one, other| {
        (one.sold, one.until, &one.reservation).cmp(&(other.sold, other.until, &other.reservation))
    });
    Ok(claims)
}
