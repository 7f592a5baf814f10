//! What is done to the cluster, and when: all of it follows from the seed, only the moments depend on the machine.
//!
//! One thread does it, in small steps, so that a pause of one node and a lying clock of another overlap with kills of a
//! third. After each fault the provider's ledger is watched until it grows again: that is the recovery.

mod fault;

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

use super::clock::Lie;
use super::cluster::{Cluster, ClusterStore};
use super::report::Times;
use super::storm::Storm;
use crate::proxy::{Choice, Cut, CutPoint, Faults as Network, Lost};
use crate::rng::Rng;

pub use fault::TortureFault;

const STEP: Duration = Duration::from_millis(5);
/// A node that ended by itself is started again after this.
const START_AGAIN: Duration = Duration::from_millis(200);
/// How long after the last fault the first event may take.
const RECOVERED_WITHIN: Duration = Duration::from_secs(20);
const STOPPED_MS: (u64, u64) = (3_000, 15_000);
const LYING_MS: (u64, u64) = (1_000, 8_000);
const CUTTING_MS: (u64, u64) = (300, 2_000);
const CUT_PROBABILITY: f64 = 0.1;
const SESSIONS_MAX: u64 = 5;
const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;

/// One fault as it happened.
#[derive(Clone, Debug)]
pub struct Struck {
    pub fault: TortureFault,
    pub at_ms: u64,
    /// Deliveries that were leased when a node was killed or paused.
    pub leased: Vec<i64>,
}

pub struct Tormentor<'c> {
    cluster: &'c mut Cluster,
    storms: &'c [Storm],
    faults: Vec<TortureFault>,
    rng: Rng,
    every: Duration,
    log: File,
    started: Instant,
    pub struck: Vec<Struck>,
    /// Nodes that ended though nobody ended them.
    pub deaths: Vec<String>,
    /// What did not recover by itself when all faults were over.
    pub stuck: Vec<String>,
    recoveries: Vec<(TortureFault, Duration)>,
    watches: Vec<Watch>,
    paused: Option<(usize, Instant)>,
    lying: Option<(usize, Instant)>,
    cutting: Option<Instant>,
    dead: Vec<(usize, Instant)>,
    /// Nodes that were started while their clock lied: they can't know the true time.
    misled: Vec<usize>,
}

/// Waits for the first acknowledged event after a fault.
struct Watch {
    fault: TortureFault,
    since: Instant,
    /// One node's ledger, or anybody's.
    node: Option<usize>,
    bytes: u64,
}

impl<'c> Tormentor<'c> {
    pub fn new(
        cluster: &'c mut Cluster,
        storms: &'c [Storm],
        faults: Vec<TortureFault>,
        seed: u64,
        every: Duration,
        log: File,
    ) -> Self {
        Self {
            cluster,
            storms,
            faults,
            rng: Rng::new(seed),
            every,
            log,
            started: Instant::now(),
            struck: Vec::new(),
            deaths: Vec::new(),
            stuck: Vec::new(),
            recoveries: Vec::new(),
            watches: Vec::new(),
            paused: None,
            lying: None,
            cutting: None,
            dead: Vec::new(),
            misled: Vec::new(),
        }
    }

    /// Does harm until the time is over, then undoes what can be undone.
    pub fn run(&mut self, lasts: Duration) -> Result<(), String> {
        let mut next = Instant::now() + self.every;
        while self.started.elapsed() < lasts {
            self.step()?;
            if Instant::now() >= next && !self.faults.is_empty() {
                self.strike()?;
                let mean = self.every.as_millis() as u64;
                next = Instant::now() + Duration::from_millis(self.rng.between(mean / 4, mean * 7 / 4));
            }
            std::thread::sleep(STEP);
        }
        self.heal()
    }

