//! `sekisho fulfilments [list|show|retry|result]`: what was paid for and must be made, and what became of each run.

use std::process::ExitCode;

use sekisho_core::fulfilment::FulfilmentStatus;
use serde::Serialize;

use super::Context;
use super::amount::{Mode, mode_text};
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{fields_out, hint, json_out, line_out, rows_out};
use super::pages::{self, Listing, Pages};
use crate::types::{CountedResult, Fulfilment, FulfilmentResult, RetryFulfilment};

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
    /// The newest fulfilments first
    List(List),
    /// One fulfilment with its runs
    Show(Show),
    /// Allow one more run of a fulfilment that failed
    Retry(Retry),
    /// Say what became of a run; of an older run, or said before, it does not count
    Result(ResultArgs),
}

#[derive(clap::Args)]
struct List {
    /// Only those with this status: waiting, processing, done or failed
    #[arg(long, value_parser = status)]
    status: Option<FulfilmentStatus>,
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
    /// Its id: ful_…
    id: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Retry {
    /// Its id: ful_…
    id: String,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ResultArgs {
    /// Its id: ful_…
    id: String,
    /// Which run, as `show` counts them
    #[arg(long, value_name = "NUMBER")]
    run: u32,
    /// done or failed
    #[arg(long, value_parser = ["done", "failed"], hide_possible_values = true)]
    status: String,
    /// Why it failed
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Where what was made is
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 9] = [
    ("CREATED", "created_at"),
    ("ID", "id"),
    ("STATUS", "status"),
    ("KIND", "kind"),
    ("TIER", "tier"),
    ("FAILED RUNS", "retry_count"),
    ("RESERVATION", "reservation"),
    ("CUSTOMER", "customer"),
    ("LAST ERROR", "last_error"),
];

const FIELDS: [(&str, &str); 17] = [
    ("id", "id"),
    ("status", "status"),
    ("mode", "mode"),
    ("kind", "kind"),
    ("name", "name"),
    ("tier", "tier"),
    ("failed", "retry_count"),
    ("last error", "last_error"),
    ("url", "url"),
    ("expires", "expires_at"),
    ("downgraded", "downgraded"),
    ("reservation", "reservation"),
    ("payment", "payment"),
    ("customer", "customer"),
    ("tenant", "tenant"),
    ("input", "input"),
    ("created", "created_at"),
];

const RUNS: [(&str, &str); 6] = [
    ("RUN", "run"),
    ("STATUS", "status"),
    ("REQUESTED", "requested_at"),
    ("ENDED", "ended_at"),
    ("URL", "url"),
    ("ERROR", "error"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Show(args)) => show(args, context).await,
        Some(Command::Retry(args)) => retry(args, context).await,
        Some(Command::Result(args)) => result(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let query = Query::new()
        .with("status", args.status.map(FulfilmentStatus::name))
        .with("tenant", args.tenant)
        .with("livemode", args.mode.livemode());
    let list = Listing { path: "/v1/fulfilments", query, columns: &COLUMNS, nothing: "no fulfilments" };
    pages::out(&client, &args.pages, list, std::convert::identity::<Fulfilment>).await?;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let shown: Whole<Fulfilment> = client.get(&path(&["fulfilments", &args.id])?, &Query::new()).await?;
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    let fields = Fields { mode: mode_text(Some(shown.livemode)), fulfilment: &shown.known };
    fields_out(&FIELDS, &fields);
    line_out("");
    rows_out(&RUNS, &shown.runs, "no run was requested yet");
    Ok(ExitCode::SUCCESS)
}

async fn retry(args: Retry, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let order = RetryFulfilment { reason: args.reason };
    let path = path(&["fulfilments", &args.id, "retry"])?;
    let retried: Whole<Fulfilment> = client.post(&path, &order).await?;
    if args.json {
        json_out(&retried);
    } else {
        let run = retried.runs.last().map(|run| format!(", run {}", run.run)).unwrap_or_default();
        line_out(&format!("{}: {}{run}", retried.id, retried.status));
    }
    if !client.is_served() {
        hint("no server runs here: the run is requested when one does (`sekisho serve`)");
    }
    Ok(ExitCode::SUCCESS)
}

async fn result(args: ResultArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let order = FulfilmentResult { run: args.run, status: args.status, error: args.error, url: args.url };
    let path = path(&["fulfilments", &args.id, "result"])?;
    let counted: Whole<CountedResult> = client.post(&path, &order).await?;
    if args.json {
        json_out(&counted);
        return Ok(ExitCode::SUCCESS);
    }
    let why = match counted.why.as_deref() {
        None => "",
        Some("repeated") => "; not counted, it was said before",
        Some("older_run") => "; not counted, a newer run was requested",
        Some("done") => "; not counted, the run was done",
        Some(_) => "; not counted",
    };
    line_out(&format!("{}: {}{why}", args.id, counted.status));
    Ok(ExitCode::SUCCESS)
}

/// A fulfilment as fields to be read.
#[derive(Serialize)]
struct Fields<'f> {
    #[serde(flatten)]
    fulfilment: &'f Fulfilment,
    mode: &'static str,
}

fn status(text: &str) -> Result<FulfilmentStatus, String> {
    FulfilmentStatus::parse(text).ok_or_else(|| {
        format!("expected one of {}", FulfilmentStatus::ALL.map(FulfilmentStatus::name).join(", "))
    })
}
