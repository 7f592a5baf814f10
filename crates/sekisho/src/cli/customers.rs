//! `sekisho customers [list|create|delete|import]`: who pays, under the ids that the app itself uses.

use std::process::ExitCode;

use sekisho_core::notification::Language;
use sekisho_core::notification::directory::Register;
use sekisho_core::state::Kind;
use sekisho_store::{StateFilter, Store};

use super::output::{cell, json_out, line_out};
use super::pages::Pages;
use super::server::{self, Door, New, Old};
use super::{Context, delete, import, pages, states};
use crate::view::{self, unlink};

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
    /// Every customer, by id, the last first
    List(List),
    /// Create a customer, or replace all that was said of it; it stays with its tenant
    Create(Create),
    /// Delete a customer; what it paid stays, without a link to it
    Delete(delete::Args),
    /// Create or replace many, from a CSV file with the columns id, tenant, name, email, language: all of them or none
    Import(import::Args),
}

#[derive(clap::Args)]
struct List {
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Mail addresses as they are, not masked
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    pages: Pages<String>,
}

#[derive(clap::Args)]
struct Create {
    /// As the app calls it
    id: String,
    /// Whose customer it is
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// As people call it
    #[arg(long)]
    name: Option<String>,
    /// Where mail to it goes
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// What it reads: ja or en
    #[arg(long)]
    language: Option<Language>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: server::Through,
}

const COLUMNS: [(&str, &str); 6] = [
    ("CUSTOMER", "id"),
    ("TENANT", "tenant"),
    ("NAME", "name"),
    ("EMAIL", "email"),
    ("LANGUAGE", "language"),
    ("CREATED", "created_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Create(args)) => create(args, context).await,
        Some(Command::Delete(args)) => delete::run(Old::Member(Register::Customers), args, context).await,
        Some(Command::Import(args)) => import::run(Register::Customers, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &StateFilter { tenant: args.tenant, ..StateFilter::all(Kind::Customer, 0) };
    let fetch = async |before: Option<String>, limit| {
        let mut rows = states::members(store, query, before, limit, view::member_for(args.full)).await?;
        unlink(store, rows.iter_mut().map(|(_, row)| row)).await?;
        Ok(rows)
    };
    pages::out(&args.pages, &COLUMNS, "no customers", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let order = import::order([
        ("id", Some(args.id.into())),
        ("tenant", args.tenant.map(Into::into)),
        ("name", args.name.map(Into::into)),
        ("email", args.email.map(Into::into)),
        ("language", args.language.map(|language| language.name().into())),
    ]);
    let created = Door::open(&args.server, context)
        .await?
        .create(New::Member(Register::Customers), order, None)
        .await?;
    if args.json {
        json_out(&created);
    } else {
        line_out(&format!("the customer {} is kept", cell(&created["id"])));
    }
    Ok(ExitCode::SUCCESS)
}
