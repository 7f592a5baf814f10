//! Giving money back. What may be ordered; and, each time the provider was asked what refunds there are, what the job of an
//! order does next.
//!
//! A refund is looked for before it is made: its order's key stands in the refund's metadata, so a refund that was made while
//! its answer was lost is found, also when the provider has forgotten the idempotency key. A call under another key is a new
//! generation, which is a fact before anybody uses it.

mod next;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::decide::{Aggregate, Cause, Input};
use super::payment::{Facts, Generation, RefundOrder, RefundOrderStatus, RefundWish, Refundable};
use super::reading::{Reading, Realm};
use crate::id::Seq;
use crate::job::fetch::ApiProvider;
use crate::job::{Lane, NewJob, RefundCall, Task};
use crate::money::{Currency, minus, sum};
use crate::provider::encode_hex;
use crate::state::{Key, Kind};
use crate::time::{HOUR_MS, Time};

pub use next::{Listed, RefundStep, listed, next};

/// The names of the refund's metadata: which order it carries out, of which payment.
pub const ORDER: &str = "sekisho_refund";
pub const PAYMENT: &str = "sekisho_payment";

/// Characters of an idempotency key beside its first. Square takes 45 in all.
const KEY_HEX: usize = 40;

/// What the operator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefundPolicy {
    /// Whose API may be told to refund, and in which mode, if in one only.
    pub accounts: Vec<(ApiProvider, Option<bool>)>,
    /// Orders by rules in an hour; more wait for a person.
    pub automatic_per_hour: usize,
}

impl RefundPolicy {
    pub fn rights(&self, realm: &str) -> Rights {
        let Some((provider, _, livemode)) = Realm::parse(realm) else { return Rights::ByHand };
        let Some(provider) = ApiProvider::parse(provider).filter(|one| one.can_refund()) else {
            return Rights::ByHand;
        };
        let fits = |mode: Option<bool>| mode.is_none() || mode == livemode;
        let is_allowed = self.accounts.iter().any(|(known, mode)| *known == provider && fits(*mode));
        if is_allowed { Rights::ByCommand } else { Rights::NotAllowed }
    }
}

/// When rules ordered refunds lately: a fault upstream must not refund a whole shop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automatic(Vec<Time>);

impl Automatic {
    /// Under which all nodes count together.
    pub fn key() -> Key {
        Key::new(Kind::Quota, "refunds/automatic")
    }

    /// Counts one more; false when there were enough in this hour.
    pub fn take(&mut self, most: usize, now: Time) -> bool {
        self.0.retain(|at| at.plus_ms(HOUR_MS) > now);
        let is_free = self.0.len() < most;
        if is_free {
            self.0.push(now);
        }
        is_free
    }
}

/// What somebody may do about a realm's money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// By the provider's API.
    ByCommand,
    /// A person refunds at the provider.
    ByHand,
    /// The operator has not allowed it.
    NotAllowed,
}

/// Why no refund was ordered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefundRefusal {
    #[error("no payment has the id {0}")]
    UnknownPayment(String),
    #[error("nothing was received for this payment, so nothing can be refunded")]
    NothingReceived,
    #[error("nothing is left to refund")]
    NothingLeft,
    #[error("nothing is left to refund: the refund order {order} of {at} takes it")]
    Ordered { order: String, at: Time },
    #[error("nothing is left to refund: it was refunded by {0}")]
    Refunded(String),
    #[error("nothing is left to refund: the dispute {0} took it")]
    Disputed(String),
    #[error("only {left} is left to refund (in the currency's smallest unit)")]
    MoreThanLeft { left: i64 },
    #[error("the payment is in {expected}, not in {given}")]
    OtherCurrency { given: Currency, expected: Currency },
    #[error(
        "refunds are not allowed for {provider}: write refunds = true in its [[source]], beside an api_key that may create refunds, or refund it at the provider"
    )]
    NotAllowed { provider: String },
    #[error("this payment has no refund order {0}")]
    UnknownOrder(String),
    #[error("the refund order is not held back; it is {0}")]
    NotHeldBack(&'static str),
}

