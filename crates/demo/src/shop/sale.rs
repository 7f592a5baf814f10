//! One sale: the course it takes, the money that moves, and what Stripe says on the way.

use serde_json::{Value, json};

use super::objects::{ShopOrder, charge, dispute, intent, refund, session};
use super::{ShopEvent, share};
use crate::rng::Rng;

/// What a dispute costs, whoever wins it: 1,300 yen, or 15 dollars.
const DISPUTE_FEE_JPY: i64 = 1_300;
const DISPUTE_FEE_USD: i64 = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Course {
    Paid,
    /// At a convenience store: a voucher first, the money later.
    PaidByVoucher,
    FailedThenPaid,
    Failed,
    Cancelled,
    Refunded,
    RefundedInPart,
    RefundedTwice,
    DisputeLost,
    DisputeWon,
}

impl Course {
    /// With how many of a hundred sales take it.
    pub const ALL: [(Self, u64); 10] = [
        (Self::Paid, 58),
        (Self::PaidByVoucher, 9),
        (Self::FailedThenPaid, 9),
        (Self::Failed, 5),
        (Self::Cancelled, 3),
        (Self::Refunded, 6),
        (Self::RefundedInPart, 4),
        (Self::RefundedTwice, 2),
        (Self::DisputeLost, 2),
        (Self::DisputeWon, 2),
    ];