    /// Ends what lasted long enough, restarts what died, looks for recoveries.
    fn step(&mut self) -> Result<(), String> {
        let now = Instant::now();
        if let Some((node, _)) = self.paused.filter(|(_, until)| now >= *until) {
            self.resume(node)?;
        }
        if let Some((node, _)) = self.lying.filter(|(_, until)| now >= *until) {
            self.tell_the_truth(node)?;
        }
        if self.cutting.is_some_and(|until| now >= until) {
            self.stop_cutting();
        }
        for node in 0..self.cluster.nodes.len() {
            let server = &mut self.cluster.nodes[node].server;
            if server.pid().is_some()
                && let Some(status) = server.exited()
            {
                let said = server.stderr();
                let last = said.lines().next_back().unwrap_or("without a word");
                let after = self.started.elapsed().as_secs();
                self.deaths.push(format!("node {node} after {after} s, {status}: {last}"));
                self.dead.push((node, now + START_AGAIN));
                self.note(&format!("node {node} ended by itself: {status}"))?;
            }
        }
        while let Some(at) = self.dead.iter().position(|(_, when)| now >= *when) {
            let (node, _) = self.dead.swap_remove(at);
            self.start(node)?;
        }
        let storms = self.storms;
        let (recoveries, bytes) = (&mut self.recoveries, |node: Option<usize>| acknowledged(storms, node));
        self.watches.retain(|watch| {
            let recovered = bytes(watch.node) > watch.bytes;
            if recovered {
                recoveries.push((watch.fault, watch.since.elapsed()));
            }
            !recovered
        });
        Ok(())
    }

    fn strike(&mut self) -> Result<(), String> {
        let fault = choose(&self.faults, &self.struck, &mut self.rng);
        let node = self.rng.below(self.cluster.nodes.len() as u64) as usize;
        let busy = match fault {
            TortureFault::Stop => self.paused.is_some() || self.cluster.nodes[node].server.pid().is_none(),
            TortureFault::Clock => self.lying.is_some(),
            TortureFault::CutAfterCommit => self.cutting.is_some(),
            TortureFault::Kill | TortureFault::PgRestart | TortureFault::PgTerminate => false,
        };
        if busy {
            return Ok(());
        }
        match fault {
            TortureFault::Kill => self.kill(node),
            TortureFault::Stop => self.pause(node),
            TortureFault::PgRestart => self.restart_postgres(),
            TortureFault::PgTerminate => self.terminate_sessions(),
            TortureFault::CutAfterCommit => self.cut(),
            TortureFault::Clock => self.lie(node),
        }
    }

    fn kill(&mut self, node: usize) -> Result<(), String> {
        let since = Instant::now();
        self.paused = self.paused.filter(|(paused, _)| *paused != node);
        self.cluster.nodes[node].server.kill9();
        let leased = self.leased()?;
        self.struck(TortureFault::Kill, leased, &format!("node {node}"))?;
        self.start(node)?;
        self.watch(TortureFault::Kill, since, Some(node));
        Ok(())
    }

    fn start(&mut self, node: usize) -> Result<(), String> {
        if self.lying.is_some_and(|(lying, _)| lying == node) {
            if matches!(self.cluster.store, ClusterStore::Sqlite { .. }) {
                // Nobody could tell it the true time, and what it queues would be due by the wrong one (ADR 15).
                self.tell_the_truth(node)?;
            } else if !self.misled.contains(&node) {
                self.misled.push(node);
            }
        }
        self.dead.retain(|(dead, _)| *dead != node);
        self.cluster.nodes[node].server.start_without_waiting()
    }

    fn pause(&mut self, node: usize) -> Result<(), String> {
        let ms = self.rng.between(STOPPED_MS.0, STOPPED_MS.1);
        let server = &self.cluster.nodes[node].server;
        server.pause().map_err(|error| format!("SIGSTOP failed: {error}"))?;
        self.paused = Some((node, Instant::now() + Duration::from_millis(ms)));
        // Where it is alone nobody takes over its work; and a file whose server paused while opening it answers nobody.
        let is_alone = self.cluster.nodes.len() == 1;
        let leased = if is_alone { Vec::new() } else { self.leased()? };
        self.struck(TortureFault::Stop, leased, &format!("node {node} for {ms} ms"))
    }

