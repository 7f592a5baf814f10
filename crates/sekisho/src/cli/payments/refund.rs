//! `sekisho payments refund` and `release`: money back, once.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::find::find;
use crate::cli::Context;
use crate::cli::amount::{Mode, amount_text, minor};
use crate::cli::client::{Client, Needs, path};
use crate::cli::output::{json_out, line_out};
use crate::types::RefundOrdered;

#[derive(clap::Args)]
pub struct Args {
    /// Its id (pay_…), the app's reference, or what the provider calls any part of it: pi_…, ch_…, cs_…
    id: String,
    #[command(flatten)]
    mode: Mode,
    /// How much, in the currency's smallest unit; default: all that is left
    #[arg(long, value_name = "NUMBER", value_parser = minor, allow_negative_numbers = true)]
    amount: Option<i64>,
    /// Why. Stripe is told requested_by_customer and duplicate; other words are kept here
    #[arg(long, value_name = "TEXT", default_value = "requested_by_customer")]
    reason: String,
    /// For whoever asks later
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// Only say what would be ordered
    #[arg(long)]
    dry_run: bool,
    /// The same order under the same key is carried out once
    #[arg(long, value_name = "TEXT")]
    idempotency_key: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct ReleaseArgs {
    /// The payment: pay_…
    id: String,
    /// The refund order, as `payments show` has it
    order: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let id = find(&client, &args.id, None, &args.mode).await?;
    let path = path(&["payments", &id, "refunds"])?;
    let ordered: RefundOrdered =
        client.post_once(&path, &args.order(), args.idempotency_key.as_deref()).await?;
    if args.json {
        json_out(&ordered);
        return Ok(ExitCode::SUCCESS);
    }
    let order = &ordered.order;
    let amount = amount_text(order.amount, order.currency.as_deref());
    if args.dry_run {
        let how = if order.by_hand { ", by hand at the provider" } else { "" };
        line_out(&format!("{amount} of {} would be refunded{how}; nothing was ordered", ordered.payment));
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!("{amount} of {}: {}", ordered.payment, order.status));
    line_out(&format!("order {}", order.order));
    line_out(match &*order.status {
        _ if order.by_hand => "refund it at the provider; its own event closes the order",
        "held_back" => "too many automatic refunds within an hour: `sekisho payments release` lets it go",
        _ if client.is_served() => "`sekisho payments show` says what became of it",
        _ => "no server runs: it is refunded once one does",
    });
    Ok(ExitCode::SUCCESS)
}

pub async fn release(args: ReleaseArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let path = path(&["payments", &args.id, "release"])?;
    let released: RefundOrdered = client.post(&path, &json!({ "order": args.order })).await?;
    if args.json {
        json_out(&released);
    } else {
        line_out(&format!("released {}: {}", released.order.order, released.order.status));
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn order(&self) -> Map<String, Value> {
        let mut order = Map::new();
        order.insert("reason".into(), self.reason.clone().into());
        order.extend(self.amount.map(|amount| ("amount".into(), amount.into())));
        order.extend(self.notes.as_ref().map(|notes| ("notes".into(), notes.clone().into())));
        order.extend(self.dry_run.then(|| ("dry_run".into(), true.into())));
        order
    }
}
