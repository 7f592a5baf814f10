//! `sekisho tenants [list|create|delete|import]`: whose money it is, under the ids that the app itself uses.

use std::process::ExitCode;

use sekisho_core::directory::Register;
use sekisho_core::language::Language;

use super::pages::Pages;
use super::{Context, delete, import, members};

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
    /// Create a tenant, or replace all its fields
    Create(Create),
    /// Delete a tenant; what was paid stays, without a link to it
    Delete(delete::Args),
    /// Create or replace many, from a CSV file with the columns id, name, language, time_zone: all of them or none
    Import(import::Args),
}

#[derive(clap::Args)]
struct List {
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
struct Create {
    /// As the app calls it
    id: String,
    /// As people call it
    #[arg(long)]
    name: Option<String>,
    /// What its people read: ja or en
    #[arg(long)]
    language: Option<Language>,
    /// Where its days begin: Asia/Tokyo
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 5] = [
    ("TENANT", "id"),
    ("NAME", "name"),
    ("LANGUAGE", "language"),
    ("TIME ZONE", "time_zone"),
    ("CREATED", "created_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Create(args)) => create(args, context).await,
        Some(Command::Delete(args)) => {
            delete::run(delete::DeleteTarget::of(Register::Tenants), args, context).await
        }
        Some(Command::Import(args)) => import::run(Register::Tenants, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let list = members::List {
        register: Register::Tenants,
        tenant: None,
        full: false,
        columns: &COLUMNS,
        nothing: "no tenants; create one with `sekisho tenants create ID`",
    };
    members::list(list, args.pages, context).await
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let order = import::order([
        ("id", Some(args.id.into())),
        ("name", args.name.map(Into::into)),
        ("language", args.language.map(|language| language.name().into())),
        ("time_zone", args.time_zone.map(Into::into)),
    ]);
    members::create(Register::Tenants, order, args.json, context).await
}