    fn resume(&mut self, node: usize) -> Result<(), String> {
        self.paused = None;
        let server = &self.cluster.nodes[node].server;
        server.resume().map_err(|error| format!("SIGCONT failed: {error}"))?;
        self.watch(TortureFault::Stop, Instant::now(), Some(node));
        self.note(&format!("node {node} goes on"))
    }

    fn restart_postgres(&mut self) -> Result<(), String> {
        let ClusterStore::Postgres { server, .. } = &self.cluster.store else { return Ok(()) };
        server.restart()?;
        // Counted from the moment it takes connections.
        self.watch(TortureFault::PgRestart, Instant::now(), None);
        self.struck(TortureFault::PgRestart, Vec::new(), "done")
    }

    fn terminate_sessions(&mut self) -> Result<(), String> {
        let (count, salt) = (self.rng.between(1, SESSIONS_MAX), self.rng.next_u64());
        let ClusterStore::Postgres { server, database, .. } = &self.cluster.store else { return Ok(()) };
        let since = Instant::now();
        let ended = server.psql(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'
             AND datname = '{database}' ORDER BY md5(pid::text || '{salt}') LIMIT {count}"
        ))?;
        self.watch(TortureFault::PgTerminate, since, None);
        self.struck(TortureFault::PgTerminate, Vec::new(), &format!("{} sessions", ended.lines().count()))
    }

    fn cut(&mut self) -> Result<(), String> {
        let ms = self.rng.between(CUTTING_MS.0, CUTTING_MS.1);
        let lost = if self.rng.chance(0.7) { Lost::Reply } else { Lost::Request };
        let ClusterStore::Postgres { proxy: Some(proxy), .. } = &self.cluster.store else { return Ok(()) };
        let cut = Cut { at: CutPoint::Any, lost, choice: Choice::Probability(CUT_PROBABILITY) };
        proxy.set(Network { cut: Some(cut), ..Network::default() });
        self.cutting = Some(Instant::now() + Duration::from_millis(ms));
        self.struck(TortureFault::CutAfterCommit, Vec::new(), &format!("{lost:?} for {ms} ms"))
    }

    fn stop_cutting(&mut self) {
        self.cutting = None;
        if let ClusterStore::Postgres { proxy: Some(proxy), .. } = &self.cluster.store {
            proxy.heal();
        }
        self.watch(TortureFault::CutAfterCommit, Instant::now(), None);
    }

    fn lie(&mut self, node: usize) -> Result<(), String> {
        let lies = [HOUR_S, -HOUR_S, DAY_S, -DAY_S, 0];
        let lie = match *self.rng.pick(&lies).expect("there are some") {
            0 => Lie::Frozen,
            seconds => Lie::Ahead { seconds },
        };
        let ms = self.rng.between(LYING_MS.0, LYING_MS.1);
        let Some(clock) = &self.cluster.nodes[node].clock else { return Ok(()) };
        clock.tell(lie)?;
        self.lying = Some((node, Instant::now() + Duration::from_millis(ms)));
        self.watch(TortureFault::Clock, Instant::now(), Some(node));
        self.struck(TortureFault::Clock, Vec::new(), &format!("node {node} {lie:?} for {ms} ms"))
    }

    /// A node that was started with a wrong clock takes the right one for a jump, and its operator restarts it.
    fn tell_the_truth(&mut self, node: usize) -> Result<(), String> {
        self.lying = None;
        if let Some(clock) = &self.cluster.nodes[node].clock {
            clock.tell(Lie::None)?;
        }
        self.note(&format!("node {node} has the right time"))?;
        if let Some(at) = self.misled.iter().position(|misled| *misled == node) {
            self.misled.swap_remove(at);
            self.kill(node)?;
        }
        Ok(())
    }

    /// Ends every fault and waits until all nodes are ready.
    fn heal(&mut self) -> Result<(), String> {
        if let Some((node, _)) = self.paused {
            self.resume(node)?;
        }
        if let Some((node, _)) = self.lying {
            self.tell_the_truth(node)?;
        }
        if self.cutting.is_some() {
            self.stop_cutting();
        }
        self.step()?;
        for node in 0..self.cluster.nodes.len() {
            if self.cluster.nodes[node].server.pid().is_none() {
                self.start(node)?;
            }
            if let Err(error) = self.cluster.nodes[node].server.wait_until_ready() {
                let what = error.lines().next().unwrap_or_default();
                self.stuck.push(format!("node {node} when all faults were over: {what}"));
            }
        }
        self.note("healed")?;
        let started = Instant::now();
        while !self.watches.is_empty() && started.elapsed() < RECOVERED_WITHIN {
            self.step()?;
            std::thread::sleep(STEP);
        }
        let never =
            self.watches.drain(..).map(|watch| format!("no event acknowledged after {}", watch.fault.name()));
        self.stuck.extend(never);
        Ok(())
    }

    pub fn recovery(&self, fault: TortureFault) -> Times {
        Times(self.recoveries.iter().filter(|(own, _)| *own == fault).map(|(_, time)| *time).collect())
    }

    /// Deliveries some node has leased right now: those of a node that just died may run again. Others' are among
    /// them, which makes the bound wide but never wrong.
    fn leased(&self) -> Result<Vec<i64>, String> {
        let leased =
            self.cluster.store.sql("SELECT id FROM job WHERE kind = 'deliver' AND owner IS NOT NULL")?;
        Ok(leased.lines().filter_map(|line| line.parse().ok()).collect())
    }

    fn watch(&mut self, fault: TortureFault, since: Instant, node: Option<usize>) {
        // A later fault at the same place takes over: what recovers then recovers from both.
        self.watches.retain(|watch| watch.node != node);
        self.watches.push(Watch { fault, since, node, bytes: acknowledged(self.storms, node) });
    }

    fn struck(&mut self, fault: TortureFault, leased: Vec<i64>, what: &str) -> Result<(), String> {
        let at_ms = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_millis() as u64);
        self.note(&format!("{} {what}, {} leased", fault.name(), leased.len()))?;
        self.struck.push(Struck { fault, at_ms, leased });
        Ok(())
    }

    fn note(&mut self, text: &str) -> Result<(), String> {
        let line = format!("{:9.3} {text}\n", self.started.elapsed().as_secs_f64());
        self.log.write_all(line.as_bytes()).map_err(|error| format!("the log can't be written: {error}"))
    }
}

