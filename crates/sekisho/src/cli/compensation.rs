//! `sekisho compensation [list]`: what was done because something had gone wrong.

use std::process::ExitCode;

use sekisho_core::compensation::CompensationKind;
use serde::Serialize;

use super::Context;
use super::amount::{Mode, amount_text};
use super::client::{Client, Needs, Query};
use super::pages::{self, Listing, Pages};
use crate::types::Compensation;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum Command {
    /// The compensation log: refunds, reassigned places and cases that a person resolved
    List(List),
}

#[derive(clap::Args)]
struct List {
    /// Only of this type: REFUND, SLOT_REASSIGN or MANUAL_RESOLUTION
    #[arg(long = "type", value_name = "TYPE", value_parser = kind)]
    kind: Option<CompensationKind>,
    /// Only of this trigger, such as RENDER_FAILURE
    #[arg(long, value_name = "TRIGGER")]
    trigger: Option<String>,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    #[command(flatten)]
    mode: Mode,
    #[command(flatten)]
    pages: Pages,
}

const COLUMNS: [(&str, &str); 9] = [
    ("AT", "at"),
    ("ID", "id"),
    ("TYPE", "type"),
    ("TRIGGER", "trigger"),
    ("AMOUNT", "amount_text"),
    ("BY", "resolved_by"),
    ("PAYMENT", "payment"),
    ("RESERVATION", "reservation"),
    ("NOTES", "notes"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new()
        .with("type", args.kind.map(CompensationKind::name))
        .with("trigger", args.trigger)
        .with("tenant", args.tenant)
        .with("livemode", args.mode.livemode());
    let list = Listing { path: "/v1/compensations", query, columns: &COLUMNS, nothing: "nothing was done" };
    pages::out(&client, &args.pages, list, Row::of).await?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    done: Compensation,
    amount_text: String,
}

impl Row {
    fn of(done: Compensation) -> Self {
        Self { amount_text: amount_text(done.amount, done.currency.as_deref()), done }
    }
}

fn kind(text: &str) -> Result<CompensationKind, String> {
    CompensationKind::parse(text).ok_or_else(|| {
        format!("expected one of {}", CompensationKind::ALL.map(CompensationKind::name).join(", "))
    })
}
