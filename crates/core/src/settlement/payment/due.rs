//! What a payment's facts ask for and was not asked for yet: announcements, and reads of what the provider did not send.
//! Only the present is announced, never news that is outdated by the time it is known. A key stands in the facts once
//! its thing was asked for, so it is asked for once.

mod sessions;

use serde_json::{Value, json};

use super::amounts::{gives_back, release_entry};
use super::derive::{is_underpaid, other_money, surplus};
use super::{
    BookLine, Derived, Dispute, DisputeStatus, Facts, Lines, PaymentStatus, Refund, RefundOrder,
    RefundStatus, lines,
};
use crate::money::{minus, sum};
use crate::settlement::reading::order_name;
use crate::settlement::refund::calls;
use crate::settlement::{CheckoutCall, Fetch, RefundCall};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentDue {
    /// What makes it one thing inside its payment.
    pub key: String,
    pub what: DuePart,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DuePart {
    Announce {
        event_type: &'static str,
        /// What happened, beside the payment as it is now.
        about: Value,
    },
    Fetch(Fetch),
    Refund(RefundCall),
    Checkout(CheckoutCall),
    /// Nothing yet: only to be remembered.
    Remember,
}

/// What is to be asked for now. `can_fetch` says of a realm whether its provider can be asked.
pub fn due(facts: &Facts, derived: &Derived, can_fetch: impl Fn(&str) -> bool) -> Vec<PaymentDue> {
    if facts.merged_into.is_some() {
        return Vec::new();
    }
    let mut due = Vec::new();
    due.extend(standing(derived));
    due.extend(paid(derived));
    due.extend(underpaid(facts, derived));
    due.extend(currency_mismatch(facts, derived));
    due.extend(linked(facts, derived));
    due.extend(facts.lost.iter().map(|payment| unlinked(payment)));
    due.extend(overpaid(facts, derived));
    due.extend(refunds(facts, derived));
    due.extend(facts.disputes.iter().filter_map(|(id, one)| dispute(id, one)));
    due.extend(fee(derived));
    due.extend(balance(facts, derived));
    due.extend(facts.refund_orders.iter().flat_map(|(key, order)| refund_order(facts, key, order)));
    due.extend(facts.refunds.iter().filter_map(|(id, refund)| refund_waiting(id, refund)));
    due.extend(fetches(facts, &can_fetch));
    due.extend(follow_ups(facts, &can_fetch));
    due.extend(sessions::sessions(facts, &can_fetch));
    due.retain(|one| !facts.emitted.contains(&one.key));
    due
}

/// The name outward ids of announcements begin with: `{anchor}/{key}`.
pub fn anchor(facts: &Facts) -> String {
    // What brought the money comes first: it keeps its name when something parts from it.
    let paid = facts.intents.iter().filter(|(_, intent)| intent.received > 0).map(|(id, _)| id);
    let taken = facts.charges.iter().filter(|(_, charge)| charge.taken() > 0);
    let of_taken = taken.map(|(id, charge)| charge.intent.as_ref().unwrap_or(id));
    let of_charges = facts.charges.values().filter_map(|charge| charge.intent.as_ref());
    let intent = paid.chain(of_taken).min().or_else(|| facts.intents.keys().chain(of_charges).min());
    let object = intent
        .or_else(|| facts.charges.keys().next())
        .or_else(|| facts.sessions.keys().next())
        .or_else(|| facts.disputes.keys().next())
        .or_else(|| facts.refunds.keys().next());
    let qualified = |id: &String| match facts.realm_of(id) {
        Some(realm) => format!("{realm}/{id}"),
        None => id.clone(),
    };
    let order = || facts.orders.first().map(|order| order_name(facts.livemode, None, None, order));
    let own = || facts.ours.keys().next().cloned();
    object.map(qualified).or_else(order).or_else(own).unwrap_or_default()
}

fn announce(key: impl Into<String>, event_type: &'static str, about: Value) -> PaymentDue {
    PaymentDue { key: key.into(), what: DuePart::Announce { event_type, about } }
}

/// Where it stands while no money came. Each failed try is told by its number, whatever stood in between.
fn standing(derived: &Derived) -> Option<PaymentDue> {
    let event_type = match derived.status {
        PaymentStatus::Processing => "payment.processing",
        PaymentStatus::Failed => {
            let key = format!("payment.failed/{}", derived.failed_tries);
            return Some(announce(key, "payment.failed", json!({ "failed_tries": derived.failed_tries })));
        }
        PaymentStatus::Expired => "payment.expired",
        PaymentStatus::Cancelled => "payment.cancelled",
        PaymentStatus::Unpaid
        | PaymentStatus::PartiallyPaid
        | PaymentStatus::Paid
        | PaymentStatus::PartiallyRefunded
        | PaymentStatus::Refunded => return None,
    };
    Some(announce(event_type, event_type, json!({})))
}

fn paid(derived: &Derived) -> Option<PaymentDue> {
    let about = json!({ "amount_received": derived.received });
    derived.is_settled().then(|| announce("payment.paid", "payment.paid", about))
}

/// Less is here than was asked for: told whenever more comes that is not enough.
fn underpaid(facts: &Facts, derived: &Derived) -> Option<PaymentDue> {
    let about = json!({
        "amount": derived.amount,
        "amount_received": derived.received,
        "amount_missing": derived.missing,
    });
    let key = format!("payment.underpaid/{}", derived.received);
    is_underpaid(facts, derived).then(|| announce(key, "payment.underpaid", about))
}

/// Money came in a currency that nobody asked for: once for each.
fn currency_mismatch(facts: &Facts, derived: &Derived) -> Vec<PaymentDue> {
    let each = other_money(facts, derived.currency).into_iter().map(|(currency, received)| {
        let about = json!({
            "currency": currency,
            "amount_received": received,
            "expected_currency": derived.currency,
        });
        announce(format!("payment.currency_mismatch/{currency}"), "payment.currency_mismatch", about)
    });
    each.collect()
}

/// As what it was announced as paid: for whom, and whether anybody knew for what.
const PAID_AS: &str = "paid_as";

/// Whoever was told of money without its order or its tenant, and so could do nothing, is told again when it is known.
fn linked(facts: &Facts, derived: &Derived) -> Option<PaymentDue> {
    let tenant = derived.tenant.as_deref().unwrap_or("-");
    let standing = format!("{}/{tenant}", if derived.linked { "linked" } else { "unlinked" });
    if !facts.emitted.contains("payment.paid") {
        let is_told = paid(derived).is_some();
        let key = format!("{PAID_AS}/{standing}");
        return is_told.then_some(PaymentDue { key, what: DuePart::Remember });
    }
    let told =
        |key: &String| key.strip_prefix(PAID_AS).and_then(|key| key.strip_prefix('/')) == Some(&standing);
    let is_news = derived.linked && !facts.emitted.iter().any(told);
    let about = json!({ "reference": derived.reference, "tenant": derived.tenant });
    is_news.then(|| announce(format!("payment.linked/{tenant}"), "payment.linked", about))
}

/// Money that was told of as this payment's turned out to be another's.
fn unlinked(payment: &str) -> PaymentDue {
    let about = json!({ "payment": payment });
    announce(format!("payment.unlinked/{payment}"), "payment.unlinked", about)
}

/// More money is here than was asked for: each time it grows, somebody must look.
fn overpaid(facts: &Facts, derived: &Derived) -> Option<PaymentDue> {
    let about = json!({ "amount": derived.amount, "amount_received": derived.received });
    let key = format!("payment.overpaid/{}", derived.received);
    (surplus(facts, derived) > 0).then(|| announce(key, "payment.overpaid", about))
}

/// What went back, what is on its way, and what came to nothing.
fn refunds(facts: &Facts, derived: &Derived) -> Vec<PaymentDue> {
    let Derived { received, refunded, refund_pending: pending, refund_returned: returned, .. } = *derived;
    let about = json!({ "amount_refunded": refunded, "amount_refund_pending": pending });
    let mut due = Vec::new();
    if received > 0 && refunded > 0 {
        let whole = refunded >= received;
        let event_type = if whole { "payment.refunded" } else { "payment.partially_refunded" };
        // What was called off had never gone back, so it is no news of what did.
        let cancelled = facts.refunds.values().filter(|refund| refund.status == RefundStatus::Cancelled);
        let returned = minus(returned, sum(cancelled.map(|refund| refund.amount))).max(0);
        due.push(announce(Cumulative { returned, refunded }.key(event_type), event_type, about.clone()));
    }
    if received > 0 && pending > 0 {
        let must_act = |refund: &Refund| refund.status == RefundStatus::RequiresAction;
        let must_act = facts.refunds.values().any(|one| must_act(one) && gives_back(facts, one));
        let mut key = Cumulative { returned, refunded: derived.gone() }.key("payment.refund_pending");
        let mut about = about;
        about["requires_action"] = json!(must_act);
        if must_act {
            key += "/requires_action";
        }
        due.push(announce(key, "payment.refund_pending", about));
    }
    for (id, refund) in facts.refunds.iter().filter(|(_, refund)| gives_back(facts, refund)) {
        let event_type = match refund.status {
            RefundStatus::Failed => "payment.refund_failed",
            RefundStatus::Cancelled => "payment.refund_cancelled",
            RefundStatus::Pending | RefundStatus::RequiresAction | RefundStatus::Succeeded => continue,
        };
        let about = json!({ "refund": id, "amount": refund.amount, "failure": refund.failure });
        due.push(announce(format!("{event_type}/{id}"), event_type, about));
    }
    due
}

fn dispute(id: &str, dispute: &Dispute) -> Option<PaymentDue> {
    let event_type = match dispute.status {
        DisputeStatus::NeedsResponse | DisputeStatus::UnderReview => "payment.disputed",
        DisputeStatus::Won => "payment.dispute_won",
        DisputeStatus::Lost => "payment.dispute_lost",
        DisputeStatus::Inquiry | DisputeStatus::InquiryClosed => return None,
    };
    let about = json!({ "dispute": id, "amount": dispute.amount, "reason": dispute.reason });
    Some(announce(format!("{event_type}/{id}"), event_type, about))
}

/// Told again when more was captured.
fn fee(derived: &Derived) -> Option<PaymentDue> {
    let (fee, net) = derived.fee.zip(derived.net)?;
    let key = format!("payment.fee_known/{}", derived.received);
    Some(announce(key, "payment.fee_known", json!({ "fee": fee, "net": net })))
}

const CREDITED: &str = "balance.credited";
const DEBITED: &str = "balance.debited";

/// What became of the customer's balance: told as the books have it, each change once.
fn balance(facts: &Facts, derived: &Derived) -> Vec<PaymentDue> {
    let Some(customer) = derived.topped_up() else { return Vec::new() };
    // Money in another currency than the payment's is booked, and left to the person who looks at it.
    let mut posted = lines(facts, derived);
    posted.retain(|line, _| Some(line.currency) == derived.currency);
    let credited = of_customer(&posted, "captured").saturating_neg();
    if credited <= 0 {
        return Vec::new();
    }
    let about = |amount: i64| json!({ "customer": customer, "amount": amount, "currency": derived.currency });
    let more = credited.saturating_sub(told_credited(facts));
    let came = (more > 0).then(|| announce(format!("{CREDITED}/{credited}"), CREDITED, about(more)));
    let now = Cumulative {
        returned: derived.refund_returned.saturating_add(disputes_won(facts, derived)),
        refunded: of_customer(&posted, "refunded").saturating_add(of_customer(&posted, "disputed")),
    };
    let told = Cumulative::told(facts).refunded;
    let back = match now.refunded.cmp(&told) {
        std::cmp::Ordering::Greater => Some((DEBITED, now.refunded.saturating_sub(told))),
        std::cmp::Ordering::Less => Some((CREDITED, told.saturating_sub(now.refunded))),
        std::cmp::Ordering::Equal => None,
    };
    let back = back.map(|(event_type, amount)| announce(now.key(event_type), event_type, about(amount)));
    came.into_iter().chain(back).collect()
}

/// How much was told to have come.
fn told_credited(facts: &Facts) -> i64 {
    let sums = facts.emitted.iter().filter_map(|key| key.strip_prefix(CREDITED)?.strip_prefix('/'));
    sums.filter_map(|sum| sum.parse().ok()).max().unwrap_or_default()
}

/// What may have been lost, and was given back.
fn disputes_won(facts: &Facts, derived: &Derived) -> i64 {
    let won = facts.disputes.values().filter(|one| one.status == DisputeStatus::Won);
    let own = won.filter(|one| one.currency.is_none() || one.currency == derived.currency);
    crate::money::sum(own.map(|one| one.amount.max(one.withdrawn)))
}

fn of_customer(lines: &Lines, wanted: &str) -> i64 {
    let own = |line: &BookLine| line.cause == wanted && line.account.starts_with("customer/");
    crate::money::sum(lines.iter().filter(|(line, _)| own(line)).map(|(_, amount)| *amount))
}

/// How much was refunded or lost while how much had come back. The order of the fields is the order of time: what came back
/// only grows, and until more does, so does what was refunded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cumulative {
    returned: i64,
    refunded: i64,
}

