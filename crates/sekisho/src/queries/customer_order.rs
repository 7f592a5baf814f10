//! An order as its customer may see it: what they reserved, paid and are being made, and until when something happens by itself.

use sekisho_core::Time;
use sekisho_core::case::CaseFacts;
use sekisho_core::fulfilment::FulfilmentFacts;
use sekisho_core::link::LinkedOrder;
use sekisho_core::reservation::ReservationFacts;
use sekisho_core::settlement::follow::{OrderPolicy, view};
use sekisho_core::settlement::payment::Facts as Payment;
use sekisho_core::slot::Slot;
use sekisho_core::state::{Key, Kind};
use sekisho_store::{Error, Result, Store};

use super::states::{load_typed, read};

#[derive(Clone, Debug)]
pub struct CustomerOrder {
    /// Of the reservation, or of the fulfilment where there is none.
    pub id: String,
    pub reservation: Option<ReservationFacts>,
    pub fulfilment: Option<FulfilmentFacts>,
    pub payment: Option<Payment>,
    /// What the slot is called.
    pub title: Option<String>,
    /// When the money goes back by itself, if nothing changes.
    pub refund_by: Option<Time>,
}

/// The order that a link opens; none, if there is no such order.
pub async fn customer_order(
    store: &dyn Store,
    policy: &OrderPolicy,
    linked: LinkedOrder,
) -> Result<Option<CustomerOrder>> {
    let id = linked.id();
    let (reservation, fulfilment) = match linked {
        LinkedOrder::Reservation(_) => {
            let key = Key::new(Kind::Reservation, &*id);
            let Some(reservation) = load_typed::<ReservationFacts>(store, &key).await? else {
                return Ok(None);
            };
            let made = match &reservation.ours.fulfilment {
                Some(id) => load_typed(store, &Key::new(Kind::Fulfilment, &**id)).await?,
                None => None,
            };
            (Some(reservation), made)
        }
        LinkedOrder::Fulfilment(_) => {
            let found = load_typed::<FulfilmentFacts>(store, &Key::new(Kind::Fulfilment, &*id)).await?;
            let Some(found) = found else { return Ok(None) };
            (None, Some(found))
        }
    };
    let of_reservation = reservation.as_ref().and_then(|one| one.ours.payment.clone());
    let paid_by = of_reservation.or_else(|| fulfilment.as_ref().and_then(|one| one.ours.payment.clone()));
    let title = match &reservation {
        Some(one) => load_typed::<Slot>(store, &Key::new(Kind::Slot, &*one.ours.slot)).await?,
        None => None,
    };
    let payment = match paid_by {
        Some(id) => super::payment_state(store, &id).await?,
        None => None,
    };
    let payment = payment.map(|state| Payment::parse(&state.facts).map_err(Error::corrupt)).transpose()?;
    let cases = fulfilment.iter().flat_map(|one| &one.cases);
    let keys: Vec<Key> = cases.map(|id| Key::new(Kind::Case, id)).collect();
    let mut refund_by: Option<Time> = None;
    if !keys.is_empty() {
        for state in store.load(Vec::new(), keys).await?.states.values() {
            let due = view::refund_at(&read::<CaseFacts>(state)?, &policy.rules);
            refund_by = refund_by.into_iter().chain(due).min();
        }
    }
    let title = title.and_then(|slot| slot.title);
    Ok(Some(CustomerOrder { id, reservation, fulfilment, payment, title, refund_by }))
}
