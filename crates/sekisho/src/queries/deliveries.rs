//! Deliveries, by what they have in common; and events by what became of theirs.

use sekisho_core::Seq;
use sekisho_core::job::Lane;
use sekisho_store::{
    DeliveryCounts, DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, EventFilter, EventPage,
    LastCall, Status, Store, StoredMessage,
};

use crate::refusal::{Refusal, Result};
use crate::types::DeliveryQuery;

/// Events that are looked at at once, when only those with certain deliveries are wanted.
const LOOKED_AT: usize = 500;

impl DeliveryQuery {
    /// Without the event, which leads to few.
    pub fn filter(&self) -> Result<DeliveryFilter> {
        let status = |word: &str| {
            delivery_status(word).map_err(|refusal| Refusal::Invalid(format!("status: {refusal}")))
        };
        Ok(DeliveryFilter {
            lane: self.route.as_deref().map(Lane::to_route),
            status: self.status.as_deref().map(status).transpose()?,
            after: self.since.map(|since| Seq::from_i64(Seq::floor_of(since).as_i64() - 1)),
            before: self.until.map(Seq::floor_of),
            limit: 0,
        })
    }

    fn seq(&self) -> Result<Option<Seq>> {
        let wanted = "event: expected the event's id as Sekisho writes it: evt_ and 13 characters";
        self.event.as_ref().map(|id| id.parse().map_err(|_| Refusal::Invalid(wanted.into()))).transpose()
    }
}

pub fn delivery_status(word: &str) -> Result<DeliveryStatus> {
    let wanted = || Refusal::Invalid("expected waiting, delivered, failed or cancelled".into());
    DeliveryStatus::parse(word).ok_or_else(wanted)
}

/// One page of deliveries, the newest first.
pub async fn find_deliveries(
    store: &dyn Store,
    query: &DeliveryQuery,
    before: Option<Seq>,
    limit: usize,
) -> Result<DeliveryPage> {
    let mut filter = DeliveryFilter { limit, ..query.filter()? };
    // The cursor lies within what `until` allows.
    filter.before = [before, filter.before].into_iter().flatten().min();
    match query.seq()? {
        Some(event) => of_event(store, event, &filter).await,
        None => Ok(store.find_deliveries(filter).await?),
    }
}

/// Those of one event are few: all of them are looked at.
async fn of_event(store: &dyn Store, event: Seq, filter: &DeliveryFilter) -> Result<DeliveryPage> {
    let summary = store.find_event(event).await?.map(|record| record.summary);
    let mut found = store.find_messages(event).await?;
    found.retain(|message| is_meant(message, filter));
    found.sort_by_key(|message| std::cmp::Reverse(message.job));
    let more = found.len() > filter.limit;
    found.truncate(filter.limit);
    let next = found.last().filter(|_| more).map(|last| last.job);
    let mut deliveries = Vec::new();
    for message in found {
        let last = store.find_attempts(message.job).await?.pop().map(|(_, call)| LastCall {
            at: call.at,
            took_ms: call.took_ms,
            status: call.status,
            reason: call.reason,
        });
        let summary = summary.clone();
        deliveries.push(DeliveryRecord {
            job: message.job,
            lane: message.lane,
            attempts: message.attempts,
            standing: message.standing,
            event: message.event,
            event_id: summary.as_ref().map(|summary| summary.event_id.clone()),
            event_type: summary.as_ref().map(|summary| summary.event_type.clone()),
            source: summary.map(|summary| summary.source),
            last,
        });
    }
    Ok(DeliveryPage { deliveries, next })
}

fn is_meant(message: &StoredMessage, filter: &DeliveryFilter) -> bool {
    message.lane.route().is_some()
        && filter.lane.as_ref().is_none_or(|lane| *lane == message.lane)
        && filter.status.is_none_or(|status| status == DeliveryStatus::of(&message.standing))
        && filter.after.is_none_or(|after| message.job > after)
        && filter.before.is_none_or(|before| message.job < before)
}

/// One page of events; only of those with deliveries that stand so, if that is said. Then it looks at so many, and leads on.
pub async fn find_events(
    store: &dyn Store,
    filter: EventFilter,
    delivery: Option<DeliveryStatus>,
) -> sekisho_store::Result<EventPage> {
    let Some(wanted) = delivery else { return store.find_events(filter).await };
    let limit = filter.limit;
    // An event with a dead letter is failed: so those are found at once.
    let status = filter.status.or((wanted == DeliveryStatus::Failed).then_some(Status::Failed));
    let mut page = store.find_events(EventFilter { status, limit: LOOKED_AT.max(limit), ..filter }).await?;
    let counts = store.find_delivery_counts(page.events.iter().map(|event| event.seq).collect()).await?;
    let mut counts = counts.iter();
    page.events.retain(|_| counts.next().is_some_and(|counts| has(counts, wanted)));
    if page.events.len() > limit {
        page.events.truncate(limit);
        page.next = page.events.last().map(|last| last.seq);
    }
    Ok(page)
}

fn has(counts: &DeliveryCounts, wanted: DeliveryStatus) -> bool {
    match wanted {
        DeliveryStatus::Waiting => counts.waiting > 0,
        DeliveryStatus::Failed => counts.failed > 0,
        DeliveryStatus::Cancelled => counts.cancelled > 0,
        DeliveryStatus::Delivered => counts.status() == Some(DeliveryStatus::Delivered),
    }
}
