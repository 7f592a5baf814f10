//! Refunds: made by a caller or by hand, and what becomes of them.
//!
//! A refund moves money once: never more than was received, less what was refunded before. It begins as the test
//! wants it, waits when the balance is short, and ends when the test says so; each step emits what Stripe would.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Stripe;
use super::books::{StripeBooks, text};
use super::params::{metadata, number};
use super::refusal::StripeRefusal;

/// How refunds go in an account.
#[derive(Debug, Default)]
pub struct RefundTerms {
    /// By payment intent or charge; the empty text is all others.
    begin_as: HashMap<String, &'static str>,
    /// What refunds are paid from, in the smallest unit of whatever currency. `None` never runs out.
    balance: Option<i64>,
}

impl Stripe {
    /// The status of refunds made from now on: `succeeded`, `pending` or `requires_action`.
    pub fn refunds_begin_as(&self, status: &str) {
        self.refunds_of_begin_as("", status);
    }

    /// [`Stripe::refunds_begin_as`] for one payment intent or charge.
    pub fn refunds_of_begin_as(&self, payment: &str, status: &str) {
        let status = ["succeeded", "pending", "requires_action"].into_iter().find(|known| *known == status);
        let status = status.expect("a refund begins as succeeded, pending or requires_action");
        self.with_books(|books, _| books.terms.begin_as.insert(payment.to_owned(), status));
    }

    /// What there is to pay refunds from. Those that find too little are `pending` for `insufficient_funds`; those
    /// that wait already and can be paid now are paid, the oldest first. Sales add nothing: their money is not
    /// available yet.
    pub fn set_balance(&self, amount: i64) {
        self.with_books(|books, now| {
            books.terms.balance = Some(amount);
            pay_waiting(books, now);
        });
    }

    /// Adds to the balance, as a merchant does who was told that refunds wait.
    pub fn top_up(&self, amount: i64) {
        self.with_books(|books, now| {
            books.terms.balance = Some(books.terms.balance.unwrap_or_default() + amount);
            pay_waiting(books, now);
        });
    }

    /// What is left of the balance, if one was set.
    pub fn balance(&self) -> Option<i64> {
        self.with_books(|books, _| books.terms.balance)
    }

    /// Moves a refund to `pending`, `succeeded`, `failed` or `canceled` and returns it. A failed or cancelled one gives
    /// the charge its money back and stays what it is.
    pub fn finish_refund(&self, id: &str, status: &str) -> Value {
        self.with_books(|books, now| finish(books, id, status, now))
    }

    /// What a person does in Stripe's dashboard: no metadata, no key, no request of a caller. `None` is all that is left.
    pub fn refund_by_hand(&self, payment_intent: &str, amount: Option<i64>) -> Result<Value, String> {
        let mut params = json!({ "payment_intent": payment_intent, "reason": "requested_by_customer" });
        if let Some(amount) = amount {
            params["amount"] = amount.to_string().into();
        }
        self.with_books(|books, now| create(books, &params, now)).map_err(|refusal| refusal.message)
    }

    /// Refunds of a payment intent or charge, oldest first.
    pub fn refunds_of(&self, payment: &str) -> Vec<Value> {
        self.with_books(|books, _| books.children_of("refund", payment).cloned().collect())
    }
}

