//! What happens in the demo, and when: the shop sells, the planetarium sells places, Stripe's stand-in sends until it hears
//! a 2xx, a forger sends beside it, the application fails and crashes, the server is killed twice; then everybody waits until
//! nothing is left to do. Acts begin by how much was acknowledged, so that each falls into the middle of traffic.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use sekisho_demo::app::Behaviour;
use sekisho_demo::load::{Load, LoadProgress, LoadResend, Pace, Recording, Report, RunningLoad};
use sekisho_demo::planetarium::{PlacesLedger, Planetarium, VisitorRecord};
use sekisho_demo::shop::Forger;
use sekisho_demo::traffic::Traffic;
use tokio::runtime::Handle;

use super::accounts::Watch;
use super::stage::{Stage, moody};
use super::view::{Figures, View};
use super::{Stop, TICK};

/// How long the sending takes, if the machine keeps up; with few payments it is shorter.
const SENDING: Duration = Duration::from_secs(20);
const PER_SECOND_MIN: f64 = 100.0;
const CONNECTIONS: usize = 16;
const FORGER_CONNECTIONS: usize = 2;
/// One forgery for so many requests.
const FORGED_EVERY: u64 = 10;
/// Most time for all of it, and for what waits in the end; nobody waits for what has not moved for so long.
const SENDING_MAX: Duration = Duration::from_mins(10);
const DRAIN_MAX: Duration = Duration::from_mins(3);
const STUCK_AFTER: Duration = Duration::from_secs(30);
/// How long the application stays ill.
const ILL: Duration = Duration::from_millis(2_500);
/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(700);

#[derive(Clone, Copy)]
enum Act {
    Fails,
    Crashes,
    Kill,
}

/// After how many of a hundred requests.
const ACTS: [(u64, Act); 4] = [(12, Act::Fails), (30, Act::Kill), (48, Act::Crashes), (70, Act::Kill)];

/// What the two senders and the planetarium know in the end.
pub struct SentCount {
    pub genuine: Report,
    pub forged: Report,
    pub places: PlacesLedger,
    pub kills: usize,
}

/// What was sent; and the planetarium, which stays open as long as the server does.
pub fn perform(
    stage: &mut Stage,
    view: &mut View,
    stop: &Stop,
    handle: &Handle,
) -> anyhow::Result<(SentCount, Planetarium)> {
    let watch = Watch::new(stage.store.clone());
    let senders = Senders::start(stage);
    let planetarium = stage.open_planetarium()?;
    Play { senders, planetarium, stage, view, stop, handle, watch, looked: None, kills: 0 }.perform()
}

struct Play<'p> {
    stage: &'p mut Stage,
    view: &'p mut View,
    stop: &'p Stop,
    handle: &'p Handle,
    senders: Senders,
    planetarium: Planetarium,
    watch: Watch,
    looked: Option<Instant>,
    kills: usize,
}

