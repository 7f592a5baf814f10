//! Dead letters: tried again, or put aside for good.

use std::collections::BTreeMap;

use sekisho_core::job::Lane;
use sekisho_core::notification::tries::UNCERTAIN;
use sekisho_core::{Seq, Time};
use sekisho_store::{CLAIM_MAX, DeadFilter, DeadGroup, DeadLetter, FIND_MAX, Store};
use serde::{Deserialize, Serialize};

use super::{Actor, Refusal, Result, SELECT_MAX, check_reason, check_selection, earlier, just_after};

/// Which dead letters. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeadQuery {
    pub source: Option<String>,
    /// Exact, or a prefix when it ends in `*`.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    pub reason: Option<String>,
    pub route: Option<String>,
    /// What else it was in the way to: `by:mail`, `settle`. A route is one, too: `to:app`.
    pub lane: Option<String>,
    /// `evt_…`
    pub event: Option<String>,
    /// When it died: not before, and before.
    pub since: Option<Time>,
    pub until: Option<Time>,
}

impl DeadQuery {
    pub fn filter(&self) -> Result<DeadFilter> {
        let event = self.event.as_ref().map(|id| {
            let wanted = "expected the event's id as Sekisho writes it: evt_ and 13 characters";
            id.parse::<Seq>().map_err(|_| Refusal::Invalid(wanted.into()))
        });
        let lane = match (&self.route, &self.lane) {
            (Some(_), Some(_)) => {
                return Err(Refusal::Invalid("route and lane say the same: write one of them".into()));
            }
            (Some(route), None) => Some(Lane::to_route(route)),
            (None, lane) => lane.clone().map(Lane::from),
        };
        Ok(DeadFilter {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            reason: self.reason.clone(),
            lane,
            event: event.transpose()?,
            since: self.since,
            until: self.until,
            ..DeadFilter::default()
        })
    }
}

/// What to do with which dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeadLetterSelection {
    /// `msg_…`
    pub ids: Vec<String>,
    pub filter: DeadQuery,
    pub all: bool,
    pub dry_run: bool,
    /// Stands in the audit log. Needed to discard.
    pub reason: String,
}

impl DeadLetterSelection {
    /// The same order, but only for what died before a moment: what dies from then on was not looked at. What is named
    /// by its id stays named.
    pub fn bounded(&self, until: Time) -> Result<Self> {
        self.check()?;
        if !self.ids.is_empty() {
            return Ok(self.clone());
        }
        let until = earlier(self.filter.until, until);
        let filter = DeadQuery { until, ..self.filter.clone() };
        Ok(Self { filter, all: false, ..self.clone() })
    }

    fn check(&self) -> Result<()> {
        check_selection(&self.ids, self.filter != DeadQuery::default(), self.all)
    }
}

/// What was done, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadReport {
    pub dry_run: bool,
    /// Only what died before this: a filter that finds the same and nothing newer.
    pub until: Option<Time>,
    pub found: usize,
    /// Retried or discarded now; none in a dry run.
    pub done: usize,
    /// Not retried among others, because nobody knows whether it arrived: it must be named, by its id or its reason.
    pub in_doubt: usize,
    /// Ids that no dead letter has, or has any more.
    pub missing: Vec<String>,
    /// More fit than one order may touch: the same order again takes the next.
    pub more: bool,
    pub groups: Vec<DeadGroup>,
}

/// Queues dead letters again, each under its own id.
pub async fn retry(store: &dyn Store, redo: &DeadLetterSelection, actor: &Actor<'_>) -> Result<DeadReport> {
    let reason = check_reason(&redo.reason)?;
    let (mut report, jobs) = to_retry(store, redo).await?;
    for chunk in chunks(&jobs, redo.dry_run) {
        let retried = store.retry(chunk.to_vec(), actor.act(&reason)).await?;
        report.done += retried.into_iter().filter(|was_there| *was_there).count();
    }
    Ok(report)
}

