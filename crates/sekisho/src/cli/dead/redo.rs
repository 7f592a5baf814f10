//! Dead letters, tried again or put aside.

use std::process::ExitCode;

use sekisho_core::Time;

use super::{Conditions, groups_out};
use crate::acts::{DeadLetterSelection, DeadReport};
use crate::cli::Context;
use crate::cli::bulk::{BulkOptions, confirm};
use crate::cli::client::{Client, Needs};
use crate::cli::output::{count, json_out, line_out};

/// What is to be done with dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoChoice {
    Retry,
    Discard,
}

impl RedoChoice {
    const fn path(self) -> &'static str {
        match self {
            Self::Retry => "/v1/dead-letters/retry",
            Self::Discard => "/v1/dead-letters/discard",
        }
    }
}

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Only those that failed for this reason, such as timeout or server_error
    #[arg(long)]
    reason: Option<String>,
    /// Why; recorded in the audit log
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
}

/// The same, but `--reason` says why they are discarded.
#[derive(clap::Args)]
pub struct Discard {
    #[command(flatten)]
    which: Which,
    /// Only those that failed for this reason, such as timeout or server_error
    #[arg(long = "died-of", value_name = "REASON")]
    died_of: Option<String>,
    /// Why they are discarded; recorded in the audit log
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    reason: Option<String>,
}

#[derive(clap::Args)]
struct Which {
    /// Which, as `dead list` writes them: msg_…
    ids: Vec<String>,
    #[command(flatten)]
    conditions: Conditions,
    /// Every dead letter there is
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    bulk: BulkOptions,
}

impl From<Discard> for Args {
    fn from(args: Discard) -> Self {
        Self { which: args.which, reason: args.died_of, note: args.reason.unwrap_or_default() }
    }
}

const GROUPS: [(&str, &str); 4] =
    [("COUNT", "count"), ("REASON", "reason"), ("LANE", "lane"), ("AT RISK", "risk_text")];

pub async fn run(decision: RedoChoice, args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let Args { which, reason, note } = args;
    let mut selection = DeadLetterSelection {
        ids: which.ids,
        filter: which.conditions.dead_query(reason),
        all: which.all,
        dry_run: which.bulk.dry_run,
        reason: note,
    };
    let client = Client::open(context, Needs::ACT).await?;
    if which.bulk.must_ask(&selection.ids) {
        let preview = DeadLetterSelection { dry_run: true, ..selection.clone() };
        let preview: DeadReport = client.post(decision.path(), &preview).await?;
        foretell(decision, &preview);
        confirm(preview.found)?;
        // What died since then was not looked at.
        selection = selection.bounded(preview.until.unwrap_or(Time::from_ms(0)))?;
    }
    let report: DeadReport = client.post(decision.path(), &selection).await?;
    if which.bulk.json {
        json_out(&report);
    } else if report.dry_run {
        foretell(decision, &report);
    } else {
        tell(decision, &report, client.is_served());
    }
    Ok(ExitCode::SUCCESS)
}

fn foretell(decision: RedoChoice, report: &DeadReport) {
    let act = match decision {
        RedoChoice::Retry => "retried",
        RedoChoice::Discard => "discarded",
    };
    line_out(&format!("{} would be {act}", count(report.found, "dead letter")));
    if report.found > 0 {
        groups_out(&GROUPS, report.groups.iter(), "");
    }
    remarks(report);
}

fn tell(decision: RedoChoice, report: &DeadReport, is_served: bool) {
    let letters = count(report.done, "dead letter");
    match decision {
        RedoChoice::Retry => line_out(&format!("{letters} queued again")),
        RedoChoice::Discard => line_out(&format!("{letters} discarded")),
    }
    remarks(report);
    if decision == RedoChoice::Retry && report.done > 0 && !is_served {
        line_out("no server is running on this store: they wait until one is started");
    }
}

fn remarks(report: &DeadReport) {
    if !report.missing.is_empty() {
        line_out(&format!("not a dead letter (any more): {}", report.missing.join(", ")));
    }
    if report.in_doubt > 0 {
        let left = count(report.in_doubt, "notice");
        line_out(&format!(
            "{left} skipped: delivery is uncertain and a retry may send a second copy. Name it, or use --reason uncertain"
        ));
    }
    if report.more {
        line_out("more match than one command may change: run it again for the rest");
    }
}
