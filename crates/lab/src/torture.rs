//! Load and faults together, and afterwards the question whether every promise was kept.
//!
//! The real binary, one node on SQLite or several on a PostgreSQL of their own; a provider that keeps a ledger of what
//! was acknowledged, an application that keeps one of what it processed; faults by seed. When all is quiet again and
//! the queue is empty, [`checker`] joins the ledgers with the store. Everything is bounded in time; what is started
//! here ends with it, however it ends.

pub mod checker;
mod clock;
mod cluster;
mod evidence;
pub mod faults;
pub mod report;
mod storm;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::rng::Rng;
use checker::{Evidence, SeenRequest};
use clock::Shim;
use cluster::{Cluster, ClusterStore};
use faults::{Struck, Tormentor, TortureFault};
use report::{Times, TortureVerdict};
use storm::{Events, Storm, StormSent};

/// How long the queue may take to empty, besides as long again as the torture lasted.
const DRAIN: Duration = Duration::from_mins(2);
const DRAIN_POLL: Duration = Duration::from_millis(250);
/// How long work of a killed node may wait for another: its lease, and two seconds to notice.
const ORPHANS_WITHIN: Duration = Duration::from_secs(12);
/// Fewer objects would make the queue of each the bottleneck: one is served a few times a second.
const OBJECTS_MIN: u64 = 64;

/// What to do to whom.
#[derive(Clone, Debug)]
pub struct Plan {
    pub store: StoreKind,
    /// On PostgreSQL; SQLite has one.
    pub nodes: usize,
    pub lasts: Duration,
    pub faults: Vec<TortureFault>,
    /// Mean pause between two faults.
    pub every: Duration,
    pub seed: u64,
    /// Events a second, over all nodes.
    pub rate: f64,
    /// What a busy machine may add to the time that orphans wait.
    pub slack: Duration,
    pub binary: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    Sqlite,
    Postgres,
}

impl FromStr for StoreKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => Err(format!("{text:?} is neither sqlite nor postgres")),
        }
    }
}

impl Plan {
    fn nodes(&self) -> usize {
        match self.store {
            StoreKind::Sqlite => 1,
            StoreKind::Postgres => self.nodes.max(1),
        }
    }
}

/// `Err` when the torture itself could not be done; what it found is in the verdict.
pub fn run(plan: &Plan) -> Result<TortureVerdict, String> {
    let dir = tempfile::Builder::new()
        .prefix("sekisho-torture-")
        .tempdir()
        .map_err(|error| format!("no directory for the torture: {error}"))?;
    let verdict = torture(plan, dir.path()).map_err(|error| format!("{error} (--seed {})", plan.seed));
    // Kept whenever there is something to look at.
    if !verdict.as_ref().is_ok_and(|verdict| verdict.violations().is_empty()) {
        eprintln!("kept: {}", dir.keep().display());
    }
    verdict
}

fn torture(plan: &Plan, dir: &Path) -> Result<TortureVerdict, String> {
    let started = Instant::now();
    let (faults, shim, mut notes) = possible(plan, dir);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let store = ClusterStore::open(plan, dir, &runtime, faults.contains(&TortureFault::CutAfterCommit))?;
    let mut cluster = Cluster::start(plan, dir, store, shim.as_ref())?;

    let storms = storms(plan, dir, &cluster)?;
    let log = File::create(dir.join("faults")).map_err(|error| format!("no log of faults: {error}"))?;
    let seed = Rng::new(plan.seed).fork().next_u64();
    let mut tormentor = Tormentor::new(&mut cluster, &storms, faults.clone(), seed, plan.every, log);
    tormentor.run(plan.lasts)?;
    let recoveries: Vec<_> = faults.iter().map(|fault| (*fault, tormentor.recovery(*fault))).collect();
    let Tormentor { struck, deaths, stuck, .. } = tormentor;
    notes.extend(cluster.store.cuts());
    let sent: Vec<StormSent> = storms.into_iter().map(Storm::stop).collect();

    let drained_in = drain(&cluster.store, plan.lasts + DRAIN)?;
    let mut evidence = collect(plan, &cluster, &sent)?;
    let at_risk = |strike: &Struck| strike.leased.len() as u64;
    evidence.repeats_allowed = struck.iter().map(at_risk).sum();
    // The nodes go first: their store is looked at alone.
    cluster.nodes.clear();
    let times = |fault| struck.iter().filter(|strike| strike.fault == fault).count() as u64;
    Ok(TortureVerdict {
        seed: plan.seed,
        lasted: started.elapsed(),
        faults: recoveries.into_iter().map(|(fault, recovery)| (fault, times(fault), recovery)).collect(),
        orphans: orphans(&struck, &evidence.requests),
        orphans_within: ORPHANS_WITHIN + plan.slack,
        deaths,
        stuck,
        notes,
        answers: answers(&sent),
        forgeries: sent.iter().map(|sent| sent.forgeries).sum(),
        drained_in,
        integrity: cluster.store.integrity(&plan.binary),
        findings: checker::check(&evidence),
        dir: dir.to_owned(),
    })
}

