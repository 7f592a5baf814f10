//! `sekisho dead list|groups|show|retry|discard`: what failed for good and waits for a person.

mod redo;

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::{Seq, Time};
use sekisho_store::{DeadFilter, DeadGroup, GROUPED_MAX, Risk, Store};
use serde_json::{Value, json};

use super::amount::amount_text;
use super::output::{calls_out, fields_out, json_out, line_out, request_out, rows_out};
use super::server::Verb;
use super::when::moment;
use super::{Context, pages};
use crate::acts::DeadQuery;
use crate::view;

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
    pages: pages::Pages,
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
    ("AT RISK", "at_risk"),
];

const FIELDS: [(&str, &str); 17] = [
    ("id", "id"),
    ("lane", "lane"),
    ("reason", "reason"),
    ("class", "class"),
    ("error", "error"),
    ("attempts", "attempts"),
    ("failed", "died_at"),
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
        Command::Retry(args) => redo::run(Verb::Retry, args, context).await,
        Command::Discard(args) => redo::run(Verb::Discard, args.into(), context).await,
    }
}

impl Conditions {
    fn query(self, reason: Option<String>) -> DeadQuery {
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
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &args.conditions.query(args.reason).filter()?;
    let fetch = async |before, limit| {
        let found = store.find_dead(DeadFilter { before, limit, ..query.clone() }).await?;
        let mut rows: Vec<_> = found.iter().map(view::dead_letter).collect();
        view::unlink(store, &mut rows).await?;
        if !args.pages.json {
            rows.iter_mut().for_each(put_risk);
        }
        Ok(found.iter().map(|letter| letter.job).zip(rows).collect())
    };
    pages::out(&args.pages, &COLUMNS, "no dead letters", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

async fn groups(args: Groups, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let query = args.conditions.query(args.reason).filter()?;
    let found = store.find_dead_groups(DeadFilter { limit: GROUPED_MAX, ..query }).await?;
    if args.json {
        found.iter().for_each(|group| json_out(&json!(group)));
    } else {
        groups_out(&GROUPS, &found, "no dead letters");
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each group, the largest first.
fn groups_out(columns: &[(&str, &str)], groups: &[DeadGroup], nothing: &str) {
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_by_key(|group| Reverse(group.count));
    let row = |group: &&DeadGroup| {
        let mut row = json!(group);
        let worth = |risk: &Risk| amount_text(&json!(risk.amount), &json!(risk.currency));
        row["at_risk"] = group.at_risk.iter().map(worth).collect::<Vec<_>>().join(", ").into();
        row
    };
    rows_out(columns, &groups.iter().map(row).collect::<Vec<_>>(), nothing);
}

/// What the payment behind a letter is worth, in words.
fn put_risk(letter: &mut Value) {
    if !letter["amount"].is_null() {
        letter["at_risk"] = amount_text(&letter["amount"], &letter["currency"]).into();
    }
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let id = args.id.as_message();
    let Some(mut shown) = view::dead_letter_with_all(&*store, args.id).await? else {
        bail!("no dead letter has the id {id} (any more); try `sekisho messages show {id}`");
    };
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    put_risk(&mut shown);
    fields_out(&FIELDS, &shown);
    line_out("");
    calls_out(&shown);
    if !shown["headers"].is_null() {
        request_out(&shown);
    }
    Ok(ExitCode::SUCCESS)
}