/// Each once before any comes again, so that even a short run knows them all; from then on as it falls.
fn choose(faults: &[TortureFault], struck: &[Struck], rng: &mut Rng) -> TortureFault {
    let never = |fault: &TortureFault| struck.iter().all(|strike| strike.fault != *fault);
    let fresh: Vec<TortureFault> = faults.iter().copied().filter(never).collect();
    let among = if fresh.is_empty() { faults } else { &fresh };
    *rng.pick(among).expect("at least one fault was asked for")
}

fn acknowledged(storms: &[Storm], node: Option<usize>) -> u64 {
    match node {
        Some(node) => storms[node].acknowledged_bytes(),
        None => storms.iter().map(Storm::acknowledged_bytes).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_strikes_once_before_any_strikes_again() {
        for seed in 0..100 {
            let (mut rng, mut struck) = (Rng::new(seed), Vec::new());
            for _ in 0..60 {
                let fault = choose(&TortureFault::ALL, &struck, &mut rng);
                struck.push(Struck { fault, at_ms: 0, leased: Vec::new() });
            }
            let mut first: Vec<TortureFault> =
                struck[..TortureFault::ALL.len()].iter().map(|strike| strike.fault).collect();
            first.sort();
            assert_eq!(first, TortureFault::ALL, "seed {seed}");
            let kills = struck.iter().filter(|strike| strike.fault == TortureFault::Kill).count();
            assert!(kills < 40, "and afterwards all of them: {kills} kills, seed {seed}");
        }
    }
}