impl Cumulative {
    fn key(self, event_type: &str) -> String {
        match self.returned {
            0 => format!("{event_type}/{}", self.refunded),
            returned => format!("{event_type}/{}-{returned}", self.refunded),
        }
    }

    /// What was last told of the customer's balance.
    fn told(facts: &Facts) -> Self {
        let amounts = facts.emitted.iter().filter_map(|key| {
            let (refunded, returned) = match key.strip_prefix(DEBITED) {
                Some(text) => {
                    let text = text.strip_prefix('/')?;
                    text.split_once('-').unwrap_or((text, "0"))
                }
                // Without the second number it is what came.
                None => key.strip_prefix(CREDITED)?.strip_prefix('/')?.split_once('-')?,
            };
            Some(Self { returned: returned.parse().ok()?, refunded: refunded.parse().ok()? })
        });
        amounts.max().unwrap_or_default()
    }
}

/// Under which it is announced that a refund was ordered.
pub fn refund_ordered(order: &str) -> String {
    format!("payment.refund_ordered/{order}")
}

/// That a refund was ordered, what the provider is asked for because of it, and that it was given up.
fn refund_order(facts: &Facts, key: &str, order: &RefundOrder) -> Vec<PaymentDue> {
    let wish = &order.wish;
    let about = json!({
        "order": key,
        "amount": order.amount(wish.currency),
        "currency": wish.currency,
        "trigger": wish.trigger,
        "reason": wish.reason,
        "by": wish.by,
        "by_hand": wish.by_hand.is_some(),
        "held_back": order.waits_for_release(),
    });
    let mut due = vec![announce(refund_ordered(key), "payment.refund_ordered", about.clone())];
    due.extend(calls(facts, key, order).map(|call| {
        let key = format!("refund/{key}/{}/{}", call.generation, call.id);
        PaymentDue { key, what: DuePart::Refund(call) }
    }));
    if let Some(why) = order.gave_up.values().next() {
        let mut about = about;
        about["why"] = json!(why);
        due.push(announce(format!("payment.refund_given_up/{key}"), "payment.refund_given_up", about));
    }
    due
}

