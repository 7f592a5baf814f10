//! `sekisho channels [list|resume]`: the ways notices go by, and whether they are open.

use std::process::ExitCode;

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{json_out, line_out, list_out};
use crate::types;

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
    /// Every channel with its breaker, its day's quota and its oldest waiting notice
    List(List),
    /// Resume a channel: waiting messages are sent at once
    Resume(Resume),
}

#[derive(clap::Args)]
struct List {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Resume {
    /// The channel
    name: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 8] = [
    ("CHANNEL", "name"),
    ("KIND", "kind"),
    ("BREAKER", "breaker"),
    ("OPEN UNTIL", "open_until"),
    ("USED TODAY", "used_today"),
    ("A DAY", "daily"),
    ("OLDEST DUE", "oldest_due_at"),
    ("WHY", "why"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Resume(args)) => resume(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let channels: Vec<Whole<types::Channel>> = client.items("/v1/channels", &Query::new()).await?;
    list_out(args.json, &COLUMNS, &channels, "the configuration has no [[channel]]");
    Ok(ExitCode::SUCCESS)
}

async fn resume(args: Resume, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let resumed: types::Resumed = client.post(&path(&["channels", &args.name, "resume"])?, &()).await?;
    if args.json {
        json_out(&resumed);
    } else {
        line_out(&format!("Reset the breaker of {}; it was {}.", resumed.channel, resumed.was));
    }
    Ok(ExitCode::SUCCESS)
}
