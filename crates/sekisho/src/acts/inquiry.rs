//! What customers ask by the form of their order's page: written down, told to operators, closed by one of them.

use sekisho_core::actor::Actor;
use sekisho_core::announcement::Announcement;
use sekisho_core::audit::Role;
use sekisho_core::change::ChangeSet;
use sekisho_core::inquiry::{InquiryClosed, InquiryFacts, InquiryStatus, TAG};
use sekisho_core::state::{DELETED, Index, Key, Kind, State, Wanted, Write};
use sekisho_core::{Seq, Time};
use sekisho_store::{StateFilter, Store};
use serde_json::json;

use super::reservation::by;
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::transact::transact;

/// What a customer wrote, and from which page.
pub struct NewInquiry {
    pub facts: InquiryFacts,
}

/// Writes an inquiry down and announces it, both or neither; says under which id.
pub async fn receive_inquiry(
    store: &dyn Store,
    env: &Env,
    new: NewInquiry,
    actor: &Actor<'_>,
) -> Result<String> {
    let facts = new.facts;
    let id = env.fresh_seq(actor.at).tagged(TAG);
    let key = Key::new(Kind::Inquiry, &*id);
    transact(store, Wanted::default(), |_| -> Result<_> {
        let announced = Announcement {
            id: format!("inquiry.received/{id}"),
            event_type: "inquiry.received".into(),
            livemode: Some(facts.livemode),
            object: (Kind::Inquiry.name(), id.clone()),
            tenant: facts.tenant.clone(),
            about: json!({ "order": facts.order, "text": facts.text }),
            data: json!({ "id": id, "object": "inquiry", "order": facts.order, "payment": facts.payment,
                "name": facts.name, "email": facts.email, "text": facts.text, "language": facts.language }),
            at: actor.at,
        };
        let details = json!({ "order": facts.order });
        let tenant = facts.tenant.as_deref();
        Ok((
            ChangeSet {
                writes: vec![write(&key, 0, &facts)],
                audit: vec![actor.entry(tenant, "inquiry.received", ("inquiry", &id), &details)],
                events: vec![announced.arrival(env.fresh_seq(actor.at))],
                ..ChangeSet::nothing(actor.at)
            },
            (),
        ))
    })
    .await?;
    Ok(id)
}

/// Says that an inquiry was answered; the second who says so changes nothing.
pub async fn close_inquiry(store: &dyn Store, id: &str, actor: &Actor<'_>) -> Result<InquiryFacts> {
    let key = Key::new(Kind::Inquiry, id);
    let closed = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let unknown = || Refusal::Missing(format!("no inquiry has the id {id}"));
        if loaded.states.get(&key).is_some_and(State::is_deleted) {
            return Err(unknown());
        }
        let mut known = loaded.read::<InquiryFacts>(&key)?.ok_or_else(unknown)?;
        if !actor.may_touch(known.value.tenant.as_deref()) {
            return Err(unknown());
        }
        if known.value.status() == InquiryStatus::Closed {
            return Ok((ChangeSet::nothing(actor.at), known.value));
        }
        known.value.closed = Some(InquiryClosed { at: actor.at, by: by(actor) });
        let tenant = known.value.tenant.as_deref();
        let audit = vec![actor.entry(tenant, "inquiry.closed", ("inquiry", id), &json!({}))];
        let writes = vec![write(&key, known.version, &known.value)];
        Ok((ChangeSet { writes, audit, ..ChangeSet::nothing(actor.at) }, known.value))
    });
    Ok(closed.await?)
}

/// Inquiries that are let go of at once.
const FORGOTTEN_MAX: usize = 200;

/// Turns the inquiries from before a moment into tombstones; says how many. Whoever asked, and what, is gone then.
pub async fn forget_inquiries(store: &dyn Store, before: Time, at: Time) -> Result<usize> {
    let mut forgotten = 0;
    for status in InquiryStatus::ALL {
        loop {
            let filter = StateFilter {
                status: Some(status.name().to_owned()),
                // Ids are made in the order of time.
                before: Some(Seq::floor_of(before).tagged(TAG)),
                ..StateFilter::all(Kind::Inquiry, FORGOTTEN_MAX)
            };
            let found = store.find_states(filter).await?;
            for state in &found {
                forget(store, &state.key, at).await?;
            }
            forgotten += found.len();
            if found.len() < FORGOTTEN_MAX {
                break;
            }
        }
    }
    Ok(forgotten)
}

async fn forget(store: &dyn Store, key: &Key, at: Time) -> Result<()> {
    let done = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let nothing = ChangeSet::nothing(at);
        if loaded.states.get(key).is_none_or(State::is_deleted) {
            return Ok((nothing, ()));
        }
        let Some(known) = loaded.read::<InquiryFacts>(key)? else { return Ok((nothing, ())) };
        let (tenant, livemode) = (known.value.tenant.clone(), known.value.livemode);
        let index = Index {
            status: Some(DELETED.to_owned()),
            tenant: tenant.clone(),
            livemode: Some(livemode),
            ..Index::default()
        };
        let write = Write { index, ..Write::of(key, known.version, &known.value.forget(at)) };
        let actor = Actor { name: "retention", role: Role::System, tenant: None, at };
        let entry = actor.entry(tenant.as_deref(), "inquiry.forgotten", ("inquiry", &key.id), &json!({}));
        Ok((ChangeSet { writes: vec![write], audit: vec![entry], ..nothing }, ()))
    });
    Ok(done.await?)
}

fn write(key: &Key, version: i64, facts: &InquiryFacts) -> Write {
    let index = Index {
        status: Some(facts.status().name().to_owned()),
        tenant: facts.tenant.clone(),
        livemode: Some(facts.livemode),
        ..Index::default()
    };
    Write { index, ..Write::of(key, version, facts) }
}

#[cfg(test)]
mod tests;
