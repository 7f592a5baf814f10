//! Past events, settled again.

use std::process::ExitCode;

use sekisho_core::Time;

use super::{EventConditions, Range};
use crate::acts::{Replay, ReplayReport};
use crate::cli::Context;
use crate::cli::bulk::{BulkOptions, confirm};
use crate::cli::client::{Client, Needs};
use crate::cli::output::{count, json_out, line_out, rows_out};

#[derive(clap::Args)]
pub struct Args {
    /// Which events, by Sekisho's id or the provider's
    ids: Vec<String>,
    #[command(flatten)]
    conditions: EventConditions,
    #[command(flatten)]
    range: Range,
    /// Every event there is
    #[arg(long)]
    all: bool,
    /// Repeat completed deliveries
    #[arg(long)]
    again: bool,
    /// Why; recorded in the audit log
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    bulk: BulkOptions,
}

const PATH: &str = "/v1/events/replay";

const NOTICES: [(&str, &str); 5] =
    [("NOTIFY", "rule"), ("CHANNEL", "channel"), ("NEW", "new"), ("TOLD", "told"), ("UNSENT", "unsent")];

const ROUTES: [(&str, &str); 6] = [
    ("ROUTE", "route"),
    ("NEW", "new"),
    ("DELIVERED", "delivered"),
    ("WAITING", "waiting"),
    ("DEAD", "dead"),
    ("DISCARDED", "discarded"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let mut order = Replay {
        ids: args.ids,
        filter: args.conditions.event_query(&args.range),
        all: args.all,
        again: args.again,
        dry_run: args.bulk.dry_run,
        reason: args.reason,
    };
    let must_ask = args.bulk.must_ask(&order.ids);
    // Only a forecast needs the routes; without one, no secret need be at hand.
    let needs = if must_ask || order.dry_run { Needs::ACT.and_configuration() } else { Needs::ACT };
    let client = Client::open(context, needs).await?;
    if must_ask {
        let preview: ReplayReport = client.post(PATH, &Replay { dry_run: true, ..order.clone() }).await?;
        foretell(&preview);
        confirm(preview.found)?;
        // What came since then was not looked at.
        order = order.bounded(preview.until.unwrap_or(Time::from_ms(0)))?;
    }
    let report: ReplayReport = client.post(PATH, &order).await?;
    if args.bulk.json {
        json_out(&report);
    } else if report.dry_run {
        foretell(&report);
    } else {
        tell(&report, client.is_served());
    }
    Ok(ExitCode::SUCCESS)
}

fn foretell(report: &ReplayReport) {
    line_out(&format!("{} would be processed again", count(report.found - report.unfinished, "event")));
    if !report.routes.is_empty() {
        rows_out(&ROUTES, &report.routes, "");
    }
    if report.without_route > 0 {
        line_out(&format!("no route takes {} of them", report.without_route));
    }
    if !report.notices.is_empty() {
        rows_out(&NOTICES, &report.notices, "");
    }
    match report.notices.iter().map(|notices| notices.new).sum::<usize>() {
        0 => line_out("no notice would be sent"),
        new => line_out(&format!("{} would be sent", count(new, "notice"))),
    }
    if report.announcements > 0 {
        line_out(&format!(
            "{} would be made for the first time",
            count(report.announcements, "announcement")
        ));
    }
    for rule in &report.unanswered {
        line_out(&format!("{} has no answer for {}: {}", rule.rule, count(rule.count, "event"), rule.error));
    }
    let before = report.routes.iter().any(|route| route.delivered + route.waiting + route.discarded > 0);
    if before && report.again {
        line_out("completed deliveries are repeated (--again)");
    } else if before {
        line_out("completed deliveries are not repeated; --again repeats them");
    }
    if !report.again && report.routes.iter().any(|route| route.dead > 0) {
        line_out("dead letters are not retried by a replay: use `sekisho dead retry`");
    }
    remarks(report);
}

fn tell(report: &ReplayReport, is_served: bool) {
    line_out(&format!("{} queued to be processed again", count(report.queued, "event")));
    remarks(report);
    if report.queued > 0 && !is_served {
        line_out("no server is running on this store: they wait until one is started");
    }
}

fn remarks(report: &ReplayReport) {
    if report.unfinished > 0 {
        line_out(&format!("{} not finished yet, skipped", count(report.unfinished, "event")));
    }
    if !report.missing.is_empty() {
        line_out(&format!("no event has the id {}", report.missing.join(", ")));
    }
    if report.more {
        line_out("more match than one command may change; narrow it with --since and --until");
    }
}
