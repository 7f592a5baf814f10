//! `sekisho reconcile`: reads from providers what never came. Also the way to import payments that were made before Sekisho.

use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::Time;

use super::Context;
use super::client::{Client, Needs, Query};
use super::output::{hint, json_out, rows_out};
use super::when::moment;
use crate::types::{NewReconciliation, Reconciliation, ReconciliationReport};

#[derive(clap::Args)]
pub struct Args {
    /// Only this source; without: every source that has an api_key
    #[arg(long)]
    source: Option<String>,
    /// How far to look back, such as 30d; without: all events that the provider still lists
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Time>,
    /// Only say what is missing: nothing is taken in, processed or delivered
    #[arg(long)]
    dry_run: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 8] = [
    ("SOURCE", "source"),
    ("LISTED", "listed"),
    ("KNOWN", "known"),
    ("MISSING", "missing"),
    ("TAKEN IN", "closed"),
    ("DIFFERING", "differing"),
    ("COMPLETE", "complete"),
    ("ERROR", "error"),
];

const DIFFERENCES: [(&str, &str); 4] =
    [("OBJECT", "object"), ("ID", "id"), ("KIND", "kind"), ("DETAIL", "detail")];

/// Exits with 1 when a list could not be read to its end.
pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let sources = match args.source {
        Some(source) => vec![source],
        None => compared(&client).await?,
    };
    let mut reports: Vec<ReconciliationReport> = Vec::new();
    for source in sources {
        let order = NewReconciliation { source, since: args.since, dry_run: args.dry_run };
        let report: ReconciliationReport = client.post("/v1/reconciliations", &order).await?;
        if args.json {
            json_out(&report);
        }
        reports.push(report);
    }
    if !args.json {
        rows_out(&COLUMNS, &reports, "");
        let differences: Vec<_> = reports.iter().flat_map(|report| &report.differences).collect();
        if !differences.is_empty() {
            rows_out(&DIFFERENCES, &differences, "");
        }
    }
    let taken_in = reports.iter().any(|report| report.figures.closed + report.figures.differing > 0);
    if taken_in && !args.dry_run && !client.is_served() {
        hint("no server runs here: what was taken in is processed when one does (`sekisho serve`)");
    }
    let all = reports.iter().all(|report| report.complete);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn compared(client: &Client) -> anyhow::Result<Vec<String>> {
    let all: Vec<Reconciliation> = client.items("/v1/reconciliations", &Query::new()).await?;
    let compared: Vec<_> = all.into_iter().filter(|one| one.enabled).map(|one| one.source).collect();
    if compared.is_empty() {
        bail!("no source has an api_key: add one to its [[source]], then restart");
    }
    Ok(compared)
}
