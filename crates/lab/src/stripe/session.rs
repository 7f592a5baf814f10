//! Checkout sessions: created by a caller, then paid, abandoned or expired.

use serde_json::{Value, json};

use super::Stripe;
use super::books::{StripeBooks, text};
use super::params::{metadata, number};
use super::refusal::StripeRefusal;
use super::sale::{PaymentMethod, Sold, intent, pay};

/// How long a session may stay open.
const OPEN_MIN_S: i64 = 30 * 60;
const OPEN_MAX_S: i64 = 24 * 3600;

/// How long a voucher of the convenience store is good.
pub const VOUCHER_S: i64 = 3 * 24 * 3600;

impl Stripe {
    /// The shop opens a session by itself; its id.
    pub fn open_session(&self, amount: i64, currency: &str, metadata: Value) -> String {
        let item = json!({ "price_data": { "currency": currency, "unit_amount": amount.to_string() }, "quantity": "1" });
        let params = json!({ "mode": "payment", "line_items": [item], "metadata": metadata, "success_url": "https://shop.example/" });
        let made = self.with_books(|books, now| create(books, &params, now));
        text(&made.expect("the session can be made"), "id")
    }

    /// All sessions of the platform's own account, the oldest first.
    pub fn sessions(&self) -> Vec<Value> {
        self.with_books(|books, _| {
            let mut all: Vec<Value> = books.all("checkout.session").cloned().collect();
            all.sort_by_key(|one| one["created"].as_i64());
            all
        })
    }

    /// The buyer pays an open session by card: intent, charge, and the session complete and paid.
    pub fn pay_session(&self, id: &str) -> Sold {
        self.with_books(|books, now| pay_by_card(books, id, now))
    }

    /// The buyer takes a voucher for the convenience store: the session is complete and unpaid. The payment intent's id.
    pub fn take_voucher(&self, id: &str) -> String {
        self.with_books(|books, now| {
            let intent = begin(books, id, now);
            let details = json!({ "expires_at": now + VOUCHER_S });
            let shown = json!({ "type": "konbini_display_details", "konbini_display_details": details });
            let changes = json!({ "status": "requires_action", "next_action": shown });
            change(books, &intent, changes, "payment_intent.requires_action", now);
            complete(books, id, &intent, "unpaid", "checkout.session.completed", now);
            intent
        })
    }

    /// The buyer pays the voucher of a session.
    pub fn pay_voucher(&self, id: &str) -> Sold {
        self.with_books(|books, now| {
            let intent = text(open(books, id, "complete"), "payment_intent");
            let sold = pay(books, &intent, PaymentMethod::Konbini, now);
            complete(books, id, &intent, "paid", "checkout.session.async_payment_succeeded", now);
            Sold { session: Some(id.to_owned()), ..sold }
        })
    }

    /// The voucher of a session runs out.
    pub fn expire_voucher(&self, id: &str) {
        self.with_books(|books, now| {
            let intent = text(open(books, id, "complete"), "payment_intent");
            let error = json!({ "code": "payment_intent_payment_attempt_expired", "type": "card_error" });
            let changes = json!({ "status": "requires_payment_method", "next_action": null, "last_payment_error": error });
            change(books, &intent, changes, "payment_intent.payment_failed", now);
            complete(books, id, &intent, "unpaid", "checkout.session.async_payment_failed", now);
        });
    }

    /// The buyer leaves, and the session runs out by itself.
    pub fn abandon_session(&self, id: &str) {
        self.with_books(|books, now| expire(books, id, now)).expect("an open session");
    }
}

/// Panics when there is none in this status: that is a mistake in a test.
fn open<'a>(books: &'a StripeBooks, id: &str, status: &str) -> &'a Value {
    let session = books.find("checkout.session", id).expect("there is such a session");
    assert_eq!(session["status"], status, "{id}");
    session
}

