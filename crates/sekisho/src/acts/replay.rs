//! Past events, settled again: what routes and rules make of them now. A delivery that was made is not made again unless
//! that is asked for.

use std::collections::BTreeSet;

use sekisho_core::actor::Actor;
use sekisho_core::change::Replayed;
use sekisho_core::job::Settle;
use sekisho_core::selection::{self, SELECT_MAX};
use sekisho_core::{Seq, Time};
use sekisho_store::{CLAIM_MAX, EventFilter, FIND_MAX, Order, Store};

use crate::queries::{OrderContext, find_event, find_events, forecast};
use crate::refusal::{Refusal, Result};
use crate::types::{EventQuery, Replay, ReplayReport};

impl Replay {
    /// The same order, but only for what was received before a moment: what comes from then on was not looked at. What is
    /// named by its id stays named.
    pub fn bounded(&self, until: Time) -> Result<Self> {
        self.check()?;
        if !self.ids.is_empty() {
            return Ok(self.clone());
        }
        let until = selection::earlier(self.filter.until, until);
        let filter = EventQuery { until, ..self.filter.clone() };
        Ok(Self { filter, all: false, ..self.clone() })
    }

    fn check(&self) -> Result<()> {
        Ok(selection::check(self.ids.len(), self.filter != EventQuery::default(), self.all)?)
    }
}

/// Queues events to be settled again.
pub async fn replay(
    store: &dyn Store,
    context: &OrderContext,
    order: &Replay,
    actor: &Actor<'_>,
) -> Result<ReplayReport> {
    let reason = selection::check_reason(&order.reason)?;
    let (mut report, events) = to_replay(store, context, order).await?;
    if order.dry_run {
        forecast(store, context, &mut report, &events, actor.at).await?;
        return Ok(report);
    }
    let settle = if order.again { Settle::Again } else { Settle::Once };
    for chunk in events.chunks(CLAIM_MAX) {
        for replayed in store.replay(chunk.to_vec(), settle.clone(), actor.act(&reason)).await? {
            match replayed {
                Replayed::Queued => report.queued += 1,
                Replayed::Unfinished => report.unfinished += 1,
                // It was let go of since it was found.
                Replayed::Unknown => report.found -= 1,
            }
        }
    }
    Ok(report)
}

/// The events meant, oldest first, and the report so far.
pub async fn to_replay(
    store: &dyn Store,
    context: &OrderContext,
    order: &Replay,
) -> Result<(ReplayReport, Vec<Seq>)> {
    order.check()?;
    let mut report = ReplayReport { dry_run: order.dry_run, again: order.again, ..ReplayReport::default() };
    let (mut events, mut newest) = (BTreeSet::new(), None);
    for id in &order.ids {
        match find_event(store, &context.sources, id).await? {
            Some(seq) => _ = events.insert(seq),
            None => report.missing.push(id.clone()),
        }
    }
    if order.ids.is_empty() {
        let delivery = order.filter.delivery()?;
        let mut filter = EventFilter { order: Order::OldestFirst, limit: FIND_MAX, ..order.filter.filter()? };
        loop {
            let page = find_events(store, filter.clone(), delivery).await?;
            newest = newest.max(page.events.iter().map(|event| event.received_at).max());
            events.extend(page.events.iter().map(|event| event.seq));
            filter.after = page.next;
            if page.next.is_none() {
                break;
            }
            if events.len() >= SELECT_MAX {
                report.more = true;
                break;
            }
        }
    } else if events.is_empty() {
        return Err(Refusal::Missing(format!("no event has the id {}", report.missing.join(", "))));
    }
    report.until = newest.map(selection::just_after).or(order.filter.until);
    report.found = events.len();
    Ok((report, events.into_iter().collect()))
}
