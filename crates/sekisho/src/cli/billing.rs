//! `sekisho billing [TENANT|list|delete]`: what tenants subscribed to, and until when it is paid.

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::settlement::billing::BillingStatus;
use serde::Serialize;

use super::amount::{Mode, amount_text, mode_text};
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{fields_out, json_out, line_out, rows_out};
use super::pages::{self, Listing, Pages};
use super::{Context, delete};
use crate::types::{Billing, Dated, Invoice};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Show all of this tenant, or of one billing by its id (bil_…); without: list
    #[arg(conflicts_with_all = ["status", "attention", "limit", "before"])]
    tenant: Option<String>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Every tenant's billing, the newest first
    List(List),
    /// Delete a tenant's billing, or one by its id (bil_…); a new subscription brings it back
    Delete(Delete),
}

#[derive(clap::Args)]
struct List {
    /// Only those with this status: none, cancelled, incomplete, unpaid, paused, past_due, trialing or active
    #[arg(long, value_parser = status)]
    status: Option<BillingStatus>,
    /// Only those that need attention: for this reason, or for any
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    attention: Option<String>,
    #[command(flatten)]
    mode: Mode,
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
struct Delete {
    #[command(flatten)]
    delete: delete::Args,
    #[command(flatten)]
    mode: Mode,
}

const COLUMNS: [(&str, &str); 7] = [
    ("TENANT", "tenant"),
    ("STATUS", "status"),
    ("ACCESS", "access_text"),
    ("UNTIL", "entitled_until"),
    ("PAID", "paid_text"),
    ("ATTENTION", "attention"),
    ("ID", "id"),
];

const FIELDS: [(&str, &str); 12] = [
    ("tenant", "tenant"),
    ("id", "id"),
    ("mode", "mode"),
    ("status", "status"),
    ("attention", "attention"),
    ("access", "access_text"),
    ("until", "entitled_until"),
    ("paid until", "paid_through"),
    ("trial ends", "trial_end"),
    ("cancels at", "cancel_at"),
    ("ended", "ended_at"),
    ("paid", "paid_text"),
];

const SUBSCRIPTIONS: [(&str, &str); 5] = [
    ("SUBSCRIPTION", "id"),
    ("STATUS", "status"),
    ("PERIOD ENDS", "/current_period/end"),
    ("PAID UNTIL", "paid_through"),
    ("CANCELS AT", "cancel_at"),
];

const INVOICES: [(&str, &str); 6] = [
    ("INVOICE", "id"),
    ("STATUS", "status"),
    ("DUE", "due_text"),
    ("PAID", "paid_text"),
    ("PAID AT", "paid_at"),
    ("SUBSCRIPTION", "subscription"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match (args.command, args.tenant) {
        (Some(Command::List(args)), _) => list(args, context).await,
        (Some(Command::Delete(args)), _) => {
            let query = Query::new().with("livemode", args.mode.livemode());
            let target = delete::DeleteTarget { noun: "billing of", list: "billing", query };
            delete::run(target, args.delete, context).await
        }
        (None, Some(tenant)) => show(&tenant, args.list, context).await,
        (None, None) => list(args.list, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new()
        .with("status", args.status.map(BillingStatus::name))
        .with("livemode", args.mode.livemode())
        .with("attention", args.attention);
    let list = Listing { path: "/v1/billing", query, columns: &COLUMNS, nothing: "no billing yet" };
    pages::out(&client, &args.pages, list, Row::of).await?;
    Ok(ExitCode::SUCCESS)
}

async fn show(tenant: &str, args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new().with("livemode", args.mode.livemode());
    let mut found: Vec<Whole<Dated<Billing>>> =
        client.items("/v1/billing", &query.clone().with("tenant", Some(tenant))).await?;
    if found.is_empty() {
        found.extend(client.find(&path(&["billing", tenant])?, &query).await?);
    }
    // Live first.
    found.sort_by_key(|one| Reverse(one.thing.livemode));
    if found.is_empty() {
        bail!("no billing of {tenant} is known; `sekisho billing list` lists those that are");
    }
    for (n, shown) in found.into_iter().enumerate() {
        if args.pages.json {
            json_out(&shown);
            continue;
        }
        if n > 0 {
            line_out("");
        }
        page_out(&Row::of(shown.known));
    }
    Ok(ExitCode::SUCCESS)
}

/// Billing with the texts of a table or a page.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    billing: Dated<Billing>,
    paid_text: String,
    access_text: &'static str,
    mode: &'static str,
}

impl Row {
    fn of(billing: Dated<Billing>) -> Self {
        let Billing { amount_paid_total, currency, access, livemode, .. } = &billing.thing;
        Self {
            paid_text: amount_text(*amount_paid_total, currency.as_deref()),
            access_text: if *access { "yes" } else { "no" },
            mode: mode_text(*livemode),
            billing,
        }
    }
}

#[derive(Serialize)]
struct InvoiceRow<'i> {
    #[serde(flatten)]
    invoice: &'i Invoice,
    due_text: String,
    paid_text: String,
}

impl<'i> InvoiceRow<'i> {
    fn of(invoice: &'i Invoice) -> Self {
        let text = |amount: i64| amount_text(amount, invoice.currency.as_deref());
        Self { invoice, due_text: text(invoice.amount_due), paid_text: text(invoice.amount_paid) }
    }
}

fn page_out(shown: &Row) {
    fields_out(&FIELDS, shown);
    let Billing { subscriptions, invoices, .. } = &shown.billing.thing;
    if !subscriptions.is_empty() {
        line_out("");
        rows_out(&SUBSCRIPTIONS, subscriptions, "");
    }
    if !invoices.is_empty() {
        line_out("");
        rows_out(&INVOICES, &invoices.iter().map(InvoiceRow::of).collect::<Vec<_>>(), "");
    }
}

fn status(text: &str) -> Result<BillingStatus, String> {
    BillingStatus::parse(text)
        .ok_or_else(|| format!("expected one of {}", BillingStatus::ALL.map(BillingStatus::name).join(", ")))
}
