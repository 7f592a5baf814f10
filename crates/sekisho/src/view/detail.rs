//! One thing with all that belongs to it.

use sekisho_core::job::JobKind;
use sekisho_core::{Seq, Time};
use sekisho_store::{EventRecord, Result, Standing, Store, StoredMessage};

use super::{ConfiguredRoute, Outages, call, dead_letter, event, event_deliveries, message, unlink};
use crate::queries::find_letter;
use crate::types::{Call, Content, DeadLetterDetail, EventDetail, Message, MessageDetail};

/// An event with headers, body, and the messages it caused.
pub async fn event_with_all(store: &dyn Store, seq: Seq) -> Result<Option<EventDetail>> {
    let Some(record) = store.find_event(seq).await? else { return Ok(None) };
    let messages = store.find_messages(seq).await?;
    let outages = Outages::find(store).await?;
    let counts = store.find_delivery_counts(vec![seq]).await?;
    let mut shown = EventDetail {
        event: event(&record.summary),
        content: content(&record),
        messages: messages.iter().map(|found| with_outage(found, &outages)).collect(),
    };
    shown.event.deliveries = counts.first().map(event_deliveries).unwrap_or_default();
    unlink(store, [&mut shown]).await?;
    Ok(Some(shown))
}

/// A dead letter with the calls that failed and the event it is about.
pub async fn dead_letter_with_all(
    store: &dyn Store,
    places: &[ConfiguredRoute],
    job: Seq,
    now: Time,
) -> Result<Option<DeadLetterDetail>> {
    let Some(letter) = find_letter(store, job).await? else { return Ok(None) };
    let record = match letter.event {
        Some(event) => store.find_event(event).await?,
        None => None,
    };
    let object = record.as_ref().and_then(|record| record.summary.object.as_ref());
    let mut shown = DeadLetterDetail {
        letter: dead_letter(&letter, places, now),
        object: object.map(Into::into),
        timer: Some(letter.task.payload().into_owned()).filter(|_| letter.task.kind() == JobKind::Timer),
        notice: letter.task.notice().map(str::to_owned),
        content: record.as_ref().map(content).unwrap_or_default(),
        calls: calls(store, job).await?,
    };
    unlink(store, [&mut shown]).await?;
    Ok(Some(shown))
}

/// A message with the calls it made.
pub async fn message_with_all(store: &dyn Store, job: Seq) -> Result<Option<MessageDetail>> {
    let Some(found) = store.find_message(job).await? else { return Ok(None) };
    let message = with_outage(&found, &Outages::find(store).await?);
    Ok(Some(MessageDetail { message, calls: calls(store, job).await? }))
}

fn with_outage(found: &StoredMessage, outages: &Outages) -> Message {
    let is_waiting = matches!(found.standing, Standing::Waiting(_));
    Message { outage: is_waiting.then(|| outages.of(&found.lane)).flatten(), ..message(found) }
}

fn content(record: &EventRecord) -> Content {
    Content::of(Some(&record.headers), Some(&record.body))
}

async fn calls(store: &dyn Store, job: Seq) -> Result<Vec<Call>> {
    let calls = store.find_attempts(job).await?;
    Ok(calls.iter().map(|(attempt, made)| call(*attempt, made)).collect())
}
