//! One life of a few orders that want the same places: what customers, operators, the app, the provider and the clock do, at
//! random and at once. After each step the ledger is asked whether all is well.

use sekisho_core::settlement::ApiProvider;
use sekisho_core::settlement::follow::{LatePayment, OrderPolicy};
use sekisho_core::settlement::refund::RefundPolicy;
use sekisho_lab::rng::Rng;
use sekisho_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;

use super::bugs::{OrderBug, Planted};
use super::desk::{Desk, Looked, Who};
use super::ledger::{Booking, DAY, EXTRA, HOUR, Ledger, MINUTE, text};
use super::till::{GivingState, Taking, session};
use super::watched::WatchedStore;

const PRICE: i64 = 1_000;
const BEGUN: i64 = 1_790_000_000_000;
/// Lives in one database begin so far apart: refunds by rules are counted by the hour, for all of them.
const APART: i64 = 90 * MINUTE;
/// Rounds until nothing more happens by itself; each fires every timer that is due.
const ROUNDS_MAX: usize = 400;

/// A letter of the provider that is on its way.
#[derive(Clone)]
enum Mail {
    Taking(String),
    Giving(String, GivingState, Value),
}

/// When timers go off in this life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Prompt,
    Sometimes,
    /// Not before the end.
    Never,
}

pub struct Life {
    desk: Desk,
    ledger: Ledger,
    rng: Rng,
    mail: Vec<Mail>,
    sweep: Sweep,
    /// Most of what happens here is about what is made, and about its cases.
    is_made: bool,
    nodes: usize,
    begun: i64,
    mark: String,
    seen: Looked,
    /// What was done, for whoever reads a failure.
    steps: Vec<String>,
}

/// Plays one life; what is wrong with it, with all that was done.
pub async fn play(
    store: Arc<dyn Store>,
    policy: &OrderPolicy,
    seed: u64,
    bug: Option<OrderBug>,
) -> Vec<String> {
    let mut life = Life::new(store, policy, seed, bug);
    let faults = life.live().await;
    if faults.is_empty() {
        return faults;
    }
    faults.into_iter().chain([life.steps.join("\n")]).collect()
}

/// The rules of every life, compiled once.
pub fn policy() -> OrderPolicy {
    let accounts = vec![(ApiProvider::Stripe, None)];
    OrderPolicy { refunds: RefundPolicy { accounts, automatic_per_hour: 1_000 }, ..OrderPolicy::default() }
}

impl Life {
    fn new(store: Arc<dyn Store>, policy: &OrderPolicy, seed: u64, bug: Option<OrderBug>) -> Self {
        let mut rng = Rng::new(seed);
        let mut policy = policy.clone();
        let moves_late = rng.chance(0.5);
        policy.late_payment = if moves_late { LatePayment::Reassign } else { LatePayment::Refund };
        if rng.chance(0.1) {
            policy.refunds.automatic_per_hour = 1;
        }
        let planted = Planted(bug);
        planted.policy(&mut policy);
        let faults = if rng.chance(0.4) { 0.1 } else { 0.0 };
        let nodes = rng.between(1, 3) as usize;
        let mark = format!("L{seed}");
        let begun = BEGUN + (seed % 10_000) as i64 * APART;
        let watched = WatchedStore::new(store, rng.next_u64(), faults, planted);
        let sweep = [Sweep::Prompt, Sweep::Sometimes, Sweep::Never][rng.below(3) as usize];
        Self {
            desk: Desk::open(watched, policy, nodes, rng.next_u64(), &mark, begun),
            ledger: Ledger { moves_late, ..Ledger::default() },
            rng,
            mail: Vec::new(),
            sweep,
            is_made: seed.is_multiple_of(2),
            nodes,
            begun,
            mark,
            seen: Looked::default(),
            steps: Vec::new(),
        }
    }

    async fn live(&mut self) -> Vec<String> {
        self.open_halls().await;
        let steps = self.rng.between(8, 22);
        for _ in 0..steps {
            self.step().await;
            let faults = self.check().await;
            if !faults.is_empty() {
                return faults;
            }
        }
        self.end().await
    }

