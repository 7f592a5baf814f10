//! What customers ask by the form of their order's page: written down, told to operators, closed by one of them.

use sekisho_core::actor::Actor;
use sekisho_core::announcement::Announcement;
use sekisho_core::change::ChangeSet;
use sekisho_core::inquiry::{InquiryClosed, InquiryFacts, InquiryStatus, TAG};
use sekisho_core::state::{Index, Key, Kind, Wanted, Write};
use sekisho_store::Store;
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

fn write(key: &Key, version: i64, facts: &InquiryFacts) -> Write {
    let index = Index {
        status: Some(facts.status().name().to_owned()),
        tenant: facts.tenant.clone(),
        livemode: Some(facts.livemode),
        ..Index::default()
    };
    Write { index, ..Write::of(key, version, facts) }
}
