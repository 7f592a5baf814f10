//! `sekisho payments [list|show|create|prove]`: what came of each order, announcing one before its customer pays, and
//! the evidence for one.

mod create;
mod find;
mod prove;
mod show;

use std::process::ExitCode;

use sekisho_core::settlement::payment::{Derived, Facts, Status, view};
use sekisho_core::state::{Kind, State};
use sekisho_store::{StateFilter, Store};
use serde_json::{Value, json};

use super::amount::{Mode, amount_text};
use super::pages::Pages;
use super::{Context, pages, states};
use crate::view::unlink;

pub use find::{choose, find};

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
    /// The newest payments first
    List(List),
    /// One payment with its refunds, its disputes and the events that made it what it is
    Show(show::Args),
    /// Create a payment, or assign an existing one to its owner
    Create(create::Args),
    /// One payment with all the evidence for it, and whether that holds together; to be kept or printed
    Prove(prove::Args),
}

#[derive(clap::Args)]
struct List {
    /// Only those with this status: unpaid, processing, failed, expired, cancelled, partially_paid, paid,
    /// partially_refunded or refunded
    #[arg(long, value_parser = status)]
    status: Option<Status>,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only of this customer
    #[arg(long, value_name = "ID")]
    customer: Option<String>,
    /// Only those that need attention: for this reason, such as unlinked, or for any
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    attention: Option<String>,
    #[command(flatten)]
    mode: Mode,
    #[command(flatten)]
    pages: Pages<String>,
}

const COLUMNS: [(&str, &str); 8] = [
    ("CREATED", "created_at"),
    ("ID", "id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount_text"),
    ("TENANT", "tenant"),
    ("CUSTOMER", "customer"),
    ("REFERENCE", "reference"),
    ("ATTENTION", "attention"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Show(args)) => show::run(args, context).await,
        Some(Command::Create(args)) => create::run(args, context).await,
        Some(Command::Prove(args)) => prove::run(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &StateFilter {
        status: args.status.map(|status| status.name().to_owned()),
        tenant: args.tenant,
        customer: args.customer,
        livemode: args.mode.livemode(),
        attention: args.attention,
        ..StateFilter::all(Kind::Payment, 0)
    };
    let as_json = args.pages.json;
    let fetch = async |before: Option<String>, limit| {
        let found = states::page(store, query, before, limit).await?;
        let mut rows: Vec<_> =
            found.iter().map(|state| (state.key.id.clone(), row(state, as_json))).collect();
        unlink(store, rows.iter_mut().map(|(_, row)| row)).await?;
        Ok(rows)
    };
    pages::out(&args.pages, &COLUMNS, "no payments", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

/// A payment, with the texts of a table unless it is for programs.
fn row(state: &State, as_json: bool) -> Value {
    let mut shown = shown(state);
    if !as_json {
        shown["amount_text"] = amount_text(&shown["amount"], &shown["currency"]).into();
    }
    shown
}

/// A payment as the API shows it, with when it was first and last written. Facts that can't be read don't hide the others.
fn shown(state: &State) -> Value {
    let mut shown = match Facts::parse(&state.facts) {
        Ok(facts) => view(&state.key.id, &facts, &Derived::of(&facts)),
        Err(error) => {
            json!({ "id": state.key.id, "object": "payment", "status": "unreadable", "error": error.to_string() })
        }
    };
    shown["created_at"] = json!(state.created_at);
    shown["changed_at"] = json!(state.changed_at);
    shown
}

fn status(text: &str) -> Result<Status, String> {
    Status::parse(text).ok_or_else(|| format!("expected one of {}", Status::ALL.map(Status::name).join(", ")))
}
