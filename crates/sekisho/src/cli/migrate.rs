//! `sekisho migrate`: brings the store's schema up to date. `serve` does it too; this is for those who do it apart.

use std::process::ExitCode;

use super::Context;
use super::output::{json_out, line_out};
use crate::{app, telemetry};

#[derive(clap::Args)]
pub struct Args {
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    // Only the store matters here, so a folder without any configuration will do.
    let url = match context.store_url()? {
        Some(url) => url,
        None if context.is_built_in() => crate::config::Config::default().store.url,
        None => context.load()?.config.store.url,
    };
    telemetry::start(crate::config::Config::default().log, None);
    app::migrate(&url).await?;
    if args.json {
        json_out(&serde_json::json!({ "store": url.to_string(), "up_to_date": true }));
    } else {
        line_out(&format!("the schema of {url} is up to date"));
    }
    Ok(ExitCode::SUCCESS)
}
