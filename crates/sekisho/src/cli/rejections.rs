//! `sekisho rejections`: who was turned away, when, and why.

use std::process::ExitCode;

use super::Context;
use super::output::{json_out, line_out, table};

#[derive(clap::Args)]
pub struct Args {
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// How many lines
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let found = store.find_rejections(args.source, args.limit.into()).await?;
    if args.json {
        for one in &found {
            json_out(&serde_json::json!({
                "at": one.at, "source": one.source, "peer": one.peer, "reason": one.reason,
                "detail": one.detail, "request_id": one.request_id, "count": one.count,
            }));
        }
    } else if found.is_empty() {
        line_out("nobody was turned away");
    } else {
        let row = |one: &sekisho_core::change::Rejection| {
            let (at, count) = (one.at.to_string(), one.count.to_string());
            vec![at, one.source.clone(), one.peer.clone(), count, one.reason.clone(), one.detail.clone()]
        };
        table(
            &["AT", "SOURCE", "FROM", "TIMES", "REASON", "DETAIL"],
            &found.iter().map(row).collect::<Vec<_>>(),
        );
    }
    Ok(ExitCode::SUCCESS)
}
