//! `sekisho events list|show|tail|replay`: what came in, where it stands, and settling it again.

mod replay;
mod show;
mod tail;

use std::process::ExitCode;

use sekisho_core::Time;
use serde::Serialize;

use super::Context;
use super::client::{Client, Needs, Query};
use super::pages::{self, Listing, Pages};
use super::when::moment;
use crate::queries::{delivery_status, event_status};
use crate::types::{Event, EventDeliveries, EventQuery};

pub use show::body;
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
pub struct EventConditions {
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only this type; a * at the end stands for anything: payment_intent.*
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events with this status: received, success (or processed), failed or skipped
    #[arg(long, value_parser = status)]
    status: Option<String>,
    /// Only events of which a delivery is waiting, failed or cancelled, or all are delivered
    #[arg(long, value_parser = delivery)]
    delivery: Option<String>,
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
    conditions: EventConditions,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    pages: Pages,
}

const COLUMNS: [(&str, &str); 7] = [
    ("RECEIVED", "received_at"),
    ("ID", "id"),
    ("SOURCE", "source"),
    ("TYPE", "type"),
    ("EVENT ID", "event_id"),
    ("STATUS", "status"),
    ("DELIVERY", "delivery"),
];

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list(args, context).await,
        Command::Show(args) => show::run(args, context).await,
        Command::Tail(args) => tail::run(args, context).await,
        Command::Replay(args) => replay::run(args, context).await,
    }
}

impl EventConditions {
    pub fn of(source: Option<String>, event_type: Option<String>) -> Self {
        Self { source, event_type, ..Self::default() }
    }

    fn event_query(&self, range: &Range) -> EventQuery {
        EventQuery {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            status: self.status.clone(),
            delivery: self.delivery.clone(),
            object: self.object.clone(),
            payment: self.payment.clone(),
            tenant: self.tenant.clone(),
            since: range.since,
            until: range.until,
            own: self.own,
        }
    }

    fn query(&self) -> Query {
        Query::new()
            .with("source", self.source.as_ref())
            .with("type", self.event_type.as_ref())
            .with("status", self.status.as_ref())
            .with("delivery", self.delivery.as_ref())
            .with("object", self.object.as_ref())
            .with("payment", self.payment.as_ref())
            .with("tenant", self.tenant.as_ref())
            .flag("own", self.own)
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = args.conditions.query().with("since", args.range.since).with("until", args.range.until);
    let list = Listing { path: "/v1/events", query, columns: &COLUMNS, nothing: "no events" };
    let row = |mut event: Event| {
        if event.id_reused {
            event.event_id.push_str(" (used before)");
        }
        EventRow { delivery: delivery_text(&event.deliveries), event }
    };
    pages::out(&client, &args.pages, list, row).await?;
    Ok(ExitCode::SUCCESS)
}

/// An event with what became of its deliveries, in words.
#[derive(Serialize)]
struct EventRow {
    #[serde(flatten)]
    event: Event,
    delivery: String,
}

/// `delivered 1/2`; empty when it goes to no route.
pub fn delivery_text(deliveries: &EventDeliveries) -> String {
    let EventDeliveries { status, total, delivered, .. } = deliveries;
    status.as_ref().map_or_else(String::new, |status| format!("{status} {delivered}/{total}"))
}

fn delivery(text: &str) -> Result<String, String> {
    delivery_status(text).map(|status| status.name().to_owned()).map_err(|refusal| refusal.to_string())
}

fn status(text: &str) -> Result<String, &'static str> {
    event_status(text).map(|status| status.name().to_owned()).ok_or("received, success, failed or skipped")
}