pub fn create(books: &mut StripeBooks, params: &Value, now: i64) -> Result<Value, StripeRefusal> {
    let payment = Payment::find(books, params)?;
    if let Some(charge) = payment.disputed(books) {
        return Err(StripeRefusal::disputed(&charge));
    }
    let left = payment.received - payment.refunded(books);
    if left <= 0 {
        return Err(StripeRefusal::already_refunded());
    }
    let amount = number(params, "amount").unwrap_or(left);
    if amount < 1 {
        return Err(StripeRefusal::invalid("amount", "Invalid positive integer"));
    }
    if amount > left {
        let message =
            format!("Refund amount ({amount}) is greater than unrefunded amount on charge ({left})");
        return Err(StripeRefusal::new(400, None, message).about("amount"));
    }
    let is_short = books.terms.balance.is_some_and(|balance| balance < amount);
    let status = if is_short { "pending" } else { payment.begins_as(&books.terms) };
    let mut refund = json!({
        "id": books.fresh_id("re"),
        "object": "refund",
        "amount": amount,
        "balance_transaction": null,
        "charge": payment.charge,
        "created": now,
        "currency": payment.currency,
        "metadata": metadata(params),
        "payment_intent": payment.intent,
        "reason": params["reason"],
        "receipt_number": null,
        "source_transfer_reversal": null,
        "status": status,
        "transfer_reversal": null,
    });
    if is_short {
        refund["pending_reason"] = "insufficient_funds".into();
    } else if status != "requires_action" {
        refund["balance_transaction"] = book(books, &refund, Entry::Refund, now);
    }
    books.put(refund.clone());
    books.emit("refund.created", &refund, now);
    payment.mark(books, amount, now);
    Ok(refund)
}

fn pay_waiting(books: &mut StripeBooks, now: i64) {
    let waits =
        |refund: &&Value| refund["status"] == "pending" && refund["pending_reason"] == "insufficient_funds";
    let waiting: Vec<_> = books.all("refund").filter(waits).cloned().collect();
    for refund in waiting {
        if books.terms.balance >= refund["amount"].as_i64() {
            finish(books, &text(&refund, "id"), "succeeded", now);
        }
    }
}

/// Panics when Stripe would never do it: that is a mistake in a test.
fn finish(books: &mut StripeBooks, id: &str, status: &str, now: i64) -> Value {
    let mut refund = books.find("refund", id).cloned().expect("there is such a refund");
    let was = text(&refund, "status");
    let is_known = matches!(
        (&*was, status),
        ("requires_action", "pending")
            | ("requires_action" | "pending" | "succeeded", "failed")
            | ("requires_action" | "pending", "succeeded" | "canceled")
    );
    assert!(is_known, "a refund that is {was} never becomes {status}");
    let mut previous = json!({ "status": was });
    let reason = refund.as_object_mut().and_then(|refund| refund.remove("pending_reason"));
    if let Some(reason) = reason {
        previous["pending_reason"] = reason;
    }
    refund["status"] = status.into();
    let is_booked = !refund["balance_transaction"].is_null();
    if matches!(status, "failed" | "canceled") {
        let why = if status == "failed" { "expired_or_canceled_card" } else { "merchant_request" };
        refund["failure_reason"] = why.into();
        if is_booked {
            refund["failure_balance_transaction"] = book(books, &refund, Entry::Failure, now);
        }
        give_back(books, &refund);
    } else if !is_booked {
        refund["balance_transaction"] = book(books, &refund, Entry::Refund, now);
        previous["balance_transaction"] = Value::Null;
    }
    books.put(refund.clone());
    let kinds = ["refund.failed", "refund.updated", "charge.refund.updated"];
    for kind in kinds.into_iter().skip(usize::from(status != "failed")) {
        books.emit_change(kind, &refund, previous.clone(), now);
    }
    refund
}

fn give_back(books: &mut StripeBooks, refund: &Value) {
    if let Some(mut charge) = books.find("charge", &text(refund, "charge")).cloned() {
        let amount = |value: &Value, name: &str| value[name].as_i64().unwrap_or_default();
        charge["amount_refunded"] = (amount(&charge, "amount_refunded") - amount(refund, "amount")).into();
        charge["refunded"] = false.into();
        books.put(charge);
    }
}

enum Entry {
    Refund,
    Failure,
}

/// Moves a refund's money out of the balance or back in; the id of the balance transaction.
fn book(books: &mut StripeBooks, refund: &Value, entry: Entry, now: i64) -> Value {
    let amount = refund["amount"].as_i64().unwrap_or_default();
    let (moved, kind, description) = match entry {
        Entry::Refund => (-amount, "refund", "REFUND FOR CHARGE"),
        Entry::Failure => (amount, "refund_failure", "REFUND FAILURE"),
    };
    books.terms.balance = books.terms.balance.map(|balance| balance + moved);
    let id = books.fresh_id("txn");
    books.put(json!({
        "id": id,
        "object": "balance_transaction",
        "amount": moved,
        "available_on": now,
        "balance_type": "payments",
        "created": now,
        "currency": refund["currency"],
        "description": description,
        "exchange_rate": null,
        "fee": 0,
        "fee_details": [],
        "net": moved,
        "reporting_category": kind,
        "source": refund["id"],
        "status": "pending",
        "type": kind,
    }));
    id.into()
}

