//! Bugs as people make them, planted between the doors: what the product hears, what it commits, what it shows. Each has to be
//! found, or the truth is too weak. The product itself is not touched.

use std::collections::BTreeMap;

use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::event::DedupeKey;
use sekisho_core::state::MERGED;
use serde_json::{Map, Value, json};

use super::compare::Seen;
use super::told::Told;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// What names no tenant takes that of whoever used the order number before.
    TenantOfTheNumber,
    /// What names no tenant takes that of the event before it.
    TenantOfTheBatch,
    /// What names no tenant takes that of its Stripe customer's other objects.
    TenantOfTheCustomer,
    /// Test events are heard as live ones.
    ModesJoined,
    /// Whatever an order asks for, one yen will do.
    UnderpaidIsPaid,
    /// The sum on the charge is believed, and refunds are not looked at.
    RefundsFromCharges,
    /// A refund under way counts as made.
    PendingRefundIsDone,
    /// Of a charge's balance transactions the greater id is kept.
    GreaterTransactionWins,
    /// A decline hides whatever comes after it but money.
    DeclineHidesTheRest,
    /// Dollars are counted as yen.
    CurrencyIgnored,
    /// A lost dispute stays lost.
    LostStaysLost,
    /// The fee that a customer pays to KOMOJU is counted as the shop's.
    VoucherFeeIsSales,
    /// The second delivery of an event is another event, and its refund another refund.
    RepetitionCounts,
    /// What was told before two payments became one is told again.
    ToldAgainAfterMerge,
    /// Two orders of one number: only the first is told as paid.
    SecondPaidUntold,
    /// Refunds are made, and nobody hears of it.
    RefundUntold,
    /// What is booked for a customer is booked twice.
    BookedTwice,
    /// `invoice.paid` and `invoice.payment_succeeded` are two payments.
    InvoiceTwice,
    /// The snapshot that arrived last is the newest.
    LastArrivedWins,
    /// Whoever subscribed lets all others in.
    AccessOfOthers,
}

impl Bug {
    pub const ALL: [Self; 20] = [
        Self::TenantOfTheNumber,
        Self::TenantOfTheBatch,
        Self::TenantOfTheCustomer,
        Self::ModesJoined,
        Self::UnderpaidIsPaid,
        Self::RefundsFromCharges,
        Self::PendingRefundIsDone,
        Self::GreaterTransactionWins,
        Self::DeclineHidesTheRest,
        Self::CurrencyIgnored,
        Self::LostStaysLost,
        Self::VoucherFeeIsSales,
        Self::RepetitionCounts,
        Self::ToldAgainAfterMerge,
        Self::SecondPaidUntold,
        Self::RefundUntold,
        Self::BookedTwice,
        Self::InvoiceTwice,
        Self::LastArrivedWins,
        Self::AccessOfOthers,
    ];
}

/// What passes the doors of one play, distorted by at most one bug.
#[derive(Default)]
pub struct Bent {
    bug: Option<Bug>,
    /// Whatever the bug has to remember.
    known: BTreeMap<String, Value>,
    /// Events so far, and the time of the newest.
    count: usize,
    newest: i64,
    paid: Vec<Arrival>,
}

impl Bent {
    pub fn by(bug: Option<Bug>) -> Self {
        Self { bug, ..Self::default() }
    }

    /// An order as the product hears it.
    pub fn order(&mut self, body: &mut Map<String, Value>) {
        match self.bug {
            Some(Bug::UnderpaidIsPaid) => {
                body.insert("amount".into(), json!(1));
            }
            Some(Bug::TenantOfTheNumber) => {
                if let (Some(Value::String(number)), Some(tenant)) =
                    (body.get("reference"), body.get("tenant"))
                {
                    self.known.insert(number.clone(), tenant.clone());
                }
            }
            _ => {}
        }
    }

