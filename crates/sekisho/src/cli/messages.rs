//! `sekisho messages show`: one piece of work and where it stands.

use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::Seq;

use super::Context;
use super::output::{calls_out, fields_out, json_out, line_out};
use crate::view;

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

const FIELDS: [(&str, &str); 10] = [
    ("id", "id"),
    ("lane", "lane"),
    ("event", "event"),
    ("standing", "standing"),
    ("since", "at"),
    ("due", "due_at"),
    ("attempts", "attempts"),
    ("note", "note"),
    ("reason", "reason"),
    ("error", "error"),
];

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    let Command::Show(args) = command;
    let (store, _) = context.open_store().await?;
    let Some(shown) = view::message_with_all(&*store, args.id).await? else {
        bail!("no message has the id {}", args.id.as_message());
    };
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    fields_out(&FIELDS, &shown);
    line_out("");
    calls_out(&shown);
    Ok(ExitCode::SUCCESS)
}
