//! Events, by what they have in common or by an id.

use sekisho_core::Seq;
use sekisho_store::{DeliveryStatus, EventFilter, Status, Store};

use super::deliveries::delivery_status;
use crate::refusal::{Refusal, Result};
use crate::types::EventQuery;

impl EventQuery {
    pub fn filter(&self) -> Result<EventFilter> {
        let status = self.status.as_ref().map(|name| {
            let wanted = "status: expected received, success, failed or skipped";
            event_status(name).ok_or_else(|| Refusal::Invalid(wanted.into()))
        });
        Ok(EventFilter {
            source: self.source.clone(),
            received: self.source.is_none() && !self.own,
            event_type: self.event_type.clone(),
            status: status.transpose()?,
            object_id: self.object.clone(),
            payment: self.payment.clone(),
            tenant: self.tenant.clone(),
            after: self.since.map(|since| Seq::from_i64(Seq::floor_of(since).as_i64() - 1)),
            before: self.until.map(Seq::floor_of),
            ..EventFilter::default()
        })
    }
}

impl EventQuery {
    /// Where one of its deliveries is to stand, if that is said.
    pub fn delivery(&self) -> Result<Option<DeliveryStatus>> {
        let status = |word: &String| {
            delivery_status(word).map_err(|refusal| Refusal::Invalid(format!("delivery: {refusal}")))
        };
        self.delivery.as_ref().map(status).transpose()
    }
}

/// A status by its name, or as the console shows it.
pub fn event_status(word: &str) -> Option<Status> {
    if word == "processed" { Some(Status::Success) } else { Status::parse(word) }
}

/// An event by Sekisho's id, or by its provider's in any of these sources.
pub async fn find_event(
    store: &dyn Store,
    sources: &[String],
    id: &str,
) -> sekisho_store::Result<Option<Seq>> {
    if let Ok(seq) = id.parse::<Seq>()
        && store.find_event(seq).await?.is_some()
    {
        return Ok(Some(seq));
    }
    for source in sources {
        if let Some(seq) = store.find_seq(source, id).await? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}
