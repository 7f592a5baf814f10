//! From what events say to what is written. Inputs are taken in one by one; those that touched the same things are written
//! together; and what must follow is a function of the facts alone, so the path by which they came does not matter.
//!
//! Pure and total: what can't be decided is an answer, and the same inputs give the same bytes.

mod board;
mod finish;
mod orders;
mod partition;
mod row;
#[cfg(test)]
mod tests;
mod together;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::follow::{DEFAULT_POLICY, OrderPart, OrderPolicy};
use super::reading::Reading;
use super::{CheckoutCall, Fetch, RefundCall, billing, payment};
use crate::announcement::Announcement;
use crate::audit::{self, Entry, Role};
use crate::change::ChangeSet;
use crate::event::{About, Stored};
use crate::id::Seq;
use crate::job::{NewJob, Timer};
use crate::slot::Full;
use crate::state::{Index, Key, Kind, Loaded, Naming, Posting, Wanted, Write};
use crate::time::Time;
use board::{Board, KnownThings, Taken};
use finish::Steps;
use orders::Orders;

pub use row::{parts, unite};

/// Something to be taken in: an event, or what somebody says through the API.
#[derive(Clone, Debug)]
pub struct Input {
    /// A thing that is found by it gets its id from this.
    pub seq: Seq,
    pub reading: Reading,
    pub cause: Cause,
}

/// Why something changes, for the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// `None` is the system itself.
    pub actor: Option<String>,
    pub role: Option<String>,
    pub event: Option<Seq>,
    pub details: BTreeMap<&'static str, String>,
}

impl Cause {
    /// Found out here, by no event.
    pub fn system() -> Self {
        Self { role: Role::System.of_entry(), ..Self::default() }
    }

    pub fn of(event: &Stored) -> Self {
        let details = [
            ("event_id", event.event_id.clone()),
            ("event_type", event.event_type.clone()),
            ("source", event.source.to_string()),
            (audit::SEALED, audit::seal(&event.body)),
        ];
        Self { actor: None, role: Role::System.of_entry(), event: Some(event.seq), details: details.into() }
    }
}

/// What a group of inputs changes; one transaction.
#[derive(Debug, Default, PartialEq)]
pub struct Change {
    /// Places in the list that was given.
    pub inputs: Vec<usize>,
    /// What each of them turned out to be about, in the same order.
    pub about: Vec<About>,
    pub writes: Vec<Write>,
    pub names: Vec<Naming>,
    pub postings: Vec<Posting>,
    pub audit: Vec<Entry>,
    pub announcements: Vec<Announcement>,
    pub fetches: Vec<Fetch>,
    pub refunds: Vec<RefundCall>,
    pub checkouts: Vec<CheckoutCall>,
    pub deadlines: Vec<OrderDeadline>,
    /// The inputs that asked for more places than are free, and so add nothing.
    pub declined: Vec<(usize, Full)>,
    /// Why it can't be decided; then nothing else is set.
    pub refused: Option<String>,
}

impl Change {
    /// What is to be written, with an id for every event and every job that it asks for. Ends are the caller's.
    pub fn into_set(self, at: Time, mut next_seq: impl FnMut() -> Seq) -> ChangeSet {
        let events: Vec<_> = self.announcements.into_iter().map(|told| told.arrival(next_seq())).collect();
        let mut jobs: Vec<_> = self.fetches.iter().map(|fetch| fetch.job(next_seq(), at)).collect();
        // A refund is about the announcement of its order, and by that about its payment.
        let ordered = |call: &RefundCall| {
            let key = payment::refund_ordered(&call.order);
            events.iter().find(|event| event.event_id.ends_with(&key)).map(|event| event.seq)
        };
        jobs.extend(
            self.refunds.iter().map(|call| NewJob { event: ordered(call), ..call.job(next_seq(), at) }),
        );
        jobs.extend(self.checkouts.iter().map(|call| call.job(next_seq(), at)));
        jobs.extend(self.deadlines.into_iter().map(|deadline| deadline.job(next_seq())));
        ChangeSet {
            jobs,
            writes: self.writes,
            names: self.names,
            postings: self.postings,
            audit: self.audit,
            events,
            ..ChangeSet::nothing(at)
        }
    }
}

/// What must be loaded first. [`decide`] may want more: what that leads to.
pub fn names(inputs: &[Input]) -> Wanted {
    let mut wanted = Wanted::default();
    for input in inputs {
        if let Some(part) = &input.reading.billing {
            name(part, &mut wanted.names);
        }
        if let Some(part) = &input.reading.payment {
            name(part, &mut wanted.names);
            wanted.names.extend(billed(part).map(|name| billing::BillingFacts::full(&name)));
        }
    }
    wanted
}

fn name<F: Aggregate>(facts: &F, names: &mut BTreeSet<String>) {
    names.extend(facts.names().iter().map(|name| F::full(name)));
    let others = facts.claims().into_iter().chain(facts.seeks()).chain(facts.aliases());
    names.extend(others.map(|name| F::full(&name)));
}

