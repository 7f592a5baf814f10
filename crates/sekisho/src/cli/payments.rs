//! `sekisho payments [list|show|create|refund|release|prove]`: what came of each order, announcing one before its customer
//! pays, giving money back, and the evidence for one.

mod create;
mod find;
mod prove;
mod refund;
mod show;

use std::process::ExitCode;

use sekisho_core::settlement::payment::PaymentStatus;
use serde::Serialize;

use super::Context;
use super::amount::{Mode, amount_text};
use super::client::{Client, Needs, Query};
use super::pages::{self, Listing, Pages};
use crate::types::{Dated, Payment};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum Command {
    /// The newest payments first
    List(List),
    /// One payment with its refunds, its disputes and the events that made it what it is
    Show(show::Args),
    /// Create a payment, or assign an existing one to its owner
    Create(create::Args),
    /// Refund all that is left of a payment, or a part
    Refund(refund::Args),
    /// Let a refund go that was held back
    Release(refund::ReleaseArgs),
    /// One payment with all the evidence for it, and whether that holds together; to be kept or printed
    Prove(prove::Args),
}

#[derive(clap::Args)]
struct List {
    /// Only those with this status: unpaid, processing, failed, expired, cancelled, partially_paid, paid,
    /// partially_refunded or refunded
    #[arg(long, value_parser = status)]
    status: Option<PaymentStatus>,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only of this customer
    #[arg(long, value_name = "ID")]
    customer: Option<String>,
    /// Only those that need attention: for this reason, such as unlinked, or for any
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    attention: Option<String>,
    #[command(flatten)]
    mode: Mode,
    #[command(flatten)]
    pages: Pages,
}

const COLUMNS: [(&str, &str); 8] = [
    ("CREATED", "created_at"),
    ("ID", "id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount_text"),
    ("TENANT", "tenant"),
    ("CUSTOMER", "customer"),
    ("REFERENCE", "reference"),
    ("ATTENTION", "attention"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Show(args)) => show::run(args, context).await,
        Some(Command::Create(args)) => create::run(args, context).await,
        Some(Command::Refund(args)) => refund::run(args, context).await,
        Some(Command::Release(args)) => refund::release(args, context).await,
        Some(Command::Prove(args)) => prove::run(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new()
        .with("status", args.status.map(PaymentStatus::name))
        .with("tenant", args.tenant)
        .with("customer", args.customer)
        .with("livemode", args.mode.livemode())
        .with("attention", args.attention);
    let list = Listing { path: "/v1/payments", query, columns: &COLUMNS, nothing: "no payments" };
    pages::out(&client, &args.pages, list, Row::of).await?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    payment: Dated<Payment>,
    amount_text: String,
}

impl Row {
    fn of(payment: Dated<Payment>) -> Self {
        let Payment { amount, currency, .. } = &payment.thing;
        Self { amount_text: amount_text(*amount, currency.as_deref()), payment }
    }
}

fn status(text: &str) -> Result<PaymentStatus, String> {
    PaymentStatus::parse(text)
        .ok_or_else(|| format!("expected one of {}", PaymentStatus::ALL.map(PaymentStatus::name).join(", ")))
}
