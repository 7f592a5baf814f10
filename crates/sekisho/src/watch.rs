//! Watches over orders, on every node that serves the API: tries that places can be held, reports to operators when they can't,
//! and counts the cases that are open.
//!
//! Nothing is tried before there is a slot, so whoever sells no places has no traffic by it. A try leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::case::{self, CaseFacts, CaseStatus, FaultReport};
use sekisho_core::compensation::SYSTEM_FAULT;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::state::{Key, Kind};
use sekisho_store::{FIND_MAX, StateFilter};

use crate::acts::{self, Holds, ProbeStep};
use crate::config::Config;
use crate::engine::Engine;
use crate::queries;
use crate::stop::Stop;

/// What does not work when places can't be held.
const SUBJECT: &str = "holds";
/// Failures in a row that open a case, and successes that close it.
const FAILURES: u32 = 3;
const SUCCESSES: u32 = 10;
/// A try that takes longer has failed.
const PROBE_WITHIN: Duration = Duration::from_secs(10);
/// How often cases are counted.
const COUNT_EVERY: Duration = Duration::from_mins(1);

pub struct OrderWatch {
    /// Where requests for places wait on this node.
    pub holds: Holds,
    engine: Arc<Engine>,
    policy: Arc<OrderPolicy>,
    is_probing: bool,
    every: Duration,
}

/// How the last tries went.
#[derive(Debug, Default, PartialEq, Eq)]
struct ProbeRuns {
    good: u32,
    failed: u32,
    /// When the first of the failures in a row was.
    since: Option<Time>,
}

/// What is to be said of it.
#[derive(Debug, PartialEq, Eq)]
enum ProbeVerdict {
    Fails {
        since: Time,
    },
    Works,
    /// Too early to say.
    Open,
}

impl ProbeRuns {
    /// Adds a try; `is_failing` says that too many requests of callers fail.
    fn add(&mut self, is_good: bool, is_failing: bool, at: Time) -> ProbeVerdict {
        if is_good {
            (self.good, self.failed) = (self.good.saturating_add(1), 0);
        } else {
            (self.good, self.failed) = (0, self.failed.saturating_add(1));
        }
        if is_failing {
            self.good = 0;
        }
        if is_good && !is_failing {
            self.since = None;
        } else {
            self.since = self.since.or(Some(at));
        }
        match self.since {
            Some(since) if is_failing || self.failed >= FAILURES => ProbeVerdict::Fails { since },
            _ if self.good >= SUCCESSES => ProbeVerdict::Works,
            _ => ProbeVerdict::Open,
        }
    }
}

impl OrderWatch {
    pub fn new(config: &Config, engine: &Arc<Engine>) -> Self {
        Self {
            holds: Holds::new(engine.node.env.clone(), Some(engine.metrics.orders.clone())),
            engine: Arc::clone(engine),
            policy: Arc::new(config.orders()),
            is_probing: config.reservations.probe,
            every: config.reservations.probe_every,
        }
    }

