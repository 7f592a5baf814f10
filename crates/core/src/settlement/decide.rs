//! From what events say to what is written. Inputs that speak of the same thing form a group; things that turn out to be
//! one are merged; and what must follow is a function of the facts alone, so the path by which they came does not matter.
//!
//! Pure and total: what can't be decided is an answer, and the same inputs give the same bytes.

mod lead;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::reading::{Part, Reading};
use super::{Announcement, Fetch, billing, payment};
use crate::audit::{self, Entry, Role};
use crate::change::{About, ChangeSet};
use crate::event::Stored;
use crate::id::Seq;
use crate::state::{Index, Key, Kind, Loaded, MERGED, Naming, Posting, Write};
use crate::time::Time;
use lead::{Lead, Owners};

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
    /// Why it can't be decided; then nothing else is set.
    pub refused: Option<String>,
}

impl Change {
    /// What is to be written, with an id for every event that it makes. Jobs and ends are the caller's.
    pub fn into_set(self, at: Time, mut next_seq: impl FnMut() -> Seq) -> ChangeSet {
        ChangeSet {
            writes: self.writes,
            names: self.names,
            postings: self.postings,
            audit: self.audit,
            events: self.announcements.into_iter().map(|told| told.arrival(next_seq())).collect(),
            ..ChangeSet::nothing(at)
        }
    }
}

/// What must be loaded before [`decide`] can be asked.
pub fn names(inputs: &[Input]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for input in inputs {
        if let Some(part) = &input.reading.payment {
            names.extend(part.names.iter().map(|name| payment::Facts::full(name)));
        }
        if let Some(part) = &input.reading.billing {
            names.extend(part.names.iter().map(|name| billing::Facts::full(name)));
        }
    }
    names
}

/// Groups the inputs and decides what each group changes. `can_fetch` says of which realms objects can be read.
pub fn decide(inputs: &[Input], loaded: &Loaded, can_fetch: &dyn Fn(&str) -> bool, at: Time) -> Vec<Change> {
    let mut ties = Ties::new(inputs.len());
    let payments: Found<payment::Facts> =
        Found::of(inputs, |reading| reading.payment.as_ref(), loaded, &mut ties);
    let billings: Found<billing::Facts> =
        Found::of(inputs, |reading| reading.billing.as_ref(), loaded, &mut ties);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for n in 0..inputs.len() {
        groups.entry(ties.root(n)).or_default().push(n);
    }
    let change = |members: Vec<usize>| {
        let mut change = Change { about: vec![About::default(); members.len()], ..Change::default() };
        change.inputs.clone_from(&members);
        let done = payments
            .change(inputs, &members, loaded, can_fetch, at, &mut change)
            .and_then(|()| billings.change(inputs, &members, loaded, can_fetch, at, &mut change));
        match done {
            Ok(()) => change,
            Err(refused) => Change { inputs: members, refused: Some(refused), ..Change::default() },
        }
    };
    groups.into_values().map(change).collect()
}

/// A kind of thing that events speak of.
pub(super) trait Thing: Clone + Default + PartialEq + Serialize + DeserializeOwned {
    const KIND: Kind;
    /// What its ids begin with.
    const TAG: &'static str;
    /// What its names begin with: two kinds may know an object by the same name.
    const NAMES: &'static str;

    fn join(&mut self, other: &Self);
    fn names(&self) -> &BTreeSet<String>;
    fn names_mut(&mut self) -> &mut BTreeSet<String>;
    fn merged_into(&mut self) -> &mut Option<String>;
    fn livemode(&self) -> Option<bool>;
    /// Made by the app itself, so its id is known outside.
    fn is_ours(&self) -> bool;
    fn tenants(&self) -> &BTreeSet<String>;
    /// A name that things of different tenants may share without being one.
    fn is_loose(part: &Part<Self>, name: &str) -> bool;
    /// Remembers another that it must not be merged with.
    fn conflict_with(&mut self, other: String);
    /// What follows from the facts.
    fn look(&self) -> Look;
    /// What it asks for; noted as asked for.
    fn ask(
        &mut self,
        id: &str,
        can_fetch: &dyn Fn(&str) -> bool,
        at: Time,
    ) -> (Vec<Announcement>, Vec<Fetch>);
    fn full(name: &str) -> String {
        format!("{}{name}", Self::NAMES)
    }
}

