//! New events as they come.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use sekisho_core::Seq;

use super::{COLUMNS, EventConditions};
use crate::cli::Context;
use crate::cli::client::{Client, Needs, Query, Whole};
use crate::cli::output::{cells, hint, json_out, line_out};
use crate::types::{Event, Page};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    conditions: EventConditions,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const POLL: Duration = Duration::from_millis(300);
/// Longer than an event can take from its receipt to its commit.
const OVERLAP_MS: i64 = 10_000;

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let mut follower = Follower::from_now_on(&client, &args.conditions).await?;
    if !args.json {
        hint("waiting for events; Ctrl-C ends it");
    }
    loop {
        for event in follower.next().await? {
            if args.json {
                json_out(&event);
            } else {
                line_out(&cells(&COLUMNS, &event).join("  "));
            }
        }
    }
}

/// Sees every new event once. Numbers are given at receipt and seen at commit, so a lower one may appear after a
/// higher: the last moments are read again each time, and what was shown is passed over.
pub struct Follower<'c> {
    client: &'c Client,
    query: Query,
    start: Seq,
    shown: BTreeSet<Seq>,
}

const PATH: &str = "/v1/events";
/// As many as a page of the API may hold.
const PAGE: usize = 1_000;

impl<'c> Follower<'c> {
    pub async fn from_now_on(client: &'c Client, conditions: &EventConditions) -> anyhow::Result<Self> {
        let newest: Vec<Event> =
            client.items(PATH, &Query::new().flag("own", true).with("limit", Some(1))).await?;
        let start = newest.first().map(number).transpose()?.unwrap_or(Seq::ZERO);
        Ok(Self { client, query: conditions.query(), start, shown: BTreeSet::new() })
    }

    /// Waits a moment, then gives what is new, oldest first.
    pub async fn next(&mut self) -> anyhow::Result<Vec<Whole<Event>>> {
        tokio::time::sleep(POLL).await;
        let newest = self.shown.last().copied().unwrap_or(self.start);
        let from = Seq::floor_of(newest.made_at().plus_ms(-OVERLAP_MS)).max(self.start);
        let mut events = Vec::new();
        for event in self.after(from).await? {
            if self.shown.insert(number(&event)?) {
                events.push(event);
            }
        }
        self.shown = self.shown.split_off(&from);
        Ok(events)
    }

    /// Every event with a higher number.
    async fn after(&self, from: Seq) -> anyhow::Result<Vec<Whole<Event>>> {
        let mut events = Vec::new();
        let mut after = from.as_event().to_string();
        loop {
            let query = self.query.clone().with("after", Some(after)).with("limit", Some(PAGE));
            let page: Page<Whole<Event>> = self.client.get(PATH, &query).await?;
            events.extend(page.items);
            let Some(next) = page.next else { return Ok(events) };
            after = next;
        }
    }
}

fn number(event: &Event) -> anyhow::Result<Seq> {
    Ok(event.id.parse()?)
}