/// What money came in by, as far as the books know it.
struct Payment {
    intent: Option<String>,
    charge: Option<String>,
    received: i64,
    currency: Value,
}

impl Payment {
    fn find(books: &StripeBooks, params: &Value) -> Result<Self, StripeRefusal> {
        let named = |name: &str| {
            let Some(id) = params[name].as_str() else { return Ok(None) };
            books.find(name, id).map(Some).ok_or_else(|| StripeRefusal::no_such(400, name, id, name))
        };
        let (intent, charge) = match (named("payment_intent")?, named("charge")?) {
            (Some(intent), _) => (Some(intent), books.find("charge", &text(intent, "latest_charge"))),
            (None, Some(charge)) => {
                (books.find("payment_intent", &text(charge, "payment_intent")), Some(charge))
            }
            (None, None) => {
                let message = "One of the following params should be provided for this request: \
                               payment_intent or charge.";
                return Err(StripeRefusal::new(400, Some("parameter_missing"), message));
            }
        };
        let captured = charge.and_then(|charge| charge["amount_captured"].as_i64());
        let received = intent.and_then(|intent| intent["amount_received"].as_i64());
        let Some(received) = captured.or(received).filter(|amount| *amount > 0) else {
            return Err(StripeRefusal::new(400, None, "This payment has no successful charge to refund."));
        };
        let id = |value: Option<&Value>| value.map(|value| text(value, "id"));
        let latest = intent.and_then(|intent| intent["latest_charge"].as_str()).map(str::to_owned);
        Ok(Self {
            intent: id(intent).or_else(|| charge?["payment_intent"].as_str().map(str::to_owned)),
            charge: id(charge).or(latest),
            received,
            currency: charge.or(intent).map_or(Value::Null, |value| value["currency"].clone()),
        })
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        self.charge.as_deref().into_iter().chain(self.intent.as_deref())
    }

    /// The charge, when a dispute took its money and was not won. An inquiry (`warning_…`) took none.
    fn disputed(&self, books: &StripeBooks) -> Option<String> {
        let took = |dispute: &Value| {
            matches!(dispute["status"].as_str(), Some("needs_response" | "under_review" | "lost"))
        };
        let mut disputes = self.ids().flat_map(|id| books.children_of("dispute", id));
        disputes.any(took).then(|| self.charge.clone().unwrap_or_default())
    }

    /// Failed and cancelled refunds gave the money back.
    fn refunded(&self, books: &StripeBooks) -> i64 {
        let of = self.intent.as_deref().or(self.charge.as_deref()).unwrap_or_default();
        let counts = |refund: &&Value| !matches!(refund["status"].as_str(), Some("failed" | "canceled"));
        books.children_of("refund", of).filter(counts).filter_map(|refund| refund["amount"].as_i64()).sum()
    }

    fn begins_as(&self, terms: &RefundTerms) -> &'static str {
        let mut wanted = self.ids().chain([""]).filter_map(|id| terms.begin_as.get(id));
        wanted.next().copied().unwrap_or("succeeded")
    }

    fn mark(&self, books: &mut StripeBooks, amount: i64, now: i64) {
        let charge = self.charge.as_deref().and_then(|id| books.find("charge", id)).cloned();
        if let Some(mut charge) = charge {
            let before = charge["amount_refunded"].as_i64().unwrap_or_default();
            let previous = json!({ "amount_refunded": before, "refunded": charge["refunded"] });
            charge["amount_refunded"] = (before + amount).into();
            charge["refunded"] = (before + amount >= self.received).into();
            books.put(charge.clone());
            books.emit_change("charge.refunded", &charge, previous, now);
        }
    }
}
