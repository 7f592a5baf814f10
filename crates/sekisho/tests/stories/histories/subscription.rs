//! How Stripe tells of subscriptions, their invoices and the payments behind them, in both generations of its API. Since basil an
//! invoice names its subscription in `parent`, and an `invoice_payment` ties it to its intent.

use serde_json::{Value, json};

use super::stripe::event;
use super::told::Told;
use super::world::{Api, Buyer, DAY, Invoice, Life, Purchase, Subscription, SubscriptionObject};

pub fn tell_buyer(buyer: &Buyer, at: i64) -> Told {
    let metadata = buyer.tenant.as_ref().map_or(json!({}), |tenant| json!({ "tenant_id": tenant }));
    let object = json!({
        "object": "customer", "id": buyer.id, "livemode": buyer.live, "metadata": metadata, "email": null, "created": at,
    });
    event(&format!("evt_{}", buyer.id), "customer.created", at, buyer.live, Api::Basil, object)
}

/// An invoice for a purchase that is no subscription: it is a payment like any other, and no billing.
pub fn tell_invoice(purchase: &Purchase) -> Vec<Told> {
    let Purchase { name, at, live, api, amount, .. } = purchase;
    let mut invoice = json!({
        "object": "invoice", "id": format!("in_{name}"), "customer": purchase.buyer, "livemode": live, "status": "paid",
        "currency": purchase.currency, "amount_due": amount, "amount_paid": amount, "amount_remaining": 0, "total": amount,
        "billing_reason": "manual", "created": at, "lines": { "object": "list", "data": [] }, "metadata": {},
        "status_transitions": { "finalized_at": at, "paid_at": at },
    });
    match api {
        Api::Old => {
            invoice["subscription"] = Value::Null;
            invoice["payment_intent"] = json!(purchase.anchor());
            vec![event(&format!("evt_in{name}"), "invoice.paid", *at, *live, *api, invoice)]
        }
        Api::Basil => {
            invoice["parent"] = Value::Null;
            let tie = json!({
                "object": "invoice_payment", "id": format!("inpay_{name}"), "amount_paid": amount, "currency": "jpy",
                "invoice": format!("in_{name}"), "livemode": live, "status": "paid", "created": at,
                "payment": { "type": "payment_intent", "payment_intent": purchase.anchor() },
                "status_transitions": { "paid_at": at },
            });
            vec![
                event(&format!("evt_in{name}"), "invoice.paid", *at, *live, *api, invoice),
                event(&format!("evt_tie{name}"), "invoice_payment.paid", *at, *live, *api, tie),
            ]
        }
    }
}

pub fn tell(subscription: &Subscription, now: i64) -> Vec<Told> {
    let began = subscription.began(now);
    let mut desk =
        Desk { subscription, now, told: Vec::new(), begins: began, until: began + Subscription::MONTH };
    let trial_end = subscription.trial_end(now);
    if let Some(end) = trial_end {
        desk.until = end;
    }
    desk.snapshot("created", began, if trial_end.is_some() { "trialing" } else { "incomplete" });
    for (n, invoice) in subscription.invoices(now).iter().enumerate() {
        let is_in_trial = trial_end.is_some_and(|end| invoice.at < end);
        (desk.begins, desk.until) = (invoice.at, invoice.until);
        if invoice.failed_before {
            desk.declined(invoice, invoice.at + 3_600);
            desk.invoice("invoice.payment_failed", invoice, invoice.at + 3_600, "open");
            desk.snapshot("updated", invoice.at + 3_601, "past_due");
        }
        if invoice.paid {
            let at = if invoice.failed_before { invoice.at + 2 * DAY } else { invoice.at };
            desk.paid(invoice, at);
            desk.snapshot("updated", at, if is_in_trial { "trialing" } else { "active" });
        }
        if n == 0 {
            desk.session(invoice, invoice.at);
        }
    }
    if subscription.life == Life::Cancelled {
        desk.snapshot("deleted", began + 5 * DAY, "canceled");
    }
    desk.told
}

struct Desk<'s> {
    subscription: &'s Subscription,
    now: i64,
    told: Vec<Told>,
    begins: i64,
    until: i64,
}

