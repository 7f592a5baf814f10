//! One event with all that belongs to it.

use std::process::ExitCode;

use anyhow::bail;
use base64::Engine;

use crate::cli::Context;
use crate::cli::client::{Client, Needs, Query, Whole, path};
use crate::cli::output::{cell, fields_out, json_out, line_out, request_out, rows_out};
use crate::types::{Content, EventDetail};

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

const FIELDS: [(&str, &str); 13] = [
    ("id", "id"),
    ("event id", "event_id"),
    ("id reused", "id_reused"),
    ("source", "source"),
    ("type", "type"),
    ("about", "object"),
    ("trust", "trust"),
    ("via", "via"),
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
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new().with("source", args.source);
    let found = client.find_unmasked(&path(&["events", &args.id])?, &query).await?;
    let Some(shown): Option<Whole<EventDetail>> = found else {
        bail!(
            "no event has the id {0}; if it names what events are about, try `sekisho events list --object {0}`",
            args.id
        );
    };
    if args.body {
        use std::io::Write;
        std::io::stdout().write_all(&body(&shown.content)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    fields_out(&FIELDS, &shown);
    let messages = &shown.messages;
    if !messages.is_empty() {
        line_out("");
        rows_out(&MESSAGES, messages, "");
        for dead in messages.iter().filter(|message| message.standing == "dead") {
            line_out(&format!("{} is dead: {}", dead.id, cell(&dead.error)));
        }
    }
    request_out(&shown.content);
    Ok(ExitCode::SUCCESS)
}

/// The body of an event, byte for byte.
pub fn body(content: &Content) -> anyhow::Result<Vec<u8>> {
    if content.body_masked {
        bail!("mail addresses in the body are masked: a key with the scope write sees it as it came");
    }
    match &content.body_base64 {
        Some(encoded) => Ok(base64::engine::general_purpose::STANDARD.decode(encoded)?),
        None => Ok(content.body.clone().unwrap_or_default().into_bytes()),
    }
}
