//! The proof: three accounts side by side, and what became of the places; each line with what it claims and whether it holds.
//!
//! Pure, so that made-up accounts show that every line can fail. What must have been announced is worked out from the
//! sales alone: the sender has never read an event.

mod expected;
mod places;

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::money::{Currency, format_decimal};
use sekisho_demo::measure::thousands;
use sekisho_demo::shop::Money;
use sekisho_store::Status;
use serde::Serialize;

use super::accounts::{Accounts, DemoPayment};
use super::stage::{ARCHIVE, RENDERER, SHOP};
use expected::{due, fact_of, status_of};

/// Statuses as they are listed.
const STATUSES: [&str; 5] = ["paid", "partially_refunded", "refunded", "failed", "cancelled"];

#[derive(Debug)]
pub struct Proof {
    pub lines: Vec<ProofRow>,
}

#[derive(Debug, Serialize)]
pub struct ProofRow {
    /// Where the number comes from.
    #[serde(rename = "from")]
    pub group: Group,
    pub what: String,
    /// `None` claims nothing.
    pub holds: Option<bool>,
    pub says: String,
    /// What speaks against it.
    pub wrong: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    Sender,
    Store,
    App,
    SideBySide,
    Places,
}

impl Group {
    pub const ALL: [Self; 5] = [Self::Sender, Self::Store, Self::App, Self::SideBySide, Self::Places];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Sender => "By the sender's own list",
            Self::Store => "In the store, read beside the running server",
            Self::App => "In the application's ledger",
            Self::SideBySide => "Side by side",
            Self::Places => "The planetarium's places, by its own ledger, Stripe's and the API",
        }
    }
}

impl Proof {
    pub fn of(accounts: &Accounts) -> Self {
        let mut lines = vec![
            sent(accounts),
            acknowledged(accounts),
            stored(accounts),
            settled(accounts),
            waiting(accounts),
            dead(accounts),
            books(accounts),
            audit(accounts),
            delivered(accounts),
            repeated(accounts),
            lost(accounts),
            doubled(accounts),
            forged(accounts),
            payments(accounts),
        ];
        lines.extend(money(accounts));
        lines.extend([places::oversold(accounts), places::paid(accounts), places::refunds(accounts)]);
        Self { lines }
    }

    pub fn holds(&self) -> bool {
        self.lines.iter().all(|line| line.holds != Some(false))
    }
}

fn line(group: Group, what: &str, says: String, wrong: Vec<String>) -> ProofRow {
    ProofRow { group, what: what.to_owned(), holds: Some(wrong.is_empty()), says, wrong }
}

fn number(n: usize) -> String {
    thousands(n as u64)
}

// --- the sender ------------------------------------------------------------------------------------------------------

fn sent(accounts: &Accounts) -> ProofRow {
    let sender = &accounts.sender;
    let planned = sender.requests_planned;
    let again = sender.requests.saturating_sub(planned);
    let mut says = format!(
        "{} events in {} requests, {} of them repeats on purpose",
        number(sender.events.len()),
        thousands(sender.requests),
        thousands(planned.saturating_sub(sender.events.len() as u64))
    );
    if again > 0 {
        says += &format!("\n{} had no answer, or no good one, and were sent again", thousands(again));
    }
    let missing = planned.saturating_sub(sender.requests);
    let wrong = (missing > 0).then(|| format!("{} requests were never sent", thousands(missing)));
    line(Group::Sender, "sent", says, wrong.into_iter().collect())
}

fn acknowledged(accounts: &Accounts) -> ProofRow {
    let sender = &accounts.sender;
    let once: BTreeSet<_> = sender.acknowledged.iter().collect();
    let wrong = sender.events.iter().filter(|id| !once.contains(id));
    let wrong = wrong.map(|id| format!("{id} never got a 2xx")).collect();
    let says = format!(
        "{} events with a 2xx, {} answers more for repeats",
        number(once.len()),
        number(sender.acknowledged.len() - once.len())
    );
    line(Group::Sender, "acknowledged", says, wrong)
}

// --- the store -------------------------------------------------------------------------------------------------------

fn stored(accounts: &Accounts) -> ProofRow {
    let held: BTreeSet<_> = accounts.store.events.iter().map(|(id, _)| id).collect();
    let missing = accounts.sender.events.iter().filter(|id| !held.contains(id));
    let wrong = missing.map(|id| format!("{id} is not there")).collect();
    line(Group::Store, "stored", format!("{} events, each once", number(held.len())), wrong)
}