impl RefundCall {
    /// A call for an object of a realm, if its provider can be asked.
    fn of(realm: &str, one: (&'static str, &str), order: &str, generation: u32) -> Option<Self> {
        let (provider, account, livemode) = Realm::parse(realm)?;
        Some(Self {
            provider: ApiProvider::parse(provider).filter(|one| one.can_refund())?,
            account,
            livemode,
            object: one.0.to_owned(),
            id: one.1.to_owned(),
            order: order.to_owned(),
            generation,
            payment: String::new(),
            trace: None,
        })
    }

    pub fn realm(&self) -> Realm {
        Realm { provider: self.provider.name(), account: self.account.clone(), livemode: self.livemode }
    }

    /// The name of the payment whose money it is.
    pub fn payment_name(&self) -> String {
        Facts::full(&self.realm().name(&self.id))
    }

    pub fn job(&self, id: Seq, at: Time) -> NewJob {
        let (realm, object) = (self.realm(), &self.id);
        NewJob {
            id,
            key: Some(format!("refund/{realm}/{object}/{}/{}", self.order, self.generation)),
            lane: Lane::refund(self.provider.name()),
            fifo: None,
            due_at: at,
            event: None,
            task: Task::Refund(Box::new(self.clone())),
            owner: None,
        }
    }

    /// The same for ever, whoever asks: what the provider knows this very call by.
    pub fn idempotency_key(&self) -> String {
        let (realm, generation) = (self.realm().to_string(), self.generation.to_string());
        let what = [&*realm, &self.id, &self.order, &generation].join("\0");
        let hex = encode_hex(crate::provider::sha256(what.as_bytes()));
        format!("r{}", &hex[..KEY_HEX])
    }

    /// Something that was learnt of this call, as an input to be decided.
    pub fn input(&self, seq: Seq, change: impl FnOnce(&mut RefundOrder)) -> Input {
        let mut order = RefundOrder::default();
        change(&mut order);
        let facts = Facts {
            livemode: self.livemode,
            names: [self.realm().name(&self.id)].into(),
            refund_orders: [(self.order.clone(), order)].into(),
            ..Facts::default()
        };
        Input { seq, reading: Reading { payment: Some(facts), ..Reading::default() }, cause: Cause::system() }
    }
}

/// What is to be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Names the cause: one cause orders one refund.
    pub key: String,
    pub wish: RefundWish,
    /// By a rule, and rules have ordered enough in this hour.
    pub held_back: bool,
}

/// The order that a wish makes of a payment, with the calls of each object.
pub fn order(
    facts: &Facts,
    wish: Wish,
    rights: impl Fn(&str) -> Rights,
) -> Result<RefundOrder, RefundRefusal> {
    let own = super::payment::Derived::of(facts).currency;
    if let Some((given, expected)) = wish.wish.currency.zip(own).filter(|(given, own)| given != own) {
        return Err(RefundRefusal::OtherCurrency { given, expected });
    }
    let all = facts.refundables();
    if all.is_empty() {
        return Err(RefundRefusal::NothingReceived);
    }
    let left: Vec<&Refundable> = all.iter().filter(|one| one.left > 0).collect();
    if left.is_empty() {
        return Err(taken_by(facts));
    }
    let chosen = match wish.wish.amount {
        None => left.iter().map(|one| (*one, one.left)).collect(),
        Some(amount) => spread(&left, own, amount)?,
    };
    let realm = |id: &str| facts.realm_of(id).unwrap_or_default();
    let mut may: Vec<(Rights, &str)> =
        chosen.iter().map(|(one, _)| realm(&one.id)).map(|r| (rights(r), r)).collect();
    may.sort_by_key(|(rights, _)| *rights != Rights::NotAllowed);
    if let Some((_, realm)) = may.first().filter(|(rights, _)| *rights == Rights::NotAllowed) {
        let provider = realm.split('/').next().unwrap_or_default().to_owned();
        return Err(RefundRefusal::NotAllowed { provider });
    }
    let Wish { wish, held_back, .. } = wish;
    if may.iter().any(|(rights, _)| *rights == Rights::ByHand) {
        return by_hand(facts, wish, &chosen);
    }
    let call = |(one, amount): (&Refundable, i64)| {
        let first = Generation { amount, currency: one.currency, failed_at: None };
        (one.id.clone(), BTreeMap::from([(1, first)]))
    };
    let calls = chosen.into_iter().map(call).collect();
    let wish = RefundWish { currency: own, ..wish };
    Ok(RefundOrder { wish, calls, held_back, ..RefundOrder::default() })
}

