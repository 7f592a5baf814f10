//! What must hold of every order, worked out from what was asked, paid, given back and said, and from nothing of the product's: a
//! clerk with a ledger of their own, written from the requirements alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::desk::Looked;
use super::till::{GivingState, Till};

/// The requirements, in milliseconds.
pub const MINUTE: i64 = 60_000;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;
pub const EXTRA: i64 = 2 * MINUTE;
const VOUCHER: i64 = 7 * DAY;
const NOTICE: i64 = 2 * DAY;
const RUN: i64 = 30 * MINUTE;
const RUNS: usize = 3;

/// What a hall is called, whose it is, and whether it is live.
pub type HallKey = (String, Option<String>, bool);

/// One booking, as its customer and the shop know it.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing that happened or not")]
pub struct Booking {
    pub id: String,
    pub number: String,
    pub house: Option<String>,
    pub live: bool,
    pub hall: String,
    pub seats: u64,
    /// 0: nothing is to be paid.
    pub price: i64,
    pub made: i64,
    pub ends: i64,
    pub starts: Option<i64>,
    /// Its session has ended, one way or the other.
    pub left_session: bool,
    pub work: Option<String>,
    /// What the product heard of: takings, and givings with their state as it was told last.
    pub heard: BTreeSet<String>,
    pub returned: BTreeMap<String, GivingState>,
    /// Who called it off, and whether with the money back.
    pub off: Option<bool>,
    pub sold: bool,
    /// It was theirs once, whatever came of it.
    pub was_sold: bool,
    /// Its places went back, and its customer had not paid by then.
    pub gone: bool,
    /// All of its money went back.
    pub emptied: bool,
    /// It was decided what becomes of money that came late.
    pub judged: bool,
    /// Its orders for refunds that were carried out, however.
    pub done: BTreeSet<String>,
    pub moves: usize,
    /// Since when what is made for it has failed for good, and whether a person has seen to it.
    pub broken: Option<i64>,
    pub settled: bool,
    /// Refunds that were due when they were ordered.
    pub due: BTreeSet<String>,
}

#[derive(Default)]
pub struct Ledger {
    pub bookings: Vec<Booking>,
    /// Capacity of each hall.
    pub halls: BTreeMap<(String, Option<String>, bool), u64>,
    /// Whether late money gets another place, if one is free.
    pub moves_late: bool,
    /// Runs that were asked for, by work; and what I answered for them.
    pub asked: BTreeMap<String, BTreeMap<u32, i64>>,
    pub answered: BTreeMap<(String, u32), &'static str>,
    pub allowed: BTreeMap<String, usize>,
    /// Cases that a person took in hand, or resolved, with their episode.
    pub taken: BTreeSet<(String, u64)>,
    pub resolved: BTreeSet<(String, u64)>,
    /// Halls of which nobody has given back a place that was paid for.
    pub quiet: BTreeSet<HallKey>,
    /// Bookings that were told of another place than their first.
    pub moved: BTreeMap<String, usize>,
    pub manual: usize,
    pub heard: usize,
    pub told: BTreeSet<String>,
    pub ids: BTreeSet<String>,
    pub faults: Vec<String>,
}

impl Booking {
    pub fn hall_key(&self) -> (String, Option<String>, bool) {
        (self.hall.clone(), self.house.clone(), self.live)
    }

    pub fn came(&self, till: &Till) -> i64 {
        self.heard.iter().map(|id| till.takings[id].amount).sum()
    }

    /// What of the money went back for certain, as far as it was told.
    fn went(&self, till: &Till) -> i64 {
        let given = self.returned.iter().filter(|(_, state)| **state == GivingState::Given);
        let of_heard = given.filter(|(id, _)| self.heard.contains(&till.givings[*id].taking));
        of_heard.map(|(id, _)| till.givings[id].amount).sum()
    }

    /// The same with what is on its way.
    fn under_way(&self, till: &Till) -> i64 {
        let held = self.returned.iter().filter(|(_, state)| **state != GivingState::Bounced);
        let of_heard = held.filter(|(id, _)| self.heard.contains(&till.givings[*id].taking));
        of_heard.map(|(id, _)| till.givings[id].amount).sum()
    }

