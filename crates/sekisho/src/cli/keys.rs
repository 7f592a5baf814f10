//! `sekisho keys [list|create|revoke]`: who may use the API, beside the [[key]] blocks of the configuration.

use std::process::ExitCode;

use serde::Serialize;

use super::Context;
use super::client::{Client, Needs, Query, Whole};
use super::output::{hint, json_out, line_out, rows_out};
use crate::config::{SCOPES, Scope};
use crate::types::{ApiKey, NewApiKey, NewKeyAnswer, RevokedKey};

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
    /// API keys that people created, the oldest first; never the secret itself
    List(List),
    /// Create a key. It is printed once, alone on its line: KEY=$(sekisho keys create --scopes read)
    Create(Create),
    /// Revoke a key: it is refused from now on
    Revoke(Revoke),
}

#[derive(clap::Args)]
struct List {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Create {
    /// What it allows: read, write (create payments, tenants and customers), operate (retry, replay, reset), admin (make and
    /// revoke keys)
    #[arg(long, required = true, value_delimiter = ',', value_parser = scope)]
    scopes: Vec<Scope>,
    /// What it is called in lists and in the audit log; without: key- and its first characters
    #[arg(long)]
    name: Option<String>,
    /// Limit it to one tenant; without: all
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// As one JSON object, the key in its field `key`
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Revoke {
    /// Its name or its first characters, as `keys list` writes them
    name: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 6] = [
    ("NAME", "name"),
    ("KEY", "hint"),
    ("SCOPES", "scopes_text"),
    ("TENANT", "tenant"),
    ("CREATED", "created_at"),
    ("REVOKED", "revoked_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Create(args)) => create(args, context).await,
        Some(Command::Revoke(args)) => revoke(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let keys: Vec<Whole<ApiKey>> = client.items("/v1/keys", &Query::new()).await?;
    if args.json {
        keys.iter().for_each(json_out);
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = keys.iter().map(|key| Row { key, scopes_text: key.scopes.join(",") }).collect();
    rows_out(&COLUMNS, &rows, "no keys yet; create one with `sekisho keys create`");
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Row<'k> {
    #[serde(flatten)]
    key: &'k ApiKey,
    scopes_text: String,
}

async fn create(args: Create, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let scopes = args.scopes.iter().map(|scope| scope.name().to_owned()).collect();
    let order = NewApiKey { name: args.name, scopes, tenant: args.tenant };
    let made: Whole<NewKeyAnswer> = client.post("/v1/keys", &order).await?;
    if args.json {
        json_out(&made);
    } else {
        line_out(&made.key);
    }
    let ApiKey { name, .. } = &made.about;
    hint(&format!("the key {name} is shown only now: keep it where only its user can read it"));
    Ok(ExitCode::SUCCESS)
}

async fn revoke(args: Revoke, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let revoked: Whole<ApiKey> = client.post("/v1/keys/revoke", &RevokedKey { key: args.name }).await?;
    if args.json {
        json_out(&revoked);
    } else {
        line_out(&format!(
            "the key {} ({}…) is revoked; requests with it are refused",
            revoked.name, revoked.hint
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::parse(text.trim()).ok_or_else(|| format!("expected {SCOPES}, comma-separated"))
}
