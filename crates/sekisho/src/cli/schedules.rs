//! `sekisho schedules`: which events Sekisho makes itself, and when the next one is due.

use std::process::ExitCode;

use super::Context;
use super::output::list_out;
use super::server::{self, Server};
use crate::{now, view};

#[derive(clap::Args)]
pub struct Args {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: server::Through,
}

const COLUMNS: [(&str, &str); 5] = [
    ("SCHEDULE", "name"),
    ("CRON", "cron"),
    ("TIME ZONE", "timezone"),
    ("TYPE", "type"),
    ("NEXT", "next_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let schedules = if let Some(server) = Server::find(&args.server, context).await? {
        server.items("/v1/schedules").await?
    } else {
        let (config, at) = (context.load()?.config, now());
        config.schedules.iter().map(|schedule| view::schedule(schedule, at)).collect()
    };
    list_out(args.json, &COLUMNS, &schedules, "the configuration has no [[schedule]]");
    Ok(ExitCode::SUCCESS)
}
