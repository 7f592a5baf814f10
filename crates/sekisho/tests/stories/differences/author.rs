//! Thinks of stories: the same seed tells the same one.

mod things;

use sekisho_core::audit::Role;
use sekisho_core::change::{Act, Arrival, Rejection};
use sekisho_core::event::{About, Created, DedupeKey, Event, Identity};
use sekisho_core::job::{Attempt, Class, DeadReason, End, Lane, NewJob, Outcome, Settle, Timer};
use sekisho_core::time::{HOUR_MS, hour_of};
use sekisho_core::{Seq, Time};
use sekisho_lab::rng::Rng;
use sekisho_store::conformance::Arrivals;
use sekisho_store::{
    AuditFilter, DeadFilter, DeliveryFilter, DeliveryStatus, EventFilter, LineFilter, Order, RejectionFilter,
    StateFilter, Status,
};

use super::{Draft, Ending, LATER, NOW, ORDERED, ROUTES, Set, Verb, Which, lanes};
use things::{KINDS, NAMES};

const IDS: u64 = 12;
const VERBS: usize = 60;
const ALL: usize = 1_000;

/// Remembers enough to make its verbs interesting.
pub struct Author {
    rng: Rng,
    arrivals: Arrivals,
    /// Of events, and of all other jobs.
    seqs: Vec<Seq>,
    jobs: Vec<Seq>,
    rows: Vec<Arrival>,
    rejections: i64,
}

