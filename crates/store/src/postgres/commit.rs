//! Change sets, each whole or not at all: one statement for all that touch different things.
//!
//! A guard is checked where its row is locked, in the statement that writes. What must not be there yet can't be locked:
//! it is looked for, and then inserted, so that of two who add it at once one fails on the constraint. Nothing of that
//! statement is written then; its sets are tried again in halves, and the one that fails alone is stale.

mod column;
mod columns;
mod statement;

use std::collections::BTreeSet;

use sekisho_core::Seq;
use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::state::Key;

use super::connection::Link;
use super::failure::QueryFailure;
use super::partition::{self, PartitionDay};
use super::work::give_turns;
use crate::error::Result;
use crate::guard;

/// How often a part is tried again for a partition.
const ROUNDS_MAX: usize = 5;

/// A set and its place in the call.
type Placed<'s> = (usize, &'s ChangeSet);

pub async fn commit(link: &Link, sets: &[ChangeSet]) -> Result<Vec<Committed>> {
    let mut answers: Vec<_> = sets.iter().map(|set| guard::refusal(set).unwrap_or(APPLIED)).collect();
    let mut rest: Vec<Placed<'_>> =
        sets.iter().enumerate().filter(|(n, set)| answers[*n] == APPLIED && !is_empty(set)).collect();
    while !rest.is_empty() {
        let later = rest.split_off(apart(&rest));
        for (n, answer) in write_all(link, rest).await? {
            answers[n] = answer;
        }
        rest = later;
    }
    Ok(answers)
}

const APPLIED: Committed = Committed::Applied { repeated: Vec::new() };

fn is_empty(set: &ChangeSet) -> bool {
    set.ends.is_empty() && set.jobs.is_empty() && is_plain(set)
}

/// Ends and queues jobs, and changes nothing else: so do most.
fn is_plain(set: &ChangeSet) -> bool {
    let ChangeSet { at: _, ends: _, jobs: _, writes, names, postings, audit, events, keep: _ } = set;
    writes.is_empty() && names.is_empty() && postings.is_empty() && audit.is_empty() && events.is_empty()
}

/// How many, from the first, touch different things. The next must wait for them, and all after it for their turn.
fn apart(sets: &[Placed<'_>]) -> usize {
    let mut touched = Touched::default();
    sets.iter().position(|(_, set)| !touched.add(set)).unwrap_or(sets.len())
}

#[derive(Default)]
struct Touched<'s> {
    jobs: BTreeSet<Seq>,
    keys: BTreeSet<&'s Key>,
    names: BTreeSet<&'s str>,
}

impl<'s> Touched<'s> {
    /// False when something of it was touched before.
    fn add(&mut self, set: &'s ChangeSet) -> bool {
        let mut apart = true;
        for ended in &set.ends {
            apart &= self.jobs.insert(ended.lease.job);
        }
        for write in &set.writes {
            apart &= self.keys.insert(&write.key);
        }
        for naming in guard::namings(set) {
            apart &= self.names.insert(&naming.name);
        }
        apart
    }
}

/// Writes sets that touch different things, and parts of them where the whole fails on a race.
async fn write_all(link: &Link, sets: Vec<Placed<'_>>) -> Result<Vec<(usize, Committed)>> {
    let mut answers = Vec::with_capacity(sets.len());
    let mut parts = vec![sets];
    let mut rounds = 0;
    while let Some(part) = parts.pop() {
        let failure = match write(link, &part).await {
            Ok(written) => {
                answers.extend(written.answers(&part));
                give_turns(link, written.fifos).await;
                continue;
            }
            Err(failure) => failure,
        };
        if failure.misses_a_partition() && rounds < ROUNDS_MAX {
            rounds += 1;
            let made = part.iter().flat_map(|(_, set)| &set.events);
            partition::make(link, &made.filter_map(|event| PartitionDay::of_seq(event.seq)).collect())
                .await?;
            parts.push(part);
        } else if !failure.lost_a_race() {
            return Err(failure.into());
        } else if let [(n, _)] = part[..] {
            answers.push((n, Committed::Stale));
        } else {
            let (left, right) = part.split_at(part.len() / 2);
            parts.extend([right.to_vec(), left.to_vec()]);
        }
    }
    Ok(answers)
}

/// What became of a statement's sets.
#[derive(Default)]
struct Written {
    lost: BTreeSet<usize>,
    stale: BTreeSet<usize>,
    /// Jobs and events that were new.
    fresh: BTreeSet<Seq>,
    /// Whose next has its turn.
    fifos: BTreeSet<String>,
}

async fn write(link: &Link, part: &[Placed<'_>]) -> std::result::Result<Written, QueryFailure> {
    let rows = if part.iter().all(|(_, set)| is_plain(set)) {
        link.query(&statement::PLAIN, &columns::plain(part).values()).await?
    } else if part.iter().all(|(_, set)| set.audit.is_empty()) {
        link.query(&statement::WHOLE, &columns::unlinked(part).values()).await?
    } else {
        link.query_chained(&statement::WHOLE, &columns::whole(part).values()).await?
    };
    let mut written = Written::default();
    for row in &rows {
        let (what, number): (&str, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let n = number.and_then(|n| usize::try_from(n).ok());
        match what {
            "lost" => written.lost.extend(n),
            "stale" => written.stale.extend(n),
            "new" => written.fresh.extend(number.map(Seq::from_i64)),
            _ => written.fifos.extend(row.try_get::<_, Option<String>>(2)?),
        }
    }
    Ok(written)
}

impl Written {
    fn answers(&self, part: &[Placed<'_>]) -> Vec<(usize, Committed)> {
        part.iter().map(|(n, set)| (*n, self.answer(*n, set))).collect()
    }

    fn answer(&self, n: usize, set: &ChangeSet) -> Committed {
        if self.lost.contains(&n) {
            return Committed::Lost;
        }
        if self.stale.contains(&n) {
            return Committed::Stale;
        }
        let made = set.jobs.iter().map(|job| job.id).chain(set.events.iter().map(|event| event.seq));
        Committed::Applied { repeated: made.filter(|id| !self.fresh.contains(id)).collect() }
    }
}
