//! `sekisho audit [list|verify|export]`: who did what, and whether nobody changed it afterwards.

use std::convert::identity;
use std::process::ExitCode;

use sekisho_core::Time;
use serde_json::Value;

use super::Context;
use super::client::{Client, ListPage, Needs, Query};
use super::output::{Progress, cell, json_out, line_out};
use super::pages::{self, Listing, Pages};
use super::when::moment;
use crate::types::{AuditCheck, AuditEntry};

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
    /// The newest entries first
    List(List),
    /// Check every entry and every link between them; exits with 1 when something was changed
    Verify(Verify),
    /// Write the log to standard output, one JSON object a line, each chain from its beginning, with all that is needed
    /// to check it
    Export(Export),
}

#[derive(clap::Args)]
struct List {
    /// Only what concerns this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only this action; a * at the end stands for anything: payment.*
    #[arg(long)]
    action: Option<String>,
    /// Only what was done to this: pay_…, evt_…, msg_…, a route
    #[arg(long, value_name = "ID")]
    target: Option<String>,
    /// Only what they did, as the list names them: cli:tomo
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
struct Range {
    /// Only since: 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Time>,
    /// Only before that
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Time>,
}

#[derive(clap::Args)]
struct Verify {
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
}

/// What was written together stays together: an entry outside the range is written out with those on its link that are
/// inside, because the hash is over all of them.
#[derive(clap::Args)]
struct Export {
    #[command(flatten)]
    range: Range,
}

/// Links of one page of an export.
const LINKS: usize = 500;

const COLUMNS: [(&str, &str); 7] = [
    ("AT", "at"),
    ("WHO", "actor"),
    ("AS", "role"),
    ("DID", "action"),
    ("TO", "target"),
    ("TENANT", "tenant"),
    ("REASON", "reason"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Verify(args)) => verify(args, context).await,
        Some(Command::Export(args)) => export(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = args
        .range
        .query()
        .with("tenant", args.tenant)
        .with("action", args.action)
        .with("target", args.target)
        .with("actor", args.actor);
    let list = Listing { path: "/v1/audit", query, columns: &COLUMNS, nothing: "no entries" };
    pages::out(&client, &args.pages, list, identity::<AuditEntry>).await?;
    Ok(ExitCode::SUCCESS)
}

async fn verify(args: Verify, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let progress = Progress::new();
    progress.show("reading the audit log");
    let checked: AuditCheck = client.get("/v1/audit/verify", &Query::new()).await?;
    drop(progress);
    if args.json {
        json_out(&checked);
    } else {
        tell(&checked);
    }
    Ok(if checked.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(checked: &AuditCheck) {
    let AuditCheck { entries, links, anchors, faults, .. } = checked;
    line_out(&format!("checked {entries} entries on {links} links, and {anchors} anchors"));
    faults.iter().for_each(|fault| line_out(fault));
    line_out(&match faults.len() {
        0 => "nothing was changed, removed or inserted".to_owned(),
        1 => "1 thing is not as it was written: compare with a backup or an earlier export".to_owned(),
        n => format!("{n} things are not as they were written: compare with a backup or an earlier export"),
    });
    line_out(&match (checked.anchor, checked.anchored_at) {
        (Some(number), Some(at)) => format!(
            "what can't be seen: whether the end of the log was cut off after the newest anchor, entry {number} of {at}"
        ),
        _ => "what can't be seen: whether the end of the log was cut off. There is no anchor yet; a running server \
              writes one an hour"
            .to_owned(),
    });
}

async fn export(args: Export, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = args.range.query().with("limit", Some(LINKS));
    let mut after = None;
    loop {
        let ListPage { items, next } =
            client.get::<ListPage<Value>>("/v1/audit/export", &query.clone().with("after", after)).await?;
        items.iter().for_each(json_out);
        let Some(next) = next else { return Ok(ExitCode::SUCCESS) };
        after = Some(cell(&next));
    }
}

impl Range {
    fn query(&self) -> Query {
        Query::new().with("since", self.since).with("until", self.until)
    }
}
