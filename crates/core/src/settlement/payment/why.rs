//! Why a payment stands where it stands: the one thing a person should know of it. Worked out from the facts alone, as
//! the status is; what a person must do at once comes first. Words are for whoever shows it.

use super::amounts::gives_back;
use super::derive::surplus;
use super::{
    Attention, Derived, DisputeStatus, Facts, IntentStatus, PaymentStatus, RefundOrder, RefundOrderStatus,
    RefundStatus, SessionStatus, tries,
};
use crate::money::sum;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why<'f> {
    /// So much is disputed, and has to be answered.
    Disputed(i64),
    /// So much is disputed, and the bank is deciding.
    UnderReview(i64),
    /// So much was taken back.
    DisputeLost(i64),
    OtherCurrency,
    MixedModes,
    /// What else lays claim to it.
    Conflict(Vec<&'f str>),
    /// Refunds of so much failed.
    RefundFailed(i64),
    /// A refund that was ordered could not be made.
    RefundGivenUp(Option<&'f str>),
    /// So much waits for a person to let it go.
    RefundHeldBack(i64),
    /// A person must refund so much at the provider.
    RefundByHand(i64),
    /// Refunds of so much were called off.
    RefundCancelled(i64),
    /// So much more came than was asked for.
    Overpaid(i64),
    Underpaid,
    OverRefunded,
    Unlinked,
    /// There was nothing to pay.
    Free,
    Paid,
    PartlyRefunded,
    Refunded,
    Cancelled,
    Expired,
    /// The last try, with what the provider says of it.
    Failed(Option<&'f str>),
    CustomerMustAct,
    BankWorksOnIt,
    /// Reserved, not captured.
    Reserved,
    /// Ordered; the money is not here yet.
    OnItsWay,
    AtThePaymentPage,
    /// The provider has said nothing yet.
    Unheard,
    CustomerMustPay,
}

impl<'f> Why<'f> {
    pub fn of(facts: &'f Facts, derived: &Derived) -> Self {
        dispute(facts, derived)
            .or_else(|| derived.attention.map(|reason| attention(facts, derived, reason)))
            .unwrap_or_else(|| status(facts, derived))
    }
}

fn dispute<'f>(facts: &Facts, derived: &Derived) -> Option<Why<'f>> {
    let of = |status: DisputeStatus| {
        let own = facts.disputes.values().filter(|dispute| dispute.status == status);
        sum(own.map(|dispute| dispute.amount))
    };
    match derived.dispute_status? {
        status @ DisputeStatus::NeedsResponse => Some(Why::Disputed(of(status))),
        status @ DisputeStatus::UnderReview => Some(Why::UnderReview(of(status))),
        DisputeStatus::Lost => Some(Why::DisputeLost(derived.disputed_amount)),
        DisputeStatus::Inquiry | DisputeStatus::InquiryClosed | DisputeStatus::Won => None,
    }
}

fn attention<'f>(facts: &'f Facts, derived: &Derived, reason: Attention) -> Why<'f> {
    match reason {
        Attention::CurrencyMismatch => Why::OtherCurrency,
        Attention::ModeMismatch => Why::MixedModes,
        Attention::Conflict => Why::Conflict(facts.conflicts.iter().map(String::as_str).collect()),
        Attention::RefundFailed => Why::RefundFailed(ended(facts, RefundStatus::Failed)),
        Attention::RefundGivenUp => Why::RefundGivenUp(
            facts.refund_orders.values().find_map(|order| order.gave_up.values().next()).map(String::as_str),
        ),
        Attention::RefundHeldBack => {
            Why::RefundHeldBack(ordered(facts, derived, RefundOrder::waits_for_release))
        }
        Attention::RefundByHand => {
            Why::RefundByHand(ordered(facts, derived, |order| order.wish.by_hand.is_some()))
        }
        Attention::RefundCancelled => Why::RefundCancelled(ended(facts, RefundStatus::Cancelled)),
        Attention::Overpaid => Why::Overpaid(surplus(facts, derived)),
        Attention::Underpaid => Why::Underpaid,
        Attention::OverRefunded => Why::OverRefunded,
        Attention::Unlinked => Why::Unlinked,
    }
}

/// How much such orders give back that are not carried out yet.
fn ordered(facts: &Facts, derived: &Derived, is_so: impl Fn(&RefundOrder) -> bool) -> i64 {
    let waiting = facts.refund_orders.iter().filter(|(key, order)| {
        let status = facts.refund_order_status(key, order);
        is_so(order) && matches!(status, RefundOrderStatus::Ordered | RefundOrderStatus::HeldBack)
    });
    sum(waiting.map(|(_, order)| order.amount(derived.currency)))
}

/// How much refunds were of that ended so.
fn ended(facts: &Facts, status: RefundStatus) -> i64 {
    let own = facts.refunds.values().filter(|one| one.status == status && gives_back(facts, one));
    sum(own.map(|refund| refund.amount))
}

fn status<'f>(facts: &'f Facts, derived: &Derived) -> Why<'f> {
    match derived.status {
        PaymentStatus::PartiallyPaid => Why::Underpaid,
        PaymentStatus::Paid if derived.received == 0 => Why::Free,
        PaymentStatus::Paid => Why::Paid,
        PaymentStatus::PartiallyRefunded => Why::PartlyRefunded,
        PaymentStatus::Refunded => Why::Refunded,
        PaymentStatus::Cancelled => Why::Cancelled,
        PaymentStatus::Expired => Why::Expired,
        PaymentStatus::Failed => {
            let intents = facts.intents.values().filter_map(|intent| intent.failure.as_deref());
            let charges = facts.charges.values().filter_map(|charge| charge.failure.as_deref());
            Why::Failed(charges.chain(intents).next())
        }
        PaymentStatus::Processing => processing(facts),
        PaymentStatus::Unpaid => unpaid(facts),
    }
}

