//! `sekisho staff [list|create|delete|import]`: who works for a tenant and is reminded of its deadlines.

use std::process::ExitCode;

use sekisho_core::directory::{Register, THRESHOLD_DAYS_MAX};
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
    /// Staff, by tenant and id, the last first
    List(List),
    /// Create a staff member, or replace all fields of one; the same id in another tenant is another person
    Create(Create),
    /// Delete a staff member: names and address are gone, the audit log stays
    Delete(delete::OfTenant),
    /// Create or replace many, from a CSV file: all of them or none. Columns: id, tenant, family_name, given_name, email,
    /// language, notifications, threshold_days
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
    /// As the app calls them
    id: String,
    /// Whom they work for; it must be there
    #[arg(long, value_name = "ID")]
    tenant: String,
    #[arg(long, value_name = "NAME")]
    family_name: Option<String>,
    #[arg(long, value_name = "NAME")]
    given_name: Option<String>,
    /// Where reminders go
    #[arg(long, value_name = "ADDRESS")]
    email: String,
    /// What they read: ja or en; without: as their tenant
    #[arg(long)]
    language: Option<Language>,
    /// Send them no reminders
    #[arg(long)]
    no_notifications: bool,
    /// How many days before a deadline reminders begin; without: 30
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(0..=i64::from(THRESHOLD_DAYS_MAX)))]
    threshold_days: Option<u16>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 8] = [
    ("STAFF", "id"),
    ("TENANT", "tenant"),
    ("NAME", "name"),
    ("EMAIL", "email"),
    ("LANGUAGE", "language"),
    ("NOTIFIED", "notifications"),
    ("DAYS", "threshold_days"),
    ("CREATED", "created_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Create(args)) => create(args, context).await,
        Some(Command::Delete(args)) => delete::run_of_tenant(Register::Staff, args, context).await,
        Some(Command::Import(args)) => import::run(Register::Staff, args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let list = members::List {
        register: Register::Staff,
        tenant: args.tenant,
        full: args.full,
        columns: &COLUMNS,
        nothing: "no staff; enter some with `sekisho staff import FILE.csv`",
    };
    members::list(list, args.pages, context).await
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let order = import::order([
        ("id", Some(args.id.into())),
        ("tenant", Some(args.tenant.into())),
        ("family_name", args.family_name.map(Into::into)),
        ("given_name", args.given_name.map(Into::into)),
        ("email", Some(args.email.into())),
        ("language", args.language.map(|language| language.name().into())),
        ("notifications", Some((!args.no_notifications).into())),
        ("threshold_days", args.threshold_days.map(Into::into)),
    ]);
    members::create(Register::Staff, order, args.json, context).await
}