/// The faults that can be done here, and what is said about the others.
fn possible(plan: &Plan, dir: &Path) -> (Vec<TortureFault>, Option<Shim>, Vec<String>) {
    let mut notes = Vec::new();
    let mut faults = plan.faults.clone();
    faults.dedup();
    if plan.store == StoreKind::Sqlite && faults.iter().any(|fault| fault.needs_postgres()) {
        notes.push("faults of PostgreSQL were left out on SQLite".into());
        faults.retain(|fault| !fault.needs_postgres());
    }
    let shim = faults.contains(&TortureFault::Clock).then(|| Shim::build(dir));
    let shim = match shim {
        None => None,
        Some(Ok(shim)) => Some(shim),
        Some(Err(error)) => {
            notes.push(format!("clocks were left alone: {error}"));
            faults.retain(|fault| *fault != TortureFault::Clock);
            None
        }
    };
    (faults, shim, notes)
}

fn storms(plan: &Plan, dir: &Path, cluster: &Cluster) -> Result<Vec<Storm>, String> {
    let nodes = cluster.nodes.len();
    let rate = plan.rate / nodes as f64;
    let objects = (rate as u64).max(OBJECTS_MIN);
    let storm = |(n, node): (usize, &cluster::ClusterNode)| {
        Storm::start(node.server.address(), Events::new(plan.seed, n, objects), rate, plan.seed, dir)
    };
    cluster.nodes.iter().enumerate().map(storm).collect()
}

/// Waits until nothing is left to do; `None` when it takes too long.
fn drain(store: &ClusterStore, limit: Duration) -> Result<Option<Duration>, String> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if evidence::unfinished(store)? == 0 {
            return Ok(Some(started.elapsed()));
        }
        std::thread::sleep(DRAIN_POLL);
    }
    Ok(None)
}

fn collect(plan: &Plan, cluster: &Cluster, sent: &[StormSent]) -> Result<Evidence, String> {
    let store = &cluster.store;
    Ok(Evidence {
        routes: cluster::ROUTES.to_vec(),
        acknowledged: sent.iter().flat_map(|sent| sent.report.ledger.acknowledged.clone()).collect(),
        resent: sent.iter().flat_map(|sent| sent.report.ledger.resent.clone()).collect(),
        sent: sent.iter().flat_map(|sent| sent.ids.clone()).collect(),
        forgeries_accepted: sent.iter().map(|sent| sent.forgeries_accepted).sum(),
        left: evidence::left(store)?,
        dead: evidence::dead(store)?,
        events: evidence::events(store)?,
        outcomes: evidence::outcomes(store)?,
        attempts: evidence::attempts(store)?,
        requests: cluster.app.received().into_iter().map(evidence::request).collect(),
        repeats_allowed: 0,
        one_node_at_a_time: plan.nodes() == 1,
    })
}

/// How long it took until what a killed node had in hand was tried again, counted from the last fault before that:
/// each may kill who was about to notice.
fn orphans(struck: &[Struck], requests: &[SeenRequest]) -> Times {
    let mut tried: std::collections::HashMap<i64, Vec<u64>> = std::collections::HashMap::new();
    for request in requests {
        tried.entry(request.message).or_default().push(request.at_ms);
    }
    tried.values_mut().for_each(|times| times.sort_unstable());
    let faults: Vec<u64> = struck.iter().map(|strike| strike.at_ms).collect();
    let mut times = Vec::new();
    for kill in struck.iter().filter(|strike| strike.fault == TortureFault::Kill) {
        for job in &kill.leased {
            let again = tried.get(job).and_then(|times| times.iter().find(|at| **at > kill.at_ms));
            let Some(again) = again else { continue };
            let last = faults.iter().rev().find(|at| **at < *again).unwrap_or(&kill.at_ms);
            times.push(Duration::from_millis(again - (*last).max(kill.at_ms)));
        }
    }
    Times(times)
}

fn answers(sent: &[StormSent]) -> String {
    let mut statuses = std::collections::BTreeMap::<u16, u64>::new();
    for (status, count) in sent.iter().flat_map(|sent| &sent.report.statuses) {
        *statuses.entry(*status).or_default() += count;
    }
    let unknown: u64 = sent.iter().map(|sent| sent.report.unknown).sum();
    let known: Vec<_> = statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    format!("{}; unknown {unknown}", known.join(", "))
}
