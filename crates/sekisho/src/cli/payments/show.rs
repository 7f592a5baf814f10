//! One payment: where it stands, its amounts, what belongs to it, and what made it so.

use std::process::ExitCode;

use serde::Serialize;

use super::find::find;
use crate::cli::Context;
use crate::cli::amount::{Mode, amount_text, mode_text};
use crate::cli::client::{Client, Needs, Query, Whole, path};
use crate::cli::output::{fields_out, json_out, line_out, rows_out};
use crate::types::{AuditEntry, Dated, Dispute, Payment, PaymentReferences, Refund, RefundOrder};

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
    ("id", "/payment/id"),
    ("status", "/payment/status"),
    ("attention", "/payment/attention"),
    ("mode", "mode"),
    ("amount", "amount"),
    ("received", "received"),
    ("missing", "missing"),
    ("failed", "/payment/failed_tries"),
    ("refunded", "refunded"),
    ("on its way", "refund_pending"),
    ("fee", "fee"),
    ("net", "net"),
    ("dispute", "/payment/dispute_status"),
    ("its fee", "dispute_fee"),
    ("left", "net_of_dispute"),
    ("tenant", "/payment/tenant"),
    ("customer", "/payment/customer"),
    ("purpose", "/payment/purpose"),
    ("reference", "/payment/reference"),
    ("about", "/payment/description"),
    ("metadata", "metadata"),
    ("receipt", "/payment/receipt_url"),
    ("created", "/payment/created_at"),
    ("changed", "/payment/changed_at"),
];

const REFUNDS: [(&str, &str); 5] = [
    ("REFUND", "id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount_text"),
    ("REASON", "reason"),
    ("FAILURE", "failure"),
];

const REFUND_ORDERS: [(&str, &str); 7] = [
    ("REFUND ORDER", "order"),
    ("STATUS", "status"),
    ("AMOUNT", "amount_text"),
    ("BY", "by"),
    ("REASON", "reason"),
    ("ORDERED", "ordered_at"),
    ("ERROR", "error"),
];

const DISPUTES: [(&str, &str); 7] = [
    ("DISPUTE", "id"),
    ("STATUS", "status"),
    ("AMOUNT", "amount_text"),
    ("TAKEN", "withdrawn_text"),
    ("REFUNDED", "reinstated_text"),
    ("FEE", "fee_text"),
    ("REASON", "reason"),
];

/// What happened, and the event that caused it.
const HISTORY: [(&str, &str); 6] = [
    ("AT", "at"),
    ("WHO", "actor"),
    ("WHAT", "action"),
    ("STATUS", "/details/after/status"),
    ("EVENT", "/details/event_id"),
    ("TYPE", "/details/event_type"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let id = find(&client, &args.id, args.account.as_deref(), &args.mode).await?;
    let payment = client.get(&path(&["payments", &id])?, &Query::new()).await?;
    let history = client.items(&path(&["payments", &id, "history"])?, &Query::new()).await?;
    let shown = Shown { payment, history };
    if args.json {
        json_out(&shown);
    } else {
        page_out(&shown);
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    payment: Whole<Dated<Payment>>,
    history: Vec<Whole<AuditEntry>>,
}

fn page_out(shown: &Shown) {
    fields_out(&FIELDS, &Fields::of(&shown.payment));
    let payment = &shown.payment.thing;
    references_out(&payment.references);
    let currency = payment.currency.as_deref();
    let orders = payment.refund_orders.iter().map(|order| RefundOrderRow::of(order, currency));
    part_out(&REFUND_ORDERS, orders);
    part_out(&REFUNDS, payment.refunds.iter().map(|refund| RefundRow::of(refund, currency)));
    part_out(&DISPUTES, payment.disputes.iter().map(|dispute| DisputeRow::of(dispute, currency)));
    line_out("");
    rows_out(&HISTORY, &shown.history, "the audit log has nothing about it");
}

fn part_out(columns: &[(&str, &str)], rows: impl Iterator<Item = impl Serialize>) {
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        line_out("");
        rows_out(columns, &rows, "");
    }
}

/// The payment as fields to be read: amounts in its currency, without those that say nothing.
#[derive(Serialize)]
struct Fields<'p> {
    payment: &'p Dated<Payment>,
    mode: &'static str,
    metadata: String,
    amount: String,
    received: String,
    missing: Option<String>,
    refunded: String,
    refund_pending: Option<String>,
    fee: String,
    net: String,
    dispute_fee: Option<String>,
    net_of_dispute: Option<String>,
}

