//! A shop on top of the API: payments that came in, and what Stripe says of them.
//!
//! Everything a sale emits has the second in which it was made, in causal order. Nothing is sent: a test takes the
//! events and delivers them signed, late, twice, reordered or never.

use serde_json::{Value, json};

use super::Stripe;
use super::books::{StripeBooks, text};
use super::session;
use crate::shop::Shop;

/// Of every amount, in thousandths: 3.6 %.
const FEE_PER_MILLE: i64 = 36;
/// From the payment until its money is available.
const AVAILABLE_AFTER_S: i64 = 4 * 86_400;

/// The ids of a payment that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sold {
    pub payment_intent: String,
    pub charge: String,
    pub balance_transaction: String,
    pub session: Option<String>,
}

impl Stripe {
    /// A payment by card: `payment_intent.created`, `charge.succeeded`, `payment_intent.succeeded`. Intent and charge
    /// carry the metadata, an object of texts.
    pub fn sell(&self, amount: i64, currency: &str, metadata: Value) -> Sold {
        self.with_books(|books, now| {
            let intent = intent(books, amount, currency, metadata, now);
            pay(books, &intent, PaymentMethod::Card, now)
        })
    }

    /// [`Stripe::sell`] through a session, which carries the metadata too: `checkout.session.completed` comes last.
    pub fn sell_by_checkout(&self, amount: i64, currency: &str, metadata: Value) -> Sold {
        let line = json!({ "price_data": { "currency": currency, "unit_amount": amount.to_string() } });
        let params = json!({
            "success_url": "https://shop.example.test/thanks",
            "line_items": [line],
            "metadata": metadata,
            "payment_intent_data": { "metadata": metadata },
        });
        self.with_books(|books, now| {
            let session = session::create(books, &params, now).expect("the parameters are right");
            session::pay_by_card(books, &text(&session, "id"), now)
        })
    }

    /// Everything that a shop of the demo tells: its events can be listed, and each object is what the last event about
    /// it says. The shop sends them itself.
    pub fn stock(&self, shop: &Shop) {
        let events = shop.events.iter().map(|event| serde_json::from_str::<Value>(&event.body));
        self.with_books(|books, _| {
            for event in events.map(|event| event.expect("a shop writes JSON")) {
                let mut object = event["data"]["object"].clone();
                let known = books.get(&text(&object, "id")).map(|before| before["created"].clone());
                object["created"] = known.unwrap_or_else(|| event["created"].clone());
                books.put(object);
                books.put(event);
            }
        });
    }

    /// Events that came about since this was called last, oldest first. [`Stripe::forget`] takes one out of the list too.
    pub fn take_unsent(&self) -> Vec<Value> {
        self.with_books(|books, _| books.take_emitted())
    }

    /// Events from the n-th on, oldest first, whether or not they were taken. What a test put is not among them.
    pub fn events_since(&self, n: usize) -> Vec<Value> {
        self.with_books(|books, _| books.emitted_since(n))
    }

    /// How many events came about so far.
    pub fn events(&self) -> usize {
        self.with_books(|books, _| books.emitted())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentMethod {
    Card,
    Konbini,
}

impl PaymentMethod {
    fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Konbini => "konbini",
        }
    }

    /// What its charges' ids begin with, and the type of their balance transactions.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Card => ("ch", "charge"),
            Self::Konbini => ("py", "payment"),
        }
    }
}

/// An intent that nobody paid yet; its id.
pub fn intent(books: &mut StripeBooks, amount: i64, currency: &str, metadata: Value, now: i64) -> String {
    let id = books.fresh_id("pi");
    let intent = json!({
        "id": id,
        "object": "payment_intent",
        "amount": amount,
        "amount_capturable": 0,
        "amount_received": 0,
        "capture_method": "automatic",
        "created": now,
        "currency": currency,
        "customer": null,
        "description": null,
        "last_payment_error": null,
        "latest_charge": null,
        "livemode": false,
        "metadata": metadata,
        "next_action": null,
        "payment_method": null,
        "payment_method_types": ["card", "konbini"],
        "status": "requires_payment_method",
    });
    books.put(intent.clone());
    books.emit("payment_intent.created", &intent, now);
    id
}

/// The whole amount comes in.
pub fn pay(books: &mut StripeBooks, intent: &str, method: PaymentMethod, now: i64) -> Sold {
    let intent = books.find("payment_intent", intent).cloned().expect("there is such an intent");
    let (prefix, kind) = method.words();
    let (amount, currency) = (intent["amount"].as_i64().unwrap_or_default(), &intent["currency"]);
    let (id, entry, paid_by) = (books.fresh_id(prefix), books.fresh_id("txn"), books.fresh_id("pm"));
    let charge = json!({
        "id": id,
        "object": "charge",
        "amount": amount,
        "amount_captured": amount,
        "amount_refunded": 0,
        "balance_transaction": entry,
        "billing_details": { "email": "buyer@example.test", "name": "テスト 太郎", "phone": null },
        "captured": true,
        "created": now,
        "currency": currency,
        "customer": intent["customer"],
        "disputed": false,
        "failure_code": null,
        "livemode": false,
        "metadata": intent["metadata"],
        "paid": true,
        "payment_intent": intent["id"],
        "payment_method": paid_by,
        "payment_method_details": { "type": method.name() },
        "refunded": false,
        "status": "succeeded",
    });
    let fee = amount * FEE_PER_MILLE / 1_000;
    let fee_detail = json!({
        "amount": fee, "application": null, "currency": currency, "description": "Stripe processing fees",
        "type": "stripe_fee",
    });
    books.put(json!({
        "id": entry,
        "object": "balance_transaction",
        "amount": amount,
        "available_on": now + AVAILABLE_AFTER_S,
        "balance_type": "payments",
        "created": now,
        "currency": currency,
        "description": null,
        "exchange_rate": null,
        "fee": fee,
        "fee_details": [fee_detail],
        "net": amount - fee,
        "reporting_category": "charge",
        "source": id,
        "status": "pending",
        "type": kind,
    }));
    books.put(charge.clone());
    books.emit("charge.succeeded", &charge, now);
    let changes = json!({
        "amount_received": amount, "latest_charge": id, "next_action": null, "payment_method": paid_by,
        "status": "succeeded",
    });
    let intent_id = text(&intent, "id");
    session::change(books, &intent_id, changes, "payment_intent.succeeded", now);
    Sold { payment_intent: intent_id, charge: id, balance_transaction: entry, session: None }
}
