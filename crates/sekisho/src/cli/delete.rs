//! Deleting one thing: asked for once more at the terminal, unless `--yes` is written.

use std::process::ExitCode;

use sekisho_core::directory::Register;

use super::Context;
use super::output::{cell, is_attended, is_confirmed, json_out, line_out};
use super::server::{Door, Old, Through};

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
    #[command(flatten)]
    server: Through,
}

pub async fn run_of_tenant(register: Register, of: OfTenant, context: &Context) -> anyhow::Result<ExitCode> {
    run(Old::Member { register, tenant: of.tenant }, of.args, context).await
}

pub async fn run(what: Old, args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let door = Door::open(&args.server, context).await?;
    if !args.yes && is_attended() {
        let question = format!("Delete {} {}? This can't be undone.", what.name(), args.id);
        anyhow::ensure!(is_confirmed(&question)?, "cancelled; nothing was changed");
    }
    let deleted = door.delete(&what, &args.id).await?;
    if args.json {
        json_out(&deleted);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!("Deleted {} {}. Events, payments and the audit log are kept.", what.name(), args.id));
    let was = cell(&deleted["was"]);
    if !["", "none", "cancelled"].contains(&&*was) {
        line_out(&format!(
            "It was {was}: the subscription continues at the provider until it is cancelled there."
        ));
    }
    Ok(ExitCode::SUCCESS)
}