impl Desk<'_> {
    fn tell(&mut self, kind: &str, at: i64, object: Value) {
        let Subscription { name, live, api, .. } = self.subscription;
        let id = format!("evt_{name}{}", self.told.len());
        self.told.push(event(&id, kind, at, *live, *api, object));
    }

    fn metadata(&self, object: SubscriptionObject) -> Value {
        let says = self.subscription.tenant_on.contains(&object);
        let tenant = self.subscription.tenant.as_ref().filter(|_| says);
        tenant.map_or(json!({}), |tenant| json!({ "tenant_id": tenant }))
    }

    fn snapshot(&mut self, kind: &str, at: i64, status: &str) {
        let Subscription { buyer, live, api, price, .. } = self.subscription;
        let mut item = json!({
            "object": "subscription_item", "id": format!("si_{}", self.subscription.name), "quantity": 1,
            "price": { "object": "price", "id": "price_1", "currency": "jpy", "unit_amount": price },
        });
        let trial_end = self.subscription.trial_end(self.now);
        let mut object = json!({
            "object": "subscription", "id": self.subscription.id(), "customer": buyer, "livemode": live, "status": status,
            "currency": "jpy", "created": self.subscription.began(self.now), "trial_end": trial_end,
            "trial_start": trial_end.map(|_| self.subscription.began(self.now)), "cancel_at": null,
            "cancel_at_period_end": false, "canceled_at": null, "ended_at": (kind == "deleted").then_some(at),
            "metadata": self.metadata(SubscriptionObject::Subscription),
        });
        let period = match api {
            Api::Old => &mut object,
            Api::Basil => &mut item,
        };
        period["current_period_start"] = json!(self.begins);
        period["current_period_end"] = json!(self.until);
        object["items"] = json!({ "object": "list", "data": [item] });
        self.tell(&format!("customer.subscription.{kind}"), at, object);
    }

    fn session(&mut self, invoice: &Invoice, at: i64) {
        if !self.subscription.tenant_on.contains(&SubscriptionObject::Session) {
            return;
        }
        let object = json!({
            "object": "checkout.session", "id": format!("cs_{}", self.subscription.name), "mode": "subscription",
            "status": "complete", "payment_status": "paid", "subscription": self.subscription.id(),
            "invoice": format!("in_{}", invoice.name), "payment_intent": null, "customer": self.subscription.buyer,
            "amount_total": invoice.amount, "currency": "jpy", "client_reference_id": null,
            "livemode": self.subscription.live, "created": at, "metadata": self.metadata(SubscriptionObject::Session),
        });
        self.tell("checkout.session.completed", at, object);
    }

    fn paid(&mut self, invoice: &Invoice, at: i64) {
        if invoice.amount > 0 {
            self.money(invoice, at);
        }
        self.invoice("invoice.paid", invoice, at, "paid");
        self.invoice("invoice.payment_succeeded", invoice, at, "paid");
    }

    fn invoice(&mut self, kind: &str, invoice: &Invoice, at: i64, status: &str) {
        let Subscription { buyer, live, api, .. } = self.subscription;
        let id = self.subscription.id();
        let paid = if status == "paid" { invoice.amount } else { 0 };
        let mut line = json!({
            "object": "line_item", "id": format!("il_{}", invoice.name), "amount": invoice.amount, "currency": "jpy",
            "period": { "start": invoice.at, "end": invoice.until }, "quantity": 1,
        });
        let mut object = json!({
            "object": "invoice", "id": format!("in_{}", invoice.name), "customer": buyer, "livemode": live, "status": status,
            "currency": "jpy", "amount_due": invoice.amount, "amount_paid": paid,
            "amount_remaining": invoice.amount - paid, "total": invoice.amount, "attempt_count": 1,
            "billing_reason": "subscription_cycle", "created": invoice.at,
            "period_start": invoice.at, "period_end": invoice.until,
            "status_transitions": { "finalized_at": invoice.at, "paid_at": (status == "paid").then_some(at) },
            "metadata": self.metadata(SubscriptionObject::Invoice),
        });
        let intent = (invoice.amount > 0).then(|| format!("pi_{}", invoice.name));
        match api {
            Api::Old => {
                object["subscription"] = json!(id);
                object["payment_intent"] = json!(intent);
                object["paid"] = json!(status == "paid");
                line["subscription"] = json!(id);
                line["type"] = json!("subscription");
            }
            Api::Basil => {
                object["parent"] =
                    json!({ "type": "subscription_details", "subscription_details": { "subscription": id } });
                let details = json!({ "subscription": id, "proration": false });
                line["parent"] =
                    json!({ "type": "subscription_item_details", "subscription_item_details": details });
            }
        }
        object["lines"] = json!({ "object": "list", "data": [line] });
        self.tell(kind, at, object);
    }

    fn declined(&mut self, invoice: &Invoice, at: i64) {
        let mut failed = self.intent(invoice, at, "requires_payment_method", 0);
        failed["last_payment_error"] = json!({ "code": "card_declined", "type": "card_error" });
        self.tell("payment_intent.payment_failed", at, failed);
    }

    /// The payment behind an invoice.
    fn money(&mut self, invoice: &Invoice, at: i64) {
        let Subscription { buyer, live, api, .. } = self.subscription;
        let (intent, charge) = (format!("pi_{}", invoice.name), format!("ch_{}", invoice.name));
        let mut taken = json!({
            "object": "charge", "id": charge, "payment_intent": intent, "amount": invoice.amount,
            "amount_captured": invoice.amount, "amount_refunded": 0, "captured": true, "paid": true, "refunded": false,
            "status": "succeeded", "currency": "jpy", "balance_transaction": null, "customer": buyer, "livemode": live,
            "created": at, "metadata": {},
        });
        if *api == Api::Old {
            taken["invoice"] = json!(format!("in_{}", invoice.name));
        }
        let paid = self.intent(invoice, at, "succeeded", invoice.amount);
        self.tell("payment_intent.succeeded", at, paid);
        self.tell("charge.succeeded", at, taken);
        if *api == Api::Basil {
            let tie = json!({
                "object": "invoice_payment", "id": format!("inpay_{}", invoice.name), "amount_paid": invoice.amount,
                "amount_requested": invoice.amount, "currency": "jpy", "invoice": format!("in_{}", invoice.name),
                "is_default": true, "livemode": live, "status": "paid", "created": at,
                "payment": { "type": "payment_intent", "payment_intent": intent },
                "status_transitions": { "paid_at": at },
            });
            self.tell("invoice_payment.paid", at, tie);
        }
    }

    fn intent(&self, invoice: &Invoice, at: i64, status: &str, received: i64) -> Value {
        let Subscription { buyer, live, api, .. } = self.subscription;
        let mut intent = json!({
            "object": "payment_intent", "id": format!("pi_{}", invoice.name), "amount": invoice.amount,
            "amount_received": received, "currency": "jpy", "status": status, "customer": buyer, "livemode": live,
            "latest_charge": (received > 0).then(|| format!("ch_{}", invoice.name)), "created": at, "metadata": {},
        });
        if *api == Api::Old {
            intent["invoice"] = json!(format!("in_{}", invoice.name));
        }
        intent
    }
}
