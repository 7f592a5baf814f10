//! What the books must say at the end of a history, whatever order its events took. Written from the specification (A4, D1–D3, D7)
//! and from nothing else: no code, type or name of the settlement is used here.
//!
//! Where the specification is silent, so is this: [`Wanted::Any`], or a `None`, is not compared with anything.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::billing::{self, Billing};
use super::stripe;
use super::world::{Api, Course, Dispute, Key, Order, Purchase, Reference, RefundEnd, Shop, When, World};

/// The end of a history.
#[derive(Debug, Default)]
pub struct End {
    pub payments: Vec<Payment>,
    pub billings: Vec<Billing>,
    /// What each customer who topped up has.
    pub balances: BTreeMap<String, i64>,
    /// Invoices that were paid with money: each is recorded once.
    pub invoices: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct Payment {
    /// The orders (`order#0`) and the providers' ids that are this payment, and no others.
    pub members: BTreeSet<String>,
    pub tenant: Wanted<String>,
    pub live: Option<bool>,
    pub status: Option<&'static str>,
    pub received: i64,
    pub refunded: i64,
    pub refund_pending: i64,
    pub fee: Wanted<i64>,
    pub net: Wanted<i64>,
    pub dispute: Wanted<&'static str>,
    pub left_after_dispute: Option<i64>,
    pub told: Told,
}

/// What a field must show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted<T> {
    /// The specification does not say.
    #[default]
    Any,
    /// Nothing: it is not known, or there is none.
    Unknown,
    Is(T),
}

impl<T: Into<Value>> Wanted<T> {
    pub fn of(known: Option<T>) -> Self {
        known.map_or(Self::Unknown, Self::Is)
    }

    pub fn value(self) -> Option<Value> {
        match self {
            Self::Any => None,
            Self::Unknown => Some(Value::Null),
            Self::Is(value) => Some(value.into()),
        }
    }
}

/// What must have been announced of a payment.
#[derive(Debug, Default)]
pub struct Told {
    /// At least and at most so many `payment.paid`.
    pub paid: (usize, usize),
    /// The final sum of refunds and the announcement that tells it, once.
    pub refunds: Option<(&'static str, i64)>,
    /// No announcement tells of a greater sum.
    pub refunds_max: i64,
    pub underpaid: bool,
    pub currency_mismatch: bool,
}

pub fn of(world: &World) -> End {
    let mut end = End::default();
    for (home, purchases) in homes(world) {
        let order = match home {
            Home::Order(n) => Some(n),
            Home::Number { .. } | Home::Alone(_) => None,
        };
        let sale = Sale { world, order: order.map(|n| &world.orders[n]), purchases };
        if let Some((customer, balance)) = sale.balance() {
            end.balances.insert(customer, balance);
        }
        end.payments.push(sale.payment(order));
    }
    for (owner, subscriptions) in billing::owners(world) {
        end.billings.push(billing::record(owner, &subscriptions, world.now));
        for one in subscriptions {
            let invoices = one.invoices(world.now).into_iter().filter(|invoice| invoice.amount > 0);
            for invoice in invoices {
                end.payments.push(billing::payment_of_invoice(world, one, &invoice));
                end.invoices.extend(invoice.paid.then(|| format!("in_{}", invoice.name)));
            }
        }
    }
    end
}

// --- which payment is it? -------------------------------------------------------------------------------------------

/// What purchases have in common that are one payment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    Order(usize),
    /// A number that nobody posted, inside one tenant, or among those who name none.
    Number {
        tenant: Option<String>,
        number: String,
        live: bool,
    },
    Alone(usize),
}

fn homes(world: &World) -> BTreeMap<Home, Vec<&Purchase>> {
    let mut homes: BTreeMap<_, _> = (0..world.orders.len()).map(|n| (Home::Order(n), Vec::new())).collect();
    for (n, purchase) in world.purchases.iter().enumerate() {
        homes.entry(home(world, n, purchase)).or_insert_with(Vec::new).push(purchase);
    }
    homes
}

