//! Links to orders' pages that are revoked: those that were given out open nothing any more, and the next ones do.

use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::fulfilment::FulfilmentFacts;
use sekisho_core::link::LinkedOrder;
use sekisho_core::reservation::ReservationFacts;
use sekisho_core::state::{Key, Kind, Loaded, Wanted, Write};
use sekisho_store::Store;
use serde::Serialize;
use serde_json::json;

use crate::refusal::{Refusal, Result};
use crate::transact::transact;

/// Raises the generation of an order's links: every link that was given out before is void.
pub async fn revoke_links(store: &dyn Store, id: &str, actor: &Actor<'_>) -> Result<()> {
    let unknown = || Refusal::Missing(format!("no order with a page has the id {id}"));
    let kind = match LinkedOrder::of(id).ok_or_else(unknown)? {
        LinkedOrder::Reservation(_) => Kind::Reservation,
        LinkedOrder::Fulfilment(_) => Kind::Fulfilment,
    };
    let key = Key::new(kind, id);
    let revoked = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let raised = match kind {
            Kind::Reservation => loaded.read::<ReservationFacts>(&key)?.map(|known| {
                let before = known.value.links;
                let facts = ReservationFacts { links: before + 1, ..known.value };
                (before, facts.ours.tenant.clone(), write(loaded, &key, &facts))
            }),
            _ => loaded.read::<FulfilmentFacts>(&key)?.map(|known| {
                let before = known.value.links;
                let facts = FulfilmentFacts { links: before + 1, ..known.value };
                (before, facts.ours.tenant.clone(), write(loaded, &key, &facts))
            }),
        };
        let (before, tenant, write) = raised.ok_or_else(unknown)?;
        if !actor.may_touch(tenant.as_deref()) {
            return Err(unknown());
        }
        if before >= u32::from(u16::MAX) {
            return Err(Refusal::Conflict("its links were revoked too often".into()));
        }
        let details = json!({ "before": { "generation": before }, "after": { "generation": before + 1 } });
        let entry = actor.entry(tenant.as_deref(), "order_link.revoked", (kind.name(), id), &details);
        let set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        Ok((set, ()))
    });
    Ok(revoked.await?)
}

/// Nothing that it is listed by changes.
fn write(loaded: &Loaded, key: &Key, facts: &impl Serialize) -> Write {
    let index = loaded.states.get(key).map(|state| state.index.clone()).unwrap_or_default();
    Write { index, ..Write::of(key, loaded.version(key), facts) }
}
