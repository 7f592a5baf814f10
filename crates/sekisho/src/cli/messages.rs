//! `sekisho messages show`: one piece of work and where it stands.

use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::Seq;
use sekisho_core::language::Language;
use serde::Serialize;

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{calls_out, fields_out, json_out, line_out};
use crate::types::MessageDetail;
use crate::view::words;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Status of a message, and every call it made
    Show(Show),
}

#[derive(clap::Args)]
pub struct Show {
    /// msg_…, as Sekisho-Message-Id says it
    id: Seq,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const FIELDS: [(&str, &str); 11] = [
    ("id", "id"),
    ("lane", "lane"),
    ("event", "event"),
    ("standing", "standing"),
    ("since", "at"),
    ("due", "due_at"),
    ("next", "waits"),
    ("attempts", "attempts"),
    ("note", "note"),
    ("reason", "reason"),
    ("error", "error"),
];

/// A message with what it waits for, in words.
#[derive(Serialize)]
struct MessageRow<'m> {
    #[serde(flatten)]
    shown: &'m MessageDetail,
    waits: Option<String>,
}

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    let Command::Show(args) = command;
    let client = Client::open(context, Needs::READ).await?;
    let id = args.id.as_message().to_string();
    let found = client.find_unmasked(&path(&["messages", &id])?, &Query::new()).await?;
    let Some(shown): Option<Whole<MessageDetail>> = found else {
        bail!("no message has the id {id}");
    };
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    let waits = shown.message.outage.as_ref();
    let waits = waits.map(|outage| words::outage(outage, crate::now(), Language::En));
    fields_out(&FIELDS, &MessageRow { shown: &shown, waits });
    line_out("");
    calls_out(&shown.calls);
    Ok(ExitCode::SUCCESS)
}
