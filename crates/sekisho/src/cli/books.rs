//! `sekisho books [show|check]`: what every account holds, and whether that is what the payments say.

use std::process::ExitCode;

use sekisho_core::settlement::payment::balance_of;
use sekisho_store::Sum;
use serde_json::{Value, json};

use super::Context;
use super::amount::{amount_text, mode_text};
use super::output::{Progress, count, json_out, line_out, list_out};
use crate::acts::{self, BooksReport};

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

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let sums = store.find_sums(None).await?;
    let sums: Vec<_> = sums.iter().map(|sum| sum_shown(sum, args.json)).collect();
    list_out(args.json, &COLUMNS, &sums, "the books are empty: no payments received yet");
    Ok(ExitCode::SUCCESS)
}

/// What an account holds, with the texts of a table unless it is for programs.
pub fn sum_shown(sum: &Sum, as_json: bool) -> Value {
    let mut shown = json!({
        "account": sum.account,
        "currency": sum.currency,
        "livemode": sum.livemode,
        "balance": balance_of(&sum.account, sum.amount),
        "sum": sum.amount,
        "lines": sum.lines,
    });
    if !as_json {
        shown["mode"] = mode_text(sum.livemode).into();
        shown["balance_text"] = amount_text(&shown["balance"], &shown["currency"]).into();
    }
    shown
}

async fn check(args: Check, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let progress = Progress::new();
    progress.show("comparing the books with the payments");
    let report = acts::check_books(&*store).await?;
    drop(progress);
    if args.json {
        json_out(&json!(report));
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
