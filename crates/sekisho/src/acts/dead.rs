//! Dead letters: tried again, or put aside for good.

use std::collections::BTreeMap;

use sekisho_core::actor::Actor;
use sekisho_core::notification::tries::UNCERTAIN;
use sekisho_core::selection::{self, SELECT_MAX};
use sekisho_core::{Seq, Time};
use sekisho_store::{CLAIM_MAX, DeadFilter, DeadGroup, FIND_MAX, Store};

use crate::queries::find_letter;
use crate::refusal::{Refusal, Result};
use crate::types::{DeadLetterSelection, DeadQuery, DeadReport};

impl DeadLetterSelection {
    /// The same order, but only for what died before a moment: what dies from then on was not looked at. What is named
    /// by its id stays named.
    pub fn bounded(&self, until: Time) -> Result<Self> {
        self.check()?;
        if !self.ids.is_empty() {
            return Ok(self.clone());
        }
        let until = selection::earlier(self.filter.until, until);
        let filter = DeadQuery { until, ..self.filter.clone() };
        Ok(Self { filter, all: false, ..self.clone() })
    }

    fn check(&self) -> Result<()> {
        Ok(selection::check(self.ids.len(), self.filter != DeadQuery::default(), self.all)?)
    }
}

/// Queues dead letters again, each under its own id.
pub async fn retry(store: &dyn Store, order: &DeadLetterSelection, actor: &Actor<'_>) -> Result<DeadReport> {
    let reason = selection::check_reason(&order.reason)?;
    let (mut report, jobs) = to_retry(store, order).await?;
    for chunk in chunks(&jobs, order.dry_run) {
        let retried = store.retry(chunk.to_vec(), actor.act(&reason)).await?;
        report.done += retried.into_iter().filter(|was_there| *was_there).count();
    }
    Ok(report)
}

/// Takes dead letters out for good. Asks for a reason.
pub async fn discard(
    store: &dyn Store,
    order: &DeadLetterSelection,
    actor: &Actor<'_>,
) -> Result<DeadReport> {
    let reason = selection::check_discard(&order.reason, order.dry_run)?;
    let (mut report, jobs) = to_discard(store, order).await?;
    for chunk in chunks(&jobs, order.dry_run) {
        let discarded = store.discard(chunk.to_vec(), actor.act(&reason)).await?;
        report.done += discarded.into_iter().filter(|was_there| *was_there).count();
    }
    Ok(report)
}

/// What a retry would queue again, and its report so far.
pub async fn to_retry(store: &dyn Store, order: &DeadLetterSelection) -> Result<(DeadReport, Vec<Seq>)> {
    select(store, order, order.filter.reason.is_none()).await
}

/// What would be discarded.
pub async fn to_discard(store: &dyn Store, order: &DeadLetterSelection) -> Result<(DeadReport, Vec<Seq>)> {
    select(store, order, false).await
}

fn chunks(jobs: &[Seq], dry_run: bool) -> std::slice::Chunks<'_, Seq> {
    if dry_run { [].chunks(CLAIM_MAX) } else { jobs.chunks(CLAIM_MAX) }
}

/// Finds all of them before anything is done, so that one that dies again is not met twice. With `without_doubt`, what
/// may have arrived is left out.
async fn select(
    store: &dyn Store,
    order: &DeadLetterSelection,
    without_doubt: bool,
) -> Result<(DeadReport, Vec<Seq>)> {
    order.check()?;
    let mut report = DeadReport { dry_run: order.dry_run, ..DeadReport::default() };
    let mut letters = BTreeMap::new();
    if order.ids.is_empty() {
        let mut filter = DeadFilter { limit: FIND_MAX, ..order.filter.filter()? };
        loop {
            let page = store.find_dead(filter.clone()).await?;
            let next = page.last().filter(|_| page.len() == FIND_MAX).map(|last| last.job);
            for letter in page {
                if without_doubt && letter.death.reason == UNCERTAIN {
                    report.in_doubt += 1;
                } else {
                    letters.insert(letter.job, letter);
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
        for id in &order.ids {
            let job = id.parse().map_err(|error| Refusal::Invalid(format!("{id:?} is {error}")))?;
            match find_letter(store, job).await? {
                Some(letter) => drop(letters.insert(job, letter)),
                None => report.missing.push(id.clone()),
            }
        }
        if letters.is_empty() {
            let ids = report.missing.join(", ");
            return Err(Refusal::Missing(format!("no dead letter has the id {ids} (any more)")));
        }
    }
    let newest = letters.values().map(|letter| letter.at).max().filter(|_| order.ids.is_empty());
    report.until = newest.map(selection::just_after).or(order.filter.until);
    report.found = letters.len();
    report.groups = DeadGroup::all(letters.values()).into_iter().map(Into::into).collect();
    Ok((report, letters.into_keys().collect()))
}