/// An order that a person carries out at the provider: it is met once so much more has gone back than had, and than others ask
/// for, in the currency of what is refunded.
fn by_hand(
    facts: &Facts,
    wish: RefundWish,
    chosen: &[(&Refundable, i64)],
) -> Result<RefundOrder, RefundRefusal> {
    let currency = chosen.first().and_then(|(one, _)| one.currency);
    let is_own = |other: Option<Currency>| other.is_none() || other == currency;
    let others = facts.refund_orders.iter().filter(|(key, order)| {
        let is_open = facts.refund_order_status(key, order) == RefundOrderStatus::Ordered;
        order.wish.by_hand.is_some() && is_open && is_own(order.wish.currency)
    });
    let open = sum(others.map(|(_, order)| order.wish.amount.unwrap_or_default()));
    let left = facts.refundables().into_iter().filter(|one| is_own(one.currency)).map(|one| one.left);
    let room = minus(sum(left), open).max(0);
    let asked = sum(chosen.iter().filter(|(one, _)| is_own(one.currency)).map(|(_, amount)| *amount));
    if room == 0 {
        return Err(taken_by(facts));
    }
    if wish.amount.is_some() && asked > room {
        return Err(RefundRefusal::MoreThanLeft { left: room });
    }
    let amount = asked.min(room);
    let target = sum([facts.gone_in(currency), open, amount]);
    let wish = RefundWish { amount: Some(amount), currency, by_hand: Some(target), ..wish };
    Ok(RefundOrder { wish, ..RefundOrder::default() })
}

/// Takes an amount from the objects, the oldest first.
fn spread<'r>(
    left: &[&'r Refundable],
    currency: Option<Currency>,
    amount: i64,
) -> Result<Vec<(&'r Refundable, i64)>, RefundRefusal> {
    let own = left.iter().filter(|one| one.currency.is_none() || one.currency == currency);
    let (mut missing, mut chosen) = (amount, Vec::new());
    for one in own.clone() {
        let part = one.left.min(missing);
        missing = minus(missing, part);
        chosen.extend((part > 0).then_some((*one, part)));
    }
    if missing > 0 {
        return Err(RefundRefusal::MoreThanLeft { left: sum(own.map(|one| one.left)) });
    }
    Ok(chosen)
}

/// Who has taken what is no longer left.
fn taken_by(facts: &Facts) -> RefundRefusal {
    let is_open = |(key, order): &(&String, &RefundOrder)| match facts.refund_order_status(key, order) {
        RefundOrderStatus::Ordered | RefundOrderStatus::Pending | RefundOrderStatus::HeldBack => true,
        RefundOrderStatus::Done | RefundOrderStatus::MetElsewhere | RefundOrderStatus::Failed => false,
    };
    let open = facts.refund_orders.iter().filter(is_open).max_by_key(|(_, order)| order.wish.at);
    let refund = || facts.refunds.iter().find(|(_, refund)| refund.status.holds());
    let disputed = || facts.disputes.keys().next();
    open.map(|(key, order)| RefundRefusal::Ordered { order: key.clone(), at: order.wish.at })
        .or_else(|| refund().map(|(id, _)| RefundRefusal::Refunded(id.clone())))
        .or_else(|| disputed().map(|id| RefundRefusal::Disputed(id.clone())))
        .unwrap_or(RefundRefusal::NothingLeft)
}

/// An order as inputs to be decided: one for each object, so that each is remembered where its object is.
pub fn inputs(
    facts: &Facts,
    key: &str,
    order: &RefundOrder,
    mut next_seq: impl FnMut() -> Seq,
    cause: &Cause,
) -> Vec<Input> {
    let all = facts.refundables();
    let ids: Vec<&str> = if order.calls.is_empty() {
        all.first().map(|one| one.id.as_str()).into_iter().collect()
    } else {
        order.calls.keys().map(String::as_str).collect()
    };
    let input = |id: &str| {
        let own = order.calls.get(id).map(|calls| (id.to_owned(), calls.clone()));
        let order = RefundOrder { calls: own.into_iter().collect(), ..order.clone() };
        let name = format!("{}/{id}", facts.realm_of(id).unwrap_or_default());
        let facts = Facts {
            livemode: facts.livemode,
            names: [name].into(),
            refund_orders: [(key.to_owned(), order)].into(),
            ..Facts::default()
        };
        let reading = Reading { payment: Some(facts), ..Reading::default() };
        Input { seq: next_seq(), reading, cause: cause.clone() }
    };
    ids.into_iter().map(input).collect()
}

/// The calls that an order asks for now.
pub(super) fn calls<'f>(
    facts: &'f Facts,
    key: &'f str,
    order: &'f RefundOrder,
) -> impl Iterator<Item = RefundCall> + 'f {
    let newest = order.newest().filter(|_| !order.waits_for_release());
    newest.filter_map(move |(id, generation, _)| {
        let object = if facts.charges.contains_key(id) { "charge" } else { "payment_intent" };
        let call = RefundCall::of(facts.realm_of(id)?, (object, id), key, generation)?;
        let payment = facts.ours.keys().next().or(facts.born.as_ref()).cloned().unwrap_or_default();
        Some(RefundCall { payment, ..call })
    })
}

#[cfg(test)]
mod tests;