    fn pick(rng: &mut Rng) -> Self {
        let mut left = rng.below(100);
        for (course, weight) in Self::ALL {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return course,
            }
        }
        Self::Paid
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sale {
    /// `pi_…`
    pub intent: String,
    pub course: Course,
    pub currency: &'static str,
    /// In the currency's smallest unit, as everything here.
    pub charged: i64,
    pub refunded: i64,
    pub dispute: Option<ShopDispute>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopDispute {
    pub id: String,
    pub is_won: bool,
    /// And not given back.
    pub taken: i64,
    pub fee: i64,
}

/// What is said, each with how many sales later.
type Said = Vec<(ShopEvent, f64)>;

/// The n-th sale of so many.
pub(super) fn tell(rng: &mut Rng, run: &str, n: u32, of: u32, now: u64) -> (Sale, Said) {
    let order = ShopOrder::make(rng, run, n);
    let course = Course::pick(rng);
    let currency = order.currency;
    let mut story = Story {
        sale: Sale { intent: order.id("pi"), course, currency, charged: 0, refunded: 0, dispute: None },
        began_at: now - 3_600 + u64::from(n) * 1_800 / u64::from(of.max(1)),
        said: Vec::new(),
        of: f64::from(of),
        order,
    };
    story.says("payment_intent.created", 0.0, intent(&story.order, "requires_payment_method", 0, None));
    match course {
        Course::Paid => story.is_paid(1.0),
        Course::PaidByVoucher => {
            story.says(
                "payment_intent.requires_action",
                1.0,
                intent(&story.order, "requires_action", 0, None),
            );
            let wait = 0.05 + 0.1 * share(rng);
            story.is_paid(wait * story.of);
        }
        Course::FailedThenPaid => {
            story.is_declined();
            story.is_paid(6.0);
        }
        Course::Failed => story.is_declined(),
        Course::Cancelled => {
            story.says("payment_intent.canceled", 3.0, intent(&story.order, "canceled", 0, None));
        }
        Course::Refunded => {
            story.is_paid(1.0);
            let all = story.sale.charged;
            story.is_refunded("a", all, 0.15 + 0.1 * share(rng));
        }
        Course::RefundedInPart => {
            story.is_paid(1.0);
            let part = story.part(rng);
            story.is_refunded("a", part, 0.15 + 0.1 * share(rng));
        }
        Course::RefundedTwice => {
            story.is_paid(1.0);
            for (which, after) in [("a", 0.15), ("b", 0.25)] {
                let part = story.part(rng);
                story.is_refunded(which, part, after);
            }
        }
        Course::DisputeLost => {
            story.is_paid(1.0);
            story.is_disputed(false, 0.1 + 0.1 * share(rng));
        }
        Course::DisputeWon => {
            story.is_paid(1.0);
            story.is_disputed(true, 0.1 + 0.1 * share(rng));
        }
    }
    // Of some things Stripe tells that nobody here has a rule for.
    if story.sale.charged > 0 && rng.chance(0.05) {
        let warning = json!({
            "id": story.order.id("issfr"),
            "object": "radar.early_fraud_warning",
            "actionable": true,
            "charge": story.order.id("ch"),
            "fraud_type": "misc",
            "livemode": false,
            "payment_intent": story.order.id("pi"),
        });
        story.says("radar.early_fraud_warning.created", 1.0, warning);
    }
    (story.sale, story.said)
}

struct Story {
    order: ShopOrder,
    sale: Sale,
    began_at: u64,
    said: Said,
    /// Sales in all.
    of: f64,
}

impl Story {
    fn says(&mut self, kind: &'static str, after: f64, object: Value) {
        let number = self.said.len();
        let id = format!("{}x{number}", self.order.id("evt"));
        let event = json!({
            "id": id,
            "object": "event",
            "api_version": "2026-10-28.endive",
            "created": self.began_at + number as u64 * 7,
            "data": { "object": object },
            "livemode": false,
            "pending_webhooks": 1,
            "request": { "id": self.order.id("req"), "idempotency_key": null },
            "type": kind,
        });
        self.said.push((ShopEvent { id, kind, body: event.to_string() }, after));
    }

    fn is_paid(&mut self, after: f64) {
        let amount = self.order.amount;
        self.sale.charged = amount;
        self.says("charge.succeeded", after, charge(&self.order, "ch", amount, 0));
        self.says("payment_intent.succeeded", after, intent(&self.order, "succeeded", amount, None));
        if self.order.has_checkout {
            self.says("checkout.session.completed", after, session(&self.order));
        }
    }

    fn is_declined(&mut self) {
        let error = Some("card_declined");
        self.says("charge.failed", 2.0, charge(&self.order, "chf", 0, 0));
        let object = intent(&self.order, "requires_payment_method", 0, error);
        self.says("payment_intent.payment_failed", 2.0, object);
    }

    /// Part of what is left, never all of it.
    fn part(&self, rng: &mut Rng) -> i64 {
        let left = self.sale.charged - self.sale.refunded;
        (left * rng.between(10, 60) as i64 / 100).max(1)
    }

    fn is_refunded(&mut self, which: &str, amount: i64, share_after: f64) {
        let after = share_after * self.of;
        self.sale.refunded += amount;
        self.says("refund.created", after, refund(&self.order, which, "pending", amount));
        let (charged, refunded) = (self.sale.charged, self.sale.refunded);
        self.says("charge.refunded", after, charge(&self.order, "ch", charged, refunded));
        self.says("refund.updated", after + 2.0, refund(&self.order, which, "succeeded", amount));
    }

    fn is_disputed(&mut self, is_won: bool, share_after: f64) {
        let (after, later) = (share_after * self.of, (share_after + 0.3) * self.of);
        let amount = self.sale.charged;
        let fee = if self.sale.currency == "jpy" { DISPUTE_FEE_JPY } else { DISPUTE_FEE_USD };
        let taken = if is_won { 0 } else { amount };
        self.sale.dispute = Some(ShopDispute { id: self.order.id("du"), is_won, taken, fee });
        let mut moved = Vec::new();
        self.says("charge.dispute.created", after, dispute(&self.order, "needs_response", &moved));
        moved.push((-amount, fee));
        self.says("charge.dispute.funds_withdrawn", after, dispute(&self.order, "needs_response", &moved));
        if is_won {
            moved.push((amount, 0));
            self.says("charge.dispute.funds_reinstated", later, dispute(&self.order, "won", &moved));
        }
        let end = if is_won { "won" } else { "lost" };
        self.says("charge.dispute.closed", later, dispute(&self.order, end, &moved));
    }
}