/// Names of the invoices that a payment pays, while nothing else says whose it is.
fn billed(facts: &payment::Facts) -> impl Iterator<Item = String> {
    let realm = facts.realms.first().filter(|_| facts.tenants.is_empty());
    facts.invoices.iter().filter_map(move |invoice| Some(format!("{}/{invoice}", realm?)))
}

/// What a decision depends on besides what is known.
#[derive(Clone, Copy)]
pub struct Terms<'t> {
    pub at: Time,
    /// How long access goes on after what was paid for has ended.
    pub grace_ms: i64,
    /// Of which realms objects can be read.
    pub can_fetch: &'t dyn Fn(&str) -> bool,
    pub orders: &'t OrderPolicy,
    /// Whether what hangs on payments is looked at, too; not when somebody only compares.
    pub follows: bool,
}

/// When the clock may next change something of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderDeadline {
    /// What locks the order.
    pub anchor: Key,
    pub at: Time,
}

impl OrderDeadline {
    fn job(self, id: Seq) -> NewJob {
        let Key { kind, id: of } = self.anchor;
        Timer::Deadline { kind: kind.name().to_owned(), id: of }.job(id, self.at)
    }
}

impl<'t> Terms<'t> {
    /// The same, of orders that are decided by this.
    pub fn of(at: Time, orders: &'t OrderPolicy) -> Self {
        Self { orders, ..Terms::at(at) }
    }
}

impl Terms<'static> {
    /// The default grace, and nothing is asked of a provider.
    pub fn at(at: Time) -> Self {
        Self { at, grace_ms: billing::GRACE, can_fetch: &|_| false, orders: &DEFAULT_POLICY, follows: true }
    }
}

/// Decides what the inputs change, one change for all that touched the same things. `asked` is what was asked for when
/// `loaded` was loaded; what more must be known is the other answer.
pub fn decide(
    inputs: &[Input],
    asked: &Wanted,
    loaded: &Loaded,
    terms: &Terms<'_>,
) -> Result<Vec<Change>, Wanted> {
    let known = KnownThings { asked, loaded };
    let mut batch = Batch {
        billings: Board::new(known),
        payments: Board::new(known),
        orders: Orders::new(known),
        steps: Steps::new(inputs),
    };
    for (n, input) in inputs.iter().enumerate() {
        if let Err(refused) = batch.take_in(n, input, terms) {
            batch.steps.refuse(n, refused);
        }
    }
    if terms.follows {
        batch.follow(terms);
    }
    let Batch { billings, payments, orders, mut steps } = batch;
    let mut wanted = billings.wanted.clone();
    wanted.extend(payments.wanted.clone());
    wanted.extend(orders.wanted.clone());
    if !wanted.is_empty() {
        return Err(wanted);
    }
    steps.finish(billings, terms);
    steps.finish(payments, terms);
    orders.finish(&mut steps, terms);
    Ok(steps.into_changes())
}

/// Everything a batch works on.
struct Batch<'l, 'i> {
    billings: Board<'l, billing::BillingFacts>,
    payments: Board<'l, payment::Facts>,
    orders: Orders<'l>,
    steps: Steps<'i>,
}

impl Batch<'_, '_> {
    fn take_in(&mut self, n: usize, input: &Input, terms: &Terms<'_>) -> Result<(), String> {
        let at = terms.at;
        if let Some(hold) = input.reading.hold()
            && let Err(full) = self.orders.hold(n, hold, terms)?
        {
            self.steps.decline(n, full);
            return Ok(());
        }
        for part in &input.reading.order {
            if let OrderPart::Probe(probe) = part
                && let Err(full) = self.orders.probe(n, probe, terms)?
            {
                self.steps.decline(n, full);
            }
        }
        if let Some(renewal) = input.reading.renewal()
            && let Err(full) = self.orders.renew(n, renewal, terms)?
        {
            self.steps.decline(n, full);
            return Ok(());
        }
        let mut paid: BTreeSet<String> = BTreeSet::new();
        if let Some(part) = &input.reading.billing {
            let taken = self.billings.take_in(part, input.seq)?;
            paid = self.paid_anew(&taken);
            self.steps.note(n, &mut self.billings, &taken, at);
        }
        if let Some(part) = &input.reading.payment {
            let taken = self.payments.take_in(part, input.seq)?;
            self.steps.note(n, &mut self.payments, &taken, at);
            self.touch_orders(n, &taken);
            paid.extend(part.names.first().cloned());
        }
        self.take_parts(n, &input.reading.order, terms)?;
        for name in paid {
            self.bill(n, &name, at)?;
        }
        Ok(())
    }