    /// Whether its places are kept for whoever pays.
    pub fn waits(&self, now: i64) -> bool {
        !self.sold && !self.gone && !self.is_off() && now < self.ends + EXTRA
    }

    pub fn is_off(&self) -> bool {
        self.off.is_some() || self.emptied
    }

    /// Whether its customer may still call it off.
    pub fn may_leave(&self, now: i64) -> bool {
        self.waits(now) || self.sold && !self.is_off() && self.starts.is_some_and(|at| now <= at - NOTICE)
    }

    /// A voucher for the konbini is as good as the money for a week, but not beyond the beginning.
    pub fn voucher(&mut self, now: i64) {
        if self.waits(now) && self.heard.is_empty() {
            let longest = self.starts.map_or(self.made + VOUCHER, |at| at.min(self.made + VOUCHER));
            self.ends = self.ends.max(longest);
        }
    }

    /// The session ran out: nobody will pay any more.
    pub fn abandoned(&mut self, now: i64) {
        self.gone |= self.waits(now) && self.price > 0 && self.heard.is_empty();
    }
}

impl Ledger {
    /// Time went on.
    pub fn tick(&mut self, now: i64) {
        for one in self.bookings.iter_mut().filter(|one| !one.sold && !one.is_off()) {
            one.gone |= now >= one.ends + EXTRA;
        }
    }

    pub fn of(&mut self, number: &str) -> &mut Booking {
        self.bookings.iter_mut().find(|one| one.number == number).expect("it was booked")
    }

    pub fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    /// A person resolved a case: nothing more is done about it by itself.
    pub fn resolve(&mut self, case: &Value) {
        let name = (text(case, "id"), case["episode"].as_u64().unwrap_or(0));
        if case["status"] != "resolved" && self.resolved.insert(name) {
            self.manual += 1;
        }
    }

    /// Compares what can be seen with what must be; says what is wrong.
    pub fn check(&mut self, now: i64, seen: &Looked, told: &[Value], till: &Till) -> Vec<String> {
        self.read_news(now, told);
        let mut bookings = std::mem::take(&mut self.bookings);
        let is_quiet = |key: &&HallKey| {
            let mut own = bookings.iter().filter(|one| one.hall_key() == **key);
            own.all(|one| one.off.is_none() && one.returned.is_empty())
        };
        self.quiet = self.halls.keys().filter(is_quiet).cloned().collect();
        for one in &mut bookings {
            self.check_booking(one, now, seen, till);
            self.check_work(one, now, seen);
            self.check_refunds(one, now, seen, till);
        }
        self.bookings = bookings;
        self.check_halls(seen);
        self.check_cases(seen);
        self.check_log(seen);
        if till.refused > 0 {
            self.fault("more was asked back than was left, right after a look".to_owned());
        }
        std::mem::take(&mut self.faults)
    }

    fn check_booking(&mut self, one: &mut Booking, now: i64, seen: &Looked, till: &Till) {
        let shown = &seen.bookings[&one.id];
        let status = text(shown, "status");
        let (came, went) = (one.came(till), one.went(till));
        one.emptied |= came > 0 && went >= came;
        // Of two payments, the first may have gone back whole before the second was heard of.
        let takings = one.heard.iter().map(|id| till.takings[id].amount);
        one.emptied |= one.off.is_none()
            && one.heard.len() > 1
            && status == "cancelled"
            && takings.min().is_some_and(|least| went >= least);
        let is_paid = one.price == 0 || came >= one.price && !one.emptied;
        let wanted = if one.is_off() {
            one.sold = false;
            // It may have had another place for a moment, and its customer was told so.
            one.moves = one.moves.max(self.moved.get(&one.id).copied().unwrap_or(0));
            "cancelled"
        } else if one.sold {
            "confirmed"
        } else if is_paid && !one.gone {
            one.sold = true;
            "confirmed"
        } else if is_paid {
            self.check_late(one, &status, seen, till);
            if one.sold { "confirmed" } else { "expired" }
        } else if one.gone || now >= one.ends + EXTRA {
            "expired"
        } else {
            "hold"
        };
        one.was_sold |= one.sold;
        if status != wanted {
            let payment = seen.payments.get(&one.id);
            self.fault(format!("a booking is {status}, not {wanted}: {one:?} {payment:?}"));
        }
        if one.house.as_deref() != shown["tenant"].as_str() || shown["livemode"] != one.live {
            self.fault(format!("a booking is another's: {shown}"));
        }
    }

