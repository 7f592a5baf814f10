//! Whether places were sold once, and whether everybody who paid has a place or the money.
//!
//! What is owed follows from what visitors and renderer did: who cancelled in time, who paid when the place was gone, whose video
//! failed three times. What was given back is what Stripe's stand-in made.

use std::collections::BTreeMap;

use sekisho_demo::planetarium::{MadeRefund, PlacesLedger, SoldPlace, VisitorCourse, VisitorRecord};

use super::super::accounts::{Accounts, DemoPayment};
use super::{Group, ProofRow, amount_text, line, number};

/// As often as a video may fail.
const ATTEMPTS: usize = 3;
const CURRENCY: &str = "jpy";

/// Why money must go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    Cancelled,
    NeverMade,
    PaidLate,
}

/// By what the visitor and the renderer did, if it was paid at all.
fn owed(visitor: &VisitorRecord) -> Option<Owed> {
    visitor.intent.as_ref()?;
    if visitor.is_cancelled {
        return Some(Owed::Cancelled);
    }
    if visitor.failed_runs.len() >= ATTEMPTS {
        return Some(Owed::NeverMade);
    }
    (visitor.course == VisitorCourse::PaysLate).then_some(Owed::PaidLate)
}

fn refunds_of<'l>(ledger: &'l PlacesLedger, visitor: &VisitorRecord) -> Vec<&'l MadeRefund> {
    ledger.refunds.iter().filter(|made| visitor.intent.as_ref() == Some(&made.intent)).collect()
}

/// What has not come back from the bank.
fn given_back(refunds: &[&MadeRefund]) -> i64 {
    refunds.iter().filter(|made| !made.is_sent_back).map(|made| made.amount).sum()
}

// --- oversold --------------------------------------------------------------------------------------------------------

pub fn oversold(accounts: &Accounts) -> ProofRow {
    let places = &accounts.places;
    let ledger = &places.ledger;
    let mut wrong = Vec::new();
    for (n, show) in ledger.shows.iter().enumerate() {
        let most = most_at_once(ledger, n);
        if most > i64::from(show.places) {
            wrong.push(format!("{}: {most} places were taken at once, of {}", show.id, show.places));
        }
        let is_confirmed = |place: &SoldPlace| {
            places.statuses.get(&place.reservation).is_some_and(|status| status == "confirmed")
        };
        let own = ledger.held().filter(|(visitor, place)| visitor.show == n && is_confirmed(place));
        let sold: u32 = own.map(|(visitor, _)| visitor.quantity).sum();
        if places.slots.get(&show.id) != Some(&(show.places, sold)) {
            let said = places.slots.get(&show.id);
            wrong.push(format!(
                "{}: {sold} of {} are confirmed, the slot says {said:?}",
                show.id, show.places
            ));
        }
        if sold > show.places {
            wrong.push(format!("{}: {sold} places are confirmed, of {}", show.id, show.places));
        }
    }
    let all: u32 = ledger.shows.iter().map(|show| show.places).sum();
    let held = ledger.held().count();
    let says = format!(
        "{} of {} places in {} shows, at any moment\n{} visitors: {} got places, {} found too few",
        number(wrong.len()),
        number(all as usize),
        number(ledger.shows.len()),
        number(ledger.visitors.len()),
        number(held),
        number(ledger.visitors.len() - held)
    );
    line(Group::Places, "oversold", says, wrong)
}

/// The most places of a show that were surely somebody's at one moment. A place is taken from the answer that held it until
/// its hold is over, or, once the application heard that it is confirmed, until it was cancelled or refunded.
fn most_at_once(ledger: &PlacesLedger, show: usize) -> i64 {
    let mut changes = BTreeMap::<u64, (i64, i64)>::new();
    for (visitor, place) in ledger.held().filter(|(visitor, _)| visitor.show == show) {
        let refunded = refunds_of(ledger, visitor).iter().map(|made| made.made_ms).min();
        let released = visitor.cancel_sent_ms.into_iter().chain(refunded).min().unwrap_or(u64::MAX);
        let has_lapsed = visitor.has_heard("reservation.expired");
        let held_until = match visitor.confirmed_ms {
            Some(_) if !has_lapsed => released,
            _ => place.held_until_ms.min(released),
        };
        let mut take = |from: u64, until: u64| {
            if from < until {
                changes.entry(from).or_default().1 += i64::from(visitor.quantity);
                changes.entry(until).or_default().0 -= i64::from(visitor.quantity);
            }
        };
        take(place.answered_ms, held_until);
        if let Some(confirmed) = visitor.confirmed_ms.filter(|_| has_lapsed) {
            take(confirmed, released);
        }
    }
    let (mut now, mut most) = (0, 0);
    for (given, taken) in changes.into_values() {
        now += given + taken;
        most = most.max(now);
    }
    most
}