fn settled(accounts: &Accounts) -> ProofRow {
    let (mut by_rule, mut without, mut wrong) = (0, 0, Vec::new());
    for (id, status) in &accounts.store.events {
        match status {
            Status::Success => by_rule += 1,
            Status::Skipped => without += 1,
            Status::Received | Status::Failed => wrong.push(format!("{id} is {}", status.name())),
        }
    }
    let says = format!(
        "{} events, and {} more of a type without a rule kept as they came",
        number(by_rule),
        number(without)
    );
    line(Group::Store, "processed", says, wrong)
}

fn waiting(accounts: &Accounts) -> ProofRow {
    let waiting = &accounts.store.waiting;
    line(Group::Store, "waiting", number(waiting.len()), waiting.clone())
}

fn dead(accounts: &Accounts) -> ProofRow {
    let dead = &accounts.store.dead;
    line(Group::Store, "dead letters", number(dead.len()), dead.clone())
}

fn books(accounts: &Accounts) -> ProofRow {
    let books = &accounts.store.books;
    let says = format!(
        "{} lines sum to zero, and {} payments are booked as their facts say",
        thousands(books.lines),
        thousands(books.payments)
    );
    let wrong = books.differences.iter().map(ToString::to_string).collect();
    line(Group::Store, "books", says, wrong)
}

fn audit(accounts: &Accounts) -> ProofRow {
    let audit = &accounts.store.audit;
    let says = format!(
        "{} entries on {} links, none changed, removed or inserted",
        thousands(audit.entries),
        thousands(audit.links)
    );
    let mut wrong = audit.faults.clone();
    if audit.entries == 0 {
        wrong.push("there is no entry at all".into());
    }
    line(Group::Store, "audit log", says, wrong)
}

// --- the application -------------------------------------------------------------------------------------------------

fn delivered(accounts: &Accounts) -> ProofRow {
    let (app, store) = (&accounts.app, &accounts.store);
    let at = |path: &str| app.effects.iter().filter(|(_, own)| own == path).count();
    let says = format!(
        "{} events as Stripe wrote them, {} announcements, {} videos to be made",
        number(at(ARCHIVE)),
        number(at(SHOP)),
        number(at(RENDERER))
    );
    let mut wrong = Vec::new();
    if app.messages != store.delivered {
        let (got, made) = (thousands(app.messages), thousands(store.delivered));
        wrong.push(format!("the application got {got} messages, and the store counts {made} as delivered"));
    }
    line(Group::App, "delivered", says, wrong)
}

/// Nobody can prevent these: who gets no answer can't know whether it was heard.
fn repeated(accounts: &Accounts) -> ProofRow {
    let says = format!(
        "{} came again under the id they had\n\
         the application answered too late or hung up, or the server was killed ({} times) before it noted the answer",
        thousands(accounts.app.repeats),
        accounts.sender.kills
    );
    ProofRow { group: Group::App, what: "repeated".into(), holds: None, says, wrong: Vec::new() }
}

// --- side by side ----------------------------------------------------------------------------------------------------

fn lost(accounts: &Accounts) -> ProofRow {
    let Accounts { sender, store, app, .. } = accounts;
    let held: BTreeSet<_> = store.events.iter().map(|(id, _)| id).collect();
    let acknowledged: BTreeSet<_> = sender.acknowledged.iter().collect();
    let got = |id: &String, path: &str| app.effects.contains(&(id.clone(), path.to_owned()));
    let mut wrong = Vec::new();
    wrong.extend(
        acknowledged
            .iter()
            .filter(|id| !held.contains(*id))
            .map(|id| format!("{id} was acknowledged, not stored")),
    );
    wrong.extend(
        held.iter().filter(|id| !got(id, ARCHIVE)).map(|id| format!("{id} was stored, not delivered")),
    );
    let unheard = store.announced.iter().filter(|id| !got(id, SHOP));
    wrong.extend(unheard.map(|id| format!("{id} was announced, not delivered")));
    let announced: BTreeSet<_> = store.announced.iter().map(|id| fact_of(id)).collect();
    let due = sender.sales.iter().flat_map(due);
    wrong.extend(
        due.filter(|fact| !announced.contains(fact)).map(|fact| format!("{fact} was never announced")),
    );
    let says = format!(
        "{}\nacknowledged → stored → delivered, and each sale's news → announced → delivered",
        number(wrong.len())
    );
    line(Group::SideBySide, "lost", says, wrong)
}

fn doubled(accounts: &Accounts) -> ProofRow {
    let Accounts { store, app, .. } = accounts;
    let mut wrong = twice(store.events.iter().map(|(id, _)| id.clone()), "is stored");
    wrong.extend(twice(store.announced.iter().map(|id| fact_of(id)), "was announced"));
    wrong.extend(app.doubled.iter().cloned());
    let says = format!(
        "{}\nstored, announced or delivered twice, under two different message ids",
        number(wrong.len())
    );
    line(Group::SideBySide, "doubled", says, wrong)
}