impl<'p> Fields<'p> {
    fn of(payment: &'p Dated<Payment>) -> Self {
        let shown = &payment.thing;
        let text = |amount: Option<i64>| amount_text(amount, shown.currency.as_deref());
        let is_disputed = shown.dispute_status.is_some();
        let unless_zero = |amount: i64| (is_disputed || amount != 0).then(|| text(Some(amount)));
        let metadata: Vec<_> = shown.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self {
            payment,
            mode: mode_text(shown.livemode),
            metadata: metadata.join(" "),
            amount: text(Some(shown.amount)),
            received: text(Some(shown.amount_received)),
            missing: unless_zero(shown.amount_missing),
            refunded: text(Some(shown.amount_refunded)),
            refund_pending: unless_zero(shown.amount_refund_pending),
            fee: text(shown.fee),
            net: text(shown.net),
            dispute_fee: unless_zero(shown.dispute_fee),
            net_of_dispute: is_disputed.then(|| text(Some(shown.net_of_dispute))),
        }
    }
}

fn references_out(references: &PaymentReferences) {
    let PaymentReferences { payment_intents, charges, sessions, orders, invoices, customers } = references;
    for (kind, ids) in [
        ("charges", charges),
        ("customers", customers),
        ("invoices", invoices),
        ("orders", orders),
        ("payment intents", payment_intents),
        ("sessions", sessions),
    ] {
        if !ids.is_empty() {
            line_out(&format!("{kind:10} {}", ids.join(" ")));
        }
    }
}

#[derive(Serialize)]
struct RefundRow<'r> {
    #[serde(flatten)]
    refund: &'r Refund,
    amount_text: String,
}

impl<'r> RefundRow<'r> {
    fn of(refund: &'r Refund, currency: Option<&str>) -> Self {
        Self { refund, amount_text: amount_text(refund.amount, currency) }
    }
}

#[derive(Serialize)]
struct RefundOrderRow<'r> {
    #[serde(flatten)]
    order: &'r RefundOrder,
    amount_text: String,
}

impl<'r> RefundOrderRow<'r> {
    fn of(order: &'r RefundOrder, currency: Option<&str>) -> Self {
        Self { order, amount_text: amount_text(order.amount, currency) }
    }
}

#[derive(Serialize)]
struct DisputeRow<'d> {
    #[serde(flatten)]
    dispute: &'d Dispute,
    amount_text: String,
    withdrawn_text: String,
    reinstated_text: String,
    fee_text: String,
}

impl<'d> DisputeRow<'d> {
    fn of(dispute: &'d Dispute, currency: Option<&str>) -> Self {
        let text = |amount: i64| amount_text(amount, currency);
        Self {
            dispute,
            amount_text: text(dispute.amount),
            withdrawn_text: text(dispute.withdrawn),
            reinstated_text: text(dispute.reinstated),
            fee_text: text(dispute.fee),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn h2_a_payment_is_shown_in_its_currency_without_what_says_nothing() {
        let none: [(); 0] = [];
        let mut shown = json!({
            "id": "pay_1", "object": "payment", "status": "paid", "failed_tries": 0, "settled": none, "linked": true,
            "amount": 1250, "currency": "usd", "amount_received": 1250, "amount_missing": 0, "amount_tip": 0,
            "amount_surcharge": 0, "amount_refunded": 0, "amount_refund_pending": 0, "disputed": false,
            "dispute_fee": 0, "net_of_dispute": 1250, "livemode": true, "metadata": { "a": "1", "b": "2" },
            "refunds": none, "refund_orders": none, "disputes": none,
            "references": {
                "payment_intents": none, "charges": none, "sessions": none, "orders": none, "invoices": none,
                "customers": none,
            },
            "facts": {
                "intents": {}, "charges": {}, "sessions": {}, "transactions": {}, "refunds": {}, "disputes": {},
            },
            "created_at": "2026-03-01T01:00:00Z", "changed_at": "2026-03-01T01:00:00Z",
        });
        let payment: Dated<Payment> = serde_json::from_value(shown.clone()).unwrap();
        let plain = Fields::of(&payment);
        assert_eq!((&*plain.amount, &*plain.refunded, &*plain.fee), ("12.50 usd", "0.00 usd", ""));
        assert_eq!((plain.net_of_dispute, plain.dispute_fee), (None, None));
        assert_eq!((&*plain.metadata, plain.mode), ("a=1 b=2", "live"));
        shown["dispute_status"] = "lost".into();
        shown["net_of_dispute"] = 0.into();
        let payment: Dated<Payment> = serde_json::from_value(shown).unwrap();
        assert_eq!(Fields::of(&payment).net_of_dispute.as_deref(), Some("0.00 usd"));
    }
}
