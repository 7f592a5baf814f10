//! `sekisho subjects [list|create|delete|import]`: what has deadlines that a tenant's staff is reminded of.

use std::process::ExitCode;

use sekisho_core::directory::Register;

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
    /// Every subject, by tenant and id, the last first
    List(List),
    /// Create a subject, or replace all its fields; it stays with its tenant
    Create(Create),
    /// Delete a subject: its name and its deadlines are gone, the audit log stays
    Delete(delete::OfTenant),
    /// Create or replace many, from a CSV file: all of them or none. Columns: id, tenant, name, renewal_due_on,
    /// assessment_due_on
    Import(import::Args),
}

#[derive(clap::Args)]
struct List {
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
struct Create {
    /// As the app calls it
    id: String,
    /// Whose it is; it must be there
    #[arg(long, value_name = "ID")]
    tenant: String,
    /// As people call it
    #[arg(long)]
    name: String,
    /// When it must be renewed: 2026-04-01
    #[arg(long, value_name = "DATE")]
    renewal_due_on: Option<String>,
    /// When it must be assessed: 2026-04-01
    #[arg(long, value_name = "DATE")]
    assessment_due_on: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 6] = [
    ("SUBJECT", "id"),
    ("TENANT", "tenant"),
    ("NAME", "name"),
    ("RENEWAL", "renewal_due_on"),
    ("ASSESSMENT", "assessment_due_on"),
    ("CREATED", "created_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Create(args)) => create(args, context).await,
        Some(Command::Delete(args)) => delete::run_of_tenant(Register::Subjects, args, context).await,
        Some(Command::Import(args)) => import::run(Register::Subjects, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let list = members::List {
        register: Register::Subjects,
        tenant: args.tenant,
        full: false,
        columns: &COLUMNS,
        nothing: "no subjects; enter some with `sekisho subjects import FILE.csv`",
    };
    members::list(list, args.pages, context).await
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let order = import::order([
        ("id", Some(args.id.into())),
        ("tenant", Some(args.tenant.into())),
        ("name", Some(args.name.into())),
        ("renewal_due_on", args.renewal_due_on.map(Into::into)),
        ("assessment_due_on", args.assessment_due_on.map(Into::into)),
    ]);
    members::create(Register::Subjects, order, args.json, context).await
}
