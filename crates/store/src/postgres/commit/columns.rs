//! What a commit is given, table by table: a column is one line here, and the statement follows.

use std::borrow::Cow;

use sekisho_core::audit::{BEGINNING, Entry};
use sekisho_core::change::{Arrival, ChangeSet, Ended};
use sekisho_core::job::{Attempt, DeadReason, End, NewJob, Outcome, Task};
use sekisho_core::state::{Naming, Posting, Write};
use sekisho_core::{Seq, Time};

use super::Placed;
use super::column::{Column, Columns, bigint, boolean, bytes, integer, own_bytes, own_text, text, unstored};
use crate::guard;
use crate::postgres::admit::is_text;
use crate::postgres::chain::storable;
use crate::postgres::upkeep::without_nul;

/// Something of a set, with the set and its place in the call.
struct Row<'s, T> {
    n: i64,
    set: &'s ChangeSet,
    it: T,
}

pub fn plain<'s>(part: &[Placed<'s>]) -> Columns<'s> {
    let mut columns = Columns::default();
    let leased: Vec<_> = part.iter().filter(|(_, set)| !set.ends.is_empty()).copied().collect();
    columns.add("sets", &sets(), &rows(&leased, |_| Some(())));
    columns.add("ends", &ends(), &rows(part, |set| &set.ends));
    columns.add("jobs", &jobs(), &rows(part, |set| &set.jobs));
    columns
}

/// All but the link, which comes after them.
pub fn whole<'s>(part: &[Placed<'s>]) -> Columns<'s> {
    let mut columns = plain(part);
    columns.add("writes", &writes(), &rows(part, |set| &set.writes));
    columns.add("names", &names(), &rows(part, guard::namings));
    columns.add("postings", &postings(), &rows(part, |set| &set.postings));
    columns.add("audit", &audit(), &rows(part, |set| set.audit.iter().cloned().map(storable)));
    columns.add("events", &events(), &rows(part, |set| &set.events));
    columns
}

/// Without an entry no link is written, whatever is said of it.
pub fn unlinked<'s>(part: &[Placed<'s>]) -> Columns<'s> {
    let mut columns = whole(part);
    columns.push(0_i64);
    columns.push(0_i64);
    columns.push(BEGINNING.to_vec());
    columns
}

fn rows<'s, I: IntoIterator>(part: &[Placed<'s>], of: impl Fn(&'s ChangeSet) -> I) -> Vec<Row<'s, I::Item>> {
    let of = |(n, set): &Placed<'s>| {
        let (n, set) = (*n as i64, *set);
        of(set).into_iter().map(move |it| Row { n, set, it })
    };
    part.iter().flat_map(of).collect()
}

type Of<'s, T> = Vec<Column<'s, Row<'s, T>>>;

fn sets<'s>() -> Of<'s, ()> {
    vec![
        bigint("n", |row| Some(row.n)), //
        bigint("leases", |row| Some(row.set.ends.len() as i64)),
    ]
}

fn ends<'s>() -> Of<'s, &'s Ended> {
    vec![
        bigint("n", |row| Some(row.n)),
        bigint("leases", |row| Some(row.set.ends.len() as i64)),
        bigint("job", |row| Some(row.it.lease.job.as_i64())),
        bigint("epoch", |row| Some(row.it.lease.epoch.0)),
        integer("attempt", |row| Some(row.it.lease.attempt)),
        bigint("at", |row| Some(row.set.at.ms())),
        bigint("retry_at", |row| retry_at(&row.it.end)),
        integer("unspent", |row| Some(i32::from(matches!(row.it.end, End::Wait { .. })))),
        text("result", |row| outcome(&row.it.end).map(Outcome::name)),
        text("note", |row| outcome(&row.it.end).and_then(Outcome::note)),
        text("payment", |row| row.it.about.payment.as_deref()),
        text("billing", |row| row.it.about.billing.as_deref()),
        text("tenant", |row| row.it.about.tenant.as_deref()),
        text("class", |row| death(&row.it.end).map(|death| death.class.name())),
        text("reason", |row| death(&row.it.end).map(|death| death.reason.as_str())),
        text("error", |row| death(&row.it.end).map(|death| death.error.as_str())),
        bigint("tried_at", |row| tried(row.it).map(|call| call.at.ms())),
        bigint("took_ms", |row| tried(row.it).map(|call| call.took_ms)),
        integer("status", |row| tried(row.it).and_then(|call| call.status)),
        text("tried_reason", |row| tried(row.it).and_then(|call| call.reason.as_deref())),
        text("tried_error", |row| tried(row.it).and_then(|call| call.error.as_deref())),
        text("headers", |row| tried(row.it).and_then(|call| call.headers.as_deref())),
        bytes("body", |row| tried(row.it).and_then(|call| call.body.as_deref())),
    ]
}

fn tried(ended: &Ended) -> Option<&Attempt> {
    ended.attempt.as_ref()
}

fn retry_at(end: &End) -> Option<i64> {
    match end {
        End::Retry { due_at } | End::Wait { due_at } => Some(due_at.ms()),
        End::Done(_) | End::Dead(_) | End::NotYet => None,
    }
}

fn outcome(end: &End) -> Option<&Outcome> {
    match end {
        End::Done(outcome) => Some(outcome),
        End::Retry { .. } | End::Wait { .. } | End::Dead(_) | End::NotYet => None,
    }
}