    /// The same names for two houses, live and test: none of them may take another's places.
    async fn open_halls(&mut self) {
        let capacity = [1, 1, 2, 5, 300][self.rng.below(5) as usize];
        let all = [(None, true), (None, false), (Some("office-a"), true), (Some("office-b"), true)];
        for _ in 0..self.rng.between(1, 3) {
            let (house, live) = all[self.rng.below(4) as usize];
            let key = (format!("{}-hall", self.mark), house.map(str::to_owned), live);
            self.desk.set_hall(&key.0, house, live, capacity).await;
            self.ledger.halls.insert(key, capacity.into());
        }
    }

    async fn step(&mut self) {
        if self.is_made && self.rng.chance(0.6) && !self.ledger.bookings.is_empty() {
            match self.rng.below(6) {
                0 => self.pay(),
                1 => self.deliver().await,
                2 | 3 => self.make().await,
                4 => self.see_to_cases().await,
                _ => self.pass_time(),
            }
        } else {
            self.act().await;
        }
        if self.sweep == Sweep::Prompt || self.sweep == Sweep::Sometimes && self.rng.chance(0.2) {
            let early = self.rng.chance(0.1);
            self.fire(early).await;
        }
    }

    async fn act(&mut self) {
        match self.rng.below(20) {
            0..=3 => self.book().await,
            4..=6 => self.pay(),
            7..=9 => self.deliver().await,
            10 => self.visit_session().await,
            11 => self.call_off().await,
            12..=14 => self.pass_time(),
            15 => self.make().await,
            16 => self.see_to_cases().await,
            17 => self.give_back().await,
            18 => self.dashboard(),
            _ => self.at_once().await,
        }
    }

    fn note(&mut self, what: String) {
        let ms = self.desk.now() - self.begun;
        self.steps.push(format!("{:>10} s  {what}", ms as f64 / 1_000.0));
    }

    async fn check(&mut self) -> Vec<String> {
        let ids: Vec<String> = self.ledger.bookings.iter().map(|one| one.id.clone()).collect();
        let halls: Vec<_> = self.ledger.halls.keys().cloned().collect();
        self.seen = self.desk.look(&ids, &halls).await;
        let written = self.desk.store.written();
        self.ledger.check(self.desk.now(), &self.seen, &written.told, &self.desk.till.borrow())
    }

    /// One to three customers want places of one hall at the same moment, at different nodes.
    async fn book(&mut self) {
        let halls: Vec<_> = self.ledger.halls.iter().map(|(key, most)| (key.clone(), *most)).collect();
        let ((hall, house, live), most) = self.rng.pick(&halls).unwrap().clone();
        let mut wanted = Vec::new();
        for n in 0..self.rng.between(1, 3) {
            let seats = if most > 100 { self.rng.between(1, 20) } else { self.rng.between(1, 2) };
            let number = format!("{}-{}-{n}", self.mark, self.steps.len());
            let (text, ms) =
                [("30m", 30 * MINUTE), ("5m", 5 * MINUTE), ("2h", 2 * HOUR)][self.rng.below(3) as usize];
            let now = self.desk.now();
            let starts = [None, Some(now + DAY), Some(now + 2 * DAY + HOUR), Some(now + 9 * DAY)];
            let starts = starts[self.rng.below(4) as usize];
            let price = if self.rng.chance(0.1) { 0 } else { PRICE };
            let mut body = json!({
                "slot": hall, "quantity": seats, "reference": number, "hold": text, "livemode": live,
                "tenant": house, "payment": { "amount": price, "currency": "jpy" },
                "starts_at": starts.map(sekisho_core::Time::from_ms),
            });
            if self.is_made || self.rng.chance(0.3) {
                body["fulfilment"] = json!({ "kind": "video" });
            }
            let booking = Booking {
                number,
                house: house.clone(),
                live,
                hall: hall.clone(),
                seats,
                price,
                made: now,
                ends: now + ms,
                starts,
                ..Booking::default()
            };
            wanted.push((self.rng.below(3) as usize, body, booking));
        }
        let asked = wanted.iter().map(|(node, body, _)| self.desk.hold(*node, body));
        let answers = futures_util::future::join_all(asked).await;
        for ((_, _, mut booking), answer) in wanted.into_iter().zip(answers) {
            self.note(format!(
                "{} wants {} of {hall}: {:?}",
                booking.number,
                booking.seats,
                answer.is_some()
            ));
            let Some(answer) = answer else { continue };
            booking.id = text(&answer, "id");
            booking.work = answer["fulfilment"].as_str().map(str::to_owned);
            self.ledger.bookings.push(booking);
        }
    }

