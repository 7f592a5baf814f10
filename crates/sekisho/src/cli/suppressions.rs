//! `sekisho suppressions [list|add|release]`: addresses that nothing is sent to, and letting them go.

use std::convert::identity;
use std::process::ExitCode;

use sekisho_core::mail_address::MailAddress;

use super::Context;
use super::client::{Client, Needs, Query, Whole};
use super::output::{json_out, line_out};
use super::pages::{self, Listing, Pages};
use crate::types::{Suppression, Turn};

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
    pages: Pages,
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
        Some(Command::Add(args)) => change(SUPPRESS, args, context).await,
        Some(Command::Release(args)) => change(RELEASE, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new()
        .with("address", args.address.as_ref().map(MailAddress::whole))
        .flag("all", args.all)
        .with("addresses", args.full.then_some("full"));
    let list = Listing { path: SUPPRESS, query, columns: &COLUMNS, nothing: "nothing is suppressed" };
    pages::out(&client, &args.pages, list, identity::<Suppression>).await?;
    Ok(ExitCode::SUCCESS)
}

const SUPPRESS: &str = "/v1/suppressions";
const RELEASE: &str = "/v1/suppressions/release";

async fn change(path: &str, args: Change, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let order = Turn { address: args.address.whole().to_owned(), reason: args.reason };
    let changed: Whole<Suppression> = client.post(path, &order).await?;
    if args.json {
        json_out(&changed);
        return Ok(ExitCode::SUCCESS);
    }
    let address = &args.address;
    if path == SUPPRESS {
        line_out(&format!("nothing is sent to {address} any more"));
    } else {
        line_out(&format!(
            "{address} is released; what was suppressed meanwhile is resent with `sekisho notices resend`: \
             `sekisho notices --status suppressed --to ADDRESS` lists it"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