// --- paid ------------------------------------------------------------------------------------------------------------

pub fn paid(accounts: &Accounts) -> ProofRow {
    let places = &accounts.places;
    let ledger = &places.ledger;
    let stored = &accounts.store.payments;
    let of_intent: BTreeMap<_, &DemoPayment> = stored
        .iter()
        .flat_map(|payment| payment.intents.iter().map(move |intent| (intent, payment)))
        .collect();
    let mut wrong = Vec::new();
    let [mut confirmed, mut refunded, mut in_case, mut unpaid] = [0_usize; 4];
    for (visitor, place) in ledger.held() {
        let id = &place.reservation;
        let status = places.statuses.get(id).map_or("unknown", String::as_str);
        if !visitor.is_over {
            wrong.push(format!("{id} did not come to its end: {:?}, {status}", visitor.course));
        }
        let Some(intent) = &visitor.intent else {
            unpaid += 1;
            if status != "expired" {
                wrong.push(format!("{id} was never paid, and is {status}"));
            }
            continue;
        };
        let refunds = refunds_of(ledger, visitor);
        let back = given_back(&refunds);
        match of_intent.get(intent) {
            Some(payment) if (payment.received, payment.refunded) == (visitor.amount, back) => {}
            Some(payment) => {
                let is = (payment.received, payment.refunded);
                wrong.push(format!("{intent} is {is:?} here, and {:?} at Stripe", (visitor.amount, back)));
            }
            None => wrong.push(format!("{intent} is no payment")),
        }
        let has_place = status == "confirmed";
        match owed(visitor) {
            None if has_place && refunds.is_empty() => confirmed += 1,
            Some(_) if !has_place && back == visitor.amount => refunded += 1,
            _ if places.in_case.contains(&place.payment) => in_case += 1,
            _ => wrong.push(format!("{id} is {status}, {back} of {} refunded, no case", visitor.amount)),
        }
    }
    let all = confirmed + refunded + in_case;
    let says = format!(
        "{} orders: {} confirmed, {} refunded, {} in an open case\n{} more were never paid, and gave their places back",
        number(all),
        number(confirmed),
        number(refunded),
        number(in_case),
        number(unpaid)
    );
    line(Group::Places, "paid", says, wrong)
}

// --- refunds ---------------------------------------------------------------------------------------------------------

pub fn refunds(accounts: &Accounts) -> ProofRow {
    let places = &accounts.places;
    let ledger = &places.ledger;
    let mut wrong = Vec::new();
    let mut reasons = BTreeMap::<Owed, usize>::new();
    let [mut amount_owed, mut amount_made] = [0_i64; 2];
    for (visitor, place) in ledger.held() {
        let (owed, made) = (owed(visitor), refunds_of(ledger, visitor));
        let due = if owed.is_some() { visitor.amount } else { 0 };
        let ordered: i64 = made.iter().map(|made| made.amount).sum();
        if ordered != due || made.len() > 1 {
            let (id, times) = (&place.reservation, made.len());
            wrong.push(format!("{id}: {due} are owed, {ordered} were refunded in {times} refunds"));
        }
        let recorded = places.recorded.iter().filter(|payment| **payment == place.payment).count();
        let came = made.iter().filter(|made| !made.is_sent_back).count();
        if recorded != came {
            let id = &place.reservation;
            wrong.push(format!("{id}: {came} refunds, and {recorded} in the compensation log"));
        }
        amount_owed += due;
        amount_made += ordered;
        if let Some(owed) = owed {
            *reasons.entry(owed).or_default() += 1;
        }
    }
    let known = |made: &&MadeRefund| {
        ledger.visitors.iter().any(|visitor| visitor.intent.as_ref() == Some(&made.intent))
    };
    let strange = ledger.refunds.iter().filter(|made| !known(made));
    wrong.extend(strange.map(|made| format!("{} is of no order", made.id)));
    let count = |owed: Owed| number(reasons.get(&owed).copied().unwrap_or_default());
    let sent_back = ledger.refunds.iter().filter(|made| made.is_sent_back).count();
    let says = format!(
        "{} owed = {} made, {} = {} yen\n{} cancelled, {} could not be made, {} paid too late\n\
         {} answers of Stripe were lost; the bank sent {} back, for a person to see to",
        number(reasons.values().sum()),
        number(ledger.refunds.len()),
        amount_text(amount_owed, CURRENCY),
        amount_text(amount_made, CURRENCY),
        count(Owed::Cancelled),
        count(Owed::NeverMade),
        count(Owed::PaidLate),
        number(usize::try_from(ledger.answers_lost).unwrap_or(usize::MAX)),
        number(sent_back)
    );
    line(Group::Places, "refunds", says, wrong)
}
