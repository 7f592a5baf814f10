//! Deliveries: each is a job while it is unfinished, an outcome when it is over, or a dead letter. What is meant, what is known
//! of each, and how the three lists become one page.

use std::collections::BTreeMap;

use sekisho_core::job::{Lane, Outcome};
use sekisho_core::{Seq, Time};

use super::Standing;
use super::row_reader::RowReader;

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryStatus {
    /// Unfinished: it waits for its next try, or runs.
    Waiting,
    Delivered,
    /// A dead letter.
    Failed,
    /// Taken out by a person.
    Cancelled,
}

impl DeliveryStatus {
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Delivered, Self::Failed, Self::Cancelled];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }

    pub const fn of(standing: &Standing) -> Self {
        match standing {
            Standing::Waiting(_) | Standing::Running => Self::Waiting,
            Standing::Done(Outcome::Success { .. }, _) => Self::Delivered,
            Standing::Done(Outcome::Skipped { .. } | Outcome::Discarded { .. }, _) => Self::Cancelled,
            Standing::Dead(..) => Self::Failed,
        }
    }
}

/// Which deliveries. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Of this route.
    pub lane: Option<Lane>,
    pub status: Option<DeliveryStatus>,
    /// Only numbers above, and below: when it was queued, and the cursor of a page.
    pub after: Option<Seq>,
    pub before: Option<Seq>,
    pub limit: usize,
}

/// The lists that deliveries are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryList {
    Unfinished,
    Ended,
    Dead,
}

impl DeliveryFilter {
    /// Where those lie that are meant.
    pub(crate) fn lists(&self) -> &'static [DeliveryList] {
        match self.status {
            None => &[DeliveryList::Unfinished, DeliveryList::Ended, DeliveryList::Dead],
            Some(DeliveryStatus::Waiting) => &[DeliveryList::Unfinished],
            Some(DeliveryStatus::Failed) => &[DeliveryList::Dead],
            Some(DeliveryStatus::Delivered | DeliveryStatus::Cancelled) => &[DeliveryList::Ended],
        }
    }

    /// The numbers between which it looks, without both; as far as `end`, with it.
    pub(crate) fn reach(&self, end: Option<Seq>) -> (i64, i64) {
        let low = self.after.map_or(-1, Seq::as_i64);
        (end.map_or(low, |end| end.as_i64() - 1), self.before.unwrap_or(Seq::MAX).as_i64())
    }

    /// What all conditions mean, without a database.
    pub(crate) fn matches(&self, one: &DeliveryRecord) -> bool {
        self.lane.as_ref().is_none_or(|lane| *lane == one.lane)
            && self.status.is_none_or(|status| status == DeliveryStatus::of(&one.standing))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    pub job: Seq,
    pub lane: Lane,
    pub attempts: i32,
    pub standing: Standing,
    /// What it is about, as far as that is still kept: number, provider's id, type and source.
    pub event: Option<Seq>,
    pub event_id: Option<String>,
    pub event_type: Option<String>,
    pub source: Option<String>,
    /// The last call and what came back.
    pub last: Option<LastCall>,
}

/// What is said of a call in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCall {
    pub at: Time,
    pub took_ms: i64,
    pub status: Option<i32>,
    /// Stable word; `None` when it went well.
    pub reason: Option<String>,
}

impl DeliveryRecord {
    /// What both databases select of a delivery before its standing, from `list`.
    pub(crate) const COLUMNS: &str =
        "delivery.job, delivery.lane, delivery.attempts, delivery.event, event.event_id,
        event.type, event.source, attempt.at, attempt.took_ms, attempt.status, attempt.reason";

