//! One payment with all the evidence for it: to be read here, kept as JSON, or printed and handed on. Ends with 1 when the
//! evidence does not hold together.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use sekisho_core::language::Language;
use serde_json::Value;

use crate::cli::Context;
use crate::cli::amount::{Mode, amount_text};
use crate::cli::client::{Client, Needs, Query, path};
use crate::cli::output::{cell, count, json_out, line_out};
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
    let report: Value = client.get(&path(&["payments", &id, "proof"])?, &Query::new()).await?;
    if let Some(file) = &args.out {
        write(file, &format!("{report:#}\n"))?;
    }
    if let Some(file) = &args.html {
        let report = serde_json::from_value(report.clone()).context("the report can't be read")?;
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
    let passed = report["passed"].as_bool().unwrap_or(false);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("can't write {}", file.display()))
}

fn tell(report: &Value) {
    let payment = &report["payment"];
    let amount = amount_text(&payment["amount"], &payment["currency"]);
    line_out(&format!("{}: {amount}, {}", cell(&payment["id"]), cell(&payment["status"])));
    let (chain, books) = (&report["chain"], &report["books"]);
    let many = |value: &Value| value.as_array().map_or(0, Vec::len);
    let deliveries = match many(&report["deliveries"]) {
        1 => "1 delivery".to_owned(),
        n => format!("{n} deliveries"),
    };
    line_out(&format!(
        "{}, {}, {deliveries}, {}, {}, {}",
        count(many(&report["events"]), "event"),
        count(many(&report["decisions"]), "decision"),
        count(many(&report["notices"]), "notice"),
        count(many(&books["lines"]), "line"),
        count(many(&chain["links"]), "link")
    ));
    for check in report["checks"].as_array().into_iter().flatten() {
        let mark = if check["passed"] == true { "ok" } else { "NO" };
        line_out(format!("{mark}  {:10} {}", cell(&check["name"]), cell(&check["fault"])).trim_end());
    }
    if report["complete"] != true {
        line_out("note: there is more than a report holds; the oldest was left out");
    }
    line_out(if report["passed"] == true {
        "the evidence holds together; --json, --out FILE or --html FILE has all of it"
    } else {
        "the evidence does not hold together: nothing was changed; `sekisho audit verify` checks the whole log"
    });
}
