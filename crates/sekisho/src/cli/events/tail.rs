//! New events as they come.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use sekisho_core::Seq;
use sekisho_store::{EventFilter, EventSummary, FIND_MAX, Order, Store};

use super::{COLUMNS, Conditions};
use crate::cli::Context;
use crate::cli::output::{cell, json_out, line_out};
use crate::view;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    conditions: Conditions,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const POLL: Duration = Duration::from_millis(300);
/// Longer than an event can take from its receipt to its commit.
const OVERLAP_MS: i64 = 10_000;

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let mut follower = Follower::from_now_on(&*store, &args.conditions).await?;
    if !args.json {
        eprintln!("waiting for events; Ctrl-C ends it");
    }
    loop {
        for event in follower.next(&*store).await? {
            let mut shown = view::event(&event);
            view::unlink(&*store, [&mut shown]).await?;
            if args.json {
                json_out(&shown);
            } else {
                let cells: Vec<_> = COLUMNS.iter().map(|(_, name)| cell(&shown[*name])).collect();
                line_out(&cells.join("  "));
            }
        }
    }
}

/// Sees every new event once. Numbers are given at receipt and seen at commit, so a lower one may appear after a
/// higher: the last moments are read again each time, and what was shown is passed over.
pub struct Follower {
    filter: EventFilter,
    start: Seq,
    shown: BTreeSet<Seq>,
}

impl Follower {
    pub async fn from_now_on(store: &dyn Store, conditions: &Conditions) -> anyhow::Result<Self> {
        let newest = store.find_events(EventFilter { limit: 1, ..EventFilter::default() }).await?;
        let start = newest.events.first().map_or(Seq::ZERO, |event| event.seq);
        Ok(Self { filter: conditions.filter()?, start, shown: BTreeSet::new() })
    }

    /// Waits a moment, then gives what is new, oldest first.
    pub async fn next(&mut self, store: &dyn Store) -> anyhow::Result<Vec<EventSummary>> {
        tokio::time::sleep(POLL).await;
        let newest = self.shown.last().copied().unwrap_or(self.start);
        let from = Seq::floor_of(newest.made_at().plus_ms(-OVERLAP_MS)).max(self.start);
        let mut events = self.after(from, store).await?;
        events.retain(|event| self.shown.insert(event.seq));
        self.shown = self.shown.split_off(&from);
        Ok(events)
    }

    /// Every event with a higher number.
    async fn after(&self, mut from: Seq, store: &dyn Store) -> anyhow::Result<Vec<EventSummary>> {
        let mut events = Vec::new();
        loop {
            let (order, limit) = (Order::OldestFirst, FIND_MAX);
            let filter = EventFilter { after: Some(from), order, limit, ..self.filter.clone() };
            let page = store.find_events(filter).await?;
            events.extend(page.events);
            let Some(next) = page.next else { return Ok(events) };
            from = next;
        }
    }
}
