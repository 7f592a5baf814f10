//! How many events per second, how fast, and which of them were acknowledged?
//!
//! Raw keep-alive connections over tokio, no HTTP client: the driver must cost little beside the server. In an
//! open loop latency counts from the moment a request was due, so that a slow server can't hide its queue
//! (coordinated omission). A dead connection leaves its event's outcome unknown, and the ledger says so. A load
//! always ends by itself: at its count, its deadline or when told to.

mod connection;
mod report;
mod tally;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use connection::KeepAlive;
pub use report::{Report, SentLedger};
use tally::{RequestOutcome, Tally};

use crate::traffic::Traffic;
use crate::{assert_loopback, measure};

/// Shortest sleep of the pacer: finer would cost more than it measures.
const PACE_STEP: Duration = Duration::from_micros(200);
/// Ten minutes in microseconds: the slowest answer the histograms tell apart.
const LATENCY_MAX_US: u64 = 600_000_000;

/// What to send, how fast and how long.
#[derive(Clone, Debug)]
pub struct Load {
    pub address: SocketAddr,
    pub connections: usize,
    pub pace: Pace,
    /// Sent before the figures count. The ledger holds these events too.
    pub warm_up: Duration,
    /// Measured time after the warm-up.
    pub duration: Duration,
    /// Most requests in all, warm-up included; resent ones don't count again.
    pub requests_max: u64,
    /// Number of the first request, so that a second load can go on where one ended.
    pub first: u64,
    /// How long one answer may take before its connection is given up.
    pub answer_timeout: Duration,
    pub resend: LoadResend,
    pub ledger: Recording,
    /// Set it to end the load early.
    pub stop: Arc<AtomicBool>,
    /// How far it is, for whoever watches.
    pub progress: Arc<LoadProgress>,
}

/// Requests so far, by how they ended.
#[derive(Debug, Default)]
pub struct LoadProgress {
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    /// Their connection ended before the answer.
    pub unanswered: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each connection sends as soon as it has its answer.
    Closed,
    /// Requests are due at this rate, whether or not the server keeps up.
    Open { per_second: f64 },
}

/// What happens to an event that got no answer, or not a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadResend {
    Never,
    /// As providers do, only sooner: the same event again until it gets 2xx or the load ends.
    UntilAcknowledged,
}

#[derive(Clone, Debug, Default)]
pub enum Recording {
    #[default]
    Off,
    Memory,
    /// In memory, and a line `acknowledged <event id>` the moment an answer came.
    File(Arc<File>),
}

impl Recording {
    pub fn to_file(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Arc::new).map(Self::File)
    }
}

impl Load {
    /// A closed loop of 16 connections for ten seconds, to be changed where needed.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connections: 16,
            pace: Pace::Closed,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(10),
            requests_max: u64::MAX,
            first: 0,
            answer_timeout: Duration::from_secs(30),
            resend: LoadResend::Never,
            ledger: Recording::Off,
            stop: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// Runs on a thread of its own, which is also the cheapest way: one driver thread, no work stealing.
    pub fn run_blocking(self, traffic: Arc<dyn Traffic>) -> Report {
        let run = move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime of one thread needs only an epoll instance")
                .block_on(self.run(traffic))
        };
        std::thread::spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs beside the caller until told to stop.
    pub fn start(self, traffic: Arc<dyn Traffic>) -> RunningLoad {
        let stop = Arc::clone(&self.stop);
        RunningLoad { stop, thread: std::thread::spawn(move || self.run_blocking(traffic)) }
    }

    /// Runs on the current tokio runtime, which needs its timer and network enabled.
    pub async fn run(self, traffic: Arc<dyn Traffic>) -> Report {
        assert_loopback(self.address);
        measure::raise_open_files();
        let run = Arc::new(LoadRun::new(self, traffic));
        let pacer = matches!(run.load.pace, Pace::Open { .. }).then(|| {
            let run = Arc::clone(&run);
            std::thread::spawn(move || run.pace())
        });
        let connections: Vec<_> = (0..run.load.connections)
            .map(|_| {
                let run = Arc::clone(&run);
                tokio::spawn(async move { KeepAlive::new(&run).drive().await })
            })
            .collect();
        for connection in connections {
            connection.await.expect("a connection reports its errors, it doesn't panic");
        }
        run.finished.store(true, Ordering::Relaxed);
        if let Some(pacer) = pacer {
            pacer.thread().unpark();
            let _ = pacer.join();
        }
        run.report()
    }
}

