//! How Stripe tells of one-time payments, in both generations of its API. Events carry the object as it was at that moment.
//!
//! Before `2025-03-31.basil` a partial capture made a refund of what was released, and a charge had its balance transaction
//! from the start; since then the first is gone and the second comes with `charge.updated`.

use serde_json::{Value, json};

use super::told::Told;
use super::world::{Api, Course, Dispute, HOUR, Object, Purchase, Reference, Refund, RefundEnd};

/// All its events, in the order in which Stripe would make them.
pub fn tell(purchase: &Purchase) -> Vec<Told> {
    let mut till = Till::new(purchase);
    till.declined();
    match purchase.course {
        Course::Open => {}
        Course::Expired => till.session("expired", "expired", "unpaid"),
        Course::Free => till.session("completed", "complete", "no_payment_required"),
        Course::Cancelled => till.intent("canceled", "canceled", 0, None),
        Course::VoucherOpen => till.voucher(),
        Course::VoucherExpired => {
            till.voucher();
            till.wait(96 * HOUR);
            till.intent(
                "payment_failed",
                "requires_payment_method",
                0,
                Some("payment_intent_payment_attempt_expired"),
            );
            till.session("async_payment_failed", "complete", "unpaid");
        }
        Course::Authorised => till.authorised(),
        Course::PaidByCard => {
            till.paid();
            till.session("completed", "complete", "paid");
        }
        Course::PaidByVoucher => {
            till.voucher();
            till.wait(48 * HOUR);
            till.paid();
            till.session("async_payment_succeeded", "complete", "paid");
        }
        Course::PaidByCapture => {
            till.authorised();
            till.wait(HOUR);
            till.captured();
        }
    }
    for (n, refund) in purchase.refunds.iter().enumerate() {
        till.wait(24 * HOUR);
        till.refunded(n, refund);
    }
    if let Some(dispute) = purchase.dispute {
        till.wait(24 * HOUR);
        till.disputed(dispute);
    }
    till.told
}

/// What a capture cost, and the balance transactions that say so.
pub fn fee(amount: i64) -> i64 {
    amount * 36 / 1000
}

pub fn balance_transactions(purchase: &Purchase) -> Vec<Value> {
    let each = purchase.captures.iter().enumerate().map(|(n, amount)| {
        json!({
            "object": "balance_transaction", "id": transaction(purchase, n), "amount": amount, "fee": fee(*amount),
            "net": amount - fee(*amount), "currency": purchase.currency, "source": format!("ch_{}", purchase.name),
            "type": "charge", "reporting_category": "charge", "status": "pending", "exchange_rate": null,
        })
    });
    each.collect()
}

/// Later ones sort first, so that nothing can be read off the order of their names.
fn transaction(purchase: &Purchase, n: usize) -> String {
    format!("txn_{}{}", purchase.name, 9 - n)
}

struct Till<'p> {
    purchase: &'p Purchase,
    at: i64,
    told: Vec<Told>,
    captured: i64,
    transaction: Option<String>,
    /// As the charge has it: also what is on its way, and what came back later.
    refunded: i64,
}

impl<'p> Till<'p> {
    fn new(purchase: &'p Purchase) -> Self {
        let mut till =
            Self { purchase, at: purchase.at, told: Vec::new(), captured: 0, transaction: None, refunded: 0 };
        if purchase.has_intent() {
            till.intent("created", "requires_payment_method", 0, None);
        }
        till
    }

    fn wait(&mut self, seconds: i64) {
        self.at += seconds;
    }

    fn tell(&mut self, kind: &str, object: Value) {
        let purchase = self.purchase;
        let id = format!("evt_{}{}", purchase.name, self.told.len());
        self.told.push(event(&id, kind, self.at, purchase.live, purchase.api, object));
    }

    fn metadata(&self, object: Object) -> Value {
        let says = &self.purchase.says;
        let mut metadata = serde_json::Map::new();
        if let Some(tenant) = says.tenant.as_ref().filter(|_| says.tenant_on.contains(&object)) {
            metadata.insert("tenant_id".into(), json!(tenant));
        }
        if let Some(reference) = self.reference(object) {
            metadata.insert("order_id".into(), json!(reference));
        }
        metadata.into()
    }

    fn reference(&self, object: Object) -> Option<String> {
        let says = &self.purchase.says;
        says.reference.as_ref().filter(|_| says.reference_on.contains(&object)).map(written)
    }

    fn declined(&mut self) {
        for n in 0..self.purchase.declines {
            self.wait(60);
            let mut charge = self.charge();
            charge["id"] = json!(format!("ch_d{}{n}", self.purchase.name));
            charge["status"] = json!("failed");
            charge["paid"] = json!(false);
            charge["captured"] = json!(false);
            charge["failure_code"] = json!("card_declined");
            self.tell("charge.failed", charge);
            self.intent("payment_failed", "requires_payment_method", 0, Some("card_declined"));
        }
        self.wait(60);
    }

