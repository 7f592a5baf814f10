//! One payment: where it stands, its amounts, what belongs to it, and what made it so.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::find::find;
use crate::cli::Context;
use crate::cli::amount::{Mode, amount_text, mode_text};
use crate::cli::client::{Client, Needs, Query, path};
use crate::cli::output::{cell, fields_out, json_out, line_out, rows_out};

#[derive(clap::Args)]
pub struct Args {
    /// Its id (pay_…), the app's reference, or what the provider calls any part of it: pi_…, ch_…, cs_…
    id: String,
    /// The connected account that the provider's id belongs to: acct_…
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    #[command(flatten)]
    mode: Mode,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const FIELDS: [(&str, &str); 24] = [
    ("id", "id"),
    ("status", "status"),
    ("attention", "attention"),
    ("mode", "mode"),
    ("amount", "amount"),
    ("received", "amount_received"),
    ("missing", "amount_missing"),
    ("failed", "failed_tries"),
    ("refunded", "amount_refunded"),
    ("on its way", "amount_refund_pending"),
    ("fee", "fee"),
    ("net", "net"),
    ("dispute", "dispute_status"),
    ("its fee", "dispute_fee"),
    ("left", "net_of_dispute"),
    ("tenant", "tenant"),
    ("customer", "customer"),
    ("purpose", "purpose"),
    ("reference", "reference"),
    ("about", "description"),
    ("metadata", "metadata"),
    ("receipt", "receipt_url"),
    ("created", "created_at"),
    ("changed", "changed_at"),
];

/// Amounts that are shown when there is something to say.
const AMOUNTS: [(&str, bool); 9] = [
    ("amount", true),
    ("amount_received", true),
    ("amount_missing", false),
    ("amount_refunded", true),
    ("amount_refund_pending", false),
    ("fee", true),
    ("net", true),
    ("dispute_fee", false),
    ("net_of_dispute", false),
];

const REFUNDS: [(&str, &str); 5] = [
    ("REFUND", "id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount"),
    ("REASON", "reason"),
    ("FAILURE", "failure"),
];

const REFUND_ORDERS: [(&str, &str); 7] = [
    ("REFUND ORDER", "order"),
    ("STATUS", "status"),
    ("AMOUNT", "amount"),
    ("BY", "by"),
    ("REASON", "reason"),
    ("ORDERED", "ordered_at"),
    ("ERROR", "error"),
];

const DISPUTES: [(&str, &str); 7] = [
    ("DISPUTE", "id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount"),
    ("TAKEN", "withdrawn"),
    ("REFUNDED", "reinstated"),
    ("FEE", "fee"),
    ("REASON", "reason"),
];

const HISTORY: [(&str, &str); 6] = [
    ("AT", "at"),
    ("WHO", "actor"),
    ("WHAT", "action"),
    ("STATUS", "status"),
    ("EVENT", "event"),
    ("TYPE", "type"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let id = find(&client, &args.id, args.account.as_deref(), &args.mode).await?;
    let mut shown: Value = client.get(&path(&["payments", &id])?, &Query::new()).await?;
    let history: Vec<Value> = client.items(&path(&["payments", &id, "history"])?, &Query::new()).await?;
    shown["history"] = history.into();
    if args.json {
        json_out(&shown);
    } else {
        page_out(&shown);
    }
    Ok(ExitCode::SUCCESS)
}

fn page_out(shown: &Value) {
    fields_out(&FIELDS, &fields(shown));
    references_out(&shown["references"]);
    for (columns, name) in
        [(&REFUND_ORDERS[..], "refund_orders"), (&REFUNDS[..], "refunds"), (&DISPUTES[..], "disputes")]
    {
        let rows: Vec<_> = items(shown, name).map(|row| in_currency(row, &shown["currency"])).collect();
        if !rows.is_empty() {
            line_out("");
            rows_out(columns, &rows, "");
        }
    }
    line_out("");
    let history: Vec<_> = items(shown, "history").map(step).collect();
    rows_out(&HISTORY, &history, "the audit log has nothing about it");
}

fn items<'v>(shown: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    shown[name].as_array().into_iter().flatten()
}

/// The payment as fields to be read: amounts in its currency, without those that say nothing.
fn fields(shown: &Value) -> Value {
    let mut fields = shown.clone();
    let is_disputed = !shown["dispute_status"].is_null();
    for (name, is_always) in AMOUNTS {
        let says_something =
            is_always || is_disputed || shown[name].as_i64().is_some_and(|amount| amount != 0);
        let is_due = if name == "net_of_dispute" { is_disputed } else { says_something };
        fields[name] =
            if is_due { amount_text(&shown[name], &shown["currency"]).into() } else { Value::Null };
    }
    fields["mode"] = mode_text(shown["livemode"].as_bool()).into();
    let metadata = shown["metadata"].as_object().into_iter().flatten();
    let metadata: Vec<_> = metadata.map(|(key, value)| format!("{key}={}", cell(value))).collect();
    fields["metadata"] = metadata.join(" ").into();
    fields
}

fn references_out(references: &Value) {
    for (kind, ids) in references.as_object().into_iter().flatten() {
        let ids: Vec<_> = ids.as_array().into_iter().flatten().map(cell).collect();
        if !ids.is_empty() {
            line_out(&format!("{:10} {}", kind.replace('_', " "), ids.join(" ")));
        }
    }
}

/// A refund or dispute with its amounts as people read them.
fn in_currency(row: &Value, currency: &Value) -> Value {
    let mut row = row.clone();
    for name in ["amount", "withdrawn", "reinstated", "fee"] {
        if row[name].is_number() {
            row[name] = amount_text(&row[name], currency).into();
        }
    }
    row
}

/// One step of its history: what happened, and the event that caused it.
fn step(entry: &Value) -> Value {
    let details = &entry["details"];
    json!({
        "at": entry["at"],
        "actor": entry["actor"],
        "action": entry["action"],
        "status": details["after"]["status"],
        "event": details["event_id"],
        "type": details["event_type"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_a_payment_is_shown_in_its_currency_without_what_says_nothing() {
        let shown = json!({
            "amount": 1250, "currency": "usd", "amount_received": 1250, "amount_refunded": 0,
            "amount_refund_pending": 0, "fee": null, "net": null, "dispute_fee": 0, "dispute_status": null,
            "net_of_dispute": 1250, "livemode": true, "metadata": { "a": "1", "b": "2" },
        });
        let plain = fields(&shown);
        assert_eq!((&plain["amount"], &plain["amount_refunded"]), (&"12.50 usd".into(), &"0.00 usd".into()));
        assert_eq!((&plain["net_of_dispute"], &plain["dispute_fee"]), (&Value::Null, &Value::Null));
        assert_eq!((&plain["metadata"], &plain["mode"]), (&"a=1 b=2".into(), &"live".into()));
        let mut disputed = shown;
        disputed["dispute_status"] = "lost".into();
        disputed["net_of_dispute"] = 0.into();
        assert_eq!(fields(&disputed)["net_of_dispute"], "0.00 usd");
    }
}
