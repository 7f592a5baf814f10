//! `sekisho cases [list|show|ack|resolve]`: what went wrong with orders, until when somebody should answer, and what rules do
//! next.

use std::process::ExitCode;

use sekisho_core::case::CaseStatus;
use serde::Serialize;

use super::Context;
use super::amount::{Mode, mode_text};
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{fields_out, json_out, line_out, rows_out};
use super::pages::{self, Listing, Pages};
use crate::types::{AcknowledgeCase, Case, ResolveCase};

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
    /// Cases, overdue ones first
    List(List),
    /// One case, with what its rules do next
    Show(Show),
    /// Take a case in hand: reminders stop, and everything else goes on
    Ack(Ack),
    /// Say that a case is over; its rules do nothing more
    Resolve(Resolve),
}

#[derive(clap::Args)]
struct List {
    /// Only those with this status: open, acknowledged or resolved
    #[arg(long, value_parser = status)]
    status: Option<CaseStatus>,
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

#[derive(clap::Args)]
struct Show {
    /// Its id: case_…
    id: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Ack {
    /// Its id: case_…
    id: String,
    /// What is being done
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Resolve {
    /// Its id: case_…
    id: String,
    /// fixed, by_hand or no_action
    #[arg(long, value_parser = ["fixed", "by_hand", "no_action"], hide_possible_values = true)]
    how: String,
    /// What was done, for the compensation log
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 9] = [
    ("SINCE", "since"),
    ("ID", "id"),
    ("STATUS", "status"),
    ("LEVEL", "level"),
    ("TRIGGER", "trigger"),
    ("SUBJECT", "subject"),
    ("ANSWER BY", "respond_by"),
    ("ATTENTION", "attention"),
    ("REFUND AT", "refund_at"),
];

const FIELDS: [(&str, &str); 19] = [
    ("id", "id"),
    ("status", "status"),
    ("attention", "attention"),
    ("trigger", "trigger"),
    ("subject", "subject"),
    ("level", "level"),
    ("episode", "episode"),
    ("since", "since"),
    ("answer by", "respond_by"),
    ("refund at", "refund_at"),
    ("taken by", "/acknowledged/by"),
    ("note", "/acknowledged/note"),
    ("resolved", "/resolved/how"),
    ("by", "/resolved/by"),
    ("note", "/resolved/note"),
    ("payment", "payment"),
    ("reservation", "reservation"),
    ("mode", "mode"),
    ("tenant", "tenant"),
];

const NEXT: [(&str, &str); 3] = [("RULE", "rule"), ("AT", "at"), ("ACTION", "action")];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Show(args)) => show(args, context).await,
        Some(Command::Ack(args)) => {
            let order = AcknowledgeCase { note: args.note };
            say(&args.id, "acknowledge", &order, args.json, context).await
        }
        Some(Command::Resolve(args)) => {
            let order = ResolveCase { how: args.how, note: args.note };
            say(&args.id, "resolve", &order, args.json, context).await
        }
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let query = Query::new()
        .with("status", args.status.map(CaseStatus::name))
        .with("trigger", args.trigger)
        .with("tenant", args.tenant)
        .with("livemode", args.mode.livemode());
    let list = Listing { path: "/v1/cases", query, columns: &COLUMNS, nothing: "no cases" };
    pages::out(&client, &args.pages, list, Row::of).await?;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let shown: Whole<Case> = client.get(&path(&["cases", &args.id])?, &Query::new()).await?;
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    let row = Row::of(shown.known);
    fields_out(&FIELDS, &row);
    if !row.case.next.is_empty() {
        line_out("");
        rows_out(&NEXT, &row.case.next, "");
    }
    Ok(ExitCode::SUCCESS)
}

async fn say(
    id: &str,
    act: &str,
    order: &impl Serialize,
    as_json: bool,
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let case: Whole<Case> = client.post(&path(&["cases", id, act])?, order).await?;
    if as_json {
        json_out(&case);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!("{}: {}", case.id, case.status));
    if !case.next.is_empty() {
        rows_out(&NEXT, &case.next, "");
    }
    Ok(ExitCode::SUCCESS)
}

/// A case as people read it.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    case: Case,
    mode: &'static str,
    attention: &'static str,
}

impl Row {
    fn of(case: Case) -> Self {
        let attention = if case.overdue { "overdue" } else { "" };
        Self { mode: mode_text(case.livemode), attention, case }
    }
}

fn status(text: &str) -> Result<CaseStatus, String> {
    CaseStatus::parse(text)
        .ok_or_else(|| format!("expected one of {}", CaseStatus::ALL.map(CaseStatus::name).join(", ")))
}
