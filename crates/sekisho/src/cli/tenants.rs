//! `sekisho tenants [list|create|delete]`: whose money it is, under the ids that the app itself uses.

use std::process::ExitCode;

use sekisho_core::state::{Kind, State};
use sekisho_store::{StateFilter, Store};
use serde_json::{Map, Value, json};

use super::output::{cell, json_out, line_out};
use super::pages::Pages;
use super::server::{self, Door, New, Old};
use super::{Context, delete, pages, states};

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
    /// Every tenant, by id, the last first
    List(List),
    /// Create a tenant, or give it another name
    Create(Create),
    /// Delete a tenant; what was paid stays, without a link to it
    Delete(delete::Args),
}

#[derive(clap::Args)]
struct List {
    #[command(flatten)]
    pages: Pages<String>,
}

#[derive(clap::Args)]
struct Create {
    /// As the app calls it
    id: String,
    /// As people call it
    #[arg(long)]
    name: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: server::Through,
}

const COLUMNS: [(&str, &str); 3] = [("TENANT", "id"), ("NAME", "name"), ("CREATED", "created_at")];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Create(args)) => create(args, context).await,
        Some(Command::Delete(args)) => delete::run(Old::Tenant, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &StateFilter::all(Kind::Tenant, 0);
    let fetch = async |before: Option<String>, limit| {
        let found = states::page(store, query, before, limit).await?;
        Ok(found.iter().map(|state| (state.key.id.clone(), member(state))).collect())
    };
    pages::out(&args.pages, &COLUMNS, "no tenants; create one with `sekisho tenants create ID`", fetch)
        .await?;
    Ok(ExitCode::SUCCESS)
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let mut order = Map::from_iter([("id".to_owned(), json!(args.id))]);
    order.extend(args.name.map(|name| ("name".to_owned(), json!(name))));
    let created = Door::open(&args.server, context).await?.create(New::Tenant, order, None).await?;
    if args.json {
        json_out(&created);
    } else {
        line_out(&format!("the tenant {} is kept", cell(&created["id"])));
    }
    Ok(ExitCode::SUCCESS)
}

/// A tenant or a customer.
pub fn member(state: &State) -> Value {
    let facts: Value = serde_json::from_str(&state.facts).unwrap_or_default();
    let mut shown = json!({ "id": state.key.id, "object": state.key.kind.name(), "name": facts["name"] });
    if state.key.kind == Kind::Customer {
        shown["tenant"] = facts["tenant"].clone();
    }
    shown["created_at"] = json!(state.created_at);
    shown
}
