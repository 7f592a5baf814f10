//! `sekisho targets`: whether what was promised is reached, over the last hour, day and 30 days.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::Context;
use super::client::{Client, Needs, Query, Whole};
use super::output::{json_out, list_out};
use crate::types::TargetStanding;

#[derive(clap::Args)]
pub struct Args {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// One target over one window.
#[derive(Serialize, Deserialize)]
struct Row {
    target: String,
    wanted: String,
    window: String,
    value: String,
    verdict: String,
    bad: u64,
    all: u64,
}

const COLUMNS: [(&str, &str); 7] = [
    ("TARGET", "target"),
    ("WANTED", "wanted"),
    ("WINDOW", "window"),
    ("VALUE", "value"),
    ("VERDICT", "verdict"),
    ("BAD", "bad"),
    ("ALL", "all"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let targets: Vec<Whole<TargetStanding>> = client.items("/v1/targets", &Query::new()).await?;
    if args.json {
        targets.iter().for_each(json_out);
        return Ok(ExitCode::SUCCESS);
    }
    let rows = targets.iter().flat_map(|target| {
        target.windows.iter().map(|window| Row {
            target: target.name.clone(),
            wanted: target.target.clone(),
            window: window.window.clone(),
            value: window.value.clone().unwrap_or_else(|| "–".into()),
            verdict: match window.verdict.as_str() {
                "too_little" => "too little to say".into(),
                verdict => verdict.to_owned(),
            },
            bad: window.bad,
            all: window.all,
        })
    });
    let rows: Vec<_> = rows.collect();
    list_out(false, &COLUMNS, &rows, "there are no targets");
    Ok(ExitCode::SUCCESS)
}