    /// `standing` reads what follows [`Self::COLUMNS`].
    pub(crate) fn read<R: RowReader>(
        row: &mut R,
        standing: impl FnOnce(&mut R) -> Result<Standing, R::Error>,
    ) -> Result<Self, R::Error> {
        let (job, lane) = (Seq::from_i64(row.integer()?), Lane(row.text()?.into()));
        let (attempts, event) = (row.small_integer()?, row.optional_integer()?.map(Seq::from_i64));
        let (event_id, event_type, source) =
            (row.optional_text()?, row.optional_text()?, row.optional_text()?);
        let call = (row.optional_integer()?, row.optional_integer()?);
        let (status, reason) = (row.optional_small_integer()?, row.optional_text()?);
        let last = call.0.zip(call.1).map(|(at, took_ms)| LastCall {
            at: Time::from_ms(at),
            took_ms,
            status,
            reason,
        });
        let standing = standing(row)?;
        Ok(Self { job, lane, attempts, standing, event, event_id, event_type, source, last })
    }
}

/// One page of deliveries, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryPage {
    pub deliveries: Vec<DeliveryRecord>,
    /// Where to go on, as `before`. `None` at the end.
    pub next: Option<Seq>,
}

impl DeliveryPage {
    /// One page of several lists, each the newest first. With each comes the last number looked at, if its search stopped
    /// there: below the highest of those not every list was looked at.
    pub(crate) fn of(lists: Vec<(Vec<DeliveryRecord>, Option<Seq>)>, limit: usize) -> Self {
        let end = |(found, end): &(Vec<DeliveryRecord>, Option<Seq>)| {
            let last = found.last().filter(|_| found.len() >= limit).map(|last| last.job);
            last.or(*end)
        };
        let end = lists.iter().filter_map(end).max();
        let mut deliveries: Vec<_> = lists.into_iter().flat_map(|(found, _)| found).collect();
        deliveries.sort_by_key(|one| std::cmp::Reverse(one.job));
        deliveries.retain(|one| end.is_none_or(|end| one.job >= end));
        deliveries.truncate(limit);
        let last = deliveries.last().filter(|_| deliveries.len() >= limit).map(|last| last.job);
        Self { deliveries, next: last.or(end).filter(|_| limit > 0) }
    }
}

/// What became of an event's deliveries: how many routes it goes to, and how many of them stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    pub waiting: usize,
    pub delivered: usize,
    pub failed: usize,
    pub cancelled: usize,
}

impl DeliveryCounts {
    pub const fn all(&self) -> usize {
        self.waiting + self.delivered + self.failed + self.cancelled
    }

    /// Of a route counts the newest, where it was delivered again by force.
    pub(crate) fn of(found: impl IntoIterator<Item = (Lane, Seq, DeliveryStatus)>) -> Self {
        let mut newest: BTreeMap<Lane, (Seq, DeliveryStatus)> = BTreeMap::new();
        for (lane, job, status) in found {
            let kept = newest.entry(lane).or_insert((job, status));
            if job > kept.0 {
                *kept = (job, status);
            }
        }
        let mut counts = Self::default();
        for (_, status) in newest.into_values() {
            let place = match status {
                DeliveryStatus::Waiting => &mut counts.waiting,
                DeliveryStatus::Delivered => &mut counts.delivered,
                DeliveryStatus::Failed => &mut counts.failed,
                DeliveryStatus::Cancelled => &mut counts.cancelled,
            };
            *place += 1;
        }
        counts
    }

    /// Where the deliveries of an event stand together: what failed counts before what waits.
    pub const fn status(&self) -> Option<DeliveryStatus> {
        if self.failed > 0 {
            Some(DeliveryStatus::Failed)
        } else if self.waiting > 0 {
            Some(DeliveryStatus::Waiting)
        } else if self.delivered > 0 {
            Some(DeliveryStatus::Delivered)
        } else if self.cancelled > 0 {
            Some(DeliveryStatus::Cancelled)
        } else {
            None
        }
    }
}

/// Between which keys the deliveries of an event lie, with the first and without the second.
pub(crate) fn delivery_keys(event: Seq) -> (String, String) {
    let prefix = sekisho_core::job::effect_prefix(event);
    // `;` follows `:`.
    (format!("{prefix}to:"), format!("{prefix}to;"))
}

/// Most deliveries of one event that are counted.
pub(crate) const COUNTED_MAX: usize = 100;
