//! `sekisho notices [list|show|resend]`: what was told to whom, what became of it, and what to do when nothing came.

use std::convert::identity;
use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::Time;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::NoticeStatus;

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{cell, fields_out, json_out, line_out, rows_out, table};
use super::pages::{self, Listing, Pages};
use super::when::moment;
use crate::types::{self, Notice, NoticeDetail};

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
    /// Every notice, the newest first
    List(List),
    /// One notice on one screen: where it stands, the next step, and everything that happened to it
    Show(Show),
    /// Resend a notice, to its address or another
    Resend(Resend),
}

#[derive(clap::Args)]
struct List {
    /// Only those to this whole address
    #[arg(long, value_name = "ADDRESS")]
    to: Option<MailAddress>,
    /// Only those since: 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Time>,
    /// Only those before that
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Time>,
    /// Only those with this status: queued, sending, retrying, sent, failed, uncertain, suppressed, off, bounced,
    /// complained
    #[arg(long, value_parser = status)]
    status: Option<NoticeStatus>,
    /// Only those made from this template
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// Only those by this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only those about this payment: pay_…
    #[arg(long, value_name = "ID")]
    payment: Option<String>,
    /// Only those of this run: reminders/2026-11-16
    #[arg(long, value_name = "NAME")]
    batch: Option<String>,
    /// Mail addresses as they are, not masked
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
struct Show {
    /// ntc_…, as `notices list` writes it
    id: String,
    /// Mail addresses as they are, not masked
    #[arg(long)]
    full: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Resend {
    /// ntc_…, as `notices list` writes it
    id: String,
    /// Another address than the one it has
    #[arg(long, value_name = "ADDRESS")]
    to: Option<MailAddress>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 7] = [
    ("CREATED", "created_at"),
    ("ID", "id"),
    ("STATUS", "status"),
    ("TO", "to"),
    ("CHANNEL", "channel"),
    ("TEMPLATE", "template"),
    ("REASON", "reason"),
];

const FIELDS: [(&str, &str); 16] = [
    ("id", "id"),
    ("status", "status"),
    ("reason", "reason"),
    ("next step", "advice"),
    ("to", "to"),
    ("name", "name"),
    ("channel", "channel"),
    ("template", "template"),
    ("language", "language"),
    ("tenant", "tenant"),
    ("payment", "payment"),
    ("event", "event"),
    ("run", "batch"),
    ("tries", "attempts"),
    ("created", "created_at"),
    ("changed", "changed_at"),
];

const STEPS: [(&str, &str); 4] = [("AT", "at"), ("STATUS", "status"), ("REASON", "reason"), ("NOTE", "note")];

const HISTORY: [(&str, &str); 3] = [("AUDIT", "at"), ("WHO", "actor"), ("WHAT", "action")];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Show(args)) => show(args, context).await,
        Some(Command::Resend(args)) => resend(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new()
        .with("to", args.to.as_ref().map(MailAddress::whole))
        .with("status", args.status.map(NoticeStatus::name))
        .with("tenant", args.tenant)
        .with("template", args.template)
        .with("channel", args.channel)
        .with("payment", args.payment)
        .with("batch", args.batch)
        .with("since", args.since)
        .with("until", args.until)
        .with("addresses", args.full.then_some("full"));
    let list = Listing { path: "/v1/notices", query, columns: &COLUMNS, nothing: "no notices" };
    pages::out(&client, &args.pages, list, identity::<Notice>).await?;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new().with("addresses", args.full.then_some("full"));
    let Some(shown): Option<Whole<NoticeDetail>> =
        client.find(&path(&["notices", &args.id])?, &query).await?
    else {
        bail!("no notice has the id {}; `sekisho notices --to ADDRESS` finds those to an address", args.id);
    };
    if args.json {
        json_out(&shown);
    } else {
        page_out(&shown);
    }
    Ok(ExitCode::SUCCESS)
}

fn page_out(shown: &NoticeDetail) {
    fields_out(&FIELDS, shown);
    let details = shown.notice.details.as_object().into_iter().flatten();
    let details: Vec<_> = details.map(|(name, value)| vec![name.clone(), cell(value)]).collect();
    if !details.is_empty() {
        line_out("");
        table(&["DETAIL", "VALUE"], &details);
    }
    if !shown.steps.is_empty() {
        line_out("");
        rows_out(&STEPS, &shown.steps, "");
    }
    if !shown.audit.is_empty() {
        line_out("");
        rows_out(&HISTORY, &shown.audit, "");
    }
}

async fn resend(args: Resend, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let order = types::Resend { to: args.to.map(|to| to.whole().to_owned()) };
    let resent: Whole<Notice> = client.post(&path(&["notices", &args.id, "resend"])?, &order).await?;
    if args.json {
        json_out(&resent);
        return Ok(ExitCode::SUCCESS);
    }
    let when = if client.is_served() { "is sent again" } else { "is sent again when the server runs" };
    let to = resent.known.to.map(|to| format!(" to {to}")).unwrap_or_default();
    line_out(&format!(
        "the notice {} {when}{to}; `sekisho notices show {}` says how it went",
        args.id, args.id
    ));
    Ok(ExitCode::SUCCESS)
}

fn status(text: &str) -> Result<NoticeStatus, String> {
    let names = || NoticeStatus::ALL.map(NoticeStatus::name).join(", ");
    NoticeStatus::parse(text).ok_or_else(|| format!("expected one of {}", names()))
}