fn twice(ids: impl Iterator<Item = String>, what: &str) -> Vec<String> {
    let mut times = BTreeMap::<_, u32>::new();
    ids.for_each(|id| *times.entry(id).or_default() += 1);
    let more = times.into_iter().filter(|(_, times)| *times > 1);
    more.map(|(id, times)| format!("{id} {what} {times} times")).collect()
}

fn forged(accounts: &Accounts) -> ProofRow {
    let Accounts { sender, store, app, .. } = accounts;
    let mut wrong = Vec::new();
    if sender.forged_accepted > 0 {
        wrong.push(format!("{} were answered 2xx", thousands(sender.forged_accepted)));
    }
    let foreign = store.events.iter().map(|(id, _)| id).filter(|id| !sender.events.contains(*id));
    wrong.extend(foreign.map(|id| format!("{id} is stored, and Stripe never sent it")));
    let known: BTreeSet<_> = store.announced.iter().chain(&sender.events).collect();
    let invented = app.effects.iter().filter(|(id, _)| !known.contains(id));
    wrong.extend(invented.map(|(id, path)| format!("{id} was delivered to {path}, and nobody knows it")));
    let unanswered = sender.forged.saturating_sub(sender.forged_refused + sender.forged_accepted);
    let mut says = format!(
        "{} of {} accepted\nwrong signatures, stale timestamps, changed bodies, garbage",
        thousands(sender.forged_accepted),
        thousands(sender.forged)
    );
    if unanswered > 0 {
        says += &format!("; {} found the server dead", thousands(unanswered));
    }
    line(Group::SideBySide, "forgeries", says, wrong)
}

fn payments(accounts: &Accounts) -> ProofRow {
    let found: BTreeMap<_, &DemoPayment> = accounts
        .store
        .payments
        .iter()
        .flat_map(|payment| payment.intents.iter().map(move |intent| (intent, payment)))
        .collect();
    let mut wrong = Vec::new();
    let mut counts = BTreeMap::<&str, usize>::new();
    for sale in &accounts.sender.sales {
        let status = status_of(sale);
        let Some(payment) = found.get(&sale.intent) else {
            wrong.push(format!("{} is no payment", sale.intent));
            continue;
        };
        let is = (payment.status.as_str(), payment.received, payment.refunded);
        if is == (status, sale.charged, sale.refunded) {
            *counts.entry(status).or_default() += 1;
        } else {
            wrong.push(format!("{} is {is:?}, and should be {status} by its sale", sale.intent));
        }
    }
    let (sales, orders) = (accounts.sender.sales.len(), accounts.sender.orders);
    let payments = accounts.store.payments.len();
    if payments != sales + orders {
        let (payments, sales, orders) = (number(payments), number(sales), number(orders));
        wrong.push(format!("{payments} payments of {sales} sales and {orders} orders"));
    }
    let counted = STATUSES.iter().filter_map(|status| Some((status, counts.get(status)?)));
    let counted: Vec<_> =
        counted.map(|(status, count)| format!("{} {}", number(*count), status.replace('_', " "))).collect();
    let says = format!(
        "{} of the shop, as each sale ended, and {} for places\n{}",
        number(sales),
        number(orders),
        counted.join(", ")
    );
    line(Group::SideBySide, "payments", says, wrong)
}

/// One line for each currency that either knows.
fn money(accounts: &Accounts) -> Vec<ProofRow> {
    let Accounts { sender, store, .. } = accounts;
    let currencies: BTreeSet<_> = sender.money.keys().chain(store.money.keys()).collect();
    let each = currencies.into_iter().map(|currency| {
        let moved = sender.money.get(currency).copied().unwrap_or_default();
        let booked = store.money.get(currency).copied().unwrap_or_default();
        let text = |amount| amount_text(amount, currency);
        let Money { charged, refunded, disputed } = moved;
        let says = format!(
            "{} at Stripe = {} in the books\n{} charged − {} refunded − {} lost to disputes",
            text(moved.left()),
            text(booked),
            text(charged),
            text(refunded),
            text(disputed)
        );
        let wrong = (moved.left() != booked).then(|| format!("{} differ", text(booked - moved.left())));
        line(Group::SideBySide, &format!("money, {currency}"), says, wrong.into_iter().collect())
    });
    each.collect()
}

fn amount_text(amount: i64, currency: &str) -> String {
    let text = match Currency::parse(currency) {
        Some(currency) => format_decimal(amount.abs(), currency),
        None => amount.abs().to_string(),
    };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if amount < 0 { "−" } else { "" };
    format!("{sign}{}{rest}", thousands(whole.parse().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
