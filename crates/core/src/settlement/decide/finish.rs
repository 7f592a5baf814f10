//! From what became of each thing to what is written: entries of the audit log while inputs are taken in, and at the end
//! writes, names, lines of the books and what must follow. Inputs that touched the same thing are one change.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::board::{Board, Taken};
use super::row::Row;
use super::{Aggregate, Asked, Cause, Change, Derivation, Fetch, Input, OrderDeadline, Terms, payment};
use crate::announcement::Announcement;
use crate::audit::Entry;
use crate::event::About;
use crate::slot::Full;
use crate::state::{Index, Key, Kind, MERGED, Naming, Posting, Write};
use crate::time::Time;

pub struct Steps<'i> {
    inputs: &'i [Input],
    ties: Ties,
    /// The first input that touched a thing.
    first: BTreeMap<Key, usize>,
    /// The last that changed it.
    last: BTreeMap<Key, usize>,
    /// What each input turned out to be about.
    about: Vec<Vec<Key>>,
    refused: BTreeMap<usize, String>,
    /// What is written though it has not changed, because it locks what has.
    forced: BTreeSet<Key>,
    /// By the input that they belong to.
    parts: Vec<Change>,
}

/// What an order waits for.
pub enum NextStep {
    Deadline(OrderDeadline),
    /// The provider's answer.
    Fetch(Fetch),
}

impl<'i> Steps<'i> {
    pub fn new(inputs: &'i [Input]) -> Self {
        Self {
            inputs,
            ties: Ties::new(inputs.len()),
            first: BTreeMap::new(),
            last: BTreeMap::new(),
            about: vec![Vec::new(); inputs.len()],
            refused: BTreeMap::new(),
            forced: BTreeSet::new(),
            parts: inputs.iter().map(|_| Change::default()).collect(),
        }
    }