/// What follows from the facts of a thing.
#[derive(Clone)]
pub(super) struct Look {
    /// What is kept beside the facts.
    pub index: Index,
    /// What a person sees of it, in a few words: status and amounts.
    pub summary: Value,
    /// What the books say of it.
    pub lines: payment::Lines,
}

/// Where the parts of inputs lead, for one kind of thing.
struct Found<'i, F> {
    /// By the place of the input.
    parts: BTreeMap<usize, Lead<'i, F>>,
}

impl<'i, F: Thing> Found<'i, F> {
    fn of(
        inputs: &'i [Input],
        part: fn(&'i Reading) -> Option<&'i Part<F>>,
        loaded: &Loaded,
        ties: &mut Ties,
    ) -> Self {
        let mut parts = BTreeMap::new();
        let mut first_of_name: BTreeMap<&str, usize> = BTreeMap::new();
        let mut first_of_key: BTreeMap<Key, usize> = BTreeMap::new();
        let mut owners = Owners::default();
        for (n, input) in inputs.iter().enumerate() {
            let Some(part) = part(&input.reading) else { continue };
            let lead = Lead::of(part, loaded, &mut owners);
            for name in &lead.names {
                ties.tie(n, *first_of_name.entry(name).or_insert(n));
            }
            for key in &lead.keys {
                ties.tie(n, *first_of_key.entry(key.clone()).or_insert(n));
            }
            parts.insert(n, lead);
        }
        Self { parts }
    }

    fn change(
        &self,
        inputs: &[Input],
        members: &[usize],
        loaded: &Loaded,
        can_fetch: &dyn Fn(&str) -> bool,
        at: Time,
        change: &mut Change,
    ) -> Result<(), String> {
        let own: Vec<usize> = members.iter().copied().filter(|n| self.parts.contains_key(n)).collect();
        let Some(first) = own.iter().map(|n| inputs[*n].seq).min() else { return Ok(()) };
        let found: BTreeSet<&Key> = own.iter().flat_map(|n| &self.parts[n].keys).collect();
        let befores = found.into_iter().map(|key| parse(loaded, key).map(|facts| (key, facts)));
        let mut befores: Vec<(&Key, F)> = befores.collect::<Result<_, _>>()?;
        befores.sort_by_key(|(key, facts)| (!facts.is_ours(), key.id.clone()));
        let key = match befores.first() {
            Some((key, _)) => (*key).clone(),
            None => Key::new(F::KIND, first.tagged(F::TAG)),
        };
        let mut facts = F::default();
        befores.iter().for_each(|(_, before)| facts.join(before));
        let looks: Vec<Look> = befores.iter().map(|(_, before)| before.look()).collect();
        let mut look = match &looks[..] {
            [only] => only.clone(),
            _ => facts.look(),
        };

        let cause = |n: &usize| &inputs[*n].cause;
        let last = own.last().map(cause).cloned().unwrap_or_default();
        if befores.len() > 1 {
            let others: Vec<_> = befores.iter().skip(1).map(|(key, _)| key.id.clone()).collect();
            let details = json!({ "merged": others, "after": look.summary });
            change.audit.push(entry(&key, "merged", &last, &look, details, at));
        }
        let is_new = befores.is_empty();
        for (place, n) in own.iter().enumerate() {
            let before = facts.clone();
            let lead = &self.parts[n];
            facts.join(&lead.part.facts);
            facts.names_mut().extend(lead.names.iter().map(|name| (*name).to_owned()));
            for name in lead.part.names.iter().filter(|name| !lead.names.contains(name.as_str())) {
                if !before.names().contains(name) {
                    facts.names_mut().remove(name);
                }
            }
            lead.conflicts.iter().for_each(|other| facts.conflict_with(other.clone()));
            if facts != before {
                let action = if is_new && place == 0 { "found" } else { "changed" };
                let after = facts.look();
                let details = json!({ "before": look.summary, "after": after.summary });
                look = after;
                change.audit.push(entry(&key, action, cause(n), &look, details, at));
            }
        }

        // Invariant: asking adds only that it was asked, so the look stays what it is.
        let (announcements, fetches) = facts.ask(&key.id, can_fetch, at);
        for told in &announcements {
            let details = json!({ "id": told.id, "after": look.summary });
            let entry = entry(&key, &told.event_type, &last, &look, details, at);
            change.audit.push(Entry { action: told.event_type.clone(), ..entry });
        }
        change.announcements.extend(announcements);
        change.fetches.extend(fetches);
        change.postings.extend(postings(&key.id, &looks, &look));
        for n in &own {
            let place = members.iter().position(|member| member == n).expect("its own are members");
            note(&mut change.about[place], &key, look.index.tenant.clone());
        }
        claim(&key, &befores, &facts, loaded, change);
        let mut befores = befores.into_iter();
        let before = befores.next();
        for (other, _) in befores {
            let mut stone = F::default();
            *stone.merged_into() = Some(key.id.clone());
            let index = Index { status: Some(MERGED.into()), ..Index::default() };
            change.writes.push(write(other, &stone, index, loaded));
        }
        if before.is_none_or(|(_, before)| before != facts) {
            change.writes.push(write(&key, &facts, look.index, loaded));
        }
        Ok(())
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
        | Kind::Breaker => {}
    }
}

/// Names that are new, and those of what was merged: they move along, also when nobody mentioned them today.
fn claim<F: Thing>(key: &Key, befores: &[(&Key, F)], facts: &F, loaded: &Loaded, change: &mut Change) {
    let mut owners: BTreeMap<&str, &Key> = BTreeMap::new();
    for (owner, before) in befores {
        owners.extend(before.names().iter().map(|name| (&**name, *owner)));
    }
    for name in facts.names() {
        let full = F::full(name);
        let was = loaded.names.get(&full).or_else(|| owners.get(&**name).copied());
        if was != Some(key) {
            change.names.push(Naming { name: full, key: key.clone(), was: was.cloned() });
        }
    }
}

fn parse<F: Thing>(loaded: &Loaded, key: &Key) -> Result<F, String> {
    let Some(state) = loaded.states.get(key) else { return Ok(F::default()) };
    let broken = |error| format!("what is kept of {} {} can't be read: {error}", key.kind.name(), key.id);
    serde_json::from_str(&state.facts).map_err(broken)
}

fn write<F: Thing>(key: &Key, facts: &F, index: Index, loaded: &Loaded) -> Write {
    let version = loaded.states.get(key).map_or(0, |state| state.version);
    let facts = serde_json::to_string(facts).expect("texts and numbers serialise");
    Write { key: key.clone(), version, facts, index }
}

fn entry(key: &Key, action: &str, cause: &Cause, look: &Look, details: Value, at: Time) -> Entry {
    let mut all = json!(cause.details);
    if let (Value::Object(all), Value::Object(details)) = (&mut all, details) {
        all.extend(details);
    }
    Entry {
        at,
        actor: cause.actor.clone(),
        role: cause.role.clone(),
        action: format!("{}.{action}", key.kind.name()),
        target: (key.kind.name().to_owned(), key.id.clone()),
        tenant: look.index.tenant.clone(),
        event: cause.event,
        details: all.to_string(),
    }
}

/// What the books need so that they say what the facts say now. A mode that became known later moves all of it there.
fn postings(id: &str, befores: &[Look], after: &Look) -> Vec<Posting> {
    let mut lines: BTreeMap<(payment::Line, Option<bool>), i64> = BTreeMap::new();
    let mut add = |look: &Look, sign: i64| {
        for (line, amount) in &look.lines {
            *lines.entry((line.clone(), look.index.livemode)).or_default() += sign * amount;
        }
    };
    befores.iter().for_each(|before| add(before, -1));
    add(after, 1);
    let changed = lines.into_iter().filter(|(_, amount)| *amount != 0);
    let line = |((line, livemode), amount): ((payment::Line, Option<bool>), i64)| Posting {
        account: line.account,
        currency: line.currency.into(),
        livemode,
        amount,
        payment: id.to_owned(),
        cause: line.cause,
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
