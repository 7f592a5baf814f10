//! `sekisho deliveries list|cancel`: events on their way to the routes, and what became of them.

use std::process::ExitCode;

use sekisho_core::Time;
use sekisho_core::language::Language;
use serde::Serialize;

use super::Context;
use super::bulk::{BulkOptions, confirm};
use super::client::{Client, Needs, Query};
use super::output::{count, json_out, line_out, rows_out};
use super::pages::{self, Listing, Pages};
use super::when::moment;
use crate::acts::{DeliveryReport, DeliverySelection};
use crate::queries::delivery_status;
use crate::types::{Delivery, DeliveryQuery};
use crate::view::words;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Deliveries, the newest first
    List(List),
    /// Cancel deliveries that wait: by id, by filter, or all; failed ones are discarded with `sekisho dead discard`
    Cancel(Cancel),
}

#[derive(clap::Args)]
struct Conditions {
    /// Only those to this route
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// Only those of this event: evt_…
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Only those queued since: 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Time>,
    /// Only those queued before that
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Time>,
}

#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    conditions: Conditions,
    /// Only those that stand so: waiting, delivered, failed or cancelled
    #[arg(long, value_parser = status)]
    status: Option<String>,
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
pub struct Cancel {
    /// Which, as `deliveries list` writes them: msg_…
    ids: Vec<String>,
    #[command(flatten)]
    conditions: Conditions,
    /// Every delivery that waits
    #[arg(long)]
    all: bool,
    /// Why they are cancelled; recorded in the audit log
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    reason: Option<String>,
    #[command(flatten)]
    bulk: BulkOptions,
}

const COLUMNS: [(&str, &str); 8] = [
    ("QUEUED", "queued_at"),
    ("ID", "id"),
    ("ROUTE", "route"),
    ("TYPE", "type"),
    ("STATUS", "status"),
    ("HTTP", "http_status"),
    ("ATTEMPTS", "attempts"),
    ("NEXT", "next"),
];

const ROUTES: [(&str, &str); 2] = [("COUNT", "count"), ("ROUTE", "route")];

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list(args, context).await,
        Command::Cancel(args) => cancel(args, context).await,
    }
}

impl Conditions {
    fn delivery_query(self, status: Option<String>) -> DeliveryQuery {
        DeliveryQuery { route: self.route, status, event: self.event, since: self.since, until: self.until }
    }
}

/// A delivery with what happens next, in words.
#[derive(Serialize)]
struct DeliveryRow {
    #[serde(flatten)]
    delivery: Delivery,
    next: String,
}

impl DeliveryRow {
    fn of(delivery: Delivery) -> Self {
        let next = match (&delivery.outage, delivery.next_try_at) {
            (Some(outage), _) => words::outage(outage, crate::now(), Language::En),
            (None, Some(at)) => at.to_string(),
            (None, None) => String::new(),
        };
        Self { delivery, next }
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let query = Query::of_list(&args.conditions.delivery_query(args.status));
    let list = Listing { path: "/v1/deliveries", query, columns: &COLUMNS, nothing: "no deliveries" };
    pages::out(&client, &args.pages, list, DeliveryRow::of).await?;
    Ok(ExitCode::SUCCESS)
}

async fn cancel(args: Cancel, context: &Context) -> anyhow::Result<ExitCode> {
    const PATH: &str = "/v1/deliveries/cancel";
    let mut selection = DeliverySelection {
        ids: args.ids,
        filter: args.conditions.delivery_query(None),
        all: args.all,
        dry_run: args.bulk.dry_run,
        reason: args.reason.unwrap_or_default(),
    };
    let client = Client::open(context, Needs::ACT).await?;
    if args.bulk.must_ask(&selection.ids) {
        let preview = DeliverySelection { dry_run: true, ..selection.clone() };
        let preview: DeliveryReport = client.post(PATH, &preview).await?;
        foretell(&preview);
        confirm(preview.found)?;
        if selection.ids.is_empty() {
            // What was queued since then was not looked at.
            selection.filter.until = preview.until.or(Some(Time::from_ms(0)));
            selection.all = false;
        }
    }
    let report: DeliveryReport = client.post(PATH, &selection).await?;
    if args.bulk.json {
        json_out(&report);
    } else if report.dry_run {
        foretell(&report);
    } else {
        line_out(&format!("Cancelled {}.", of_count(report.done)));
        remarks(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn foretell(report: &DeliveryReport) {
    line_out(&format!("{} would be cancelled", of_count(report.found)));
    if report.found > 0 {
        rows_out(&ROUTES, &report.routes, "");
    }
    remarks(report);
}

fn remarks(report: &DeliveryReport) {
    if !report.missing.is_empty() {
        line_out(&format!("Not waiting (any more): {}", report.missing.join(", ")));
    }
    if report.more {
        line_out("There are more than one call may touch; run it again for the rest.");
    }
}

/// `1 delivery`, `2 deliveries`.
fn of_count(number: usize) -> String {
    if number == 1 { count(1, "delivery") } else { format!("{number} deliveries") }
}

fn status(text: &str) -> Result<String, String> {
    delivery_status(text).map(|status| status.name().to_owned()).map_err(|refusal| refusal.to_string())
}
