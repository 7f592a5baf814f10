//! What the pieces of the statement are given: one array per column, in the order in which the pieces number them.

use sekisho_core::audit::BEGINNING;
use sekisho_core::change::{ChangeSet, Ended};
use sekisho_core::job::{Attempt, DeadReason, End, NewJob, Outcome};
use sekisho_core::{Seq, Time};
use tokio_postgres::types::ToSql;

use super::Placed;
use crate::guard;
use crate::postgres::admit::is_text;
use crate::postgres::chain::storable;
use crate::postgres::upkeep::without_nul;

#[derive(Default)]
pub struct Columns<'s>(Vec<Box<dyn ToSql + Sync + Send + 's>>);

impl<'s> Columns<'s> {
    fn add<T: ToSql + Sync + Send + 's>(&mut self, values: impl Iterator<Item = T>) {
        self.0.push(Box::new(values.collect::<Vec<T>>()));
    }

    fn add_text(&mut self, values: impl Iterator<Item = Option<&'s str>>) {
        self.add(values.map(|text| text.map(without_nul)));
    }

    pub fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.0.iter().map(|column| &**column as &(dyn ToSql + Sync)).collect()
    }
}

pub fn plain<'s>(part: &[Placed<'s>]) -> Columns<'s> {
    let mut columns = Columns::default();
    ends(&mut columns, part);
    jobs(&mut columns, part);
    columns
}

/// All but the link, which comes after them.
pub fn whole<'s>(part: &[Placed<'s>]) -> Columns<'s> {
    let mut columns = plain(part);
    writes(&mut columns, part);
    names(&mut columns, part);
    postings(&mut columns, part);
    audit(&mut columns, part);
    events(&mut columns, part);
    columns
}

/// Without an entry no link is written, whatever is said of it.
pub fn unlinked<'s>(part: &[Placed<'s>]) -> Columns<'s> {
    let mut columns = whole(part);
    columns.0.extend([
        Box::new(0_i64) as Box<dyn ToSql + Sync + Send>,
        Box::new(0_i64),
        Box::new(BEGINNING.to_vec()),
    ]);
    columns
}

/// What the sets have of one sort, each with its set and its set's place.
fn all<'s, T>(
    part: &[Placed<'s>],
    of: impl Fn(&'s ChangeSet) -> Vec<&'s T>,
) -> Vec<(i64, &'s ChangeSet, &'s T)> {
    let placed = |(n, set): &Placed<'s>| {
        let (n, set) = (*n as i64, *set);
        of(set).into_iter().map(move |one| (n, set, one))
    };
    part.iter().flat_map(placed).collect()
}