impl Author {
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            arrivals: Arrivals::new(1),
            seqs: vec![Seq::ZERO],
            jobs: Vec::new(),
            rows: Vec::new(),
            rejections: 0,
        }
    }

    pub fn story(&mut self) -> Vec<Verb> {
        let mut verbs = vec![Verb::Join, Verb::Join];
        verbs.extend((0..VERBS).map(|_| self.verb()));
        verbs.extend(self.everything());
        // What is left of the work can be had in the same order.
        for _ in 0..3 {
            let wants = lanes().into_iter().map(|lane| (lane, ALL)).collect();
            verbs.push(Verb::Claim { node: 0, wants, now: LATER });
            let which = |lease| Which { lease, attempt: 0, other_node: false };
            let end = |lease| Ending {
                which: which(lease),
                end: End::Done(Outcome::SUCCESS),
                attempt: None,
                about: About::default(),
            };
            let set = |lease| Set { ends: vec![end(lease)], ..Set::nothing(LATER) };
            verbs.push(Verb::Commit((0..40).map(set).collect()));
        }
        verbs.push(Verb::Forget { before: LATER, after: Seq::ZERO, limit: ALL });
        verbs.extend(self.everything());
        verbs
    }

    /// Whatever happened, all must agree on everything that can be seen.
    fn everything(&self) -> Vec<Verb> {
        let mut verbs = vec![
            Verb::FindEvents(EventFilter { limit: ALL, ..EventFilter::default() }),
            Verb::FindDead(DeadFilter { limit: ALL, ..DeadFilter::default() }),
            Verb::FindCounts(Time::from_ms(0), LATER),
            Verb::FindMoney(Time::from_ms(0), LATER),
            Verb::FindDeadGroups(DeadFilter { limit: ALL, ..DeadFilter::default() }),
            Verb::FindDeliveries(DeliveryFilter { limit: ALL, ..DeliveryFilter::default() }),
            Verb::FindDeliveryCounts(self.seqs.clone()),
            Verb::FindWork,
            Verb::FindNodes,
            Verb::FindRejections(RejectionFilter { limit: ALL, ..RejectionFilter::default() }),
            Verb::Load(NAMES.map(str::to_owned).to_vec(), Vec::new()),
            Verb::FindBranches("p:one/".to_owned()),
            Verb::FindSums(None),
            Verb::FindLines(LineFilter { limit: ALL, ..LineFilter::default() }),
            Verb::FindAudit(AuditFilter { limit: ALL, ..AuditFilter::default() }),
            Verb::FindFault,
            Verb::LoadEvents(self.seqs.clone()),
            Verb::Known(self.rows.iter().map(|row| row.key).collect()),
            Verb::Lanes,
        ];
        verbs.extend(KINDS.map(|kind| Verb::FindStates(StateFilter::all(kind, ALL))));
        verbs.extend((0..8).map(Verb::Owned));
        for seq in &self.seqs {
            verbs.extend([Verb::FindEvent(*seq), Verb::FindMessages(*seq)]);
        }
        for job in self.seqs.iter().chain(&self.jobs) {
            verbs.extend([Verb::FindMessage(*job), Verb::FindAttempts(*job)]);
        }
        verbs
    }

    fn verb(&mut self) -> Verb {
        match self.rng.below(40) {
            0 => Verb::Join,
            1 => Verb::Beat { node: self.node(), n: self.small() },
            2 => Verb::End { node: self.node(), n: self.small() },
            3 => Verb::Leave(self.node()),
            4..=7 => {
                let count = self.rng.between(1, 5);
                let keep = self.rng.chance(0.3).then(|| self.node());
                let mut rows: Vec<_> = (0..count).map(|_| self.arrival(true)).collect();
                // They are numbered as they come, and so is which body is the first.
                rows.sort_by_key(|row| row.seq);
                Verb::Admit { rows, keep }
            }
            8 => Verb::Known((0..self.rng.below(4)).map(|_| self.key()).collect()),
            9..=14 => Verb::Claim { node: self.node(), wants: self.wants(), now: self.time() },
            15..=21 | 32 => {
                let count = self.rng.between(1, 3);
                Verb::Commit((0..count).map(|_| self.set()).collect())
            }
            22 => Verb::Start(self.leases()),
            23 => Verb::Release(self.leases()),
            24 => match self.rng.below(3) {
                0 => Verb::Owned(self.node()),
                1 => Verb::Adopt(self.leases()),
                _ => Verb::AdoptOwned(self.node()),
            },
            25..=26 => Verb::Sweep {
                limit: [0, 1, 3, ALL][self.rng.below(4) as usize],
                suspect_after: self.rng.between(1, 3) as i32,
            },
            27..=28 => Verb::Revive(self.some_jobs(), self.act()),
            29 if self.rng.chance(0.4) => Verb::Cancel(self.some_jobs(), self.act()),
            29 => Verb::Discard(self.some_jobs(), self.act()),
            30..=31 => {
                let settle = if self.rng.chance(0.5) { Settle::Again } else { Settle::Once };
                Verb::Replay(self.some_events(), settle, self.act())
            }
            33 => self.upkeep(),
            34 => {
                Verb::Forget { before: self.moment(), after: self.after(), limit: self.rng.below(7) as usize }
            }
            _ => self.find(),
        }
    }

    fn upkeep(&mut self) -> Verb {
        match self.rng.below(4) {
            0 => Verb::Upkeep,
            1 => {
                let count = self.rng.below(3);
                Verb::Reject((0..count).map(|_| self.rejection()).collect())
            }
            _ => Verb::CountHour(hour_of(self.moment())),
        }
    }

    fn find(&mut self) -> Verb {
        match self.rng.below(26) {
            0 => Verb::Lanes,
            1 => Verb::LoadEvents(self.some_events()),
            2 => Verb::FindStates(self.state_filter()),
            3 => Verb::FindEvent(self.event()),
            4 => Verb::FindSeq(self.source(), self.id()),
            5..=6 => Verb::FindDead(self.dead_filter()),
            7 => Verb::FindMessage(self.job()),
            8 => Verb::FindMessages(self.event()),
            9 => Verb::FindAttempts(self.job()),
            10 => Verb::FindCounts(self.moment(), self.moment()),
            11 => Verb::FindAudit(self.audit_filter()),
            12 => Verb::FindRejections(self.rejection_filter()),
            13 => Verb::Load(self.some_names(), (0..self.rng.below(3)).map(|_| self.thing()).collect()),
            14 => Verb::FindSums(self.rng.chance(0.5).then(|| self.account())),
            15 => Verb::FindLines(self.line_filter()),
            16 => Verb::FindFault,
            17 => Verb::FindWork,
            18 => Verb::FindNodes,
            23 => Verb::FindMoney(self.moment(), self.moment()),
            19 => Verb::FindDeadGroups(self.dead_filter()),
            20 => Verb::FindDeliveries(self.delivery_filter()),
            21 => Verb::FindDeliveryCounts(self.some_events()),
            _ => Verb::FindEvents(self.filter()),
        }
    }

    /// One whose body is compared with the first under its id comes from outside only.
    fn arrival(&mut self, from_outside: bool) -> Arrival {
        // Sometimes the very same row again, as after an unknown outcome.
        if self.rng.chance(0.2)
            && let Some(row) = self.rng.pick(&self.rows)
            && (from_outside || row.first_body.is_none())
        {
            return row.clone();
        }
        let (id, source, at) = (self.id(), self.source(), self.moment());
        let mut row = self.arrivals.event_at(&id, at);
        row.created_at = self.rng.chance(0.8).then_some(NOW);
        row.key = DedupeKey::new(&source, &id, self.created().filter(|_| row.created_at.is_some()));
        row.source = source.into();
        row.event_type = self.kind();
        row.livemode = [None, Some(true), Some(false)][self.rng.below(3) as usize];
        row.object = self.rng.chance(0.7).then(|| ("payment".into(), format!("pay_{}", self.rng.below(3))));
        row.account = self.rng.chance(0.3).then(|| "acct_1".into());
        if self.rng.chance(0.2) {
            row.body = self.bytes();
        }
        if from_outside && self.rng.chance(0.2) {
            self.give_body(&mut row);
        }
        if self.rng.chance(0.15) {
            row.held = Some(self.death());
        }
        self.seqs.push(row.seq);
        self.rows.push(row.clone());
        row
    }

    /// Under an id that no proof covers, or by a transmission.
    fn give_body(&mut self, row: &mut Arrival) {
        row.body = format!("body {}", self.rng.below(3)).into();
        let transmission = self.rng.chance(0.5).then(|| format!("T{}", self.rng.below(9)));
        let event = match transmission {
            None => Event::with_open_id(&row.event_id, &row.event_type, &row.body),
            Some(_) => Event::new(&row.event_id, &row.event_type, &row.body),
        };
        let identity = Identity::of(&row.source, &event, transmission.as_deref());
        (row.key, row.first_body) = (identity.key, identity.first_body);
    }

    fn set(&mut self) -> Set {
        // Some are guarded by one version alone, so that things grow older.
        if self.rng.chance(0.2) {
            return Set { writes: vec![self.write()], ..Set::nothing(self.time()) };
        }
        let ends = if self.rng.chance(0.5) { 1 } else { self.rng.below(3) };
        let mut set = Set {
            ends: (0..ends).map(|_| self.ending()).collect(),
            jobs: (0..self.rng.below(4)).map(|_| self.draft()).collect(),
            ..Set::nothing(self.time())
        };
        // Most sets change nothing else.
        if self.rng.chance(0.5) {
            set.writes = (0..self.rng.below(3)).map(|_| self.write()).collect();
            set.names = (0..self.rng.below(5) / 3).map(|_| self.naming()).collect();
            set.postings = (0..self.rng.below(3)).map(|_| self.posting()).collect();
            set.audit = (0..self.rng.below(3)).map(|_| self.entry()).collect();
            set.events = (0..self.rng.below(2)).map(|_| self.arrival(false)).collect();
            set.keep = self.rng.chance(0.3).then(|| self.node());
        }
        set
    }

    fn ending(&mut self) -> Ending {
        let said = |author: &mut Self, word: &str| author.rng.chance(0.3).then(|| word.to_owned());
        let payment = self.rng.chance(0.7).then(|| self.payment().into());
        let about = About { payment, billing: said(self, "b"), tenant: said(self, "t") };
        let attempt = self.rng.chance(0.5).then(|| self.attempt());
        let (which, end) = (self.which(), self.end());
        // A run makes its call known when it has ended.
        let attempt = attempt.filter(|_| end != End::NotYet);
        Ending { which, end, attempt, about }
    }

    fn draft(&mut self) -> Draft {
        let route = ROUTES[self.rng.below(3) as usize];
        let mut job = NewJob { due_at: self.time(), ..self.arrivals.job(route) };
        self.jobs.push(job.id);
        let mut delivery = None;
        match self.rng.below(8) {
            0 => {
                let name = self.rng.below(2).to_string();
                job = Timer::Schedule(name).job(job.id, hour_of(self.moment()));
            }
            1 => job.key = Some(format!("fact/{}", self.rng.below(6))),
            2 => job.lane = Lane::settle(),
            _ => delivery = Some(usize::from(self.rng.chance(0.1))),
        }
        if job.lane == Lane::to_route(ORDERED) {
            job.fifo = self.rng.chance(0.9).then(|| self.rng.below(2).to_string());
        }
        let owner = (job.fifo.is_none() && self.rng.chance(0.3)).then(|| self.node());
        Draft { job, delivery, owner }
    }

    fn attempt(&mut self) -> Attempt {
        Attempt {
            at: self.time(),
            took_ms: self.small(),
            status: self.rng.chance(0.8).then_some(500),
            reason: self.rng.chance(0.8).then(|| "app_error".into()),
            error: self.rng.chance(0.8).then(|| "だめ".into()),
            headers: self.rng.chance(0.8).then(|| "[]".into()),
            body: self.rng.chance(0.8).then(|| self.bytes()),
        }
    }

    fn bytes(&mut self) -> bytes::Bytes {
        bytes::Bytes::from(vec![0, 159, 146, 150, self.rng.below(256) as u8])
    }

    fn end(&mut self) -> End {
        match self.rng.below(8) {
            0 => End::Done(Outcome::SUCCESS),
            1 => End::Done(Outcome::Success { note: Some("済".into()) }),
            2 => End::Done(Outcome::Skipped { note: "なし".into() }),
            3 => End::Retry { due_at: self.time() },
            4 => End::NotYet,
            5 => End::Wait { due_at: self.time() },
            _ => End::Dead(self.death()),
        }
    }

    fn death(&mut self) -> DeadReason {
        DeadReason {
            class: [Class::Terminal, Class::Transient][usize::from(self.rng.chance(0.5))],
            reason: format!("reason {}", self.rng.below(2)),
            error: format!("error {}", self.rng.below(3)),
        }
    }

    fn act(&mut self) -> Act {
        let role = [Role::ApiKey, Role::Operator][usize::from(self.rng.chance(0.5))];
        Act { at: self.time(), actor: "mika".into(), role, reason: format!("because {}", self.rng.below(3)) }
    }

    fn rejection(&mut self) -> Rejection {
        self.rejections += 1;
        let at = self.time();
        Rejection {
            seq: Seq::from_i64(self.rejections * 10),
            at,
            last_at: at,
            source: self.source(),
            peer: "203.0.113.9".into(),
            network: ["203.0.113.0/24", "2001:db8:7::/48"][usize::from(self.rng.chance(0.3))].into(),
            reason: ["bad_signature", "too_old"][usize::from(self.rng.chance(0.3))].into(),
            detail: "x".repeat(self.rng.below(9) as usize),
            request_id: format!("req_{}", self.rejections),
            count: self.rng.between(1, 1_000) as i64,
        }
    }

    fn filter(&mut self) -> EventFilter {
        EventFilter {
            received: self.rng.chance(0.3),
            source: self.maybe_source(),
            event_type: self.maybe_type(),
            status: if self.rng.chance(0.5) { self.rng.pick(&Status::ALL).copied() } else { None },
            object_id: self.rng.chance(0.3).then(|| format!("pay_{}", self.rng.below(4))),
            payment: self.rng.chance(0.2).then(|| self.payment().into()),
            tenant: self.rng.chance(0.2).then(|| "t".into()),
            after: self.rng.chance(0.3).then(|| self.event()),
            before: self.rng.chance(0.3).then(|| self.event()),
            order: if self.rng.chance(0.5) { Order::NewestFirst } else { Order::OldestFirst },
            limit: self.rng.below(8) as usize,
        }
    }

    fn rejection_filter(&mut self) -> RejectionFilter {
        RejectionFilter {
            source: self.maybe_source(),
            reason: self.rng.chance(0.3).then(|| "too_old".into()),
            before: self.rng.chance(0.3).then(|| Seq::from_i64(self.rng.below(6) as i64 * 10)),
            limit: self.rng.below(5) as usize,
        }
    }

    fn dead_filter(&mut self) -> DeadFilter {
        DeadFilter {
            source: self.maybe_source(),
            event_type: self.maybe_type(),
            reason: self.rng.chance(0.3).then(|| format!("reason {}", self.rng.below(3))),
            class: self.rng.chance(0.2).then_some(Class::Transient),
            lane: self.rng.chance(0.3).then(|| self.lane()),
            event: self.rng.chance(0.1).then(|| self.event()),
            since: self.rng.chance(0.2).then(|| self.time()),
            until: self.rng.chance(0.2).then(|| self.time()),
            before: self.rng.chance(0.3).then(|| self.job()),
            limit: self.rng.below(8) as usize,
        }
    }

    fn delivery_filter(&mut self) -> DeliveryFilter {
        let status = self.rng.below(8) as usize;
        DeliveryFilter {
            lane: self.rng.chance(0.3).then(|| self.lane()),
            status: DeliveryStatus::ALL.get(status).copied(),
            after: self.rng.chance(0.2).then(|| self.job()),
            before: self.rng.chance(0.3).then(|| self.job()),
            limit: self.rng.below(8) as usize,
        }
    }

    fn maybe_type(&mut self) -> Option<String> {
        let texts = ["payment.paid", "payment.*", "pay%", "payment_*", "*", "Payment.*", ""];
        self.rng.chance(0.5).then(|| texts[self.rng.below(7) as usize].into())
    }

    fn wants(&mut self) -> Vec<(Lane, usize)> {
        let mut wants = Vec::new();
        for lane in lanes() {
            if self.rng.chance(0.5) {
                wants.push((lane, self.rng.below(5) as usize));
            }
        }
        wants
    }

    fn lane(&mut self) -> Lane {
        self.rng.pick(&lanes()).expect("there are some").clone()
    }

    fn leases(&mut self) -> Vec<Which> {
        (0..self.rng.below(4)).map(|_| self.which()).collect()
    }

    /// Mostly one that was given a moment ago: older ones rarely hold.
    fn which(&mut self) -> Which {
        let reach = if self.rng.chance(0.8) { 6 } else { 64 };
        Which {
            lease: self.rng.below(reach) as usize,
            attempt: i32::from(self.rng.chance(0.1)),
            other_node: self.rng.chance(0.05),
        }
    }

    fn event(&mut self) -> Seq {
        *self.rng.pick(&self.seqs).expect("never empty")
    }

    fn job(&mut self) -> Seq {
        self.rng.pick(&self.jobs).copied().filter(|_| self.rng.chance(0.6)).unwrap_or_else(|| self.event())
    }

    fn some_events(&mut self) -> Vec<Seq> {
        (0..self.rng.below(6)).map(|_| self.event()).collect()
    }

    fn some_jobs(&mut self) -> Vec<Seq> {
        (0..self.rng.below(8)).map(|_| self.job()).collect()
    }

    fn after(&mut self) -> Seq {
        if self.rng.chance(0.6) { Seq::ZERO } else { self.event() }
    }

    fn key(&mut self) -> DedupeKey {
        DedupeKey::new(&self.source(), &self.id(), self.created())
    }

    fn created(&mut self) -> Option<Created> {
        self.rng.chance(0.3).then_some(Created { at: NOW, immutable: true })
    }

    fn id(&mut self) -> String {
        format!("id-{}", self.rng.below(IDS))
    }

    fn kind(&mut self) -> String {
        ["payment.paid", "payment.failed", "payment_%", "pay%x"][self.rng.below(4) as usize].into()
    }

    fn source(&mut self) -> String {
        ["shop", "other"][usize::from(self.rng.chance(0.3))].into()
    }

    fn maybe_source(&mut self) -> Option<String> {
        self.rng.chance(0.4).then(|| self.source())
    }

    fn node(&mut self) -> usize {
        self.rng.below(8) as usize
    }

    fn small(&mut self) -> i64 {
        self.rng.below(3) as i64
    }

    fn time(&mut self) -> Time {
        NOW.plus_ms(self.rng.below(20) as i64)
    }

    /// A time that retention and counts can tell from others.
    fn moment(&mut self) -> Time {
        NOW.plus_ms(self.small() - self.rng.below(8) as i64 * HOUR_MS / 3)
    }
}