fn processing<'f>(facts: &Facts) -> Why<'f> {
    let doing = facts.intents.iter().filter_map(|(id, intent)| tries::under_way(facts, id, intent));
    match doing.max() {
        Some(IntentStatus::RequiresAction) => Why::CustomerMustAct,
        Some(IntentStatus::Processing) => Why::BankWorksOnIt,
        Some(
            IntentStatus::Waiting
            | IntentStatus::Failed
            | IntentStatus::Expired
            | IntentStatus::Cancelled
            | IntentStatus::Succeeded,
        )
        | None => {
            if tries::is_reserved_or_pending(facts) {
                Why::Reserved
            } else {
                Why::OnItsWay
            }
        }
    }
}

fn unpaid<'f>(facts: &Facts) -> Why<'f> {
    let Facts { sessions, intents, charges, .. } = facts;
    if sessions.values().any(|session| session.status == SessionStatus::Open) {
        Why::AtThePaymentPage
    } else if sessions.is_empty() && intents.is_empty() && charges.is_empty() {
        Why::Unheard
    } else {
        Why::CustomerMustPay
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(facts: Value, expected: &Why<'_>) {
        let mut facts: Facts = serde_json::from_value(facts).unwrap();
        facts.realms.insert("stripe/-/live".into());
        assert_eq!(Why::of(&facts, &Derived::of(&facts)), *expected, "{facts:?}");
    }

    fn asked(amount: i64) -> Value {
        json!({ "pay_1": { "amount": amount, "currency": "jpy" } })
    }

    fn intent(status: &str, received: i64) -> Value {
        json!({ "pi_1": { "status": status, "amount": 1200, "received": received, "currency": "jpy" } })
    }

    #[test]
    fn h1_what_keeps_the_money_away_is_told_by_the_facts() {
        let session =
            |status: &str| json!({ "cs_1": { "status": status, "amount": 1200, "currency": "jpy" } });
        let failed = json!({ "pi_1": { "failed": true, "failure": "card_declined", "currency": "jpy" } });
        let reserved = json!({ "ch_1": { "status": "pending", "amount": 5 } });
        let free = json!({ "cs_1": { "status": "complete", "paid": true } });
        check(json!({ "ours": asked(1200) }), &Why::Unheard);
        check(json!({ "sessions": session("open") }), &Why::AtThePaymentPage);
        check(json!({ "intents": intent("waiting", 0) }), &Why::CustomerMustPay);
        check(json!({ "intents": intent("requires_action", 0) }), &Why::CustomerMustAct);
        check(json!({ "intents": intent("processing", 0) }), &Why::BankWorksOnIt);
        check(json!({ "charges": reserved }), &Why::Reserved);
        check(json!({ "sessions": session("complete") }), &Why::OnItsWay);
        check(json!({ "sessions": session("expired") }), &Why::Expired);
        check(json!({ "intents": intent("cancelled", 0) }), &Why::Cancelled);
        check(json!({ "intents": failed }), &Why::Failed(Some("card_declined")));
        check(json!({ "sessions": free }), &Why::Free);
    }

    #[test]
    fn h1_what_a_person_must_do_at_once_comes_before_how_it_stands() {
        let paid = || intent("succeeded", 1200);
        let with = |name: &str, more: Value| {
            let mut facts = json!({ "ours": asked(1200), "intents": paid() });
            facts[name] = more;
            facts
        };
        let refund = |status: &str, amount: i64| {
            with("refunds", json!({ "re_1": { "status": status, "amount": amount, "currency": "jpy" } }))
        };
        let dispute = |status: &str| {
            let one = json!({ "status": status, "amount": 1200, "currency": "jpy", "withdrawn": 1200 });
            with("disputes", json!({ "dp_1": one }))
        };
        let dollars = json!({ "ch_1": { "status": "succeeded", "captured": 9, "currency": "usd" } });
        check(with("conflicts", json!([])), &Why::Paid);
        check(json!({ "ours": asked(1200), "intents": intent("succeeded", 500) }), &Why::Underpaid);
        check(json!({ "ours": asked(1000), "intents": paid() }), &Why::Overpaid(200));
        check(json!({ "intents": paid() }), &Why::Unlinked);
        check(refund("succeeded", 300), &Why::PartlyRefunded);
        check(refund("succeeded", 1200), &Why::Refunded);
        check(refund("succeeded", 1300), &Why::OverRefunded);
        check(refund("failed", 300), &Why::RefundFailed(300));
        check(with("conflicts", json!(["pay_2"])), &Why::Conflict(vec!["pay_2"]));
        check(with("realms", json!(["stripe/-/test"])), &Why::MixedModes);
        check(dispute("needs_response"), &Why::Disputed(1200));
        check(dispute("under_review"), &Why::UnderReview(1200));
        check(dispute("lost"), &Why::DisputeLost(1200));
        check(dispute("won"), &Why::Paid);
        check(json!({ "ours": asked(1200), "charges": dollars }), &Why::OtherCurrency);
    }
}
