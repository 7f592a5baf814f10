//! One thing with all that belongs to it.

use sekisho_core::Seq;
use sekisho_core::job::Kind;
use sekisho_store::{EventRecord, Result, Store};
use serde_json::{Value, json};

use super::{call, dead_letter, event, headers, message, put_body, unlink};
use crate::acts::find_letter;

/// An event with headers, body, and the messages it caused.
pub async fn event_with_all(store: &dyn Store, seq: Seq) -> Result<Option<Value>> {
    let Some(record) = store.find_event(seq).await? else { return Ok(None) };
    let mut value = event(&record.summary);
    put_request(&mut value, Some(&record));
    let messages = store.find_messages(seq).await?;
    value["messages"] = messages.iter().map(message).collect();
    unlink(store, [&mut value]).await?;
    Ok(Some(value))
}

/// A dead letter with the calls that failed and the event it is about.
pub async fn dead_letter_with_all(store: &dyn Store, job: Seq) -> Result<Option<Value>> {
    let Some(letter) = find_letter(store, job).await? else { return Ok(None) };
    let mut value = dead_letter(&letter);
    value["notice"] = json!(Some(&letter.payload).filter(|_| letter.kind == Kind::Send));
    value["timer"] = json!(Some(&letter.payload).filter(|_| letter.kind == Kind::Timer));
    let record = match letter.event {
        Some(event) => store.find_event(event).await?,
        None => None,
    };
    let object = record.as_ref().and_then(|record| record.summary.object.as_ref());
    value["object"] = json!(object.map(|(kind, id)| json!({ "kind": kind, "id": id })));
    put_request(&mut value, record.as_ref());
    put_calls(&mut value, store, job).await?;
    unlink(store, [&mut value]).await?;
    Ok(Some(value))
}

/// A message with the calls it made.
pub async fn message_with_all(store: &dyn Store, job: Seq) -> Result<Option<Value>> {
    let Some(found) = store.find_message(job).await? else { return Ok(None) };
    let mut value = message(&found);
    put_calls(&mut value, store, job).await?;
    Ok(Some(value))
}

fn put_request(value: &mut Value, record: Option<&EventRecord>) {
    value["headers"] = record.map_or(Value::Null, |record| headers(&record.headers));
    put_body(value, record.map(|record| &*record.body));
}

async fn put_calls(value: &mut Value, store: &dyn Store, job: Seq) -> Result<()> {
    let calls = store.find_attempts(job).await?;
    value["calls"] = calls.iter().map(|(attempt, made)| call(*attempt, made)).collect();
    Ok(())
}