    pub fn input(&self, n: usize) -> &'i Input {
        &self.inputs[n]
    }

    pub fn refuse(&mut self, n: usize, refused: String) {
        self.refused.insert(n, refused);
    }

    /// Too few places were free for an input: it adds nothing.
    pub fn decline(&mut self, n: usize, full: Full) {
        self.parts[n].declined.push((n, full));
    }

    /// Has something written whether or not it has changed.
    pub fn force(&mut self, n: usize, key: Key) {
        let first = *self.first.entry(key.clone()).or_insert(n);
        self.ties.tie(n, first);
        self.forced.insert(key);
    }

    /// Writes what several inputs looked at: they are one change.
    pub fn write_register(&mut self, n: usize, write: Write, users: impl Iterator<Item = usize>) {
        users.for_each(|user| self.ties.tie(n, user));
        self.parts[n].writes.push(write);
    }

    pub fn plan(&mut self, n: usize, next: NextStep) {
        match next {
            NextStep::Deadline(deadline) => self.parts[n].deadlines.push(deadline),
            NextStep::Fetch(fetch) => self.parts[n].fetches.push(fetch),
        }
    }

    /// An entry that is caused by an input.
    pub fn audit(&mut self, n: usize, entry: Entry) {
        let cause = &self.inputs[n].cause;
        let mut details: BTreeMap<&str, Value> =
            cause.details.iter().map(|(name, text)| (*name, Value::from(text.as_str()))).collect();
        let own: BTreeMap<String, Value> = serde_json::from_str(&entry.details).unwrap_or_default();
        details.extend(own.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let details = serde_json::to_string(&details).expect("texts and numbers serialise");
        let (actor, role) = (cause.actor.clone(), cause.role.clone());
        self.parts[n].audit.push(Entry { actor, role, event: cause.event, details, ..entry });
    }

    pub fn announce(&mut self, n: usize, told: Announcement) {
        let entry = Entry {
            at: told.at,
            actor: None,
            role: None,
            action: told.event_type.clone(),
            target: (told.object.0.to_owned(), told.object.1.clone()),
            tenant: told.tenant.clone(),
            event: None,
            details: serde_json::json!({ "id": told.id, "about": told.about }).to_string(),
        };
        self.audit(n, entry);
        self.parts[n].announcements.push(told);
    }

    /// What taking in an input did to one kind of things.
    pub fn note<F: Aggregate>(&mut self, n: usize, board: &mut Board<'_, F>, taken: &Taken, at: Time) {
        let key = |id: &String| Key::new(F::KIND, id);
        for id in &taken.touched {
            let first = *self.first.entry(key(id)).or_insert(n);
            self.ties.tie(n, first);
        }
        self.about[n].push(key(&taken.id));
        if !taken.is_changed {
            return;
        }
        let cause = &self.inputs[n].cause;
        for id in taken.touched.iter().filter(|id| board.rows[*id].is_changed()) {
            self.last.insert(key(id), n);
        }
        for (from, to) in &taken.parted {
            let row = board.rows.get_mut(from).expect("touched rows are there");
            let derivation = row.derivation();
            let details = Details { moved: Some(to), ..Details::after(derivation) };
            self.parts[n].audit.push(entry(&key(from), "parted", cause, derivation, &details, at));
        }
        let row = board.rows.get_mut(&taken.id).expect("touched rows are there");
        let summary = row.derivation().summary.clone();
        let before = row.seen.replace(summary);
        let derivation = row.derivation();
        if !taken.merged.is_empty() {
            let details = Details { merged: &taken.merged, ..Details::after(derivation) };
            self.parts[n].audit.push(entry(&key(&taken.id), "merged", cause, derivation, &details, at));
        }
        let action = if taken.is_new && before.is_none() { "found" } else { "changed" };
        let before = before.unwrap_or_else(|| F::default().derivation().summary);
        let details = Details { before: Some(&before), ..Details::after(derivation) };
        self.parts[n].audit.push(entry(&key(&taken.id), action, cause, derivation, &details, at));
    }

    /// What one kind of things asks for, and what is written of it.
    pub fn finish<F: Aggregate>(&mut self, mut board: Board<'_, F>, terms: &Terms<'_>) {
        let mut written: BTreeSet<String> = BTreeSet::new();
        for (name, id, was) in board.moved() {
            let key = Key::new(F::KIND, id);
            let n = self.first[&key];
            let was = was.map(|was| Key::new(F::KIND, was));
            if let Some(was) = &was {
                // Its version guards the move.
                written.insert(was.id.clone());
                self.ties.tie(n, *self.first.entry(was.clone()).or_insert(n));
            }
            self.parts[n].names.push(Naming { name: F::full(name), key, was });
        }
        for (id, row) in &mut board.rows {
            let key = Key::new(F::KIND, id);
            let is_locked = row.into.is_none() && self.forced.contains(&key);
            if row.is_changed() || row.is_merged_now() || written.contains(id) || is_locked {
                let n = self.last.get(&key).or_else(|| self.first.get(&key)).copied();
                self.write(n.expect("what is written was touched"), &key, row, terms);
            }
        }
        for n in 0..self.about.len() {
            for key in self.about[n].clone().iter().filter(|key| key.kind == F::KIND) {
                let Some(id) = board.standing_now(&key.id) else { continue };
                let tenant = board.rows.get_mut(&id).and_then(|row| row.derivation().index.tenant.clone());
                let about = &mut self.parts[n].about;
                if about.is_empty() {
                    about.push(About::default());
                }
                note(&mut about[0], &Key::new(F::KIND, id), tenant);
            }
        }
    }

    fn write<F: Aggregate>(&mut self, n: usize, key: &Key, row: &mut Row<F>, terms: &Terms<'_>) {
        // What is written only as a lock was not touched: without what it was, its money would be booked anew.
        if row.derivation_before.is_none() {
            row.touch();
        }
        let version = row.state.as_ref().map_or(0, |state| state.version);
        let part = &mut self.parts[n];
        if let Some(into) = &row.into {
            part.postings.extend(postings(&key.id, row.derivation_before.as_ref(), None));
            let mut stone = F::default();
            *stone.merged_into() = Some(into.clone());
            let index = Index { status: Some(MERGED.into()), ..Index::default() };
            return part.writes.push(write(key, version, &stone, index));
        }
        let cause = &self.inputs[n].cause;
        let derivation = row.derivation().clone();
        // Invariant: asking adds only that it was asked, so the derivation stays what it is.
        let Asked { announcements, fetches, refunds, checkouts, marks } = row.facts().ask(&key.id, terms);
        for told in &announcements {
            let details = Details { id: Some(&told.id), ..Details::after(&derivation) };
            let entry = entry(key, &told.event_type, cause, &derivation, &details, terms.at);
            part.audit.push(Entry { action: told.event_type.clone(), ..entry });
        }
        for mark in marks {
            let place = row.place_of(&mark);
            row.clusters[place].mark(mark);
        }
        part.announcements.extend(announcements);
        part.fetches.extend(fetches);
        part.refunds.extend(refunds);
        part.checkouts.extend(checkouts);
        part.postings.extend(postings(&key.id, row.derivation_before.as_ref(), Some(&derivation)));
        part.writes.push(write(key, version, &*row.kept(), derivation.index));
    }

    pub fn into_changes(mut self) -> Vec<Change> {
        let mut groups: BTreeMap<usize, Change> = BTreeMap::new();
        for (n, part) in self.parts.into_iter().enumerate() {
            let change = groups.entry(self.ties.root(n)).or_default();
            change.inputs.push(n);
            change.about.push(part.about.into_iter().next().unwrap_or_default());
            change.writes.extend(part.writes);
            change.names.extend(part.names);
            change.postings.extend(part.postings);
            change.audit.extend(part.audit);
            change.announcements.extend(part.announcements);
            change.fetches.extend(part.fetches);
            change.refunds.extend(part.refunds);
            change.checkouts.extend(part.checkouts);
            change.deadlines.extend(part.deadlines);
            change.declined.extend(part.declined);
            change.refused = change.refused.take().or_else(|| self.refused.remove(&n));
        }
        let clear = |change: Change| match change.refused {
            None => change,
            refused => Change { inputs: change.inputs, refused, ..Change::default() },
        };
        groups.into_values().map(clear).collect()
    }
}

