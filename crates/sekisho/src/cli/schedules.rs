//! `sekisho schedules`: which events Sekisho makes itself, and when the next one is due.

use std::process::ExitCode;

use super::Context;
use super::client::{Client, Needs, Query, Whole};
use super::output::list_out;
use crate::types::Schedule;

#[derive(clap::Args)]
pub struct Args {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 5] = [
    ("SCHEDULE", "name"),
    ("CRON", "cron"),
    ("TIME ZONE", "timezone"),
    ("TYPE", "type"),
    ("NEXT", "next_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::CONFIGURATION).await?;
    let schedules: Vec<Whole<Schedule>> = client.items("/v1/schedules", &Query::new()).await?;
    list_out(args.json, &COLUMNS, &schedules, "the configuration has no [[schedule]]");
    Ok(ExitCode::SUCCESS)
}