    /// The payments that must be told whose they are, because billing has changed hands.
    fn paid_anew(&mut self, taken: &Taken) -> BTreeSet<String> {
        let has_moved = taken.is_new || !taken.merged.is_empty() || !taken.parted.is_empty();
        let mut paid = BTreeSet::new();
        for id in &taken.touched {
            let row = self.billings.rows.get_mut(id).expect("touched rows are there");
            let facts = row.facts();
            let tenant = facts.tenants.first().cloned();
            let is_moved = has_moved || tenant != row.billed_to;
            if is_moved {
                paid.extend(facts.paid_by());
                row.billed_to = tenant;
            }
        }
        paid
    }

    /// Whose a payment is that pays an invoice, is what the invoice's billing says, as it stands now.
    fn bill(&mut self, n: usize, name: &str, at: Time) -> Result<(), String> {
        let Some(id) = self.payments.leads_to(name)? else { return Ok(()) };
        let row = &self.payments.rows[&id];
        let Some(cluster) = row.clusters.iter().find(|one| one.names.contains(name)) else { return Ok(()) };
        let invoices: Vec<String> = billed(cluster).collect();
        let mut tenant = None;
        for invoice in &invoices {
            if let Some(id) = self.billings.leads_to(invoice)? {
                tenant = tenant.or(self.billings.rows[&id].facts().tenants.first().cloned());
            }
        }
        if cluster.billed_to == tenant {
            return Ok(());
        }
        if let Some(taken) = self.payments.change(name, |facts| facts.billed_to = tenant)? {
            self.steps.note(n, &mut self.payments, &taken, at);
        }
        Ok(())
    }
}

/// A kind of thing that events speak of, made of clusters of what belongs together.
pub trait Aggregate: Clone + Default + PartialEq + Serialize + DeserializeOwned {
    const KIND: Kind;
    /// What its ids begin with.
    const TAG: &'static str;
    /// What its names begin with: two kinds may know an object by the same name.
    const NAMES: &'static str;

    fn join(&mut self, other: &Self);
    /// The provider's ids and ours: who has one of them is the same cluster.
    fn names(&self) -> &BTreeSet<String>;
    fn names_mut(&mut self) -> &mut BTreeSet<String>;
    fn merged_into(&mut self) -> &mut Option<String>;
    /// Its parts, if they are several.
    fn clusters_mut(&mut self) -> &mut Vec<Self>;
    /// The id it has when it stands alone.
    fn born(&self) -> Option<&str>;
    fn set_born(&mut self, id: String);
    fn livemode(&self) -> Option<bool>;
    fn take_mode(&mut self, livemode: bool);
    fn tenant(&self) -> Option<&str>;
    /// What it stands for, of which two never become one: an order of the app's, or a tenant.
    fn owner(&self) -> Option<&str>;
    /// Whether the app posted it.
    fn is_posted(&self) -> bool;
    /// What it is called inside its tenant: who claims the same is the same thing.
    fn claims(&self) -> Vec<String>;
    /// What it is called where something that was posted may take it in.
    fn seeks(&self) -> Vec<String>;
    /// Whether this was posted under that name, and takes the other in.
    fn answers(&self, name: &str, other: &Self) -> bool;
    /// Whether this was posted under that name for no tenant.
    fn is_sought(&self, name: &str) -> bool;
    fn sought_by(&mut self, tenant: String);
    /// What anybody may look for it by.
    fn aliases(&self) -> Vec<String>;
    /// Others that have an alias of its own, too.
    fn namesakes(&self) -> &BTreeSet<String>;
    fn add_namesake(&mut self, id: &str);
    /// Remembers another that it must not be merged with.
    fn conflict_with(&mut self, other: String);
    /// Forgets what it could also have belonged to, before that is worked out anew.
    fn forget_conflicts(&mut self);
    /// Whether anything was told of it that counts on where it belongs.
    fn was_announced(&self) -> bool;
    /// Remembers that something left it for another.
    fn lose(&mut self, to: &str);
    /// What follows from the facts.
    fn derivation(&self) -> Derivation;
    /// What it asks for.
    fn ask(&self, id: &str, terms: &Terms<'_>) -> Asked<Self::Mark>;
    /// What remembers that something was asked for.
    type Mark: Clone;
    fn mark(&mut self, mark: Self::Mark);
    /// Whether such a thing is about an object of this very cluster.
    fn is_about(&self, mark: &Self::Mark) -> bool;
    /// What its announcements are called after.
    fn anchor(&self) -> String;

    fn full(name: &str) -> String {
        format!("{}{name}", Self::NAMES)
    }
}

/// What a thing asks for.
#[derive(Default)]
pub struct Asked<M> {
    pub announcements: Vec<Announcement>,
    pub fetches: Vec<Fetch>,
    pub refunds: Vec<RefundCall>,
    pub checkouts: Vec<CheckoutCall>,
    pub marks: Vec<M>,
}

/// What follows from the facts of a thing.
#[derive(Clone)]
pub struct Derivation {
    /// What is kept beside the facts.
    pub index: Index,
    /// What a person sees of it, in a few words: status and amounts.
    pub summary: Value,
    /// What the books say of it.
    pub lines: payment::Lines,
}
