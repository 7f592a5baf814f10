//! `sekisho events list|show|tail|replay`: what came in, where it stands, and settling it again.

mod replay;
mod show;
mod tail;

use std::process::ExitCode;

use sekisho_core::{Seq, Time};
use sekisho_store::{EventFilter, EventSummary, Status, Store};

use super::when::moment;
use super::{Context, pages};
use crate::acts::{EventQuery, event_status};
use crate::view;

pub use tail::Follower;

#[derive(clap::Subcommand)]
pub enum Command {
    /// The newest events first
    List(List),
    /// One event with its headers, its body and the messages it caused
    Show(show::Args),
    /// New events as they come, until Ctrl-C
    Tail(tail::Args),
    /// Process past events again; completed deliveries are not repeated
    Replay(replay::Args),
}

#[derive(clap::Args, Default)]
pub struct Conditions {
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only this type; a * at the end stands for anything: payment_intent.*
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events with this status: received, success (or processed), failed or skipped
    #[arg(long, value_parser = |text: &str| event_status(text).ok_or("received, success, failed or skipped"))]
    status: Option<Status>,
    /// Also what Sekisho announced (payment.paid, …) or fetched itself
    #[arg(long)]
    own: bool,
    /// Only events about this object, by the provider's id: pi_…
    #[arg(long, value_name = "ID")]
    object: Option<String>,
    /// Only events of this payment: pay_…
    #[arg(long, value_name = "ID")]
    payment: Option<String>,
    /// Only events of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
}

#[derive(clap::Args, Default)]
pub struct Range {
    /// Only those received since: 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Time>,
    /// Only those received before that
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Time>,
}

#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    conditions: Conditions,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    pages: pages::Pages,
}

const COLUMNS: [(&str, &str); 6] = [
    ("RECEIVED", "received_at"),
    ("ID", "id"),
    ("SOURCE", "source"),
    ("TYPE", "type"),
    ("EVENT ID", "event_id"),
    ("STATUS", "status"),
];

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list(args, context).await,
        Command::Show(args) => show::run(args, context).await,
        Command::Tail(args) => tail::run(args, context).await,
        Command::Replay(args) => replay::run(args, context).await,
    }
}

impl Conditions {
    pub fn of(source: Option<String>, event_type: Option<String>) -> Self {
        Self { source, event_type, ..Self::default() }
    }

    fn query(&self, range: &Range) -> EventQuery {
        EventQuery {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            status: self.status.map(|status| status.name().to_owned()),
            object: self.object.clone(),
            payment: self.payment.clone(),
            tenant: self.tenant.clone(),
            since: range.since,
            until: range.until,
            own: self.own,
        }
    }

    fn filter(&self) -> anyhow::Result<EventFilter> {
        Ok(self.query(&Range::default()).filter()?)
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &args.conditions.query(&args.range).filter()?;
    let fetch = async |before: Option<Seq>, limit| {
        let before = [before, query.before].into_iter().flatten().min();
        let found = page(store, EventFilter { before, limit, ..query.clone() }).await?;
        let mut shown: Vec<_> = found.iter().map(|event| (event.seq, view::event(event))).collect();
        if !args.pages.json {
            for (event, (_, row)) in found.iter().zip(&mut shown).filter(|(event, _)| event.id_reused) {
                row["event_id"] = format!("{} (used before)", event.event_id).into();
            }
        }
        view::unlink(store, shown.iter_mut().map(|(_, event)| event)).await?;
        Ok(shown)
    };
    pages::out(&args.pages, &COLUMNS, "no events", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

/// So many events, however far apart they are.
async fn page(store: &dyn Store, mut filter: EventFilter) -> anyhow::Result<Vec<EventSummary>> {
    let wanted = filter.limit;
    let mut found = Vec::new();
    loop {
        let page = store.find_events(filter.clone()).await?;
        found.extend(page.events);
        filter.limit = wanted - found.len();
        filter.before = page.next;
        if filter.limit == 0 || page.next.is_none() {
            return Ok(found);
        }
    }
}