fn note(about: &mut About, key: &Key, tenant: Option<String>) {
    about.tenant = about.tenant.take().or(tenant);
    match key.kind {
        Kind::Payment => about.payment = Some(key.id.clone()),
        Kind::Billing => about.billing = Some(key.id.clone()),
        Kind::Tenant
        | Kind::Customer
        | Kind::Staff
        | Kind::Subject
        | Kind::Notice
        | Kind::Suppression
        | Kind::Quota
        | Kind::ApiKey
        | Kind::User
        | Kind::Invite
        | Kind::Request
        | Kind::Breaker
        | Kind::Reconciliation
        | Kind::Slot
        | Kind::SlotBlock
        | Kind::Reservation
        | Kind::Fulfilment
        | Kind::Case
        | Kind::Compensation
        | Kind::Inquiry
        | Kind::HouseKey
        | Kind::Installation
        | Kind::Meter
        | Kind::Alert => {}
    }
}

fn write<F: Aggregate>(key: &Key, version: i64, facts: &F, index: Index) -> Write {
    let facts = serde_json::to_string(facts).expect("texts and numbers serialise");
    Write { key: key.clone(), version, facts, index }
}

/// What an entry says besides its cause.
#[derive(Serialize)]
struct Details<'d> {
    /// Of an announcement.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<&'d str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    merged: &'d [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'d Value>,
    after: &'d Value,
}

impl<'d> Details<'d> {
    fn after(derivation: &'d Derivation) -> Self {
        Self { id: None, moved: None, merged: &[], before: None, after: &derivation.summary }
    }
}

fn entry(
    key: &Key,
    action: &str,
    cause: &Cause,
    derivation: &Derivation,
    details: &Details<'_>,
    at: Time,
) -> Entry {
    #[derive(Serialize)]
    struct All<'d> {
        #[serde(flatten)]
        cause: &'d BTreeMap<&'static str, String>,
        #[serde(flatten)]
        details: &'d Details<'d>,
    }
    let all = All { cause: &cause.details, details };
    Entry {
        at,
        actor: cause.actor.clone(),
        role: cause.role.clone(),
        action: format!("{}.{action}", key.kind.name()),
        target: (key.kind.name().to_owned(), key.id.clone()),
        tenant: derivation.index.tenant.clone(),
        event: cause.event,
        details: serde_json::to_string(&all).expect("texts and numbers serialise"),
    }
}

/// What the books need so that they say what the facts say now. A mode that became known later moves all of it there.
fn postings(id: &str, before: Option<&Derivation>, after: Option<&Derivation>) -> Vec<Posting> {
    let mut lines: BTreeMap<(&payment::BookLine, Option<bool>), i64> = BTreeMap::new();
    for (derivation, sign) in
        before.map(|derivation| (derivation, -1)).into_iter().chain(after.map(|derivation| (derivation, 1)))
    {
        for (line, amount) in &derivation.lines {
            *lines.entry((line, derivation.index.livemode)).or_default() += sign * amount;
        }
    }
    let changed = lines.into_iter().filter(|(_, amount)| *amount != 0);
    let line = |((line, livemode), amount): ((&payment::BookLine, Option<bool>), i64)| Posting {
        account: line.account.clone(),
        currency: line.currency.into(),
        livemode,
        amount,
        payment: id.to_owned(),
        cause: line.cause.clone(),
    };
    changed.map(line).collect()
}

/// Which inputs belong together: a forest in which every tree is a group.
struct Ties(Vec<usize>);

impl Ties {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&mut self, mut n: usize) -> usize {
        while self.0[n] != n {
            self.0[n] = self.0[self.0[n]];
            n = self.0[n];
        }
        n
    }

    fn tie(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }
}
