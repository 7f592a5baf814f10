//! `sekisho billing [TENANT|list|delete]`: what tenants subscribed to, and until when it is paid.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use sekisho_core::settlement::billing::{Derived, Facts, Status, view};
use sekisho_core::settlement::reading::billing_name;
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{StateFilter, Store};
use serde_json::{Value, json};

use super::amount::{Mode, amount_text, mode_text};
use super::output::{cell, fields_out, json_out, line_out, rows_out};
use super::pages::Pages;
use super::server::Old;
use super::{Context, delete, pages, states};
use crate::now;
use crate::view::unlink;

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
    status: Option<Status>,
    /// Only those that need attention: for this reason, or for any
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    attention: Option<String>,
    #[command(flatten)]
    mode: Mode,
    #[command(flatten)]
    pages: Pages<String>,
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
    ("ACCESS", "access"),
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
    ("access", "access"),
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
    ("PERIOD ENDS", "period_end"),
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
            delete::run(Old::Billing(args.mode.livemode()), args.delete, context).await
        }
        (None, Some(tenant)) => show(&tenant, args.list, context).await,
        (None, None) => list(args.list, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, seen) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &StateFilter {
        status: args.status.map(|status| status.name().to_owned()),
        livemode: args.mode.livemode(),
        attention: args.attention,
        ..StateFilter::all(Kind::Billing, 0)
    };
    let as_json = args.pages.json;
    let fetch = async |before: Option<String>, limit| {
        let found = states::page(store, query, before, limit).await?;
        let mut rows: Vec<_> =
            found.iter().map(|state| (state.key.id.clone(), row(state, seen.grace, as_json))).collect();
        unlink(store, rows.iter_mut().map(|(_, row)| row)).await?;
        Ok(rows)
    };
    pages::out(&args.pages, &COLUMNS, "no billing yet", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

async fn show(tenant: &str, args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, seen) = context.open_store().await?;
    let modes = [Some(true), Some(false), None];
    let names = modes.map(|livemode| format!("b:{}", billing_name(livemode, tenant)));
    let own = Key::new(Kind::Billing, tenant);
    let found = store.load(names.to_vec(), vec![own]).await?.states;
    let is_meant = |one: &State| args.mode.allows(one.index.livemode) && one.is_shown();
    let mut found: Vec<_> = found.into_values().filter(is_meant).collect();
    // Live first.
    found.sort_by_key(|state| std::cmp::Reverse(state.index.livemode));
    if found.is_empty() {
        bail!("no billing of {tenant} is known; `sekisho billing list` lists those that are");
    }
    for (n, state) in found.iter().enumerate() {
        let mut shown = row(state, seen.grace, args.pages.json);
        unlink(&*store, [&mut shown]).await?;
        if args.pages.json {
            json_out(&shown);
            continue;
        }
        if n > 0 {
            line_out("");
        }
        page_out(&shown);
    }
    Ok(ExitCode::SUCCESS)
}

/// A tenant's billing as the API shows it, with the texts of a page unless it is for programs.
fn row(state: &State, grace: Duration, as_json: bool) -> Value {
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    let mut shown = match Facts::parse(&state.facts) {
        Ok(facts) => view(&state.key.id, &facts, &Derived::of(&facts), now(), grace_ms),
        Err(error) => {
            json!({ "id": state.key.id, "object": "billing", "status": "unreadable", "error": error.to_string() })
        }
    };
    if !as_json {
        shown["paid_text"] = amount_text(&shown["amount_paid_total"], &shown["currency"]).into();
        shown["access"] = if shown["access"] == true { "yes" } else { "no" }.into();
        shown["mode"] = mode_text(shown["livemode"].as_bool()).into();
    }
    shown
}

fn page_out(shown: &Value) {
    fields_out(&FIELDS, shown);
    let items = |name: &str| shown[name].as_array().cloned().unwrap_or_default();
    let (mut subscriptions, mut invoices) = (items("subscriptions"), items("invoices"));
    for subscription in &mut subscriptions {
        subscription["period_end"] = cell(&subscription["current_period"]["end"]).into();
    }
    for invoice in &mut invoices {
        invoice["due_text"] = amount_text(&invoice["amount_due"], &invoice["currency"]).into();
        invoice["paid_text"] = amount_text(&invoice["amount_paid"], &invoice["currency"]).into();
    }
    for (columns, rows) in [(&SUBSCRIPTIONS[..], subscriptions), (&INVOICES[..], invoices)] {
        if !rows.is_empty() {
            line_out("");
            rows_out(columns, &rows, "");
        }
    }
}

fn status(text: &str) -> Result<Status, String> {
    Status::parse(text).ok_or_else(|| format!("expected one of {}", Status::ALL.map(Status::name).join(", ")))
}