    /// The money came when the places were gone: in time it gets others, if there are any; else it goes back.
    fn check_late(&mut self, one: &mut Booking, status: &str, seen: &Looked, till: &Till) {
        let first = one.heard.iter().map(|id| till.takings[id].at).min().unwrap_or_default();
        let in_time = first * 1_000 <= one.ends + EXTRA;
        let may_move = in_time || self.moves_late;
        let came_back = one.returned.values().any(|state| *state == GivingState::Bounced);
        if status == "confirmed" {
            if !may_move || one.judged && !came_back {
                self.fault(format!("money that came too late was taken for a place: {one:?}"));
            }
            one.sold = true;
            one.moves += 1;
        } else if !one.judged {
            let free = seen.halls.iter().find(|hall| is_hall(hall, &one.hall_key()));
            let free = free.map_or(0, |hall| hall["free"].as_u64().unwrap_or(0));
            let is_left = one.came(till) > one.under_way(till);
            // Places that others gave back may have been free only after it was decided.
            let is_still = self.quiet.contains(&one.hall_key());
            if may_move && is_left && is_still && free >= one.seats {
                self.fault(format!("{free} places were free, and the money went back: {one:?}"));
            }
        }
        one.judged = true;
    }

    /// Refunds: each with a reason, one at a time, and not before it is due.
    fn check_refunds(&mut self, one: &mut Booking, now: i64, seen: &Looked, till: &Till) {
        let Some(payment) = seen.payments.get(&one.id) else { return };
        let orders: Vec<&Value> = payment["refund_orders"].as_array().into_iter().flatten().collect();
        let is_live =
            |order: &&&Value| !["failed", "met_elsewhere"].iter().any(|over| order["status"] == **over);
        let under_way = orders.iter().filter(is_live).count();
        let bounced = one.returned.values().any(|state| *state == GivingState::Bounced);
        // A second charge may come for what was cancelled, and then goes back by an order of its own. While the product has not heard
        // of what went back by hand, it may order that, too: the order's job finds that nothing is left.
        let own = till.givings.iter().filter(|(_, giving)| one.heard.contains(&giving.taking));
        let is_all_told = own.map(|(id, _)| id).all(|id| one.returned.contains_key(id));
        if under_way > one.heard.len().max(1) && is_all_told {
            self.fault(format!("one payment is refunded by {under_way} orders: {payment}"));
        }
        for order in &orders {
            let (key, trigger) = (text(order, "order"), text(order, "trigger"));
            let is_right = match &*trigger {
                "CUSTOMER_CANCEL" | "OPERATOR" => one.off == Some(true),
                "WEBHOOK_DELAY" => one.gone && (!one.was_sold || bounced),
                "EXPIRED_PAYMENT" => (one.gone || one.is_off()) && (!one.was_sold || bounced),
                "RENDER_FAILURE" => {
                    let is_due = one.broken.is_some_and(|since| since + DAY <= now) && !one.settled;
                    one.due.contains(&key) || is_due && one.due.insert(key.clone())
                }
                _ => false,
            };
            if !is_right {
                self.fault(format!("a refund without a reason: {order} {one:?}"));
            }
            let made: Vec<_> =
                till.givings.values().filter(|giving| giving.order.as_deref() == Some(&*key)).collect();
            for taking in &one.heard {
                let held = made.iter().filter(|giving| giving.taking == *taking);
                if held.filter(|giving| giving.state != GivingState::Bounced).count() > 1 {
                    self.fault(format!("the order {key} was carried out twice: {made:?}"));
                }
            }
            let given: i64 = one
                .returned
                .iter()
                .filter(|(id, state)| {
                    **state == GivingState::Given && till.givings[*id].order.as_deref() == Some(&*key)
                })
                .map(|(id, _)| till.givings[id].amount)
                .sum();
            let amount = order["amount"].as_i64().unwrap_or(i64::MAX);
            // Whoever gave the rest back, it is on its way; but what carries its key has arrived or failed.
            let own = |(id, state): (&String, &GivingState)| {
                till.givings[id].order.as_deref() == Some(&*key) && *state == GivingState::Pending
            };
            let is_met = one.under_way(till) >= one.came(till) && !one.returned.iter().any(own);
            let failed = one.returned.iter().any(|(id, state)| {
                till.givings[id].order.as_deref() == Some(&*key) && *state == GivingState::Bounced
            });
            // What failed and was made by another order is that order's.
            if given >= amount && amount > 0 || is_met && (given > 0 || !failed || orders.len() == 1) {
                one.done.insert(key);
            }
        }
        if orders.is_empty() && one.emptied {
            one.done.insert("foreign".to_owned());
        }
    }