fn ends<'s>(columns: &mut Columns<'s>, part: &[Placed<'s>]) {
    let leased = || part.iter().filter(|(_, set)| !set.ends.is_empty());
    columns.add(leased().map(|(n, _)| *n as i64));
    columns.add(leased().map(|(_, set)| set.ends.len() as i64));
    let rows = all(part, |set| set.ends.iter().collect());
    let tried = |of: fn(&'s Attempt) -> Option<&'s str>| {
        rows.iter().map(move |(.., ended)| ended.attempt.as_ref().and_then(of)).collect::<Vec<_>>()
    };
    let said = |of: fn(&'s Ended) -> Option<&'s str>| {
        rows.iter().map(move |(.., ended)| of(ended)).collect::<Vec<_>>()
    };
    columns.add(rows.iter().map(|(n, ..)| *n));
    columns.add(rows.iter().map(|(_, set, _)| set.ends.len() as i64));
    columns.add(rows.iter().map(|(.., ended)| ended.lease.job.as_i64()));
    columns.add(rows.iter().map(|(.., ended)| ended.lease.epoch.0));
    columns.add(rows.iter().map(|(.., ended)| ended.lease.attempt));
    columns.add(rows.iter().map(|(_, set, _)| set.at.ms()));
    columns.add(rows.iter().map(|(.., ended)| retry_at(&ended.end)));
    columns.add_text(said(|ended| outcome(&ended.end).map(Outcome::name)).into_iter());
    columns.add_text(said(|ended| outcome(&ended.end).and_then(Outcome::note)).into_iter());
    columns.add_text(said(|ended| ended.about.payment.as_deref()).into_iter());
    columns.add_text(said(|ended| ended.about.billing.as_deref()).into_iter());
    columns.add_text(said(|ended| ended.about.tenant.as_deref()).into_iter());
    columns.add_text(said(|ended| death(&ended.end).map(|death| death.class.name())).into_iter());
    columns.add_text(said(|ended| death(&ended.end).map(|death| death.reason.as_str())).into_iter());
    columns.add_text(said(|ended| death(&ended.end).map(|death| death.error.as_str())).into_iter());
    columns.add(rows.iter().map(|(.., ended)| ended.attempt.as_ref().map(|call| call.at.ms())));
    columns.add(rows.iter().map(|(.., ended)| ended.attempt.as_ref().map(|call| call.took_ms)));
    columns.add(rows.iter().map(|(.., ended)| ended.attempt.as_ref().and_then(|call| call.status)));
    columns.add_text(tried(|call| call.reason.as_deref()).into_iter());
    columns.add_text(tried(|call| call.error.as_deref()).into_iter());
    columns.add_text(tried(|call| call.headers.as_deref()).into_iter());
    columns.add(rows.iter().map(|(.., ended)| ended.attempt.as_ref().and_then(|call| call.body.as_deref())));
}

fn retry_at(end: &End) -> Option<i64> {
    match end {
        End::Retry { due_at } => Some(due_at.ms()),
        End::Done(_) | End::Dead(_) => None,
    }
}

fn outcome(end: &End) -> Option<&Outcome> {
    match end {
        End::Done(outcome) => Some(outcome),
        End::Retry { .. } | End::Dead(_) => None,
    }
}

fn death(end: &End) -> Option<&DeadReason> {
    match end {
        End::Dead(death) => Some(death),
        End::Retry { .. } | End::Done(_) => None,
    }
}

fn jobs<'s>(columns: &mut Columns<'s>, part: &[Placed<'s>]) {
    let rows: Vec<(i64, &ChangeSet, &NewJob)> = all(part, |set| set.jobs.iter().collect());
    columns.add(rows.iter().map(|(n, ..)| *n));
    columns.add(rows.iter().map(|(.., job)| job.id.as_i64()));
    columns.add_text(rows.iter().map(|(.., job)| job.key.as_deref()));
    columns.add_text(rows.iter().map(|(.., job)| Some(job.kind.name())));
    columns.add_text(rows.iter().map(|(.., job)| Some(&*job.lane.0)));
    columns.add_text(rows.iter().map(|(.., job)| job.fifo.as_deref()));
    columns.add(rows.iter().map(|(.., job)| job.due_at.ms()));
    columns.add(rows.iter().map(|(.., job)| job.event.map(Seq::as_i64)));
    columns.add_text(rows.iter().map(|(.., job)| Some(job.payload.as_str())));
    columns.add(rows.iter().map(|(.., job)| job.owner.map(|epoch| epoch.0)));
}

fn writes<'s>(columns: &mut Columns<'s>, part: &[Placed<'s>]) {
    let rows = all(part, |set| set.writes.iter().collect());
    columns.add(rows.iter().map(|(n, ..)| *n));
    columns.add(rows.iter().map(|(_, set, _)| set.at.ms()));
    columns.add(rows.iter().map(|(.., write)| write.version));
    columns.add(rows.iter().map(|(.., write)| write.index.amount));
    columns.add(rows.iter().map(|(.., write)| write.index.livemode));
    columns.add_text(rows.iter().map(|(.., write)| Some(write.key.kind.name())));
    columns.add_text(rows.iter().map(|(.., write)| Some(write.key.id.as_str())));
    columns.add_text(rows.iter().map(|(.., write)| Some(write.facts.as_str())));
    columns.add_text(rows.iter().map(|(.., write)| write.index.status.as_deref()));
    columns.add_text(rows.iter().map(|(.., write)| write.index.tenant.as_deref()));
    columns.add_text(rows.iter().map(|(.., write)| write.index.customer.as_deref()));
    columns.add_text(rows.iter().map(|(.., write)| write.index.currency.as_deref()));
    columns.add_text(rows.iter().map(|(.., write)| write.index.attention.as_deref()));
}

fn names<'s>(columns: &mut Columns<'s>, part: &[Placed<'s>]) {
    let rows = all(part, |set| guard::namings(set).collect());
    columns.add(rows.iter().map(|(n, ..)| *n));
    columns.add_text(rows.iter().map(|(.., naming)| Some(naming.name.as_str())));
    columns.add_text(rows.iter().map(|(.., naming)| Some(naming.key.kind.name())));
    columns.add_text(rows.iter().map(|(.., naming)| Some(naming.key.id.as_str())));
    columns.add_text(rows.iter().map(|(.., naming)| naming.was.as_ref().map(|was| was.kind.name())));
    columns.add_text(rows.iter().map(|(.., naming)| naming.was.as_ref().map(|was| was.id.as_str())));
}

fn postings<'s>(columns: &mut Columns<'s>, part: &[Placed<'s>]) {
    let rows = all(part, |set| set.postings.iter().collect());
    columns.add(rows.iter().map(|(n, ..)| *n));
    columns.add(rows.iter().map(|(_, set, _)| set.at.ms()));
    columns.add(rows.iter().map(|(.., posting)| posting.amount));
    columns.add(rows.iter().map(|(.., posting)| posting.livemode));
    columns.add_text(rows.iter().map(|(.., posting)| Some(posting.account.as_str())));
    columns.add_text(rows.iter().map(|(.., posting)| Some(posting.currency.as_str())));
    columns.add_text(rows.iter().map(|(.., posting)| Some(posting.payment.as_str())));
    columns.add_text(rows.iter().map(|(.., posting)| Some(posting.cause.as_str())));
}

fn audit<'s>(columns: &mut Columns<'s>, part: &[Placed<'s>]) {
    let given = all(part, |set| set.audit.iter().collect());
    let rows: Vec<_> = given.into_iter().map(|(n, _, entry)| (n, storable(entry.clone()))).collect();
    columns.add(rows.iter().map(|(n, _)| *n));
    columns.add(rows.iter().map(|(_, entry)| entry.at.ms()));
    columns.add(rows.iter().map(|(_, entry)| entry.event.map(Seq::as_i64)));
    columns.add(rows.iter().map(|(_, entry)| entry.actor.clone()));
    columns.add(rows.iter().map(|(_, entry)| entry.role.clone()));
    columns.add(rows.iter().map(|(_, entry)| entry.action.clone()));
    columns.add(rows.iter().map(|(_, entry)| entry.target.0.clone()));
    columns.add(rows.iter().map(|(_, entry)| entry.target.1.clone()));
    columns.add(rows.iter().map(|(_, entry)| entry.tenant.clone()));
    columns.add(rows.iter().map(|(_, entry)| entry.details.clone()));
    columns.add(rows.iter().map(|(_, entry)| entry.digest().to_vec()));
}

fn events<'s>(columns: &mut Columns<'s>, part: &[Placed<'s>]) {
    let rows = all(part, |set| set.events.iter().collect());
    columns.add(rows.iter().map(|(n, ..)| *n));
    columns.add(rows.iter().map(|(_, set, _)| set.keep.map(|epoch| epoch.0)));
    columns.add(rows.iter().map(|(.., event)| &event.key.as_bytes()[..]));
    columns.add(rows.iter().map(|(.., event)| event.seq.as_i64()));
    columns.add(rows.iter().map(|(.., event)| event.received_at.ms()));
    columns.add(rows.iter().map(|(.., event)| event.created_at.map(Time::ms)));
    columns.add(rows.iter().map(|(.., event)| event.livemode));
    columns.add(rows.iter().map(|(.., event)| is_text(&event.body)));
    columns.add_text(rows.iter().map(|(.., event)| Some(event.trust.name())));
    columns.add_text(rows.iter().map(|(.., event)| Some(&*event.source)));
    columns.add_text(rows.iter().map(|(.., event)| Some(event.event_id.as_str())));
    columns.add_text(rows.iter().map(|(.., event)| Some(event.event_type.as_str())));
    columns.add_text(rows.iter().map(|(.., event)| event.object.as_ref().map(|(kind, _)| kind.as_str())));
    columns.add_text(rows.iter().map(|(.., event)| event.object.as_ref().map(|(_, id)| id.as_str())));
    columns.add_text(rows.iter().map(|(.., event)| event.account.as_deref()));
    columns.add_text(rows.iter().map(|(.., event)| Some(&*event.headers)));
    columns.add(rows.iter().map(|(.., event)| &event.body[..]));
    columns.add(rows.iter().map(|(.., event)| without_nul(&event.payload()).into_owned()));
}
