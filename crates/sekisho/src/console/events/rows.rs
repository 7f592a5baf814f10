//! Events as rows: in the list, and in what the live tail sends. A row has the event's id, so a newer state of it takes
//! its place.

use std::collections::BTreeMap;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{DeliveryCounts, DeliveryStatus, EventSummary, Result, Store};

use crate::console::frame::Frame;
use crate::view::show;

#[derive(Template)]
#[template(path = "console/event_rows.html")]
pub struct EventRows<'f> {
    pub f: &'f Frame,
    pub rows: Vec<EventRow>,
}

pub struct EventRow {
    pub id: String,
    pub event_type: String,
    pub source: String,
    pub status: &'static str,
    /// What became of its deliveries.
    pub deliveries: DeliveryCounts,
    pub received_at: Time,
    pub is_test: bool,
    pub id_reused: bool,
    /// The provider's id of what it is about.
    pub object: String,
    pub payment: Option<String>,
    pub amount: Option<String>,
    pub tenant: Option<String>,
    pub note: String,
}

impl EventRow {
    /// Where its deliveries stand together, if it goes anywhere.
    pub fn delivery(&self) -> Option<&'static str> {
        self.deliveries.status().map(DeliveryStatus::name)
    }

    pub fn is_about_nothing(&self) -> bool {
        self.payment.is_none() && self.tenant.is_none() && self.object.is_empty()
    }
}

/// With what they are about, read at once; what was deleted is not there.
pub async fn of(store: &dyn Store, events: &[EventSummary]) -> Result<Vec<EventRow>> {
    let mut keys: Vec<Key> =
        events.iter().flat_map(|event| [payment(event), tenant(event)]).flatten().collect();
    keys.sort();
    keys.dedup();
    let known = if keys.is_empty() { BTreeMap::new() } else { store.load(Vec::new(), keys).await?.states };
    let counts = store.find_delivery_counts(events.iter().map(|event| event.seq).collect()).await?;
    Ok(events.iter().zip(counts).map(|(event, counts)| row(event, counts, &known)).collect())
}

fn payment(event: &EventSummary) -> Option<Key> {
    Some(Key::new(Kind::Payment, event.about.payment.as_ref()?))
}

fn tenant(event: &EventSummary) -> Option<Key> {
    Some(Key::new(Kind::Tenant, event.about.tenant.as_ref()?))
}

fn row(event: &EventSummary, deliveries: DeliveryCounts, known: &BTreeMap<Key, State>) -> EventRow {
    let state = payment(event).and_then(|key| known.get(&key));
    let amount = state.and_then(|state| Some((state.index.amount?, state.index.currency.as_ref()?)));
    let is_gone = tenant(event).and_then(|key| known.get(&key)).is_some_and(State::is_deleted);
    EventRow {
        id: event.seq.as_event().to_string(),
        event_type: event.event_type.clone(),
        source: event.source.clone(),
        status: event.status.name(),
        deliveries,
        received_at: event.received_at,
        is_test: event.livemode == Some(false),
        id_reused: event.id_reused,
        object: event.object.as_ref().map(|(_, id)| id.clone()).unwrap_or_default(),
        payment: event.about.payment.clone(),
        // A payment of which only a refund is known is worth nothing that could be named.
        amount: amount
            .filter(|(amount, _)| *amount > 0)
            .map(|(amount, currency)| show::money(amount, currency)),
        tenant: event.about.tenant.clone().filter(|_| !is_gone),
        note: note(event),
    }
}

/// Why it stands so. That a type has no rule is said in fewer words: the row names the type.
fn note(event: &EventSummary) -> String {
    let note = event.note.as_deref().unwrap_or_default();
    let is_without_rule = note.starts_with("no rule for ") && note.ends_with(&event.event_type);
    if is_without_rule { "no_rule".into() } else { note.to_owned() }
}