    fn check_halls(&mut self, seen: &Looked) {
        for (key, capacity) in self.halls.clone() {
            let Some(hall) = seen.halls.iter().find(|hall| is_hall(hall, &key)) else {
                self.fault(format!("there is no hall {key:?}"));
                continue;
            };
            let own = self.bookings.iter().filter(|one| one.hall_key() == key);
            let (mut held, mut sold) = (0, 0);
            for one in own {
                match seen.bookings[&one.id]["status"].as_str() {
                    Some("hold") => held += one.seats,
                    Some("confirmed") => sold += one.seats,
                    _ => {}
                }
            }
            if held + sold > capacity {
                self.fault(format!("{} of {capacity} places are taken in {key:?}", held + sold));
            }
            let wanted = [capacity, held, sold, capacity.saturating_sub(held + sold)];
            let shown =
                ["capacity", "held", "sold", "free"].map(|name| hall[name].as_u64().unwrap_or(u64::MAX));
            if shown != wanted {
                self.fault(format!("capacity, held, sold, free are {shown:?}, not {wanted:?}: {hall}"));
            }
        }
    }

    fn check_work(&mut self, one: &mut Booking, now: i64, seen: &Looked) {
        let Some(shown) = one.work.as_ref().and_then(|id| seen.works.get(id)) else { return };
        let id = text(shown, "id");
        let runs: Vec<&Value> = shown["runs"].as_array().into_iter().flatten().collect();
        if runs.is_empty() == one.was_sold && !one.is_off() {
            self.fault(format!("{} runs of what is {}sold", runs.len(), if one.sold { "" } else { "not " }));
        }
        let asked = self.asked.get(&id).cloned().unwrap_or_default();
        for run in &runs {
            let number = run["run"].as_u64().unwrap_or(0) as u32;
            let said = self.answered.get(&(id.clone(), number)).copied();
            let since = asked.get(&number).copied().unwrap_or(i64::MAX);
            let is_late = since.saturating_add(RUN) <= now;
            let is_right = match (said, run["status"].as_str()) {
                (Some(said), Some(shown)) => said == shown,
                (None, Some("failed")) => is_late,
                (None, shown) => shown == Some("processing"),
                (Some(_), None) => false,
            };
            if !is_right {
                self.fault(format!("a run ended otherwise than I said ({said:?}): {run}"));
            }
        }
        let failed = runs.iter().filter(|run| run["status"] == "failed").count();
        let most = RUNS + self.allowed.get(&id).copied().unwrap_or(0);
        let wanted = match runs.last().and_then(|run| run["status"].as_str()) {
            None => "waiting",
            Some("done") => "done",
            Some("failed") if failed >= most => "failed",
            Some(_) => "processing",
        };
        if shown["status"] != wanted || shown["retry_count"] != failed {
            self.fault(format!("what is made is {wanted} after {failed} failures: {shown}"));
        }
        if wanted == "failed" {
            one.broken.get_or_insert(now);
        } else {
            one.broken = None;
        }
        let of = |case: &&Value| case["subject"] == id && case["trigger"] == "RENDER_FAILURE";
        let case = seen.cases.values().find(of).unwrap_or(&Value::Null);
        let level = case["level"].as_u64().unwrap_or(0);
        // What a person resolved does not come up again before it was well for once.
        one.settled = self.resolved.contains(&(text(case, "id"), case["episode"].as_u64().unwrap_or(0)));
        if wanted == "failed" && one.sold && !one.settled && level < 2 {
            self.fault(format!("it failed for good, and the level is {level}"));
        }
    }

