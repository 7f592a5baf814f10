//! What really happened: which shops there are, what they ordered, what their customers paid and got back. Nothing here knows
//! an event, and nothing knows Sekisho; the siblings say how a provider tells of it, and `truth` what the books must say.

use std::collections::BTreeSet;

pub const HOUR: i64 = 3_600;
pub const DAY: i64 = 24 * HOUR;

/// One history, as somebody who saw everything would write it down.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The clock at its end, in seconds.
    pub now: i64,
    /// Whether Stripe's balance transactions can be read.
    pub fees: bool,
    pub orders: Vec<Order>,
    pub purchases: Vec<Purchase>,
    pub buyers: Vec<Buyer>,
    pub subscriptions: Vec<Subscription>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shop {
    Stripe,
    PayPal,
    Komoju,
    PayJp,
    Square,
}

impl Shop {
    pub const ALL: [Self; 5] = [Self::Stripe, Self::PayPal, Self::Komoju, Self::PayJp, Self::Square];

    /// Whether its objects have a place to write the tenant in.
    pub fn has_metadata(self) -> bool {
        matches!(self, Self::Stripe | Self::Komoju | Self::PayJp)
    }
}

/// What the app posts: "so much is asked for".
#[derive(Clone, Debug)]
pub struct Order {
    pub reference: Option<String>,
    pub tenant: Option<String>,
    pub by: Key,
    pub amount: i64,
    pub live: Option<bool>,
    /// Whose balance it fills, if it is a top-up.
    pub top_up_of: Option<String>,
    pub when: When,
}

/// Whose key an order is posted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    WholeInstallation,
    OwnTenant,
}

/// When an order is posted: before all events, among them or after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Before,
    Among,
    After,
}

/// One try to pay at one provider: everything that the provider's own ids tie together.
#[derive(Clone, Debug)]
pub struct Purchase {
    /// Part of every id it has.
    pub name: String,
    pub shop: Shop,
    pub live: bool,
    pub at: i64,
    pub amount: i64,
    pub currency: &'static str,
    pub says: Says,
    /// How often a card was declined before anything else.
    pub declines: usize,
    pub course: Course,
    /// What was taken, in parts; empty unless it was paid.
    pub captures: Vec<i64>,
    /// Whether the provider's events say what it cost.
    pub tells_fee: bool,
    pub refunds: Vec<Refund>,
    pub dispute: Option<Dispute>,
    pub api: Api,
    /// The Stripe customer, who may be several tenants' agent.
    pub buyer: Option<String>,
    /// Stripe wrote an invoice for it, without a subscription.
    pub invoiced: bool,
}

/// What the merchant wrote on the provider's objects.
#[derive(Clone, Debug, Default)]
pub struct Says {
    pub tenant: Option<String>,
    pub tenant_on: BTreeSet<Object>,
    pub reference: Option<Reference>,
    pub reference_on: BTreeSet<Object>,
}

/// Where something can be written. Providers with fewer objects write it on the one they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    Session,
    Intent,
    Charge,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The shop's own number.
    Text(String),
    /// The `pay_…` that posting this order was answered with.
    OurIdOf(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Begun and left open.
    Open,
    /// The checkout ran out.
    Expired,
    Cancelled,
    /// A voucher that is not paid yet.
    VoucherOpen,
    /// A card that was authorised and not captured.
    Authorised,
    /// A voucher that nobody paid.
    VoucherExpired,
    PaidByCard,
    PaidByVoucher,
    /// Authorised, then captured in one part or several.
    PaidByCapture,
    /// Nothing was to be paid.
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Stripe's `2024-06-20`.
    Old,
    /// Stripe's `2025-03-31.basil` and later.
    Basil,
}