    fn voucher(&mut self) {
        let mut object = self.intent_object("requires_action", 0);
        let details = json!({ "expires_at": self.at + 96 * HOUR, "hosted_voucher_url": null, "stores": {} });
        object["next_action"] =
            json!({ "type": "konbini_display_details", "konbini_display_details": details });
        object["payment_method_types"] = json!(["konbini"]);
        self.tell("payment_intent.requires_action", object);
        self.session("completed", "complete", "unpaid");
    }

    fn authorised(&mut self) {
        let mut charge = self.charge();
        charge["captured"] = json!(false);
        self.tell("charge.succeeded", charge);
        let mut intent = self.intent_object("requires_capture", 0);
        intent["amount_capturable"] = json!(self.purchase.amount);
        self.tell("payment_intent.amount_capturable_updated", intent);
        self.session("completed", "complete", "unpaid");
    }

    fn paid(&mut self) {
        self.captured = self.purchase.received();
        if self.purchase.api == Api::Old {
            self.transaction = Some(transaction(self.purchase, 0));
        }
        self.tell("charge.succeeded", self.charge());
        self.intent("succeeded", "succeeded", self.captured, None);
        if self.purchase.api == Api::Basil {
            self.wait(2);
            self.transaction = Some(transaction(self.purchase, 0));
            self.tell("charge.updated", self.charge());
        }
    }

    fn captured(&mut self) {
        let purchase = self.purchase;
        for (n, part) in purchase.captures.iter().enumerate() {
            self.wait(60);
            self.captured += part;
            self.transaction = Some(transaction(purchase, n));
            let is_last = n + 1 == purchase.captures.len();
            let released = purchase.released();
            let makes_refund = is_last && released > 0 && purchase.api == Api::Old;
            if makes_refund {
                self.refunded += released;
            }
            self.tell("charge.captured", self.charge());
            if is_last {
                self.intent("succeeded", "succeeded", self.captured, None);
            }
            if makes_refund {
                let object = self.refund("release", 0, released, "succeeded");
                self.tell("refund.created", object);
                self.tell("charge.refunded", self.charge());
            }
        }
    }

    fn intent(&mut self, event: &str, status: &str, received: i64, error: Option<&str>) {
        let mut object = self.intent_object(status, received);
        if let Some(code) = error {
            object["last_payment_error"] = json!({ "code": code, "type": "card_error" });
        }
        if event == "canceled" {
            object["canceled_at"] = json!(self.at);
        }
        self.tell(&format!("payment_intent.{event}"), object);
    }

    fn intent_object(&self, status: &str, received: i64) -> Value {
        let purchase = self.purchase;
        json!({
            "object": "payment_intent", "id": format!("pi_{}", purchase.name), "amount": purchase.amount,
            "amount_capturable": 0, "amount_received": received, "currency": purchase.currency, "status": status,
            "created": purchase.at, "livemode": purchase.live, "customer": purchase.buyer,
            "latest_charge": (received > 0).then(|| format!("ch_{}", purchase.name)), "last_payment_error": null,
            "next_action": null, "canceled_at": null, "capture_method": "automatic_async",
            "payment_method_types": ["card"], "metadata": self.metadata(Object::Intent),
        })
    }

    fn charge(&self) -> Value {
        let purchase = self.purchase;
        let method = if purchase.course == Course::PaidByVoucher { "konbini" } else { "card" };
        json!({
            "object": "charge", "id": format!("ch_{}", purchase.name), "payment_intent": format!("pi_{}", purchase.name),
            "amount": purchase.amount, "amount_captured": self.captured, "amount_refunded": self.refunded,
            "captured": true, "paid": true, "status": "succeeded", "currency": purchase.currency,
            "refunded": self.refunded >= purchase.amount, "balance_transaction": self.transaction,
            "created": purchase.at, "livemode": purchase.live, "customer": purchase.buyer, "failure_code": null,
            "payment_method_details": { "type": method },
            "receipt_url": null, "metadata": self.metadata(Object::Charge),
        })
    }

    fn session(&mut self, event: &str, status: &str, payment_status: &str) {
        let purchase = self.purchase;
        if !purchase.has_session() {
            return;
        }
        let object = json!({
            "object": "checkout.session", "id": format!("cs_{}", purchase.name), "mode": "payment", "status": status,
            "payment_status": payment_status,
            "payment_intent": purchase.has_intent().then(|| format!("pi_{}", purchase.name)),
            "amount_total": purchase.amount, "currency": purchase.currency, "customer": purchase.buyer,
            // As Stripe suggests: whose it is, and no order.
            "client_reference_id": purchase.buyer, "created": purchase.at, "livemode": purchase.live,
            "metadata": self.metadata(Object::Session), "payment_link": null, "invoice": null, "subscription": null,
        });
        self.tell(&format!("checkout.session.{event}"), object);
    }

