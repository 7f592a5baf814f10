//! `sekisho books [show|check]`: what every account holds, and whether that is what the payments say.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::Context;
use super::amount::{amount_text, mode_text};
use super::client::{Client, Needs, Query, Whole};
use super::output::{Progress, count, json_out, line_out, rows_out};
use crate::types::{Account, BooksReport};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    show: Show,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Every account with the sum of its lines, by currency and mode
    Show(Show),
    /// Compare all lines with the payments they belong to; exits with 1 when something differs
    Check(Check),
}

#[derive(clap::Args)]
struct Show {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Check {
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 4] =
    [("ACCOUNT", "account"), ("MODE", "mode"), ("BALANCE", "balance_text"), ("LINES", "lines")];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => show(args.show, context).await,
        Some(Command::Show(args)) => show(args, context).await,
        Some(Command::Check(args)) => check(args, context).await,
    }
}

/// What the accounts hold.
#[derive(Deserialize)]
pub struct AccountSums {
    pub accounts: Vec<Whole<Account>>,
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let sums = client.get::<AccountSums>("/v1/books", &Query::new()).await?.accounts;
    if args.json {
        sums.iter().for_each(json_out);
        return Ok(ExitCode::SUCCESS);
    }
    let row = |sum: &Whole<Account>| SumRow::new(sum.clone(), sum.balance, &sum.currency, sum.livemode);
    let rows: Vec<_> = sums.iter().map(row).collect();
    rows_out(&COLUMNS, &rows, "the books are empty: no payments received yet");
    Ok(ExitCode::SUCCESS)
}

/// A sum with the texts of a table.
#[derive(Serialize)]
pub struct SumRow<T> {
    #[serde(flatten)]
    sum: T,
    mode: &'static str,
    balance_text: String,
}

impl<T> SumRow<T> {
    pub fn new(sum: T, balance: i64, currency: &str, livemode: Option<bool>) -> Self {
        Self { sum, mode: mode_text(livemode), balance_text: amount_text(balance, Some(currency)) }
    }
}

async fn check(args: Check, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let progress = Progress::new();
    progress.show("comparing the books with the payments");
    let report: BooksReport = client.get("/v1/books/check", &Query::new()).await?;
    drop(progress);
    if args.json {
        json_out(&report);
    } else {
        tell(&report);
    }
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(report: &BooksReport) {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    line_out(&format!(
        "checked {}, {} and {}",
        count(number(report.payments), "payment"),
        count(number(report.lines), "line"),
        count(number(report.accounts), "account")
    ));
    report.warnings.iter().for_each(|warning| line_out(&format!("note: {warning}")));
    report.differences.iter().for_each(|difference| line_out(&difference.to_string()));
    if report.differences.is_empty() {
        line_out("the lines sum to zero, and every payment is booked as its facts say");
    } else {
        line_out(&format!(
            "{}: nothing was changed; `sekisho payments show ID` shows what is known of a payment, and `sekisho audit \
             verify` whether its history was touched",
            count(report.differences.len(), "difference")
        ));
    }
}