impl Play<'_> {
    fn perform(mut self) -> anyhow::Result<(SentCount, Planetarium)> {
        let started = Instant::now();
        self.view.say("the shop is open: payments, repeats and forgeries come in");
        let (visitors, places) = (self.stage.programme.visitors.len(), self.stage.programme.places());
        self.view.say(&format!("the planetarium is open: {visitors} visitors for {places} places"));
        let mut acts = ACTS.into_iter().peekable();
        let mut ill_since: Option<Instant> = None;
        while !self.senders.are_over() && started.elapsed() < SENDING_MAX {
            if ill_since.is_some_and(|since| since.elapsed() > ILL) {
                ill_since = None;
                self.recover()?;
            }
            let done = self.senders.accepted() * 100 / self.stage.shop.requests().max(1);
            if ill_since.is_none()
                && let Some((_, act)) = acts.next_if(|(at, _)| *at <= done)
            {
                self.begin(act, &mut ill_since)?;
            }
            self.tick()?;
        }
        // With few payments the sending may be over first: everything happens all the same.
        for (_, act) in acts {
            self.begin(act, &mut ill_since)?;
        }
        if ill_since.is_some() {
            self.recover()?;
        }
        self.view.say("everything is sent: waiting until nothing is left to do");
        self.drain()?;
        let sent = self.senders.stop(self.planetarium.ledger(), self.kills);
        Ok((sent, self.planetarium))
    }

    fn begin(&mut self, act: Act, ill_since: &mut Option<Instant>) -> anyhow::Result<()> {
        match act {
            Act::Fails => {
                self.view.say("the application answers 500 to everything");
                self.stage.app.set(Behaviour::status(500));
                *ill_since = Some(Instant::now());
            }
            Act::Crashes => {
                self.view.say("the application crashes: its port is closed");
                self.stage.app.crash();
                *ill_since = Some(Instant::now());
            }
            Act::Kill => {
                self.view.say("killing the server with SIGKILL");
                self.stage.server.restart().map_err(anyhow::Error::msg)?;
                self.kills += 1;
                let took = self.stage.server.started_in().as_secs_f64();
                self.view.say(&format!("the server is started again, ready after {took:.2} s"));
            }
        }
        Ok(())
    }

    fn recover(&mut self) -> anyhow::Result<()> {
        self.stage.app.set(moody(self.stage.seed));
        self.stage.app.start_again().context("the application can't get its port back")?;
        self.view.say("the application is back, and as moody as before");
        Ok(())
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut moved = (Instant::now(), self.figures());
        while started.elapsed() < DRAIN_MAX && moved.0.elapsed() < STUCK_AFTER {
            self.tick()?;
            let figures = self.figures();
            if figures.waiting == 0 && self.watch.is_idle() && self.planetarium.is_over() {
                break;
            }
            if figures != moved.1 {
                moved = (Instant::now(), figures);
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        std::thread::sleep(TICK);
        self.stop.check()?;
        if self.looked.is_none_or(|at| at.elapsed() > LOOK) {
            // A store whose server was just killed may not answer: the figures stay as they were.
            self.handle.block_on(self.watch.look());
            self.looked = Some(Instant::now());
        }
        let figures = self.figures();
        self.view.figures(&figures);
        Ok(())
    }

    fn figures(&self) -> Figures {
        let count = |progress: &LoadProgress| {
            let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
            (read(&progress.accepted), read(&progress.refused), read(&progress.unanswered))
        };
        let (accepted, refused, unanswered) = count(&self.senders.genuine_progress);
        let delivered = self.stage.app.counts().messages;
        let due = self.watch.stored + self.watch.announced + self.watch.videos;
        let places = self.planetarium.ledger();
        let of_orders = places.webhooks.acknowledged.len() as u64;
        let visitors = |is: fn(&VisitorRecord) -> bool| places.visitors.iter().filter(|own| is(own)).count();
        Figures {
            planned: self.stage.shop.requests() + places.webhooks.planned,
            requests: accepted + refused + unanswered + places.webhooks.requests,
            acknowledged: accepted + of_orders,
            duplicates: self.stage.shop.repeats_among(accepted)
                + of_orders.saturating_sub(places.webhooks.events.len() as u64),
            held: visitors(|own| own.place.is_some()),
            refused: visitors(|own| own.place.is_none() && own.refused > 0),
            paid: visitors(|own| own.intent.is_some()),
            made: visitors(|own| own.is_made),
            refunded: places.refunds.iter().filter(|refund| !refund.is_sent_back).count(),
            forgeries: count(&self.senders.forged_progress).1,
            stored: self.watch.stored,
            settled: self.watch.stored.saturating_sub(self.watch.unsettled),
            delivered,
            waiting: due.saturating_sub(delivered),
        }
    }
}

/// Dropping them ends them: their threads look at `stop`.
struct Senders {
    genuine: Option<RunningLoad>,
    forged: Option<RunningLoad>,
    genuine_progress: Arc<LoadProgress>,
    forged_progress: Arc<LoadProgress>,
}

impl Senders {
    fn start(stage: &Stage) -> Self {
        let (shop, address) = (&stage.shop, stage.server.address());
        let requests = shop.requests();
        let forgeries = requests.div_ceil(FORGED_EVERY);
        let per_second = (requests as f64 / SENDING.as_secs_f64()).max(PER_SECOND_MIN);
        let load = |connections, requests_max, per_second| Load {
            connections,
            pace: Pace::Open { per_second },
            duration: SENDING_MAX,
            requests_max,
            ledger: Recording::Memory,
            ..Load::new(address)
        };
        let genuine =
            Load { resend: LoadResend::UntilAcknowledged, ..load(CONNECTIONS, requests, per_second) };
        let forged = load(FORGER_CONNECTIONS, forgeries, per_second / FORGED_EVERY as f64);
        let (genuine_progress, forged_progress) =
            (Arc::clone(&genuine.progress), Arc::clone(&forged.progress));
        let forger = Forger::beside(Arc::clone(shop), stage.seed);
        Self {
            genuine: Some(genuine.start(Arc::clone(shop) as Arc<dyn Traffic>)),
            forged: Some(forged.start(Arc::new(forger))),
            genuine_progress,
            forged_progress,
        }
    }

    fn are_over(&self) -> bool {
        [&self.genuine, &self.forged].into_iter().flatten().all(RunningLoad::is_over)
    }

    fn accepted(&self) -> u64 {
        self.genuine_progress.accepted.load(Ordering::Relaxed)
    }

    fn stop(mut self, places: PlacesLedger, kills: usize) -> SentCount {
        let stop = |running: &mut Option<RunningLoad>| running.take().expect("stopped once").stop();
        SentCount { genuine: stop(&mut self.genuine), forged: stop(&mut self.forged), places, kills }
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        for running in [self.genuine.take(), self.forged.take()].into_iter().flatten() {
            running.stop();
        }
    }
}
