//! `sekisho compensation [list|rules|check]`: what was done because something had gone wrong with an order, the rules that say
//! what is done, and how they stand for one order.

use std::process::ExitCode;

use sekisho_core::compensation::CompensationKind;
use serde::Serialize;

use super::Context;
use super::amount::{Mode, amount_text};
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{json_out, line_out, list_out, rows_out};
use super::pages::{self, Listing, Pages};
use super::when::span_text;
use crate::types::{Compensation, CompensationRule, RuleCheck};

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
    /// The rules, shipped and configured: when they hold, what they do, and whom they tell
    Rules(Rules),
    /// Which rules hold for an order now, and when they act
    Check(Check),
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

#[derive(clap::Args)]
struct Rules {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Check {
    /// The id of its payment, reservation or fulfilment: pay_…, rsv_…, ful_…
    order: String,
    /// Also the rules that do not hold
    #[arg(long)]
    all: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
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

const RULES: [(&str, &str); 9] = [
    ("RULE", "name"),
    ("TRIGGER", "trigger"),
    ("AFTER", "after_text"),
    ("ACTION", "action"),
    ("LEVEL", "level"),
    ("TELL", "tell_text"),
    ("ANSWER IN", "respond_text"),
    ("ENABLED", "enabled"),
    ("WHEN", "when"),
];

const CHECKED: [(&str, &str); 8] = [
    ("RULE", "rule"),
    ("STATUS", "status"),
    ("SUBJECT", "subject"),
    ("SINCE", "since"),
    ("ACTS AT", "acts_at"),
    ("ACTION", "action"),
    ("CASE", "case"),
    ("ERROR", "error"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Rules(args)) => rules(&args, context).await,
        Some(Command::Check(args)) => check(args, context).await,
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

async fn rules(args: &Rules, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::CONFIGURATION).await?;
    let rules: Vec<Whole<CompensationRule>> = client.items("/v1/compensation_rules", &Query::new()).await?;
    if args.json {
        list_out(true, &RULES, &rules, "");
    } else {
        let rows: Vec<_> = rules.into_iter().map(|rule| RuleRow::of(rule.known)).collect();
        rows_out(&RULES, &rows, "no rules");
    }
    Ok(ExitCode::SUCCESS)
}

async fn check(args: Check, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let path = path(&["compensation_rules", "check", &args.order])?;
    let check: Whole<RuleCheck> = client.get(&path, &Query::new()).await?;
    if args.json {
        json_out(&check);
        return Ok(ExitCode::SUCCESS);
    }
    let shown: Vec<_> = check.rules.iter().filter(|rule| args.all || rule.status != "idle").collect();
    rows_out(&CHECKED, &shown, &format!("no rule holds for {}", args.order));
    if !args.all && shown.len() < check.rules.len() {
        line_out(&format!("{} asked, --all shows those that do not hold", check.rules.len()));
    }
    Ok(ExitCode::SUCCESS)
}

/// A rule as people read it.
#[derive(Serialize)]
struct RuleRow {
    #[serde(flatten)]
    rule: CompensationRule,
    after_text: String,
    tell_text: String,
    respond_text: String,
}

impl RuleRow {
    fn of(rule: CompensationRule) -> Self {
        let respond = rule.respond_within_seconds;
        Self {
            after_text: span_text(rule.after_seconds),
            tell_text: rule.tell.join(" "),
            respond_text: if respond == 0 { String::new() } else { span_text(respond) },
            rule,
        }
    }
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
