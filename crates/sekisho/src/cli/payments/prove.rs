//! One payment with all the evidence for it: to be read here, kept as JSON, or printed and handed on. Ends with 1 when the
//! evidence does not hold together.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use sekisho_core::language::Language;
use serde_json::json;

use crate::cli::Context;
use crate::cli::amount::{Mode, amount_text};
use crate::cli::client::{Client, Needs, Query, Whole, path};
use crate::cli::output::{count, json_out, line_out};
use crate::types::PaymentProof;
use crate::view;

use super::find::find;

#[derive(clap::Args)]
pub struct Args {
    /// Its id (pay_…), the app's reference, or what the provider calls any part of it: pi_…, ch_…, cs_…
    id: String,
    /// The connected account that the provider's id belongs to: acct_…
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    #[command(flatten)]
    mode: Mode,
    /// The whole report as one JSON object
    #[arg(long)]
    json: bool,
    /// Write the report as JSON to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the report to this file as a page that can be printed
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The language of that page: en or ja
    #[arg(long, default_value = "en")]
    language: Language,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let id = find(&client, &args.id, args.account.as_deref(), &args.mode).await?;
    let report: Whole<PaymentProof> = client.get(&path(&["payments", &id, "proof"])?, &Query::new()).await?;
    if let Some(file) = &args.out {
        write(file, &format!("{:#}\n", json!(report)))?;
    }
    if let Some(file) = &args.html {
        let page =
            view::proof_page(&report, args.language).context("the page of the report can't be made")?;
        write(file, &page)?;
    }
    if args.json {
        json_out(&report);
    } else {
        tell(&report);
        let written = [&args.out, &args.html].into_iter().flatten();
        written.for_each(|file| line_out(&format!("written to {}", file.display())));
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("can't write {}", file.display()))
}

fn tell(report: &PaymentProof) {
    let payment = &report.payment.thing;
    let amount = amount_text(payment.amount, payment.currency.as_deref());
    line_out(&format!("{}: {amount}, {}", payment.id, payment.status));
    let deliveries = match report.deliveries.len() {
        1 => "1 delivery".to_owned(),
        n => format!("{n} deliveries"),
    };
    line_out(&format!(
        "{}, {}, {deliveries}, {}, {}, {}",
        count(report.events.len(), "event"),
        count(report.decisions.len(), "decision"),
        count(report.notices.len(), "notice"),
        count(report.books.lines.len(), "line"),
        count(report.chain.links.len(), "link")
    ));
    for check in &report.checks {
        let mark = if check.passed { "ok" } else { "NO" };
        let fault = check.fault.as_deref().unwrap_or_default();
        line_out(format!("{mark}  {:10} {fault}", check.name).trim_end());
    }
    if !report.complete {
        line_out("note: there is more than a report holds; the oldest was left out");
    }
    line_out(if report.passed {
        "the evidence holds together; --json, --out FILE or --html FILE has all of it"
    } else {
        "the evidence does not hold together: nothing was changed; `sekisho audit verify` checks the whole log"
    });
}
