//! Past events, settled again: what routes and rules make of them now. A delivery that was made is not made again unless
//! that is asked for.

use std::collections::BTreeSet;

use sekisho_core::change::Replayed;
use sekisho_core::{Seq, Time};
use sekisho_store::{CLAIM_MAX, EventFilter, FIND_MAX, Order, Status, Store};
use serde::{Deserialize, Serialize};

use super::forecast::{NoticeForecast, RouteForecast, Unanswered, forecast};
use super::{
    Actor, Known, Refusal, Result, SELECT_MAX, check_reason, check_selection, earlier, find_event, just_after,
};
use sekisho_core::job::AGAIN;

/// Which events. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventQuery {
    pub source: Option<String>,
    /// Exact, or a prefix when it ends in `*`.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    pub status: Option<String>,
    /// The provider's id of what the event is about.
    pub object: Option<String>,
    /// What it turned out to be about, in our ids.
    pub payment: Option<String>,
    pub tenant: Option<String>,
    /// When it was received: not before, and before.
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Also what Sekisho announced or fetched itself.
    pub own: bool,
}

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

/// A status by its name, or as the console shows it.
pub fn event_status(word: &str) -> Option<Status> {
    if word == "processed" { Some(Status::Success) } else { Status::parse(word) }
}

/// Which events to settle again, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    /// Sekisho's `evt_…`, or the provider's.
    pub ids: Vec<String>,
    pub filter: EventQuery,
    pub all: bool,
    /// Make deliveries again that were made before.
    pub again: bool,
    pub dry_run: bool,
    /// Stands in the audit log.
    pub reason: String,
}

impl Replay {
    /// The same order, but only for what was received before a moment: what comes from then on was not looked at. What is
    /// named by its id stays named.
    pub fn bounded(&self, until: Time) -> Result<Self> {
        self.check()?;
        if !self.ids.is_empty() {
            return Ok(self.clone());
        }
        let until = earlier(self.filter.until, until);
        let filter = EventQuery { until, ..self.filter.clone() };
        Ok(Self { filter, all: false, ..self.clone() })
    }

    fn check(&self) -> Result<()> {
        check_selection(&self.ids, self.filter != EventQuery::default(), self.all)
    }
}

/// What was queued; in a dry run, what would come of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayReport {
    pub dry_run: bool,
    /// Only what was received before this: a filter that finds the same and nothing newer.
    pub until: Option<Time>,
    pub again: bool,
    pub found: usize,
    /// Queued to be settled again; none in a dry run.
    pub queued: usize,
    /// Their work is not finished yet, so they are left alone.
    pub unfinished: usize,
    /// Ids that no event has.
    pub missing: Vec<String>,
    /// More fit than one order may touch.
    pub more: bool,
    /// Only in a dry run, like the rest.
    pub routes: Vec<RouteForecast>,
    /// Who would be told of them, rule by rule.
    pub notices: Vec<NoticeForecast>,
    /// What would be announced for the first time. Its deliveries and notices are among those above.
    pub announcements: usize,
    /// Events that no route takes.
    pub without_route: usize,
    /// Rules that have no answer for some of the events.
    pub unanswered: Vec<Unanswered>,
}

/// Queues events to be settled again.
pub async fn replay(
    store: &dyn Store,
    known: &Known,
    order: &Replay,
    actor: &Actor<'_>,
) -> Result<ReplayReport> {
    let reason = check_reason(&order.reason)?;
    let (mut report, events) = to_replay(store, known, order).await?;
    if order.dry_run {
        forecast(store, known, &events, actor.at, &mut report).await?;
        return Ok(report);
    }
    let payload = if order.again { AGAIN } else { "" };
    for chunk in events.chunks(CLAIM_MAX) {
        for replayed in store.replay(chunk.to_vec(), payload.to_owned(), actor.act(&reason)).await? {
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
pub async fn to_replay(store: &dyn Store, known: &Known, order: &Replay) -> Result<(ReplayReport, Vec<Seq>)> {
    order.check()?;
    let mut report = ReplayReport { dry_run: order.dry_run, again: order.again, ..ReplayReport::default() };
    let (mut events, mut newest) = (BTreeSet::new(), None);
    for id in &order.ids {
        match find_event(store, &known.sources, id).await? {
            Some(seq) => _ = events.insert(seq),
            None => report.missing.push(id.clone()),
        }
    }
    if order.ids.is_empty() {
        let mut filter = EventFilter { order: Order::OldestFirst, limit: FIND_MAX, ..order.filter.filter()? };
        loop {
            let page = store.find_events(filter.clone()).await?;
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
    report.until = newest.map(just_after).or(order.filter.until);
    report.found = events.len();
    Ok((report, events.into_iter().collect()))
}