    pub async fn run(self, stop: Stop) {
        let (mut runs, mut is_used) = (ProbeRuns::default(), false);
        let mut to_count = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                () = stop.told() => return,
                () = tokio::time::sleep(self.every.min(COUNT_EVERY)) => {}
            }
            if self.is_probing {
                is_used = is_used || self.is_used().await;
                if is_used {
                    self.probe(&mut runs).await;
                }
            }
            to_count = to_count.saturating_sub(self.every);
            if to_count.is_zero() {
                self.count_cases().await;
                to_count = COUNT_EVERY;
            }
        }
    }

    /// Whether anybody sells places here.
    async fn is_used(&self) -> bool {
        let found = self.engine.store.find_states(StateFilter::all(Kind::Slot, 1)).await;
        found.is_ok_and(|found| !found.is_empty())
    }

    async fn probe(&self, runs: &mut ProbeRuns) {
        let at = self.engine.node.now();
        let tried = tokio::time::timeout(PROBE_WITHIN, self.try_once(at)).await;
        let problem = match tried {
            Ok(Ok(())) => None,
            Ok(Err(refusal)) => Some(refusal.to_string()),
            Err(_) => Some(format!("no answer within {} s", PROBE_WITHIN.as_secs())),
        };
        self.engine.metrics.orders.probed(problem.is_none());
        if let Some(reason) = &problem {
            tracing::warn!(
                error_type = "probe_failed",
                reason,
                "the probe could not hold a place and give it back"
            );
        }
        let verdict = runs.add(problem.is_none(), self.holds.answers().is_failing(at), at);
        let since = match verdict {
            ProbeVerdict::Open => return,
            ProbeVerdict::Fails { since } => Some(since),
            ProbeVerdict::Works if !self.is_reported().await => return,
            ProbeVerdict::Works => None,
        };
        let lasts_ms = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX);
        let report = FaultReport {
            subject: SUBJECT.to_owned(),
            by: self.name(),
            since,
            lasts_ms: lasts_ms.saturating_mul(i64::from(SUCCESSES)),
        };
        let engine = &self.engine;
        let said = acts::report_fault(&*engine.store, &engine.node.env, &self.policy, &report, at).await;
        if let Err(refusal) = said {
            // Said again with the next try, with the moment when it began.
            tracing::warn!(
                error_type = "probe_unreported",
                reason = refusal.to_string(),
                "what the probe found could not be reported"
            );
        }
    }

    async fn try_once(&self, at: Time) -> acts::Result<()> {
        let (store, name) = (&self.engine.store, self.name());
        self.holds.probe(store, &self.policy, &name, ProbeStep::Take, at).await?;
        self.holds.probe(store, &self.policy, &name, ProbeStep::GiveBack, at).await
    }

    /// Whether some node has reported a fault that was not taken back.
    async fn is_reported(&self) -> bool {
        let key = Key::new(Kind::Case, case::id_of(SYSTEM_FAULT, SUBJECT));
        let loaded = self.engine.store.load(Vec::new(), vec![key.clone()]).await;
        let known = loaded.ok().and_then(|loaded| loaded.read::<CaseFacts>(&key).ok().flatten());
        known.is_some_and(|known| !known.value.reports.is_empty())
    }

    fn name(&self) -> String {
        format!("node-{}", self.engine.node.epoch().0)
    }

    async fn count_cases(&self) {
        let (mut by_level, mut overdue) = ([0; 4], 0);
        let at = self.engine.node.now();
        for status in [CaseStatus::Open, CaseStatus::Acknowledged] {
            let status = Some(status.name().to_owned());
            let filter = StateFilter { status, ..StateFilter::all(Kind::Case, FIND_MAX) };
            let Ok(found) = self.engine.store.find_states(filter).await else { return };
            for shown in found.iter().filter_map(|state| queries::case_view(state, &self.policy, at).ok()) {
                by_level[usize::from(shown.level.min(3))] += 1;
                overdue += i64::from(shown.overdue);
            }
        }
        self.engine.metrics.orders.count_cases(by_level, overdue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    #[test]
    fn f4_three_failed_probes_in_a_row_open_a_case_and_ten_good_ones_close_it() {
        let mut runs = ProbeRuns::default();
        let mut add = |is_good: bool, minute: i64| runs.add(is_good, false, NOW.plus_ms(minute * 60_000));
        assert_eq!([add(false, 0), add(false, 1), add(true, 2)], [const { ProbeVerdict::Open }; 3]);
        let began = NOW.plus_ms(3 * 60_000);
        assert_eq!([add(false, 3), add(false, 4)], [const { ProbeVerdict::Open }; 2]);
        assert_eq!(add(false, 5), ProbeVerdict::Fails { since: began });
        assert_eq!(add(false, 6), ProbeVerdict::Fails { since: began });
        for minute in 7..16 {
            assert_eq!(add(true, minute), ProbeVerdict::Open, "{minute}");
        }
        assert_eq!(add(true, 16), ProbeVerdict::Works);
    }

    #[test]
    fn f4_requests_that_fail_count_though_the_probe_succeeds() {
        let mut runs = ProbeRuns::default();
        assert_eq!(runs.add(true, true, NOW), ProbeVerdict::Fails { since: NOW });
        assert_eq!(runs.add(true, false, NOW), ProbeVerdict::Open);
    }
}
