//! `sekisho dead list|groups|show|retry|discard`: what failed for good and waits for a person.

mod redo;

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::{Seq, Time};
use serde::Serialize;

use super::Context;
use super::amount::amount_text;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{calls_out, fields_out, json_out, line_out, request_out, rows_out};
use super::pages::{self, Listing, Pages};
use super::when::moment;
use crate::types::{DeadGroup, DeadLetter, DeadLetterDetail, DeadQuery, Risk};
use redo::RedoChoice;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Dead letters, the newest first
    List(List),
    /// Dead letters by reason and lane, with the amount at risk
    Groups(Groups),
    /// One dead letter with its event and every call that failed
    Show(Show),
    /// Retry dead letters: by id, by filter, or all
    Retry(redo::Args),
    /// Discard dead letters: by id, by filter, or all
    Discard(redo::Discard),
}

#[derive(clap::Args)]
struct Conditions {
    /// Only of this source
    #[arg(long)]
    source: Option<String>,
    /// Only of this event type; a * at the end stands for anything: payment_intent.*
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only those to this route
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// Only those about this event: evt_…
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Only those that failed since: 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Time>,
    /// Only those that failed before that
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Time>,
}

#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    conditions: Conditions,
    /// Only those that failed for this reason, such as timeout or server_error
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
pub struct Groups {
    #[command(flatten)]
    conditions: Conditions,
    /// Only those that failed for this reason, such as timeout or server_error
    #[arg(long)]
    reason: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct Show {
    /// msg_…, as `dead list` writes it
    id: Seq,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 9] = [
    ("FAILED", "died_at"),
    ("ID", "id"),
    ("LANE", "lane"),
    ("TYPE", "type"),
    ("EVENT ID", "event_id"),
    ("PAYMENT", "/about/payment"),
    ("AT RISK", "at_risk"),
    ("ATTEMPTS", "attempts"),
    ("REASON", "reason"),
];

const GROUPS: [(&str, &str); 7] = [
    ("COUNT", "count"),
    ("REASON", "reason"),
    ("CLASS", "class"),
    ("LANE", "lane"),
    ("OLDEST", "oldest"),
    ("NEWEST", "newest"),
    ("AT RISK", "risk_text"),
];

const FIELDS: [(&str, &str); 18] = [
    ("id", "id"),
    ("lane", "lane"),
    ("reason", "reason"),
    ("class", "class"),
    ("error", "error"),
    ("attempts", "attempts"),
    ("failed", "died_at"),
    ("next automatic try", "next_try_at"),
    ("event", "event"),
    ("event id", "event_id"),
    ("source", "source"),
    ("type", "type"),
    ("about", "object"),
    ("payment", "/about/payment"),
    ("billing", "/about/billing"),
    ("tenant", "/about/tenant"),
    ("at risk", "at_risk"),
    ("timer", "timer"),
];

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list(args, context).await,
        Command::Groups(args) => groups(args, context).await,
        Command::Show(args) => show(args, context).await,
        Command::Retry(args) => redo::run(RedoChoice::Retry, args, context).await,
        Command::Discard(args) => redo::run(RedoChoice::Discard, args.into(), context).await,
    }
}

impl Conditions {
    fn dead_query(self, reason: Option<String>) -> DeadQuery {
        DeadQuery {
            source: self.source,
            event_type: self.event_type,
            reason,
            route: self.route,
            lane: None,
            event: self.event,
            since: self.since,
            until: self.until,
        }
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::of_list(&args.conditions.dead_query(args.reason));
    let list = Listing { path: "/v1/dead-letters", query, columns: &COLUMNS, nothing: "no dead letters" };
    let row = |letter: DeadLetter| LetterRow::new(letter.clone(), &letter);
    pages::out(&client, &args.pages, list, row).await?;
    Ok(ExitCode::SUCCESS)
}

async fn groups(args: Groups, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::of_list(&args.conditions.dead_query(args.reason));
    let found: Vec<Whole<DeadGroup>> = client.items("/v1/dead-letters/groups", &query).await?;
    if args.json {
        found.iter().for_each(json_out);
    } else {
        groups_out(&GROUPS, found.iter().map(|group| &**group), "no dead letters");
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each group, the largest first.
fn groups_out<'g>(columns: &[(&str, &str)], groups: impl Iterator<Item = &'g DeadGroup>, nothing: &str) {
    let mut rows: Vec<_> = groups.map(GroupRow::of).collect();
    rows.sort_by_key(|row| Reverse(row.group.count));
    rows_out(columns, &rows, nothing);
}

/// A group with what its payments are worth, in words.
#[derive(Serialize)]
struct GroupRow<'g> {
    #[serde(flatten)]
    group: &'g DeadGroup,
    risk_text: String,
}

impl<'g> GroupRow<'g> {
    fn of(group: &'g DeadGroup) -> Self {
        let worth = |risk: &Risk| amount_text(risk.amount, Some(&risk.currency));
        Self { group, risk_text: group.at_risk.iter().map(worth).collect::<Vec<_>>().join(", ") }
    }
}

/// A dead letter with what the payment behind it is worth, in words.
#[derive(Serialize)]
struct LetterRow<T> {
    #[serde(flatten)]
    shown: T,
    at_risk: String,
}

impl<T> LetterRow<T> {
    fn new(shown: T, letter: &DeadLetter) -> Self {
        Self { shown, at_risk: amount_text(letter.amount, letter.currency.as_deref()) }
    }
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let id = args.id.as_message().to_string();
    let found = client.find_unmasked(&path(&["dead-letters", &id])?, &Query::new()).await?;
    let Some(shown): Option<Whole<DeadLetterDetail>> = found else {
        bail!("no dead letter has the id {id} (any more); try `sekisho messages show {id}`");
    };
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    fields_out(&FIELDS, &LetterRow::new(&shown, &shown.letter));
    line_out("");
    calls_out(&shown.calls);
    if shown.content.headers.is_some() {
        request_out(&shown.content);
    }
    Ok(ExitCode::SUCCESS)
}
