//! Deleting one thing: asked for once more at the terminal, unless `--yes` is written.

use std::process::ExitCode;

use super::Context;
use super::output::{cell, is_attended, is_confirmed, json_out, line_out};
use super::server::{Door, Old, Through};

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

pub async fn run(what: Old, args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let door = Door::open(&args.server, context).await?;
    if !args.yes && is_attended() {
        let question =
            format!("delete the {} {}? What is said of it can't be had back.", what.name(), args.id);
        anyhow::ensure!(is_confirmed(&question)?, "nothing was done");
    }
    let deleted = door.delete(what, &args.id).await?;
    if args.json {
        json_out(&deleted);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!("the {} {} is deleted; events, payments and the audit log stay", what.name(), args.id));
    let was = cell(&deleted["was"]);
    if !["", "none", "cancelled"].contains(&&*was) {
        line_out(&format!(
            "it was {was}: what is subscribed to runs on at the provider until it is cancelled there"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
