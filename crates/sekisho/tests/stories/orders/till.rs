//! A provider with a memory: it takes money and gives it back, says so in the shapes of Stripe's events, and knows a call by
//! its idempotency key. Nobody gets back more than came.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Taking {
    pub number: String,
    pub house: Option<String>,
    pub live: bool,
    pub amount: i64,
    /// In seconds, as Stripe counts.
    pub at: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivingState {
    Pending,
    Given,
    Bounced,
}

#[derive(Clone, Debug)]
pub struct Giving {
    pub taking: String,
    pub amount: i64,
    pub state: GivingState,
    /// What stands in its metadata.
    pub order: Option<String>,
}

#[derive(Default)]
pub struct Till {
    pub takings: BTreeMap<String, Taking>,
    pub givings: BTreeMap<String, Giving>,
    keys: BTreeMap<String, String>,
    /// Calls for more than was left, though whoever called had just looked.
    pub refused: usize,
    count: usize,
    mark: String,
}

impl Till {
    pub fn new(mark: &str) -> Self {
        Self { mark: mark.to_owned(), ..Self::default() }
    }

    fn next(&mut self, tag: &str) -> String {
        self.count += 1;
        format!("{tag}_{}x{}", self.mark, self.count)
    }

    pub fn take(&mut self, taking: Taking) -> String {
        let id = self.next("pi");
        self.takings.insert(id.clone(), taking);
        id
    }

    /// What of a taking has not gone back.
    pub fn left(&self, id: &str) -> i64 {
        let of = self.givings.values().filter(|one| one.taking == id && one.state != GivingState::Bounced);
        self.takings[id].amount - of.map(|one| one.amount).sum::<i64>()
    }

    /// Somebody gives money back by hand, at the provider.
    pub fn give(&mut self, taking: &str, amount: i64, state: GivingState) -> String {
        let id = self.next("re");
        self.givings.insert(id.clone(), Giving { taking: taking.to_owned(), amount, state, order: None });
        id
    }

    /// A call of the API. One key makes one refund, and gets one answer.
    pub fn call(&mut self, key: &str, taking: &str, amount: i64, order: &str, state: GivingState) -> bool {
        if self.keys.contains_key(key) {
            return true;
        }
        if amount > self.left(taking) {
            self.refused += 1;
            return false;
        }
        let id = self.give(taking, amount, state);
        self.givings.get_mut(&id).unwrap().order = Some(order.to_owned());
        self.keys.insert(key.to_owned(), id);
        true
    }

    pub fn list(&self, taking: &str) -> Vec<(String, Value)> {
        let own = self.givings.iter().filter(|(_, one)| one.taking == taking);
        own.map(|(id, one)| (id.clone(), self.refund(id, one))).collect()
    }

    fn refund(&self, id: &str, giving: &Giving) -> Value {
        let status = match giving.state {
            GivingState::Pending => "pending",
            GivingState::Given => "succeeded",
            GivingState::Bounced => "failed",
        };
        json!({
            "object": "refund", "id": id, "payment_intent": giving.taking,
            "charge": giving.taking.replace("pi_", "ch_"), "amount": giving.amount, "currency": "jpy",
            "status": status, "created": self.takings[&giving.taking].at,
            "metadata": { "sekisho_refund": giving.order },
        })
    }

    pub fn tell_giving(&self, id: &str) -> Value {
        let giving = &self.givings[id];
        let live = self.takings[&giving.taking].live;
        json!({ "type": "refund.updated", "livemode": live, "data": { "object": self.refund(id, giving) } })
    }

    pub fn tell_taking(&self, id: &str) -> Value {
        let one = &self.takings[id];
        json!({
            "type": "charge.succeeded", "livemode": one.live, "created": one.at,
            "data": { "object": {
                "object": "charge", "id": id.replace("pi_", "ch_"), "payment_intent": id, "created": one.at,
                "amount": one.amount, "amount_captured": one.amount, "captured": true, "paid": true,
                "status": "succeeded", "currency": "jpy", "livemode": one.live,
                "metadata": { "order_id": one.number, "tenant_id": one.house },
            } },
        })
    }
}

/// What Stripe says of a checkout session of an order: `complete` and not paid, as at the konbini, or `expired`.
pub fn session(number: &str, house: Option<&str>, live: bool, status: &str) -> Value {
    json!({
        "type": format!("checkout.session.{}", if status == "expired" { "expired" } else { "completed" }),
        "livemode": live,
        "data": { "object": {
            "object": "checkout.session", "id": format!("cs_{number}"), "status": status, "mode": "payment",
            "payment_status": "unpaid", "amount_total": 1_000, "currency": "jpy", "livemode": live,
            "payment_intent": format!("pi_s_{number}"), "metadata": { "order_id": number, "tenant_id": house },
        } },
    })
}
