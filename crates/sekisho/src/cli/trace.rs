//! `sekisho trace EVENT`: what was done because of an event, when, and for how long; without any collector.

use std::process::ExitCode;

use anyhow::bail;

use super::Context;
use super::client::{Client, Needs, Query, path};
use super::output::{json_out, line_out, said, table};
use crate::types::{Trace, TraceSpan};
use crate::view::duration;

#[derive(clap::Args)]
pub struct Args {
    /// Sekisho's id (evt_… or msg_…) or the provider's
    #[arg(value_name = "EVENT")]
    id: String,
    /// The source, when several know the provider's id
    #[arg(long)]
    source: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

/// Letters of the longest bar.
const WIDTH: i64 = 30;

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new().with("source", args.source);
    let found: Option<Trace> = client.find(&path(&["events", &args.id, "trace"])?, &query).await?;
    let Some(trace) = found else { bail!("no event has the id {}", args.id) };
    if args.json {
        json_out(&trace);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!("trace {}, {}", trace.trace_id, duration(trace.took_us)));
    if let Some(url) = &trace.url {
        line_out(&said(url));
    }
    line_out("");
    let rows: Vec<_> = trace.spans.iter().map(|span| row(span, trace.took_us)).collect();
    table(&["SPAN", "AFTER", "TOOK", "", "ERROR"], &rows);
    Ok(ExitCode::SUCCESS)
}

fn row(span: &TraceSpan, whole_us: i64) -> Vec<String> {
    vec![
        format!("{}{}", "  ".repeat(span.depth), said(&span.name)),
        duration(span.after_us),
        duration(span.took_us),
        bar(span, whole_us),
        span.error.clone().unwrap_or_default(),
    ]
}

/// From its beginning to its end, in the whole.
fn bar(span: &TraceSpan, whole_us: i64) -> String {
    let place = |us: i64| us.saturating_mul(WIDTH) / whole_us.max(1);
    let begins = place(span.after_us).min(WIDTH - 1);
    let length = place(span.took_us).clamp(1, WIDTH - begins);
    format!("{}{}", "·".repeat(begins as usize), "█".repeat(length as usize))
}
