//! One event with all that belongs to it.

use std::process::ExitCode;

use anyhow::bail;

use crate::cli::Context;
use crate::cli::output::{cell, fields_out, json_out, line_out, request_out, rows_out};
use crate::{acts, view};

#[derive(clap::Args)]
pub struct Args {
    /// Sekisho's id (evt_… or msg_…) or the provider's
    id: String,
    /// The source, when several know the provider's id
    #[arg(long)]
    source: Option<String>,
    /// Only the body, byte for byte
    #[arg(long, conflicts_with = "json")]
    body: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const FIELDS: [(&str, &str); 12] = [
    ("id", "id"),
    ("event id", "event_id"),
    ("id reused", "id_reused"),
    ("source", "source"),
    ("type", "type"),
    ("about", "object"),
    ("trust", "trust"),
    ("created", "created_at"),
    ("received", "received_at"),
    ("status", "status"),
    ("note", "note"),
    ("processed", "processed_at"),
];

const MESSAGES: [(&str, &str); 5] = [
    ("MESSAGE", "id"),
    ("ROUTE", "route"),
    ("STANDING", "standing"),
    ("ATTEMPTS", "attempts"),
    ("SINCE", "at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, seen) = context.open_store().await?;
    let sources = args.source.as_ref().map_or(&seen.sources[..], std::slice::from_ref);
    let Some(seq) = acts::find_event(&*store, sources, &args.id).await? else {
        bail!(
            "no event has the id {0}; if it names what events are about, try `sekisho events list --object {0}`",
            args.id
        );
    };
    if args.body {
        use std::io::Write;
        let record = store.find_event(seq).await?;
        std::io::stdout().write_all(&record.map(|record| record.body).unwrap_or_default())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(shown) = view::event_with_all(&*store, seq).await? else {
        bail!("no event has the id {}", args.id);
    };
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    fields_out(&FIELDS, &shown);
    if let Some(messages) = shown["messages"].as_array().filter(|messages| !messages.is_empty()) {
        line_out("");
        rows_out(&MESSAGES, messages, "");
        for dead in messages.iter().filter(|message| message["standing"] == "dead") {
            line_out(&format!("{} is dead: {}", cell(&dead["id"]), cell(&dead["error"])));
        }
    }
    request_out(&shown);
    Ok(ExitCode::SUCCESS)
}