/// Our own balance at the provider is too small for a refund.
fn refund_waiting(id: &str, refund: &Refund) -> Option<PaymentDue> {
    let reason = refund.pending_reason.as_deref().filter(|reason| *reason == "insufficient_funds")?;
    let about =
        json!({ "refund": id, "amount": refund.amount, "currency": refund.currency, "reason": reason });
    let is_due = refund.status == RefundStatus::Pending;
    is_due.then(|| announce(format!("payment.refund_waiting/{id}"), "payment.refund_waiting", about))
}

/// When a refund that is under way is looked at again.
const FOLLOW_UP_DAYS: [u32; 5] = [1, 3, 7, 14, 30];

fn follow_ups<'f>(
    facts: &'f Facts,
    can_fetch: &'f impl Fn(&str) -> bool,
) -> impl Iterator<Item = PaymentDue> + 'f {
    let under_way = facts.refunds.iter().filter(|(_, refund)| refund.status.is_under_way());
    under_way.flat_map(move |(id, _)| {
        let realm = facts.realm_of(id).filter(|realm| can_fetch(realm));
        let fetch = realm.and_then(|realm| Fetch::of(realm, "refund", id));
        FOLLOW_UP_DAYS.into_iter().filter_map(move |after_days| {
            let what = DuePart::Fetch(Fetch { after_days, ..fetch.clone()? });
            Some(PaymentDue { key: format!("follow_up/{after_days}/{id}"), what })
        })
    })
}

fn fetches(facts: &Facts, can_fetch: impl Fn(&str) -> bool) -> Vec<PaymentDue> {
    let named = facts.charges.iter().flat_map(|(id, charge)| {
        let own = charge.transactions.iter().chain(release_entry(facts, id, charge));
        own.map(move |transaction| (id, transaction))
    });
    let unknown = named.filter(|(_, transaction)| !facts.transactions.contains_key(*transaction));
    let fetch = |(id, transaction): (&String, &String)| {
        let realm = facts.realm_of(id).filter(|realm| can_fetch(realm))?;
        let fetch = Fetch::of(realm, "balance_transaction", transaction)?;
        Some(PaymentDue { key: format!("fetch/{transaction}"), what: DuePart::Fetch(fetch) })
    };
    unknown.filter_map(fetch).collect()
}

#[cfg(test)]
mod tests;