    /// An event as the product hears it, if it does.
    pub fn tell(&mut self, told: &Told) -> Option<Told> {
        let mut told = told.clone();
        self.count += 1;
        self.newest = self.newest.max(told.at);
        let is_stripe = told.source == "stripe";
        let kind = told.body["type"].as_str().unwrap_or_default().to_owned();
        let object = if is_stripe { &mut told.body["data"]["object"] } else { &mut told.body["data"] };
        match self.bug {
            Some(Bug::TenantOfTheNumber) => {
                let number = ["client_reference_id", "external_order_num"].map(|field| object[field].clone());
                let number = number.into_iter().find(Value::is_string);
                let number = number.unwrap_or_else(|| object["metadata"]["order_id"].clone());
                self.lend_tenant(object, number.as_str());
            }
            Some(Bug::TenantOfTheBatch) => self.lend_tenant(object, Some("before")),
            Some(Bug::TenantOfTheCustomer) => {
                let customer = object["customer"].clone();
                self.lend_tenant(object, customer.as_str());
            }
            Some(Bug::ModesJoined) if is_stripe => {
                object["livemode"] = json!(true);
                told.body["livemode"] = json!(true);
            }
            Some(Bug::RefundsFromCharges) if object["object"] == "refund" => return None,
            Some(Bug::PendingRefundIsDone)
                if object["object"] == "refund"
                    && (object["status"] == "pending" || object["status"] == "requires_action") =>
            {
                object["status"] = json!("succeeded");
            }
            Some(Bug::GreaterTransactionWins) if object["object"] == "charge" => {
                self.keep_greater(object);
            }
            Some(Bug::DeclineHidesTheRest) if is_stripe => {
                let intent = object["payment_intent"]
                    .as_str()
                    .or(object["id"].as_str())
                    .unwrap_or_default()
                    .to_owned();
                if kind == "payment_intent.payment_failed" {
                    self.known.insert(intent.clone(), Value::Null);
                }
                let hidden = [
                    "payment_intent.requires_action",
                    "checkout.session.expired",
                    "checkout.session.completed",
                ];
                if hidden.contains(&&*kind) && self.known.contains_key(&intent) {
                    return None;
                }
            }
            Some(Bug::CurrencyIgnored) if object["currency"] == "usd" => object["currency"] = json!("jpy"),
            Some(Bug::LostStaysLost) if object["object"] == "dispute" && object["status"] == "won" => {
                object["status"] = json!("lost");
            }
            Some(Bug::VoucherFeeIsSales)
                if object["payment_method_fee"].as_i64().is_some_and(|fee| fee > 0) =>
            {
                object["amount"] =
                    json!(object["total"].as_i64().unwrap_or(0) - object["tax"].as_i64().unwrap_or(0));
                object["payment_method_fee"] = json!(0);
            }
            Some(Bug::RepetitionCounts)
                if object["object"] == "refund"
                    && self.known.insert(told.id.clone(), Value::Null).is_some() =>
            {
                object["id"] = json!(format!("{}{}", object["id"].as_str().unwrap_or_default(), self.count));
                told.body["id"] = json!(format!("{}-{}", told.id, self.count));
            }
            Some(Bug::InvoiceTwice) if kind == "invoice.payment_succeeded" => {
                object["id"] = json!(format!("{}b", object["id"].as_str().unwrap_or_default()));
            }
            Some(Bug::LastArrivedWins) if object["object"] == "subscription" => {
                told.body["created"] = json!(self.newest + self.count as i64);
            }
            _ => {}
        }
        Some(told)
    }

    /// Whoever names a tenant is remembered, and whoever names none takes what is remembered.
    fn lend_tenant(&mut self, object: &mut Value, by: Option<&str>) {
        let Some(by) = by.filter(|_| object["metadata"].is_object()) else { return };
        match &object["metadata"]["tenant_id"] {
            Value::Null => {
                if let Some(tenant) = self.known.get(by) {
                    object["metadata"]["tenant_id"] = tenant.clone();
                }
            }
            tenant => {
                self.known.insert(by.to_owned(), tenant.clone());
            }
        }
    }

    fn keep_greater(&mut self, charge: &mut Value) {
        let id = charge["id"].as_str().unwrap_or_default().to_owned();
        let known = self.known.entry(id).or_default();
        if charge["balance_transaction"].as_str() > known.as_str() {
            *known = charge["balance_transaction"].clone();
        }
        charge["balance_transaction"] = known.clone();
    }

    /// What is committed.
    pub fn write(&mut self, set: &mut ChangeSet) {
        match self.bug {
            Some(Bug::ToldAgainAfterMerge) => {
                if set.writes.iter().any(|write| write.index.status.as_deref() == Some(MERGED)) {
                    set.events.extend(self.paid.drain(..).map(|told| under_another_id(told, self.count)));
                }
                self.paid.extend(set.events.iter().filter(|told| told.event_type == "payment.paid").cloned());
            }
            Some(Bug::SecondPaidUntold) => set.events.retain(|told| {
                let body: Value = serde_json::from_slice(&told.body).unwrap_or_default();
                let number = body["data"]["reference"].to_string();
                told.event_type != "payment.paid" || self.known.insert(number, Value::Null).is_none()
            }),
            Some(Bug::RefundUntold) => set.events.retain(|told| told.event_type != "payment.refunded"),
            Some(Bug::BookedTwice) => {
                set.postings
                    .iter_mut()
                    .filter(|line| line.account.contains("kato"))
                    .for_each(|line| line.amount *= 2);
            }
            _ => {}
        }
    }

    /// What is shown.
    pub fn look(&mut self, seen: &mut Seen) {
        if self.bug == Some(Bug::AccessOfOthers) && seen.billings.iter().any(|one| one["access"] == true) {
            seen.billings.iter_mut().for_each(|one| one["access"] = json!(true));
        }
    }
}

fn under_another_id(mut told: Arrival, count: usize) -> Arrival {
    let mut body: Value = serde_json::from_slice(&told.body).unwrap_or_default();
    told.event_id = format!("{}/again", told.event_id);
    told.key = DedupeKey::new("sekisho", &told.event_id, None);
    told.seq = sekisho_core::Seq::from_i64(told.seq.as_i64() + (count as i64) * 1_000_000);
    body["id"] = json!(told.event_id);
    told.body = body.to_string().into();
    told
}
