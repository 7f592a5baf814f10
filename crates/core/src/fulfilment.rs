//! A fulfilment: what the customer paid for and somebody must make, a video for instance. It is asked for by runs, each of
//! which ends done or failed; the newest run counts, and as many failed ones as are allowed are the end.
//!
//! Facts that only grow: a run by its number, `done` over `failed` over nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::time::Time;

pub const TAG: &str = "ful_";
/// Why a run failed that nobody answered for.
pub const TIMEOUT: &str = "timeout";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FulfilmentFacts {
    /// What the app asked for.
    pub ours: FulfilmentRequest,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<u32, FulfilmentRun>,
    /// Runs that a person allowed beside those of the configuration.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_runs: u32,
    /// When it was given up because the money went back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downgraded_at: Option<Time>,
    /// Nothing more is asked for: its reservation was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Time>,
    /// Links to its page of a generation below this one are void.
    #[serde(skip_serializing_if = "is_zero")]
    pub links: u32,
    /// The cases that were opened about it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub cases: BTreeSet<String>,
    /// The keys of what was announced.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub emitted: BTreeSet<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands in a reference
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What the app asked for, once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FulfilmentRequest {
    pub kind: String,
    pub tier: Tier,
    pub at: Time,
    pub livemode: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    /// It starts when this is confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// JSON, handed to whoever makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    #[default]
    Free,
    Paid,
}

impl Tier {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Paid => "paid",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Free, Self::Paid].into_iter().find(|tier| tier.name() == text)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FulfilmentRun {
    /// When it was asked for first.
    pub requested_at: Option<Time>,
    pub result: RunResult,
    /// When that result came first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where what was made is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// How a run ended; the greater counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    #[default]
    Open,
    Failed,
    Done,
}

impl RunResult {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "processing",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FulfilmentStatus {
    /// Nothing was asked for yet.
    Waiting,
    Processing,
    Done,
    Failed,
}

impl FulfilmentStatus {
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Processing, Self::Done, Self::Failed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

/// What an answer about a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Yes,
    /// It was said before.
    Repeated,
    /// Another run was asked for since.
    OlderRun,
    /// It had been done.
    Done,
}

impl FulfilmentFacts {
    /// Adds what another knows.
    pub fn join(&mut self, other: &Self) {
        if self.ours == FulfilmentRequest::default() {
            self.ours.clone_from(&other.ours);
        }
        for (number, theirs) in &other.runs {
            self.runs.entry(*number).or_default().join(theirs);
        }
        self.more_runs = self.more_runs.max(other.more_runs);
        self.downgraded_at = earliest(self.downgraded_at, other.downgraded_at);
        self.stopped_at = earliest(self.stopped_at, other.stopped_at);
        self.links = self.links.max(other.links);
        self.cases.extend(other.cases.iter().cloned());
        self.emitted.extend(other.emitted.iter().cloned());
    }

    pub fn newest(&self) -> Option<(u32, &FulfilmentRun)> {
        self.runs.last_key_value().map(|(number, run)| (*number, run))
    }

    pub fn failed_runs(&self) -> u32 {
        let failed = self.runs.values().filter(|run| run.result == RunResult::Failed);
        u32::try_from(failed.count()).unwrap_or(u32::MAX)
    }

    /// `attempts` is how many may fail before it is final.
    pub fn status(&self, attempts: u32) -> FulfilmentStatus {
        match self.newest() {
            None => FulfilmentStatus::Waiting,
            Some((_, run)) => match run.result {
                RunResult::Done => FulfilmentStatus::Done,
                RunResult::Failed if self.failed_runs() >= attempts.saturating_add(self.more_runs) => {
                    FulfilmentStatus::Failed
                }
                RunResult::Open | RunResult::Failed => FulfilmentStatus::Processing,
            },
        }
    }

    /// The error of the newest run that failed.
    pub fn last_error(&self) -> Option<&str> {
        let mut failed = self.runs.values().rev().filter(|run| run.result == RunResult::Failed);
        failed.next().and_then(|run| run.error.as_deref())
    }

    /// When it came to its end at last, if it did.
    pub fn failed_at(&self, attempts: u32) -> Option<Time> {
        let is_final = self.status(attempts) == FulfilmentStatus::Failed;
        self.newest().filter(|_| is_final).and_then(|(_, run)| run.ended_at)
    }

    /// What it means that this was said of a run.
    pub fn counts(&self, number: u32, result: RunResult) -> Counted {
        let Some(run) = self.runs.get(&number) else { return Counted::OlderRun };
        if self.newest().is_some_and(|(newest, _)| newest > number) {
            return Counted::OlderRun;
        }
        match run.result {
            known if known == result => Counted::Repeated,
            RunResult::Done => Counted::Done,
            RunResult::Open | RunResult::Failed => Counted::Yes,
        }
    }
}

impl FulfilmentRun {
    fn join(&mut self, other: &Self) {
        self.requested_at = earliest(self.requested_at, other.requested_at);
        match other.result.cmp(&self.result) {
            std::cmp::Ordering::Greater => {
                let requested_at = self.requested_at;
                self.clone_from(other);
                self.requested_at = requested_at;
            }
            std::cmp::Ordering::Equal => {
                // Said twice: the first counts, and of two at once the lesser.
                let (mine, theirs) = (self.said(), other.said());
                if theirs < mine {
                    let requested_at = self.requested_at;
                    self.clone_from(other);
                    self.requested_at = requested_at;
                }
            }
            std::cmp::Ordering::Less => {}
        }
    }

    fn said(&self) -> (Time, &Option<String>, &Option<String>) {
        (self.ended_at.unwrap_or(Time::from_ms(i64::MAX)), &self.error, &self.url)
    }
}

fn earliest(mine: Option<Time>, other: Option<Time>) -> Option<Time> {
    mine.into_iter().chain(other).min()
}

/// What a request of a run is known by, to whoever makes it.
pub fn run_key(id: &str, run: u32) -> String {
    format!("{id}/run/{run}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn run(result: RunResult, at: i64) -> FulfilmentRun {
        let error = (result == RunResult::Failed).then(|| format!("at {at}"));
        FulfilmentRun { requested_at: Some(NOW), result, ended_at: Some(NOW.plus_ms(at)), error, url: None }
    }

    fn of(runs: &[(u32, FulfilmentRun)]) -> FulfilmentFacts {
        FulfilmentFacts { runs: runs.iter().cloned().collect(), ..FulfilmentFacts::default() }
    }

    #[test]
    fn f2_the_third_failure_is_final_and_a_person_may_allow_more() {
        let open = FulfilmentRun { requested_at: Some(NOW), ..FulfilmentRun::default() };
        assert_eq!(FulfilmentFacts::default().status(3), FulfilmentStatus::Waiting);
        let mut facts = of(&[(1, open.clone())]);
        assert_eq!(facts.status(3), FulfilmentStatus::Processing);
        for number in 1..=3 {
            facts.join(&of(&[(number, run(RunResult::Failed, i64::from(number)))]));
        }
        assert_eq!((facts.status(3), facts.failed_runs()), (FulfilmentStatus::Failed, 3));
        assert_eq!((facts.last_error(), facts.failed_at(3)), (Some("at 3"), Some(NOW.plus_ms(3))));
        facts.more_runs = 1;
        assert_eq!(facts.status(3), FulfilmentStatus::Processing);
        facts.join(&of(&[(4, run(RunResult::Done, 9))]));
        assert_eq!(facts.status(3), FulfilmentStatus::Done);
    }

    #[test]
    fn f2_an_older_run_and_a_repetition_do_not_count_and_done_stays() {
        let mut facts = of(&[(1, run(RunResult::Failed, 1)), (2, FulfilmentRun::default())]);
        assert_eq!(facts.counts(1, RunResult::Done), Counted::OlderRun);
        assert_eq!(facts.counts(2, RunResult::Failed), Counted::Yes);
        assert_eq!(facts.counts(7, RunResult::Done), Counted::OlderRun);
        facts.join(&of(&[(2, run(RunResult::Done, 5))]));
        assert_eq!(facts.counts(2, RunResult::Done), Counted::Repeated);
        assert_eq!(facts.counts(2, RunResult::Failed), Counted::Done);
        facts.join(&of(&[(2, run(RunResult::Failed, 3))]));
        assert_eq!(facts.status(3), FulfilmentStatus::Done);
    }

    #[test]
    fn f2_runs_join_in_any_order() {
        let parts = [
            of(&[(1, FulfilmentRun { requested_at: Some(NOW), ..FulfilmentRun::default() })]),
            of(&[(1, run(RunResult::Failed, 4))]),
            of(&[(1, run(RunResult::Failed, 3))]),
            of(&[(1, run(RunResult::Done, 8)), (2, run(RunResult::Failed, 2))]),
            FulfilmentFacts { downgraded_at: Some(NOW), more_runs: 2, ..FulfilmentFacts::default() },
        ];
        let all = |order: &[usize]| {
            let mut facts = FulfilmentFacts::default();
            order.iter().for_each(|n| facts.join(&parts[*n]));
            facts
        };
        let one = all(&[0, 1, 2, 3, 4]);
        for order in [[4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [1, 4, 0, 3, 2]] {
            assert_eq!(all(&order), one);
            assert_eq!(all(&[order, order].concat()), one);
        }
    }
}