    fn check_cases(&mut self, seen: &Looked) {
        for case in seen.cases.values() {
            let name = (text(case, "id"), case["episode"].as_u64().unwrap_or(0));
            let by = case["resolved"]["by"].as_str();
            let is_by_hand = self.resolved.contains(&name);
            if by.is_some_and(|by| by != "SYSTEM") && !is_by_hand {
                self.fault(format!("nobody resolved this: {case}"));
            }
            if is_by_hand && case["status"] != "resolved" {
                self.fault(format!("a person resolved this: {case}"));
            }
            if self.taken.contains(&name) && case["status"] == "open" {
                self.fault(format!("a person took this in hand: {case}"));
            }
        }
    }

    /// What was done is recorded, each once.
    fn check_log(&mut self, seen: &Looked) {
        let count = |kind: &str| seen.log.iter().filter(|entry| entry["type"] == kind).count();
        let moves: usize = self.bookings.iter().map(|one| one.moves).sum();
        let back: usize = self.bookings.iter().map(|one| one.done.len()).sum();
        let shown = ["REFUND", "SLOT_REASSIGN", "MANUAL_RESOLUTION"].map(count);
        // Who paid twice may get it back in any number of parts.
        let is_once = self.bookings.iter().all(|one| one.heard.len() <= 1);
        let wanted = [if is_once { back } else { shown[0] }, moves, self.manual];
        if shown != wanted {
            self.fault(format!("{shown:?} are recorded, not {wanted:?}: {:?} {:?}", seen.log, self.bookings));
        }
    }

    /// What was told: each thing once, by its id and by what it says.
    fn read_news(&mut self, now: i64, told: &[Value]) {
        for news in &told[self.heard..] {
            let (kind, id) = (text(news, "type"), text(news, "id"));
            if !self.ids.insert(id.clone()) {
                self.fault(format!("told twice: {id}"));
            }
            let (about, data) = (&news["about"], &news["data"]);
            let what = match &*kind {
                "reservation.confirmed" | "reservation.expired" => about["claim"].to_string(),
                "fulfilment.requested" | "fulfilment.retrying" | "fulfilment.failed" | "fulfilment.done" => {
                    about["run"].to_string()
                }
                "case.raised" => format!("{}/{}", data["episode"], about["level"]),
                "reservation.cancelled" | "fulfilment.downgraded" | "compensation.recorded" => String::new(),
                _ => continue,
            };
            if kind == "reservation.confirmed" && about["claim"].as_u64() > Some(1) {
                *self.moved.entry(text(data, "id")).or_default() += 1;
            }
            if kind == "fulfilment.requested" {
                let run = about["run"].as_u64().unwrap_or(0) as u32;
                self.asked.entry(text(data, "id")).or_default().insert(run, now);
            }
            if !self.told.insert(format!("{kind}/{}/{what}", text(data, "id"))) {
                self.fault(format!("told twice in other words: {news}"));
            }
        }
        self.heard = told.len();
    }
}

pub fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn is_hall(hall: &Value, key: &(String, Option<String>, bool)) -> bool {
    hall["id"] == *key.0 && hall["tenant"].as_str() == key.1.as_deref() && hall["livemode"] == key.2
}