/// Takes dead letters out for good. Asks for a reason.
pub async fn discard(store: &dyn Store, redo: &DeadLetterSelection, actor: &Actor<'_>) -> Result<DeadReport> {
    let reason = check_reason(&redo.reason)?;
    if reason.is_empty() && !redo.dry_run {
        return Err(Refusal::Invalid(
            "a reason is required to discard; it is recorded in the audit log".into(),
        ));
    }
    let (mut report, jobs) = to_discard(store, redo).await?;
    for chunk in chunks(&jobs, redo.dry_run) {
        let discarded = store.discard(chunk.to_vec(), actor.act(&reason)).await?;
        report.done += discarded.into_iter().filter(|was_there| *was_there).count();
    }
    Ok(report)
}

/// What a retry would queue again, and its report so far.
pub async fn to_retry(store: &dyn Store, redo: &DeadLetterSelection) -> Result<(DeadReport, Vec<Seq>)> {
    select(store, redo, redo.filter.reason.is_none()).await
}

/// What would be discarded.
pub async fn to_discard(store: &dyn Store, redo: &DeadLetterSelection) -> Result<(DeadReport, Vec<Seq>)> {
    select(store, redo, false).await
}

fn chunks(jobs: &[Seq], dry_run: bool) -> std::slice::Chunks<'_, Seq> {
    if dry_run { [].chunks(CLAIM_MAX) } else { jobs.chunks(CLAIM_MAX) }
}

/// Finds all of them before anything is done, so that one that dies again is not met twice. With `without_doubt`, what
/// may have arrived is left out.
async fn select(
    store: &dyn Store,
    redo: &DeadLetterSelection,
    without_doubt: bool,
) -> Result<(DeadReport, Vec<Seq>)> {
    redo.check()?;
    let mut report = DeadReport { dry_run: redo.dry_run, ..DeadReport::default() };
    let mut letters = BTreeMap::new();
    if redo.ids.is_empty() {
        let mut filter = DeadFilter { limit: FIND_MAX, ..redo.filter.filter()? };
        loop {
            let page = store.find_dead(filter.clone()).await?;
            let next = page.last().filter(|_| page.len() == FIND_MAX).map(|last| last.job);
            for letter in page {
                if without_doubt && letter.death.reason == UNCERTAIN {
                    report.in_doubt += 1;
                } else {
                    letters.insert(letter.job, needed(letter));
                }
            }
            filter.before = next;
            if next.is_none() {
                break;
            }
            if letters.len() >= SELECT_MAX {
                report.more = true;
                break;
            }
        }
    } else {
        for id in &redo.ids {
            let job = id.parse().map_err(|error| Refusal::Invalid(format!("{id:?} is {error}")))?;
            match find_letter(store, job).await? {
                Some(letter) => drop(letters.insert(job, needed(letter))),
                None => report.missing.push(id.clone()),
            }
        }
        if letters.is_empty() {
            let ids = report.missing.join(", ");
            return Err(Refusal::Missing(format!("no dead letter has the id {ids} (any more)")));
        }
    }
    let newest = letters.values().map(|letter| letter.at).max().filter(|_| redo.ids.is_empty());
    report.until = newest.map(just_after).or(redo.filter.until);
    report.found = letters.len();
    report.groups = DeadGroup::all(letters.values());
    Ok((report, letters.into_keys().collect()))
}

/// One dead letter by its id.
pub async fn find_letter(store: &dyn Store, job: Seq) -> sekisho_store::Result<Option<DeadLetter>> {
    let just_below = Seq::from_i64(job.as_i64().saturating_add(1));
    let filter = DeadFilter { before: Some(just_below), limit: 1, ..DeadFilter::default() };
    Ok(store.find_dead(filter).await?.into_iter().find(|letter| letter.job == job))
}

/// What many are kept by: not their payloads.
fn needed(letter: DeadLetter) -> DeadLetter {
    DeadLetter { payload: String::new(), ..letter }
}