fn death(end: &End) -> Option<&DeadReason> {
    match end {
        End::Dead(death) => Some(death),
        End::Retry { .. } | End::Wait { .. } | End::Done(_) | End::NotYet => None,
    }
}

fn storable_payload(task: &Task) -> Cow<'_, str> {
    match task.payload() {
        Cow::Borrowed(payload) => without_nul(payload),
        Cow::Owned(payload) => Cow::Owned(without_nul(&payload).into_owned()),
    }
}

fn jobs<'s>() -> Of<'s, &'s NewJob> {
    vec![
        unstored(bigint("n", |row| Some(row.n))),
        bigint("id", |row| Some(row.it.id.as_i64())),
        unstored(text("key", |row| row.it.key.as_deref())),
        text("kind", |row| Some(row.it.task.kind().name())),
        text("lane", |row| Some(&row.it.lane.0)),
        text("fifo", |row| row.it.fifo.as_deref()),
        bigint("due_at", |row| Some(row.it.due_at.ms())),
        bigint("event", |row| row.it.event.map(Seq::as_i64)),
        own_text("payload", |row| Some(storable_payload(&row.it.task).into_owned())),
        bigint("owner", |row| row.it.owner.map(|epoch| epoch.0)),
    ]
}

fn writes<'s>() -> Of<'s, &'s Write> {
    vec![
        unstored(bigint("n", |row| Some(row.n))),
        unstored(bigint("at", |row| Some(row.set.at.ms()))),
        unstored(bigint("version", |row| Some(row.it.version))),
        bigint("amount", |row| row.it.index.amount),
        boolean("livemode", |row| row.it.index.livemode),
        text("kind", |row| Some(row.it.key.kind.name())),
        text("id", |row| Some(&row.it.key.id)),
        text("facts", |row| Some(&row.it.facts)),
        text("status", |row| row.it.index.status.as_deref()),
        text("tenant", |row| row.it.index.tenant.as_deref()),
        text("customer", |row| row.it.index.customer.as_deref()),
        text("currency", |row| row.it.index.currency.as_deref()),
        text("attention", |row| row.it.index.attention.as_deref()),
    ]
}

fn names<'s>() -> Of<'s, &'s Naming> {
    vec![
        unstored(bigint("n", |row| Some(row.n))),
        text("name", |row| Some(&row.it.name)),
        text("kind", |row| Some(row.it.key.kind.name())),
        text("id", |row| Some(&row.it.key.id)),
        unstored(text("was_kind", |row| row.it.was.as_ref().map(|was| was.kind.name()))),
        unstored(text("was_id", |row| row.it.was.as_ref().map(|was| was.id.as_str()))),
    ]
}

fn postings<'s>() -> Of<'s, &'s Posting> {
    vec![
        unstored(bigint("n", |row| Some(row.n))),
        bigint("at", |row| Some(row.set.at.ms())),
        bigint("amount", |row| Some(row.it.amount)),
        boolean("livemode", |row| row.it.livemode),
        text("account", |row| Some(&row.it.account)),
        text("currency", |row| Some(&row.it.currency)),
        text("payment", |row| Some(&row.it.payment)),
        text("cause", |row| Some(&row.it.cause)),
    ]
}

fn audit<'s>() -> Of<'s, Entry> {
    vec![
        unstored(bigint("n", |row| Some(row.n))),
        bigint("at", |row| Some(row.it.at.ms())),
        bigint("event", |row| row.it.event.map(Seq::as_i64)),
        own_text("actor", |row| row.it.actor.clone()),
        own_text("role", |row| row.it.role.clone()),
        own_text("action", |row| Some(row.it.action.clone())),
        own_text("target_kind", |row| Some(row.it.target.0.clone())),
        own_text("target_id", |row| Some(row.it.target.1.clone())),
        own_text("tenant", |row| row.it.tenant.clone()),
        own_text("details", |row| Some(row.it.details.clone())),
        own_bytes("digest", |row| row.it.digest().to_vec()),
    ]
}

fn events<'s>() -> Of<'s, &'s Arrival> {
    vec![
        unstored(bigint("n", |row| Some(row.n))),
        unstored(bigint("owner", |row| row.set.keep.map(|epoch| epoch.0))),
        unstored(bytes("key", |row| Some(row.it.key.as_bytes()))),
        bigint("seq", |row| Some(row.it.seq.as_i64())),
        bigint("received_at", |row| Some(row.it.received_at.ms())),
        bigint("created_at", |row| row.it.created_at.map(Time::ms)),
        boolean("livemode", |row| row.it.livemode),
        boolean("is_text", |row| Some(is_text(&row.it.body))),
        text("trust", |row| Some(row.it.trust.name())),
        text("source", |row| Some(&row.it.source)),
        text("event_id", |row| Some(&row.it.event_id)),
        text("type", |row| Some(&row.it.event_type)),
        text("object_kind", |row| row.it.object.as_ref().map(|(kind, _)| kind.as_str())),
        text("object_id", |row| row.it.object.as_ref().map(|(_, id)| id.as_str())),
        text("account", |row| row.it.account.as_deref()),
        text("headers", |row| Some(&row.it.headers)),
        bytes("body", |row| Some(&row.it.body)),
        unstored(own_text("payload", |row| Some(without_nul(&row.it.settle().payload()).into_owned()))),
    ]
}
