//! Slots with what is taken of them, reservations and fulfilments as they stand now.

use std::collections::BTreeMap;

use sekisho_core::Time;
use sekisho_core::case;
use sekisho_core::compensation;
use sekisho_core::fulfilment as ful;
use sekisho_core::inquiry::InquiryFacts;
use sekisho_core::mail_address::mask_text;
use sekisho_core::reservation as rsv;
use sekisho_core::settlement::follow::{OrderPolicy, view};
use sekisho_core::settlement::payment::Facts as Payment;
use sekisho_core::slot::{Block, Slot, TakenPlaces, block_key};
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{CLAIM_MAX, Error, Result, Store};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::checkout::checkout_payment;
use super::states::{load, read};
use crate::types::{Case, Compensation, Fulfilment, Inquiry, Reservation, Slot as ShownSlot};

/// A slot with what is taken of it now.
pub async fn slot(store: &dyn Store, policy: &OrderPolicy, key: &Key, at: Time) -> Result<Option<ShownSlot>> {
    let Some(state) = load(store, key).await? else { return Ok(None) };
    Ok(slots(store, policy, &[state], at).await?.pop())
}

/// Slots with what is taken of them now.
pub async fn slots(
    store: &dyn Store,
    policy: &OrderPolicy,
    states: &[State],
    at: Time,
) -> Result<Vec<ShownSlot>> {
    let mut heads: Vec<(&State, Slot)> = Vec::new();
    for state in states {
        heads.push((state, read(state)?));
    }
    let of = |(state, slot): &(&State, Slot)| {
        let key = state.key.clone();
        (0..slot.blocks()).map(move |n| block_key(&key, n)).collect::<Vec<_>>()
    };
    let keys: Vec<Key> = heads.iter().flat_map(of).collect();
    let mut blocks: BTreeMap<Key, Block> = BTreeMap::new();
    for piece in keys.chunks(CLAIM_MAX) {
        let loaded = store.load(Vec::new(), piece.to_vec()).await?;
        for (key, state) in loaded.states {
            blocks.insert(key, read(&state)?);
        }
    }
    let shown = heads.iter().map(|head| {
        let (state, slot) = head;
        let own = of(head).into_iter().filter_map(|key| blocks.get(&key));
        let taken =
            own.map(|block| block.taken(at, policy.grace_ms)).fold(TakenPlaces::default(), TakenPlaces::plus);
        typed(view::slot(&state.key.id, slot, taken))
    });
    shown.collect()
}

pub fn reservation_view(state: &State, policy: &OrderPolicy, at: Time) -> Result<Reservation> {
    let facts: rsv::ReservationFacts = read(state)?;
    typed(view::reservation_with_link(&state.key.id, &facts, at, policy))
}

pub async fn reservation(
    store: &dyn Store,
    policy: &OrderPolicy,
    id: &str,
    at: Time,
) -> Result<Option<Reservation>> {
    let Some(state) = load(store, &Key::new(Kind::Reservation, id)).await? else { return Ok(None) };
    let shown = reservation_view(&state, policy, at)?;
    let (true, Some(payment)) = (shown.status == "hold", &shown.payment) else { return Ok(Some(shown)) };
    let paid_by = checkout_payment(store, payment).await?;
    let place = paid_by.as_ref().and_then(Payment::open_session).map(|(_, place)| place);
    Ok(Some(Reservation { checkout_url: place.and_then(|place| place.url.clone()), ..shown }))
}

pub async fn fulfilment(store: &dyn Store, policy: &OrderPolicy, id: &str) -> Result<Option<Fulfilment>> {
    let state = load(store, &Key::new(Kind::Fulfilment, id)).await?;
    let Some(state) = state else { return Ok(None) };
    Ok(fulfilments(store, policy, &[state]).await?.pop())
}

/// Fulfilments with what their customers have, by their payments as they stand now.
pub async fn fulfilments(
    store: &dyn Store,
    policy: &OrderPolicy,
    states: &[State],
) -> Result<Vec<Fulfilment>> {
    let mut all: Vec<(&State, ful::FulfilmentFacts)> = Vec::new();
    for state in states {
        all.push((state, read(state)?));
    }
    let keys: Vec<Key> = all
        .iter()
        .filter_map(|(_, facts)| facts.ours.payment.as_ref())
        .map(|id| Key::new(Kind::Payment, id))
        .collect();
    let mut payments: BTreeMap<String, Payment> = BTreeMap::new();
    for piece in keys.chunks(CLAIM_MAX) {
        for (key, state) in store.load(Vec::new(), piece.to_vec()).await?.states {
            payments.insert(key.id, Payment::parse(&state.facts).map_err(Error::corrupt)?);
        }
    }
    let shown = all.iter().map(|(state, facts)| {
        let payment = facts.ours.payment.as_ref().and_then(|id| payments.get(id));
        typed(view::fulfilment(&state.key.id, facts, view::tier(facts, payment), policy))
    });
    shown.collect()
}

pub fn case_view(state: &State, policy: &OrderPolicy, at: Time) -> Result<Case> {
    let facts: case::CaseFacts = read(state)?;
    typed(view::case(&state.key.id, &facts, &policy.rules, at))
}

pub async fn case(store: &dyn Store, policy: &OrderPolicy, id: &str, at: Time) -> Result<Option<Case>> {
    let state = load(store, &Key::new(Kind::Case, id)).await?;
    state.map(|state| case_view(&state, policy, at)).transpose()
}

pub fn compensation_view(state: &State) -> Result<Compensation> {
    let record: compensation::Compensation = read(state)?;
    typed(view::compensation(&state.key.id, &record))
}

/// `shows_address`: whether the customer's mail address is left whole.
pub fn inquiry_view(state: &State, shows_address: bool) -> Result<Inquiry> {
    Ok(shown_inquiry(&state.key.id, &read(state)?, shows_address))
}

pub fn shown_inquiry(id: &str, facts: &InquiryFacts, shows_address: bool) -> Inquiry {
    Inquiry {
        id: id.to_owned(),
        object: "inquiry".to_owned(),
        status: facts.status().name().to_owned(),
        order: facts.order.clone(),
        payment: facts.payment.clone(),
        name: facts.name.clone(),
        email: if shows_address { facts.email.whole().to_owned() } else { facts.email.masked() },
        text: if shows_address { facts.text.clone() } else { mask_text(&facts.text) },
        language: facts.language.name().to_owned(),
        livemode: facts.livemode,
        tenant: facts.tenant.clone(),
        created_at: facts.at,
        closed_at: facts.closed.as_ref().map(|closed| closed.at),
        closed_by: facts.closed.as_ref().map(|closed| closed.by.clone()),
    }
}

/// The core writes what the type says.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::corrupt)
}