#[derive(Clone, Debug)]
pub struct Refund {
    pub amount: i64,
    pub end: RefundEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundEnd {
    Pending,
    WaitsForCustomer,
    Done,
    /// Done, and days later it came back.
    Failed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispute {
    Open,
    Won,
    Lost,
    LostThenWon,
    Inquiry,
}

/// A customer object at Stripe.
#[derive(Clone, Debug)]
pub struct Buyer {
    pub id: String,
    pub live: bool,
    pub tenant: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Subscription {
    pub name: String,
    pub buyer: String,
    pub live: bool,
    pub api: Api,
    pub price: i64,
    pub tenant: Option<String>,
    /// Which of its objects name the tenant.
    pub tenant_on: BTreeSet<SubscriptionObject>,
    pub life: Life,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubscriptionObject {
    Subscription,
    Session,
    Invoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// In its trial.
    Trial,
    /// The trial ended with a payment.
    TrialPaid,
    Active,
    /// The last payment failed ten days ago.
    PastDue,
    /// A payment failed, and then came.
    Recovered,
    Cancelled,
    /// Ended at the provider, and nobody ever told us.
    Forgotten,
}

/// One invoice of a subscription.
#[derive(Clone, Debug)]
pub struct Invoice {
    pub name: String,
    pub at: i64,
    pub until: i64,
    pub amount: i64,
    pub failed_before: bool,
    pub paid: bool,
}

impl World {
    /// The order in which nothing is counted twice and everything can be left out: for shrinking.
    pub fn parts(&self) -> usize {
        self.orders.len() + self.purchases.len() + self.subscriptions.len()
    }
}

impl Order {
    pub fn is_top_up(&self) -> bool {
        self.top_up_of.is_some()
    }
}

impl Purchase {
    pub fn received(&self) -> i64 {
        self.captures.iter().sum()
    }

    pub fn is_paid(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Whether it went through Stripe's Checkout.
    pub fn has_session(&self) -> bool {
        matches!(self.course, Course::Expired | Course::Free)
            || self.says.tenant_on.contains(&Object::Session)
            || self.says.reference_on.contains(&Object::Session)
    }

    /// A checkout that nobody tried to pay has no intent.
    pub fn has_intent(&self) -> bool {
        !(self.course == Course::Free || self.course == Course::Expired && self.declines == 0)
    }

    /// The one id that the provider surely mentions.
    pub fn anchor(&self) -> String {
        let name = &self.name;
        match self.shop {
            Shop::Stripe if self.has_intent() => format!("pi_{name}"),
            Shop::Stripe => format!("cs_{name}"),
            Shop::PayPal => format!("PPO{name}"),
            Shop::Komoju => format!("komoju{name}"),
            Shop::PayJp => format!("ch_jp{name}"),
            Shop::Square => format!("sq{name}"),
        }
    }

    /// Whether the text is the id of one of its objects: a kind, the name, and perhaps a number.
    pub fn owns(&self, id: &str) -> bool {
        id.trim_end_matches(|letter: char| letter.is_ascii_digit()).ends_with(&self.name)
    }

    /// The part that was authorised and never taken.
    pub fn released(&self) -> i64 {
        if self.course == Course::PaidByCapture { self.amount - self.received() } else { 0 }
    }

    /// Whether any event shows this object.
    pub fn shows(&self, object: Object) -> bool {
        let is_begun = !matches!(self.course, Course::Open | Course::Cancelled);
        match (self.shop, object) {
            (Shop::Stripe, Object::Intent) => self.has_intent(),
            (Shop::Stripe, Object::Charge) => {
                self.declines > 0 || self.is_paid() || self.course == Course::Authorised
            }
            (Shop::Stripe, Object::Session) | (Shop::PayPal, Object::Intent) => is_begun,
            (Shop::PayPal, Object::Charge) => self.declines > 0 || self.is_paid(),
            (Shop::PayPal, Object::Session) => false,
            (Shop::Komoju | Shop::PayJp | Shop::Square, object) => object == Object::Intent,
        }
    }

    /// Whether every object says all there is to say, so that no event is ever alone.
    pub fn is_marked_everywhere(&self) -> bool {
        [Object::Session, Object::Intent, Object::Charge].into_iter().filter(|one| self.shows(*one)).all(
            |one| {
                (one != Object::Session || self.has_session())
                    && self.says.reference_on.contains(&one)
                    && (self.says.tenant.is_none() || self.says.tenant_on.contains(&one))
            },
        )
    }
}

impl Subscription {
    pub fn id(&self) -> String {
        format!("sub_{}", self.name)
    }

    pub const MONTH: i64 = 30 * DAY;

    /// When it began, so that the end of its life is now.
    pub fn began(&self, now: i64) -> i64 {
        match self.life {
            Life::Trial => now - 5 * DAY,
            Life::TrialPaid => now - 20 * DAY,
            Life::Active | Life::Cancelled => now - 10 * DAY,
            Life::PastDue => now - Self::MONTH - 10 * DAY,
            Life::Recovered => now - Self::MONTH - 8 * DAY,
            Life::Forgotten => now - Self::MONTH - 20 * DAY,
        }
    }

    pub fn trial_end(&self, now: i64) -> Option<i64> {
        matches!(self.life, Life::Trial | Life::TrialPaid).then(|| self.began(now) + 14 * DAY)
    }

    pub fn invoices(&self, now: i64) -> Vec<Invoice> {
        let began = self.began(now);
        let invoice = |n: usize, at: i64, days: i64, amount: i64| Invoice {
            name: format!("{}i{n}", self.name),
            at,
            until: at + days * DAY,
            amount,
            failed_before: false,
            paid: true,
        };
        let first = invoice(0, began, 30, self.price);
        let second = invoice(1, began + Self::MONTH, 30, self.price);
        match self.life {
            Life::Trial => vec![invoice(0, began, 14, 0)],
            Life::TrialPaid => {
                vec![invoice(0, began, 14, 0), invoice(1, began + 14 * DAY, 30, self.price)]
            }
            Life::Active | Life::Cancelled | Life::Forgotten => vec![first],
            Life::PastDue => vec![first, Invoice { failed_before: true, paid: false, ..second }],
            Life::Recovered => vec![first, Invoice { failed_before: true, ..second }],
        }
    }
}