    fn refund(&self, kind: &str, n: usize, amount: i64, status: &str) -> Value {
        let purchase = self.purchase;
        json!({
            "object": "refund", "id": format!("re_{kind}{}{n}", purchase.name), "charge": format!("ch_{}", purchase.name),
            "payment_intent": format!("pi_{}", purchase.name), "amount": amount, "currency": purchase.currency,
            "status": status, "reason": null, "created": self.at, "metadata": {},
        })
    }

    fn refunded(&mut self, n: usize, Refund { amount, end }: &Refund) {
        let begun = match end {
            RefundEnd::WaitsForCustomer | RefundEnd::Cancelled => "requires_action",
            RefundEnd::Pending | RefundEnd::Done => "pending",
            RefundEnd::Failed => "succeeded",
        };
        self.tell("refund.created", self.refund("", n, *amount, begun));
        // What waits for the customer is not yet in the charge's sum.
        if begun != "requires_action" {
            self.refunded += amount;
            self.tell("charge.refunded", self.charge());
        }
        self.wait(24 * HOUR);
        match end {
            RefundEnd::Pending | RefundEnd::WaitsForCustomer => {}
            RefundEnd::Done => self.tell("refund.updated", self.refund("", n, *amount, "succeeded")),
            RefundEnd::Cancelled => self.tell("refund.updated", self.refund("", n, *amount, "canceled")),
            RefundEnd::Failed => {
                let mut failed = self.refund("", n, *amount, "failed");
                failed["failure_reason"] = json!("expired_or_canceled_card");
                self.tell("refund.failed", failed.clone());
                self.tell("charge.refund.updated", failed);
                self.refunded -= amount;
            }
        }
    }

    fn disputed(&mut self, dispute: Dispute) {
        let steps: &[(&str, &str, &[i64])] = match dispute {
            Dispute::Open => {
                &[("created", "needs_response", &[]), ("funds_withdrawn", "needs_response", &[-1])]
            }
            Dispute::Won => &[
                ("created", "needs_response", &[]),
                ("funds_withdrawn", "needs_response", &[-1]),
                ("updated", "under_review", &[-1]),
                ("closed", "won", &[-1]),
                ("funds_reinstated", "won", &[-1, 1]),
            ],
            Dispute::Lost => &[
                ("created", "needs_response", &[]),
                ("funds_withdrawn", "needs_response", &[-1]),
                ("closed", "lost", &[-1]),
            ],
            Dispute::LostThenWon => &[
                ("created", "needs_response", &[]),
                ("funds_withdrawn", "needs_response", &[-1]),
                ("closed", "lost", &[-1]),
                ("funds_reinstated", "won", &[-1, 1]),
                ("updated", "won", &[-1, 1]),
            ],
            Dispute::Inquiry => {
                &[("created", "warning_needs_response", &[]), ("closed", "warning_closed", &[])]
            }
        };
        let purchase = self.purchase;
        for (event, status, moved) in steps {
            self.wait(24 * HOUR);
            let moved = moved.iter().enumerate().map(|(n, sign)| {
                let (amount, fee) = (sign * purchase.received(), if n == 0 { 1300 } else { 0 });
                json!({
                    "object": "balance_transaction", "id": format!("txn_d{}{n}", purchase.name), "amount": amount,
                    "fee": fee, "net": amount - fee, "currency": purchase.currency, "type": "adjustment",
                })
            });
            let object = json!({
                "object": "dispute", "id": format!("du_{}", purchase.name), "charge": format!("ch_{}", purchase.name),
                "payment_intent": format!("pi_{}", purchase.name), "amount": purchase.received(),
                "currency": purchase.currency, "status": status, "reason": "fraudulent", "livemode": purchase.live,
                "created": self.at, "balance_transactions": moved.collect::<Vec<_>>(),
            });
            self.tell(&format!("charge.dispute.{event}"), object);
        }
    }
}

/// As it stands in a body. Our own id is filled in once the app knows it.
pub fn written(reference: &Reference) -> String {
    match reference {
        Reference::Text(text) => text.clone(),
        Reference::OurIdOf(order) => format!("{{pay_of_{order}}}"),
    }
}

/// The envelope of every event of Stripe's.
pub fn event(id: &str, kind: &str, at: i64, live: bool, api: Api, object: Value) -> Told {
    let version = match api {
        Api::Old => "2024-06-20",
        Api::Basil => "2025-03-31.basil",
    };
    let body = json!({
        "id": id, "object": "event", "api_version": version, "created": at, "type": kind, "livemode": live,
        "pending_webhooks": 1, "request": { "id": null, "idempotency_key": null }, "data": { "object": object },
    });
    Told::new("stripe", id, at, body)
}