pub fn pay_by_card(books: &mut StripeBooks, id: &str, now: i64) -> Sold {
    let intent = begin(books, id, now);
    let sold = pay(books, &intent, PaymentMethod::Card, now);
    complete(books, id, &intent, "paid", "checkout.session.completed", now);
    Sold { session: Some(id.to_owned()), ..sold }
}

/// The payment intent comes into being when the buyer confirms.
fn begin(books: &mut StripeBooks, id: &str, now: i64) -> String {
    let session = open(books, id, "open").clone();
    let amount = session["amount_total"].as_i64().unwrap_or_default();
    let metadata = books.intent_metadata.remove(id).unwrap_or_else(|| json!({}));
    intent(books, amount, &text(&session, "currency"), metadata, now)
}

fn complete(books: &mut StripeBooks, id: &str, intent: &str, payment_status: &str, kind: &str, now: i64) {
    let changes = json!({
        "status": "complete", "payment_status": payment_status, "payment_intent": intent, "url": null,
    });
    change(books, id, changes, kind, now);
}

/// Changes an object and emits it.
pub fn change(books: &mut StripeBooks, id: &str, changes: Value, kind: &str, now: i64) -> Value {
    let mut object = books.get(id).cloned().expect("it is in the books");
    for (name, value) in changes.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    books.put(object.clone());
    books.emit(kind, &object, now);
    object
}

pub fn expire(books: &mut StripeBooks, id: &str, now: i64) -> Result<Value, StripeRefusal> {
    let kind = "checkout.session";
    let session = books.find(kind, id).ok_or_else(|| StripeRefusal::no_such(404, kind, id, "session"))?;
    if session["status"] != "open" {
        let message = format!(
            "Only Checkout Sessions with a status in [\"open\"] can be expired. This Checkout Session has a status of {}.",
            text(session, "status")
        );
        return Err(StripeRefusal::new(400, None, message));
    }
    let changes = json!({ "status": "expired", "url": null });
    Ok(change(books, id, changes, "checkout.session.expired", now))
}

pub fn create(books: &mut StripeBooks, params: &Value, now: i64) -> Result<Value, StripeRefusal> {
    let expires_at = number(params, "expires_at").unwrap_or(now + OPEN_MAX_S);
    if !(now + OPEN_MIN_S..=now + OPEN_MAX_S).contains(&expires_at) {
        let message = "The `expires_at` timestamp must be between 30 minutes and 24 hours from now.";
        return Err(StripeRefusal::new(400, None, message).about("expires_at"));
    }
    let mut total = 0_i64;
    let mut currency = params["currency"].clone();
    for (n, item) in params["line_items"].as_array().into_iter().flatten().enumerate() {
        let (unit_amount, own) = price(books, item, n)?;
        let quantity = number(item, "quantity").unwrap_or(1);
        let sum = unit_amount.checked_mul(quantity).and_then(|amount| total.checked_add(amount));
        total = sum.filter(|sum| *sum >= 0).ok_or_else(|| {
            StripeRefusal::invalid(&format!("line_items[{n}]"), "The amount can't be represented")
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
    books.intent_metadata.insert(id, metadata(&params["payment_intent_data"]));
    books.put(session.clone());
    Ok(session)
}

/// Unit amount and currency of a line, from its own data or from a price in the books.
fn price(books: &StripeBooks, item: &Value, n: usize) -> Result<(i64, Value), StripeRefusal> {
    if let Some(id) = item["price"].as_str() {
        let param = format!("line_items[{n}][price]");
        let price =
            books.find("price", id).ok_or_else(|| StripeRefusal::no_such(400, "price", id, &param))?;
        return Ok((price["unit_amount"].as_i64().unwrap_or_default(), price["currency"].clone()));
    }
    let data = &item["price_data"];
    let param = format!("line_items[{n}][price_data][unit_amount]");
    let amount = number(data, "unit_amount").ok_or_else(|| StripeRefusal::missing(&param))?;
    Ok((amount, data["currency"].clone()))
}