/// A load under way on a thread of its own.
#[derive(Debug)]
pub struct RunningLoad {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Report>,
}

impl RunningLoad {
    /// It ended by itself; [`RunningLoad::stop`] says what came of it.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it and says what came of it.
    pub fn stop(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// One load on its way, shared by its connections.
struct LoadRun {
    load: Load,
    traffic: Arc<dyn Traffic>,
    started: Instant,
    /// From here on the figures count.
    measured_from: Instant,
    deadline: Instant,
    next: AtomicU64,
    /// One permit per request that is due and not yet taken (open loop).
    due: Semaphore,
    paced: AtomicU64,
    finished: AtomicBool,
    tally: Mutex<Tally>,
}

impl LoadRun {
    fn new(load: Load, traffic: Arc<dyn Traffic>) -> Self {
        let started = Instant::now();
        let measured_from = started + load.warm_up;
        Self {
            started,
            measured_from,
            deadline: measured_from + load.duration,
            next: AtomicU64::new(load.first),
            due: Semaphore::new(0),
            paced: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            tally: Mutex::new(Tally::new()),
            load,
            traffic,
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
            || self.load.stop.load(Ordering::Relaxed)
            || self.finished.load(Ordering::Relaxed)
    }

    /// Releases requests as they fall due. A thread, because tokio's timer counts in milliseconds.
    fn pace(&self) {
        let mut released = 0;
        while !self.is_over() && released < self.load.requests_max {
            let due = self.due_by(Instant::now()).min(self.load.requests_max);
            if due > released {
                self.due.add_permits((due - released) as usize);
                released = due;
                self.paced.store(released, Ordering::Relaxed);
            }
            let wait = self.due_at(released).saturating_duration_since(Instant::now());
            std::thread::park_timeout(wait.clamp(PACE_STEP, Duration::from_millis(50)));
        }
        if released >= self.load.requests_max {
            // The connections see for themselves that the last request is taken; those who wait must be told.
            self.due.add_permits(self.load.connections);
        } else {
            self.due.close();
        }
    }

    /// How many requests are due until `now`.
    fn due_by(&self, now: Instant) -> u64 {
        match self.load.pace {
            Pace::Closed => u64::MAX,
            Pace::Open { per_second } => {
                (now.saturating_duration_since(self.started).as_secs_f64() * per_second) as u64
            }
        }
    }

    fn due_at(&self, index: u64) -> Instant {
        match self.load.pace {
            Pace::Closed => Instant::now(),
            Pace::Open { per_second } => {
                self.started + Duration::from_secs_f64((index + 1) as f64 / per_second.max(1e-6))
            }
        }
    }

    /// The next request and when it is due, or `None` when the load is over.
    async fn take(&self) -> Option<(u64, Instant)> {
        if let Pace::Open { .. } = self.load.pace {
            self.due.acquire().await.ok()?.forget();
        }
        if self.is_over() {
            return None;
        }
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        if n - self.load.first >= self.load.requests_max {
            self.next.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some((n, self.due_at(n - self.load.first)))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self) -> bool {
        !matches!(self.load.ledger, Recording::Off)
    }

    fn answered(&self, n: u64, due: Instant, status: u16) {
        let now = Instant::now();
        let accepted = (200..300).contains(&status);
        let LoadProgress { accepted: well, refused, .. } = &*self.load.progress;
        if accepted { well } else { refused }.fetch_add(1, Ordering::Relaxed);
        {
            let mut tally = self.tally();
            if due >= self.measured_from {
                *tally.statuses.entry(status).or_default() += 1;
                tally.last_answer = Some(now);
                let micros = (now.saturating_duration_since(due).as_micros() as u64).clamp(1, LATENCY_MAX_US);
                let histogram = if accepted { &mut tally.accepted } else { &mut tally.refused };
                histogram.saturating_record(micros);
            }
            if self.records() {
                tally.note(n, accepted);
            }
        }
        if let (Recording::File(file), true) = (&self.load.ledger, accepted) {
            let line = format!("acknowledged {}\n", self.traffic.event_id(n));
            file.as_ref().write_all(line.as_bytes()).expect("the ledger is the oracle: it must be writable");
        }
    }

    fn unanswered(&self, n: u64, due: Instant) {
        self.load.progress.unanswered.fetch_add(1, Ordering::Relaxed);
        let mut tally = self.tally();
        tally.unknown += u64::from(due >= self.measured_from);
        if self.records() {
            tally.open.insert(n, RequestOutcome::Unknown);
        }
    }

    fn report(&self) -> Report {
        let mut tally = self.tally();
        let next = self.next.load(Ordering::Relaxed);
        let taken = next - self.load.first;
        let ended =
            if taken < self.load.requests_max { Some(Instant::now().min(self.deadline)) } else { None };
        // A server that answered nothing until the deadline gets no shorter time for it.
        let ended = tally.last_answer.max(ended).unwrap_or(self.measured_from);
        let ids = |numbers: Vec<u64>| numbers.into_iter().map(|n| self.traffic.event_id(n)).collect();
        let open = std::mem::take(&mut tally.open);
        let with = |outcome| open.iter().filter(|(_, own)| **own == outcome).map(|(n, _)| *n).collect();
        Report {
            statuses: std::mem::take(&mut tally.statuses),
            unknown: tally.unknown,
            unsent: tally.unsent + self.paced.load(Ordering::Relaxed).saturating_sub(taken),
            connects: tally.connects,
            connects_refused: tally.connects_refused,
            elapsed: ended.saturating_duration_since(self.measured_from),
            accepted: tally.accepted.clone(),
            refused: tally.refused.clone(),
            ledger: SentLedger {
                acknowledged: ids(std::mem::take(&mut tally.acknowledged)),
                unknown: ids(with(RequestOutcome::Unknown)),
                refused: ids(with(RequestOutcome::Refused)),
                resent: ids(std::mem::take(&mut tally.resent).into_iter().collect()),
            },
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sink::{BUSY, GOOD, serve};
    use crate::traffic::StripeTraffic;

    fn stripe() -> Arc<StripeTraffic> {
        Arc::new(StripeTraffic::with_seed("/in", "whsec_lab", 500, 1))
    }

    #[tokio::test]
    async fn a_closed_loop_ends_at_its_count_and_knows_every_answer() {
        let address = serve(|n| if n % 4 == 3 { BUSY } else { GOOD }).await.unwrap();
        let load =
            Load { connections: 3, requests_max: 100, ledger: Recording::Memory, ..Load::new(address) };
        let progress = Arc::clone(&load.progress);
        let report = load.run(stripe()).await;
        let LoadProgress { accepted, refused, unanswered } = &*progress;
        assert_eq!([accepted, refused, unanswered].map(|count| count.load(Ordering::Relaxed)), [75, 25, 0]);
        assert_eq!(report.statuses, BTreeMap::from([(204, 75), (503, 25)]));
        assert_eq!((report.acknowledged(), report.refusals(), report.next), (75, 25, 100));
        assert_eq!((report.accepted.len(), report.refused.len()), (75, 25));
        assert_eq!((report.ledger.acknowledged.len(), report.ledger.refused.len()), (75, 25));
        assert_eq!((report.unknown, report.unsent, report.connects), (0, 0, 3));
        assert!(report.per_second() > 0.0 && report.latency_us(0.5) > 0);
        assert!(report.to_string().contains("503: 25"), "{report}");
    }

    #[tokio::test]
    async fn a_dead_connection_is_an_unknown_outcome_until_the_event_is_sent_again() {
        let address = serve(|n| if n % 10 == 9 { "" } else { GOOD }).await.unwrap();
        let once = Load { connections: 1, requests_max: 50, ledger: Recording::Memory, ..Load::new(address) };
        let report = once.clone().run(stripe()).await;
        assert_eq!((report.unknown, report.ledger.acknowledged.len()), (5, 45));
        assert_eq!(report.ledger.unknown[0], stripe().event_id(9));
        assert_eq!(
            report.connects, 5,
            "the tenth request of each connection closed it, the last one at the end"
        );

        let report = Load { resend: LoadResend::UntilAcknowledged, ..once }.run(stripe()).await;
        assert_eq!(report.ledger.acknowledged.len(), 50);
        assert_eq!(report.ledger.unknown, Vec::<String>::new());
        assert!(report.ledger.resent.contains(&stripe().event_id(9)), "{:?}", report.ledger.resent);
        assert!(report.unknown >= 5);
    }

    #[tokio::test]
    async fn an_unknown_outcome_stays_unknown_when_later_attempts_are_refused() {
        let address = serve(|n| if n == 0 { "" } else { BUSY }).await.unwrap();
        let load = Load {
            connections: 1,
            duration: Duration::from_millis(100),
            resend: LoadResend::UntilAcknowledged,
            ledger: Recording::Memory,
            ..Load::new(address)
        };
        let report = load.run(stripe()).await;
        assert_eq!((report.ledger.unknown, report.ledger.refused), (vec![stripe().event_id(0)], vec![]));
    }

    #[test]
    fn an_open_loop_keeps_its_rate_and_counts_from_the_due_time() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let address = runtime.block_on(serve(|_| GOOD)).unwrap();
        let load = Load {
            connections: 4,
            pace: Pace::Open { per_second: 500.0 },
            warm_up: Duration::from_millis(200),
            duration: Duration::from_millis(800),
            ..Load::new(address)
        };
        let report = load.run_blocking(stripe());
        assert!((300..=401).contains(&report.acknowledged()), "{report}");
        assert!((400..=501).contains(&report.next), "{report}");
        assert!(report.unsent <= 5, "{report}");
    }

    #[test]
    fn an_open_loop_against_a_silent_server_ends_and_owns_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let load = Load {
            connections: 2,
            pace: Pace::Open { per_second: 1000.0 },
            duration: Duration::from_millis(300),
            answer_timeout: Duration::from_millis(200),
            ledger: Recording::Memory,
            ..Load::new(listener.local_addr().unwrap())
        };
        let report = load.run_blocking(stripe());
        assert_eq!((report.acknowledged(), report.per_second() as u64), (0, 0));
        assert!(report.unknown >= 2 && report.unsent > 100, "{report}");
        assert_eq!(report.ledger.unknown.len() as u64, report.unknown);
    }

    #[tokio::test]
    async fn a_refused_connection_is_tried_again_until_the_deadline_or_the_stop() {
        let address = crate::free_address().unwrap();
        let load = Load { connections: 2, duration: Duration::from_millis(100), ..Load::new(address) };
        let report = load.clone().run(stripe()).await;
        assert!(report.connects_refused > 5 && report.unsent == 2, "{report}");
        load.stop.store(true, Ordering::Relaxed);
        let report = Load { duration: Duration::from_mins(1), ..load }.run(stripe()).await;
        assert_eq!((report.next, report.connects_refused), (0, 0));
    }

    #[tokio::test]
    async fn a_ledger_file_holds_a_line_for_each_acknowledged_event() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let address = serve(|n| if n == 1 { BUSY } else { GOOD }).await.unwrap();
        let ledger = Recording::to_file(&path).unwrap();
        let load = Load { connections: 1, requests_max: 3, ledger, ..Load::new(address) };
        let report = load.run(stripe()).await;
        let lines: Vec<String> =
            report.ledger.acknowledged.iter().map(|id| format!("acknowledged {id}\n")).collect();
        assert_eq!(std::fs::read_to_string(path).unwrap(), lines.concat());
        assert_eq!(lines.len(), 2);
    }

    #[tokio::test]
    #[should_panic(expected = "loopback only")]
    async fn a_load_against_another_machine_is_refused() {
        Load::new("192.0.2.1:80".parse().unwrap()).run(stripe()).await;
    }
}
