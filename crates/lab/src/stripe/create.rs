//! What a caller can bring about: refunds and checkout sessions.
//!
//! A refund moves money once: never more than was received, less what was refunded before.

use serde_json::{Value, json};

use super::books::{Books, text};
use super::refusal::Refusal;

/// How long a session may stay open.
const OPEN_MIN_S: i64 = 30 * 60;
const OPEN_MAX_S: i64 = 24 * 3600;

pub fn refund(books: &mut Books, params: &Value, now: i64) -> Result<Value, Refusal> {
    let payment = Payment::find(books, params)?;
    let left = payment.received - payment.refunded(books);
    if left <= 0 {
        return Err(Refusal::already_refunded());
    }
    let amount = number(params, "amount").unwrap_or(left);
    if amount < 1 {
        return Err(Refusal::invalid("amount", "Invalid positive integer"));
    }
    if amount > left {
        let message =
            format!("Refund amount ({amount}) is greater than unrefunded amount on charge ({left})");
        return Err(Refusal::new(400, None, message).about("amount"));
    }
    let id = books.fresh_id("re");
    let entry = json!({
        "id": books.fresh_id("txn"),
        "object": "balance_transaction",
        "amount": -amount,
        "available_on": now,
        "balance_type": "payments",
        "created": now,
        "currency": payment.currency,
        "description": "REFUND FOR CHARGE",
        "exchange_rate": null,
        "fee": 0,
        "fee_details": [],
        "net": -amount,
        "reporting_category": "refund",
        "source": id,
        "status": "pending",
        "type": "refund",
    });
    let refund = json!({
        "id": id,
        "object": "refund",
        "amount": amount,
        "balance_transaction": entry["id"],
        "charge": payment.charge,
        "created": now,
        "currency": payment.currency,
        "metadata": metadata(params),
        "payment_intent": payment.intent,
        "reason": params["reason"],
        "receipt_number": null,
        "source_transfer_reversal": null,
        "status": "succeeded",
        "transfer_reversal": null,
    });
    books.put(entry);
    books.put(refund.clone());
    books.emit("refund.created", &refund, now);
    payment.mark(books, amount, now);
    Ok(refund)
}

/// What money came in by, as far as the books know it.
struct Payment {
    intent: Option<String>,
    charge: Option<String>,
    received: i64,
    currency: Value,
}

impl Payment {
    fn find(books: &Books, params: &Value) -> Result<Self, Refusal> {
        let named = |name: &str| {
            let Some(id) = params[name].as_str() else { return Ok(None) };
            books.find(name, id).map(Some).ok_or_else(|| Refusal::no_such(400, name, id, name))
        };
        let (intent, charge) = match (named("payment_intent")?, named("charge")?) {
            (Some(intent), _) => (Some(intent), books.find("charge", &text(intent, "latest_charge"))),
            (None, Some(charge)) => {
                (books.find("payment_intent", &text(charge, "payment_intent")), Some(charge))
            }
            (None, None) => {
                let message = "One of the following params should be provided for this request: \
                               payment_intent or charge.";
                return Err(Refusal::new(400, Some("parameter_missing"), message));
            }
        };
        let captured = charge.and_then(|charge| charge["amount_captured"].as_i64());
        let received = intent.and_then(|intent| intent["amount_received"].as_i64());
        let Some(received) = captured.or(received).filter(|amount| *amount > 0) else {
            return Err(Refusal::new(400, None, "This payment has no successful charge to refund."));
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

    /// Failed and cancelled refunds gave the money back.
    fn refunded(&self, books: &Books) -> i64 {
        let of = self.intent.as_deref().or(self.charge.as_deref()).unwrap_or_default();
        let counts = |refund: &&Value| !matches!(refund["status"].as_str(), Some("failed" | "canceled"));
        books.refunds_of(of).filter(counts).filter_map(|refund| refund["amount"].as_i64()).sum()
    }

    fn mark(&self, books: &mut Books, amount: i64, now: i64) {
        let charge = self.charge.as_deref().and_then(|id| books.find("charge", id)).cloned();
        if let Some(mut charge) = charge {
            let refunded = charge["amount_refunded"].as_i64().unwrap_or_default() + amount;
            charge["amount_refunded"] = refunded.into();
            charge["refunded"] = (refunded >= self.received).into();
            books.put(charge.clone());
            books.emit("charge.refunded", &charge, now);
        }
    }
}

pub fn session(books: &mut Books, params: &Value, now: i64) -> Result<Value, Refusal> {
    let expires_at = number(params, "expires_at").unwrap_or(now + OPEN_MAX_S);
    if !(now + OPEN_MIN_S..=now + OPEN_MAX_S).contains(&expires_at) {
        let message = "The `expires_at` timestamp must be between 30 minutes and 24 hours from now.";
        return Err(Refusal::new(400, None, message).about("expires_at"));
    }
    let mut total = 0_i64;
    let mut currency = params["currency"].clone();
    for (n, item) in params["line_items"].as_array().into_iter().flatten().enumerate() {
        let (unit_amount, own) = price(books, item, n)?;
        let quantity = number(item, "quantity").unwrap_or(1);
        let sum = unit_amount.checked_mul(quantity).and_then(|amount| total.checked_add(amount));
        total = sum.filter(|sum| *sum >= 0).ok_or_else(|| {
            Refusal::invalid(&format!("line_items[{n}]"), "The amount can't be represented")
        })?;
        currency = own;
    }
    let id = books.fresh_id("cs_test");
    let session = json!({
        "id": id,
        "object": "checkout.session",
        "amount_subtotal": total,
        "amount_total": total,
        "cancel_url": params["cancel_url"],
        "client_reference_id": params["client_reference_id"],
        "created": now,
        "currency": currency,
        "customer": params["customer"],
        "customer_email": params["customer_email"],
        "expires_at": expires_at,
        "invoice": null,
        "livemode": false,
        "locale": params["locale"],
        "metadata": metadata(params),
        "mode": params["mode"].as_str().unwrap_or("payment"),
        "payment_intent": null,
        "payment_method_types": params["payment_method_types"].as_array().cloned().unwrap_or_default(),
        "payment_status": "unpaid",
        "status": "open",
        "subscription": null,
        "success_url": params["success_url"],
        "total_details": { "amount_discount": 0, "amount_shipping": 0, "amount_tax": 0 },
        "ui_mode": params["ui_mode"].as_str().unwrap_or("hosted_page"),
        "url": format!("https://checkout.stripe.com/c/pay/{id}"),
    });
    books.put(session.clone());
    Ok(session)
}

/// Unit amount and currency of a line, from its own data or from a price in the books.
fn price(books: &Books, item: &Value, n: usize) -> Result<(i64, Value), Refusal> {
    if let Some(id) = item["price"].as_str() {
        let param = format!("line_items[{n}][price]");
        let price = books.find("price", id).ok_or_else(|| Refusal::no_such(400, "price", id, &param))?;
        return Ok((price["unit_amount"].as_i64().unwrap_or_default(), price["currency"].clone()));
    }
    let data = &item["price_data"];
    let param = format!("line_items[{n}][price_data][unit_amount]");
    let amount = number(data, "unit_amount").ok_or_else(|| Refusal::missing(&param))?;
    Ok((amount, data["currency"].clone()))
}

fn metadata(params: &Value) -> Value {
    params["metadata"].as_object().map_or_else(|| json!({}), |map| Value::Object(map.clone()))
}

fn number(params: &Value, name: &str) -> Option<i64> {
    params[name].as_str().and_then(|text| text.parse().ok())
}
