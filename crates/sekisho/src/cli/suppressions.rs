//! `sekisho suppressions [list|add|release]`: addresses that nothing is sent to, and letting them go.

use std::process::ExitCode;

use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::Suppression;
use sekisho_store::Store;
use serde_json::Value;

use super::output::{cell, json_out, line_out};
use super::pages::Pages;
use super::server::{self, Door, Turn};
use super::{Context, pages};
use crate::acts;

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
    /// Suppressed addresses, by address, the last first
    List(List),
    /// Send nothing to an address any more
    Add(Change),
    /// Send to an address again; what was suppressed meanwhile is resent with `sekisho notices resend`
    Release(Change),
}

#[derive(clap::Args)]
struct List {
    /// Only this one, released or not
    #[arg(long, value_name = "ADDRESS")]
    address: Option<MailAddress>,
    /// Also those that were released
    #[arg(long)]
    all: bool,
    /// Mail addresses as they are, not masked
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    pages: Pages<String>,
}

#[derive(clap::Args)]
struct Change {
    /// The whole address
    address: MailAddress,
    /// Why, for the audit log
    #[arg(long)]
    reason: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: server::Through,
}

const COLUMNS: [(&str, &str); 6] = [
    ("SINCE", "at"),
    ("ID", "id"),
    ("ADDRESS", "address"),
    ("CAUSE", "cause"),
    ("BY", "by"),
    ("NOTE", "note"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Add(args)) => change(Turn::Suppress, args, context).await,
        Some(Command::Release(args)) => change(Turn::Release, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let (only, all, whole) = (args.address.as_ref(), args.all, args.full);
    let fetch = async |before: Option<String>, limit| {
        let found: Vec<Suppression> = match only {
            Some(_) if before.is_some() => Vec::new(),
            Some(address) => acts::suppression(store, address).await?.into_iter().collect(),
            None => acts::suppressions(store, all, before.as_deref(), limit).await?,
        };
        let shown = found.iter().map(|one| {
            let shown: Value = acts::suppression_view(one, whole);
            (cell(&shown["id"]), shown)
        });
        Ok(shown.collect())
    };
    pages::out(&args.pages, &COLUMNS, "nothing is suppressed", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

async fn change(turn: Turn, args: Change, context: &Context) -> anyhow::Result<ExitCode> {
    let door = Door::open(&args.server, context).await?;
    let changed = door.turn(turn, &args.address, &args.reason).await?;
    if args.json {
        json_out(&changed);
        return Ok(ExitCode::SUCCESS);
    }
    let address = &args.address;
    match turn {
        Turn::Suppress => line_out(&format!("nothing is sent to {address} any more")),
        Turn::Release => line_out(&format!(
            "{address} is released; what was suppressed meanwhile is resent with `sekisho notices resend`: \
             `sekisho notices --status suppressed --to ADDRESS` lists it"
        )),
    }
    Ok(ExitCode::SUCCESS)
}
