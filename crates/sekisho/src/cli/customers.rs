//! `sekisho customers [list|create|delete]`: who pays, under the ids that the app itself uses.

use std::process::ExitCode;

use sekisho_core::state::Kind;
use sekisho_store::{StateFilter, Store};
use serde_json::{Map, json};

use super::output::{cell, json_out, line_out};
use super::pages::Pages;
use super::server::{self, Door, New, Old};
use super::tenants::member;
use super::{Context, delete, pages, states};
use crate::view::unlink;

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
    /// Create a customer, or give it another name; it stays with its tenant
    Create(Create),
    /// Delete a customer; what it paid stays, without a link to it
    Delete(delete::Args),
}

#[derive(clap::Args)]
struct List {
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
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
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: server::Through,
}

const COLUMNS: [(&str, &str); 4] =
    [("CUSTOMER", "id"), ("TENANT", "tenant"), ("NAME", "name"), ("CREATED", "created_at")];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Create(args)) => create(args, context).await,
        Some(Command::Delete(args)) => delete::run(Old::Customer, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &StateFilter { tenant: args.tenant, ..StateFilter::all(Kind::Customer, 0) };
    let fetch = async |before: Option<String>, limit| {
        let found = states::page(store, query, before, limit).await?;
        let mut rows: Vec<_> = found.iter().map(|state| (state.key.id.clone(), member(state))).collect();
        unlink(store, rows.iter_mut().map(|(_, row)| row)).await?;
        Ok(rows)
    };
    pages::out(&args.pages, &COLUMNS, "no customers", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let mut order = Map::from_iter([("id".to_owned(), json!(args.id))]);
    order.extend(args.tenant.map(|tenant| ("tenant".to_owned(), json!(tenant))));
    order.extend(args.name.map(|name| ("name".to_owned(), json!(name))));
    let created = Door::open(&args.server, context).await?.create(New::Customer, order, None).await?;
    if args.json {
        json_out(&created);
    } else {
        line_out(&format!("the customer {} is kept", cell(&created["id"])));
    }
    Ok(ExitCode::SUCCESS)
}
