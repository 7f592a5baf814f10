//! `sekisho routes [list|reset]`: where events go, and whether the destinations are well.

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
    /// Every route with its breaker and its oldest waiting message
    List(List),
    /// Close the breaker of a route: its destination is called again at once
    Reset(Reset),
}

#[derive(clap::Args)]
struct List {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Reset {
    /// The route
    name: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 6] = [
    ("ROUTE", "name"),
    ("BREAKER", "breaker"),
    ("DOWN SINCE", "open_since"),
    ("NEXT PROBE", "open_until"),
    ("OLDEST DUE", "oldest_due_at"),
    ("URL", "url"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Reset(args)) => reset(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let routes: Vec<Whole<types::Route>> = client.items("/v1/routes", &Query::new()).await?;
    list_out(args.json, &COLUMNS, &routes, "the configuration has no [[route]]");
    Ok(ExitCode::SUCCESS)
}

async fn reset(args: Reset, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let reset: types::Reset = client.post(&path(&["routes", &args.name, "reset"])?, &()).await?;
    if args.json {
        json_out(&reset);
    } else {
        line_out(&format!("Reset the breaker of {}; it was {}.", reset.route, reset.was));
    }
    Ok(ExitCode::SUCCESS)
}