fn home(world: &World, n: usize, purchase: &Purchase) -> Home {
    let number = match &purchase.says.reference {
        None => return Home::Alone(n),
        // Our own id binds always.
        Some(Reference::OurIdOf(order)) => return Home::Order(*order),
        Some(Reference::Text(number)) => number,
    };
    let tenant = &purchase.says.tenant;
    let binds = |order: &Order| {
        order.reference.as_ref() == Some(number)
            && order.live.is_none_or(|live| live == purchase.live)
            && match tenant {
                // A number binds inside the tenant that is named.
                Some(_) => order.tenant == *tenant,
                // Without a tenant it binds to what was posted for the whole installation, and to nothing of a tenant's.
                None => order.by == Key::WholeInstallation,
            }
    };
    match world.orders.iter().position(binds) {
        Some(order) => Home::Order(order),
        None => Home::Number { tenant: tenant.clone(), number: number.clone(), live: purchase.live },
    }
}

// --- one payment ----------------------------------------------------------------------------------------------------

/// An order, if there is one, and everything that was paid or tried for it.
struct Sale<'w> {
    world: &'w World,
    order: Option<&'w Order>,
    purchases: Vec<&'w Purchase>,
}

impl Sale<'_> {
    fn payment(&self, order: Option<usize>) -> Payment {
        let (received, refunded) = (self.received(), self.refunded());
        let mut members: BTreeSet<_> = self.purchases.iter().map(|one| one.anchor()).collect();
        members.extend(order.map(|n| format!("order#{n}")));
        let said = self.purchases.iter().find_map(|one| one.says.tenant.clone());
        let status = self.status();
        let fee = self.fee();
        Payment {
            members,
            tenant: Wanted::of(self.order.and_then(|order| order.tenant.clone()).or(said)),
            live: self.purchases.first().map(|one| one.live).or(self.order.and_then(|order| order.live)),
            status,
            received,
            refunded,
            refund_pending: self.refunds(&[RefundEnd::Pending, RefundEnd::WaitsForCustomer]),
            fee,
            net: match fee {
                _ if self.has_refunds() => Wanted::Any,
                Wanted::Is(fee) => Wanted::Is(received - fee),
                other => other,
            },
            dispute: self.dispute(),
            left_after_dispute: self.left_after_dispute(),
            told: Told {
                paid: self.paid_told(),
                refunds: self.refunds_told().filter(|_| !self.may_have_met_another()),
                refunds_max: if self.may_have_met_another() {
                    i64::MAX
                } else {
                    refunded + self.refunds(&[RefundEnd::Failed]) + self.seems_refunded()
                },
                underpaid: status == Some("partially_paid"),
                currency_mismatch: self.foreign_money() > 0,
            },
        }
    }

    fn currency(&self) -> &'static str {
        match self.order {
            Some(_) => "jpy",
            None => self.purchases.first().map_or("jpy", |one| one.currency),
        }
    }

    /// Purchases in the currency that was asked for.
    fn own(&self) -> impl Iterator<Item = &Purchase> {
        self.purchases.iter().copied().filter(|one| one.currency == self.currency())
    }

    fn received(&self) -> i64 {
        self.own().map(Purchase::received).sum()
    }

    fn foreign_money(&self) -> i64 {
        self.purchases.iter().filter(|one| one.currency != self.currency()).map(|one| one.received()).sum()
    }

    /// Only a refund that was made and stayed made is money that went back.
    fn refunded(&self) -> i64 {
        self.refunds(&[RefundEnd::Done])
    }

    fn refunds(&self, ends: &[RefundEnd]) -> i64 {
        let all = self.own().flat_map(|one| &one.refunds);
        all.filter(|refund| ends.contains(&refund.end)).map(|refund| refund.amount).sum()
    }

    fn has_refunds(&self) -> bool {
        self.purchases.iter().any(|one| !one.refunds.is_empty() || one.dispute.is_some())
    }

    fn asked(&self) -> i64 {
        self.order.map_or(0, |order| order.amount)
    }

    fn is_free(&self) -> bool {
        self.purchases.iter().any(|one| one.course == Course::Free)
    }

    fn is_fully_paid(&self) -> bool {
        self.received() > 0 && self.received() >= self.asked() || self.is_free() && self.order.is_none()
    }

    fn status(&self) -> Option<&'static str> {
        let (received, refunded) = (self.received(), self.refunded());
        if received > 0 && received < self.asked() {
            return if self.has_refunds() { None } else { Some("partially_paid") };
        }
        if received > 0 {
            return Some(match refunded {
                0 => "paid",
                _ if refunded < received => "partially_refunded",
                _ => "refunded",
            });
        }
        if self.foreign_money() > 0 {
            return None;
        }
        if self.is_free() {
            return self.order.is_none().then_some("paid");
        }
        let ends: BTreeSet<_> = self.own().map(end_without_money).collect();
        match ends.len() {
            0 => Some("unpaid"),
            _ if ends.contains("processing") => Some("processing"),
            1 => ends.first().copied(),
            _ => None,
        }
    }

    fn fee(&self) -> Wanted<i64> {
        let paid: Vec<_> = self.purchases.iter().filter(|one| one.is_paid()).collect();
        let is_silent = |one: &Purchase| {
            // Before basil a partial capture was booked whole and taken back in part.
            one.shop == Shop::Stripe && one.api == Api::Old && one.released() > 0
        };
        if paid.is_empty() || self.foreign_money() > 0 || paid.iter().any(|one| is_silent(one)) {
            return Wanted::Any;
        }
        let is_known = |one: &Purchase| match one.shop {
            Shop::Stripe => self.world.fees,
            Shop::PayPal | Shop::Square => one.tells_fee,
            Shop::Komoju | Shop::PayJp => false,
        };
        let sum = paid.iter().flat_map(|one| &one.captures).map(|amount| stripe::fee(*amount)).sum();
        Wanted::of(paid.iter().all(|one| is_known(one)).then_some(sum))
    }

    fn dispute(&self) -> Wanted<&'static str> {
        let disputes: Vec<_> = self.purchases.iter().filter_map(|one| one.dispute).collect();
        match &*disputes {
            [] => Wanted::Unknown,
            [Dispute::Open] => Wanted::Is("needs_response"),
            [Dispute::Lost] => Wanted::Is("lost"),
            [Dispute::Won | Dispute::LostThenWon] => Wanted::Is("won"),
            [Dispute::Inquiry] => Wanted::Is("inquiry_closed"),
            _ => Wanted::Any,
        }
    }

    fn left_after_dispute(&self) -> Option<i64> {
        let [one] = &*self.purchases else { return None };
        let dispute = one.dispute.filter(|_| one.shop == Shop::Stripe)?;
        Some(match dispute {
            Dispute::Open | Dispute::Lost => 0,
            Dispute::Won | Dispute::LostThenWon | Dispute::Inquiry => self.received(),
        })
    }

    /// Whether each event said at once where it belongs, so that nothing was ever told of half a payment.
    fn was_whole_from_the_start(&self) -> bool {
        self.order.is_none_or(|order| order.when == When::Before)
            && self.purchases.iter().all(|one| one.is_marked_everywhere())
    }

    fn paid_told(&self) -> (usize, usize) {
        let payers = self.purchases.iter().filter(|one| one.is_paid() || one.course == Course::Free).count();
        match (self.is_fully_paid(), self.was_whole_from_the_start()) {
            (true, true) => (1, 1),
            // Two that were paid before anybody could know that they are one were told as two.
            (true, false) => (1, payers),
            // Paid, together with the other.
            (false, true) if self.may_have_met_another() => (0, 1),
            (false, true) => (0, 0),
            // Paid, as far as was known before the order said what it asks for.
            (false, false) => (0, payers),
        }
    }

    fn refunds_told(&self) -> Option<(&'static str, i64)> {
        let [one] = &*self.purchases else { return None };
        let is_plain =
            one.captures.len() == 1 && one.refunds.iter().all(|refund| refund.end != RefundEnd::Failed);
        match self.status()? {
            "refunded" if is_plain => Some(("payment.refunded", self.refunded())),
            "partially_refunded" if is_plain => Some(("payment.partially_refunded", self.refunded())),
            _ => None,
        }
    }

    /// Whether it may have been taken for one with another for a while: both have one number, and one of them named its tenant
    /// only later. What was told meanwhile was true of both together.
    fn may_have_met_another(&self) -> bool {
        let is_late = |one: &Purchase| {
            let by_number = matches!(one.says.reference, Some(Reference::Text(_)));
            by_number && one.says.tenant.is_some() && !one.is_marked_everywhere()
        };
        let number_of = |one: &Purchase| {
            let number = match one.says.reference.as_ref()? {
                Reference::Text(number) => number,
                // It stands with its order, whose number another may name.
                Reference::OurIdOf(order) => self.world.orders[*order].reference.as_ref()?,
            };
            Some((number.clone(), one.live))
        };
        let mut own: Vec<_> =
            self.purchases.iter().filter_map(|one| Some((number_of(one)?, is_late(one)))).collect();
        let posted = self.order.and_then(|order| order.reference.clone());
        own.extend(
            posted.into_iter().flat_map(|number| [true, false].map(|live| ((number.clone(), live), false))),
        );
        let is_other = |one: &&Purchase| !self.purchases.iter().any(|own| own.name == one.name);
        self.world.purchases.iter().filter(is_other).any(|other| {
            let number = number_of(other);
            own.iter().any(|(own, late)| Some(own) == number.as_ref() && (*late || is_late(other)))
        })
    }

    /// What may be taken for given back before more is heard: a card's charge calls a refund done that is on its way, and
    /// before basil a refund told of what was only released.
    fn seems_refunded(&self) -> i64 {
        let by_card = |one: &&&Purchase| one.shop == Shop::Stripe && one.course != Course::PaidByVoucher;
        let on_its_way = |one: &&Purchase| -> i64 {
            let ends = [RefundEnd::Pending, RefundEnd::WaitsForCustomer, RefundEnd::Cancelled];
            one.refunds.iter().filter(|refund| ends.contains(&refund.end)).map(|refund| refund.amount).sum()
        };
        let released = |one: &&Purchase| one.amount - one.captures.iter().sum::<i64>();
        let is_old = |one: &&&Purchase| {
            one.shop == Shop::Stripe && one.api == Api::Old && one.course == Course::PaidByCapture
        };
        self.purchases.iter().filter(by_card).map(on_its_way).sum::<i64>()
            + self.purchases.iter().filter(is_old).map(released).sum::<i64>()
    }

    /// A top-up is owed to its customer, as far as it was not given back and is not on its way back.
    fn balance(&self) -> Option<(String, i64)> {
        let customer = self.order?.top_up_of.clone()?;
        let is_plain = self.purchases.iter().all(|one| one.dispute.is_none()) && self.foreign_money() == 0;
        let is_due = self.received() == 0 || self.is_fully_paid();
        let on_its_way = self.refunds(&[RefundEnd::Pending, RefundEnd::WaitsForCustomer]);
        (is_plain && is_due).then(|| (customer, self.received() - self.refunded() - on_its_way))
    }
}

fn end_without_money(purchase: &Purchase) -> &'static str {
    match purchase.course {
        Course::VoucherOpen | Course::Authorised => "processing",
        Course::Cancelled => "cancelled",
        Course::Expired => "expired",
        Course::VoucherExpired if purchase.shop == Shop::Komoju => "expired",
        Course::VoucherExpired => "failed",
        Course::Open if purchase.declines > 0 => "failed",
        Course::Open => "unpaid",
        Course::PaidByCard | Course::PaidByVoucher | Course::PaidByCapture | Course::Free => "paid",
    }
}