    /// A customer pays, now and for certain; whether and when the product hears of it is another matter.
    fn pay(&mut self) {
        let Some(one) = self.some_booking().filter(|one| one.price > 0) else { return };
        let till =
            self.desk.till.borrow().takings.values().filter(|taking| taking.number == one.number).count();
        // Most pay once.
        if till > 0 && !self.rng.chance(0.1) {
            return;
        }
        let amount = if till == 0 && self.rng.chance(0.1) { 400 } else { one.price };
        let at = self.desk.now() / 1_000;
        let taking = Taking { number: one.number.clone(), house: one.house, live: one.live, amount, at };
        let id = self.desk.till.borrow_mut().take(taking);
        self.note(format!("{} pays {amount} by {id}", one.number));
        self.mail.push(Mail::Taking(id));
    }

    /// Some letters arrive, in any order; some will come again.
    async fn deliver(&mut self) {
        let letters = self.some_mail();
        self.open_mail(letters).await;
    }

    fn some_mail(&mut self) -> Vec<Mail> {
        let mut letters = Vec::new();
        for _ in 0..self.rng.between(1, 4).min(self.mail.len() as u64) {
            let n = self.rng.below(self.mail.len() as u64) as usize;
            let letter = self.mail.swap_remove(n);
            if self.rng.chance(0.2) {
                self.mail.push(letter.clone());
            }
            letters.push(letter);
        }
        letters
    }

    async fn open_mail(&mut self, letters: Vec<Mail>) {
        let events: Vec<Value> = letters.iter().map(|letter| self.event(letter)).collect();
        letters.iter().for_each(|letter| self.heard(letter));
        if !events.is_empty() {
            let nodes = self.rng.between(1, self.nodes as u64) as usize;
            self.desk.hear(&events, nodes).await;
        }
    }

    fn event(&self, letter: &Mail) -> Value {
        match letter {
            Mail::Taking(id) => self.desk.till.borrow().tell_taking(id),
            Mail::Giving(_, _, event) => event.clone(),
        }
    }

    /// The ledger knows what the product was told.
    fn heard(&mut self, letter: &Mail) {
        let (taking, giving) = match letter {
            Mail::Taking(id) => (id.clone(), None),
            Mail::Giving(id, state, _) => {
                (self.desk.till.borrow().givings[id].taking.clone(), Some((id, *state)))
            }
        };
        let number = self.desk.till.borrow().takings[&taking].number.clone();
        let one = self.ledger.of(&number);
        let what = match giving {
            None => {
                one.heard.insert(taking.clone());
                format!("is told of {taking}")
            }
            Some((id, state)) => {
                let known = one.returned.entry(id.clone()).or_insert(state);
                // What failed has failed, whatever was said before or comes late.
                if state == GivingState::Bounced || *known == GivingState::Pending {
                    *known = state;
                }
                format!("is told that {id} is {state:?}")
            }
        };
        self.note(what);
    }

    async fn visit_session(&mut self) {
        let Some(one) = self.some_booking().filter(|one| one.price > 0) else { return };
        let is_paid = self.desk.till.borrow().takings.values().any(|taking| taking.number == one.number);
        if is_paid || one.is_off() || one.left_session {
            return;
        }
        let now = self.desk.now();
        let abandons = self.rng.chance(0.4);
        let status = if abandons { "expired" } else { "complete" };
        self.note(format!("the session of {} is {status}", one.number));
        self.desk.hear(&[session(&one.number, one.house.as_deref(), one.live, status)], 1).await;
        let own = self.ledger.of(&one.number);
        own.left_session = true;
        if abandons { own.abandoned(now) } else { own.voucher(now) }
    }

