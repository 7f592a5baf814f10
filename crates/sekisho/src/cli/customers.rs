//! `sekisho customers [list|create|delete|import]`: who pays, under the ids that the app itself uses.

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
    /// Every customer, by tenant and id, the last first
    List(List),
    /// Create a customer, or replace all its fields; the same id in another tenant is another customer
    Create(Create),
    /// Delete a customer; what it paid stays, without a link to it
    Delete(delete::OfTenant),
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
    pages: Pages,
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
        Some(Command::Delete(args)) => delete::run_of_tenant(Register::Customers, args, context).await,
        Some(Command::Import(args)) => import::run(Register::Customers, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let list = members::List {
        register: Register::Customers,
        tenant: args.tenant,
        full: args.full,
        columns: &COLUMNS,
        nothing: "no customers",
    };
    members::list(list, args.pages, context).await
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let order = import::order([
        ("id", Some(args.id.into())),
        ("tenant", args.tenant.map(Into::into)),
        ("name", args.name.map(Into::into)),
        ("email", args.email.map(Into::into)),
        ("language", args.language.map(|language| language.name().into())),
    ]);
    members::create(Register::Customers, order, args.json, context).await
}
