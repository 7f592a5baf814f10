//! Deleting one thing: asked for once more at the terminal, unless `--yes` is written.

use std::process::ExitCode;

use sekisho_core::directory::Register;

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{is_attended, is_confirmed, json_out, line_out};
use crate::types::Deleted;

/// Of what belongs to a tenant.
#[derive(clap::Args)]
pub struct OfTenant {
    /// Whose it is: needed where several tenants have this id. Without it, what belongs to no tenant is meant, or else the
    /// only one there is
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    #[command(flatten)]
    args: Args,
}

#[derive(clap::Args)]
pub struct Args {
    /// As the lists write it
    id: String,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

/// What is deleted: its noun, the list it is on, and what narrows it.
pub struct DeleteTarget {
    pub noun: &'static str,
    pub list: &'static str,
    pub query: Query,
}

impl DeleteTarget {
    pub fn of(register: Register) -> Self {
        Self { noun: register.noun(), list: register.name(), query: Query::new() }
    }
}

pub async fn run_of_tenant(register: Register, of: OfTenant, context: &Context) -> anyhow::Result<ExitCode> {
    let target = DeleteTarget { query: Query::new().with("tenant", of.tenant), ..DeleteTarget::of(register) };
    run(target, of.args, context).await
}

pub async fn run(target: DeleteTarget, args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    if !args.yes && is_attended() {
        let question = format!("Delete {} {}? This can't be undone.", target.noun, args.id);
        anyhow::ensure!(is_confirmed(&question)?, "cancelled; nothing was changed");
    }
    let deleted: Whole<Deleted> = client.delete(&path(&[target.list, &args.id])?, &target.query).await?;
    if args.json {
        json_out(&deleted);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!("Deleted {} {}. Events, payments and the audit log are kept.", target.noun, args.id));
    if let Some(was) = deleted.known.was.filter(|was| !["none", "cancelled"].contains(&&**was)) {
        line_out(&format!(
            "It was {was}: the subscription continues at the provider until it is cancelled there."
        ));
    }
    Ok(ExitCode::SUCCESS)
}