    async fn call_off(&mut self) {
        let Some(one) = self.some_booking() else { return };
        let who = [Who::Customer, Who::Operator, Who::App][self.rng.below(3) as usize];
        let refund = who == Who::Customer || self.rng.chance(0.7);
        let may = who != Who::Customer || one.is_off() || one.may_leave(self.desk.now());
        let done = self.desk.cancel(&one.id, who, refund).await;
        self.note(format!("{who:?} calls {} off, refund {refund}: {done}", one.number));
        if done != may {
            self.ledger.fault(format!("{who:?} may call it off: {may}, and it was {done}: {one:?}"));
        }
        self.note_off(&one.number, done, refund);
    }

    fn note_off(&mut self, number: &str, done: bool, refund: bool) {
        let own = self.ledger.of(number);
        if done && !own.is_off() {
            own.off = Some(refund);
        }
    }

    fn pass_time(&mut self) {
        let now = self.desk.now();
        let ms = match self.rng.below(5) {
            // To the very end of some hold, or a moment before or after it.
            0..=1 => {
                let ends = self.some_booking().map_or(now, |one| one.ends);
                let moments = [ends, ends + EXTRA - 1, ends + EXTRA, ends + EXTRA + 1, ends + MINUTE];
                (self.rng.pick(&moments).unwrap() - now).max(1)
            }
            2 => *self.rng.pick(&[1, 1_000, MINUTE, 10 * MINUTE]).unwrap(),
            3 => *self.rng.pick(&[31 * MINUTE, HOUR, 5 * HOUR]).unwrap(),
            _ => *self.rng.pick(&[DAY - 1, DAY, DAY + HOUR, 3 * DAY]).unwrap(),
        };
        self.desk.wait(ms);
        self.ledger.tick(self.desk.now());
        self.note(format!("{} s pass", ms as f64 / 1_000.0));
    }

    async fn fire(&mut self, early: bool) {
        for (kind, id) in self.desk.due(early) {
            self.note(format!("a timer of {id} goes off"));
            self.desk.fire(&kind, &id).await;
        }
    }

    /// Whoever makes something answers: for the newest run or an older one, once or again.
    async fn make(&mut self) {
        let works: Vec<_> =
            self.seen.works.values().filter(|work| work["status"] != "waiting").cloned().collect();
        let Some(work) = self.rng.pick(&works).cloned() else { return };
        let id = text(&work, "id");
        let runs = work["runs"].as_array().unwrap();
        let newest = runs.len() as u32;
        if work["status"] == "failed" && self.rng.chance(0.3) {
            let is_over =
                self.ledger.bookings.iter().any(|one| one.work.as_deref() == Some(&*id) && one.is_off());
            let done = self.desk.retry(&id).await;
            self.note(format!("an operator retries {id}: {done}"));
            if done == (is_over || work["downgraded"] == true) {
                self.ledger.fault(format!("a retry was allowed: {done}, {work}"));
            }
            *self.ledger.allowed.entry(id).or_default() += usize::from(done);
            return;
        }
        let run = if self.rng.chance(0.8) { newest } else { self.rng.between(1, newest.into()) as u32 };
        let said = if self.rng.chance(0.75) { "failed" } else { "done" };
        let known = text(&runs[run as usize - 1], "status");
        let counts = run == newest && known != said && known != "done";
        let counted = self.desk.result(&id, run, newest, said).await;
        self.note(format!("run {run} of {id} {said}: {counted:?}"));
        if counted.is_some_and(|counted| counted != counts) {
            self.ledger.fault(format!("a result of run {run} should count: {counts}, {work}"));
        }
        let answered = self.ledger.answered.entry((id, run)).or_insert(said);
        if said == "done" {
            *answered = said;
        }
    }

    async fn see_to_cases(&mut self) {
        let cases: Vec<_> = self.seen.cases.values().cloned().collect();
        let Some(case) = self.rng.pick(&cases).cloned() else { return };
        let resolves = self.rng.chance(0.4);
        let done = self.desk.say(&text(&case, "id"), resolves).await;
        self.note(format!("a person says of {}: resolved {resolves}, {done}", case["id"]));
        if !done {
            return;
        }
        if resolves {
            self.ledger.resolve(&case);
        } else if case["status"] != "resolved" {
            self.ledger.taken.insert((text(&case, "id"), case["episode"].as_u64().unwrap_or(0)));
        }
    }

    /// The jobs of refunds run, and refunds that were pending arrive or fail.
    async fn give_back(&mut self) {
        let calls: Vec<_> =
            self.desk.store.written().calls.iter().map(|(key, call)| (key.clone(), call.clone())).collect();
        for (key, call) in calls {
            let state = if self.rng.chance(0.2) { GivingState::Pending } else { GivingState::Given };
            let lost = self.rng.chance(0.2);
            let (found, is_over) = self.desk.give_back(&call, state, lost).await;
            self.note(format!("the refund {key} runs: {found:?}, over {is_over}"));
            if is_over {
                self.desk.store.written().calls.remove(&key);
            }
            self.send(&found);
        }
        let pending: Vec<String> = {
            let till = self.desk.till.borrow();
            let of = till.givings.iter().filter(|(_, giving)| giving.state == GivingState::Pending);
            of.map(|(id, _)| id.clone()).collect()
        };
        for id in pending {
            let state = if self.rng.chance(0.15) { GivingState::Bounced } else { GivingState::Given };
            self.desk.till.borrow_mut().givings.get_mut(&id).unwrap().state = state;
            self.send(&[id]);
        }
    }

    fn send(&mut self, givings: &[String]) {
        for id in givings {
            let till = self.desk.till.borrow();
            self.mail.push(Mail::Giving(id.clone(), till.givings[id].state, till.tell_giving(id)));
        }
    }

    /// Somebody gives money back by hand, a part or all of it.
    fn dashboard(&mut self) {
        let takings: Vec<String> = self.desk.till.borrow().takings.keys().cloned().collect();
        let Some(taking) = self.rng.pick(&takings).cloned() else { return };
        let left = self.desk.till.borrow().left(&taking);
        if left == 0 {
            return;
        }
        let amount = if self.rng.chance(0.5) { left } else { (left / 3).max(1) };
        let state = if self.rng.chance(0.3) { GivingState::Pending } else { GivingState::Given };
        let id = self.desk.till.borrow_mut().give(&taking, amount, state);
        self.note(format!("{amount} of {taking} go back by hand: {id}, {state:?}"));
        self.send(&[id]);
    }

    /// Several things at the same moment: news, a cancellation, timers.
    async fn at_once(&mut self) {
        let letters = self.some_mail();
        let events: Vec<Value> = letters.iter().map(|letter| self.event(letter)).collect();
        let due = if self.sweep == Sweep::Never { Vec::new() } else { self.desk.due(true) };
        let one = self.some_booking().filter(|_| self.rng.chance(0.3));
        self.note(format!("at once: {} timers, {:?}", due.len(), one.as_ref().map(|one| &one.number)));
        let desk = &self.desk;
        let fire = async {
            for (kind, id) in &due {
                desk.fire(kind, id).await;
            }
        };
        let cancel = async {
            match &one {
                Some(one) => desk.cancel(&one.id, Who::Operator, true).await,
                None => false,
            }
        };
        let ((), (), done) = tokio::join!(desk.hear(&events, 2), fire, cancel);
        letters.iter().for_each(|letter| self.heard(letter));
        if let Some(one) = one {
            self.note_off(&one.number, done, true);
        }
    }

    fn some_booking(&mut self) -> Option<Booking> {
        self.rng.pick(&self.ledger.bookings).cloned()
    }

    /// All news arrives, refunds are made, and all clocks run out.
    async fn end(&mut self) -> Vec<String> {
        self.desk.store.mend();
        self.note("the end begins".to_owned());
        for _ in 0..ROUNDS_MAX {
            while !self.mail.is_empty() {
                let letters = std::mem::take(&mut self.mail);
                self.open_mail(letters).await;
            }
            self.give_back().await;
            self.fire(false).await;
            let faults = self.check().await;
            if !faults.is_empty() {
                return faults;
            }
            if !self.mail.is_empty() || !self.desk.store.written().calls.is_empty() {
                continue;
            }
            match self.desk.next_timer() {
                Some(at) => {
                    self.desk.wait((at - self.desk.now()).max(0));
                    self.ledger.tick(self.desk.now());
                }
                None => {
                    return self.ledger.check_end(
                        &self.seen,
                        &self.desk.store.written(),
                        &self.desk.till.borrow(),
                    );
                }
            }
        }
        vec!["it does not come to rest".to_owned()]
    }
}
