//! What a payment's facts ask for and was not asked for yet: announcements, and reads of what the provider did not send.
//! Only the present is announced, never news that is outdated by the time it is known. A key stands in the facts once
//! its thing was asked for, so it is asked for once.

use serde_json::{Value, json};

use super::derive::is_overpaid;
use super::{Derived, Dispute, DisputeStatus, Facts, Line, Lines, RefundStatus, Status, lines};
use crate::settlement::Fetch;
use crate::settlement::reading::order_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// What makes it one thing inside its payment.
    pub key: String,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Announce {
        event_type: &'static str,
        /// What happened, beside the payment as it is now.
        about: Value,
    },
    Fetch(Fetch),
    /// Nothing yet: only to be remembered.
    Remember,
}

/// What is to be asked for now. `can_fetch` says of a realm whether its provider can be asked.
pub fn due(facts: &Facts, derived: &Derived, can_fetch: impl Fn(&str) -> bool) -> Vec<Due> {
    if facts.merged_into.is_some() {
        return Vec::new();
    }
    let mut due = Vec::new();
    due.extend(standing(derived));
    due.extend(paid(derived));
    due.extend(linked(facts, derived));
    due.extend(overpaid(facts, derived));
    due.extend(refunds(facts, derived));
    due.extend(facts.disputes.iter().filter_map(|(id, one)| dispute(id, one)));
    due.extend(fee(derived));
    due.extend(balance(facts, derived));
    due.extend(fetches(facts, can_fetch));
    due.retain(|one| !facts.emitted.contains(&one.key));
    due
}

/// The name outward ids of announcements begin with: `{anchor}/{key}`.
pub fn anchor(facts: &Facts) -> String {
    let of_charges = facts.charges.values().filter_map(|charge| charge.intent.as_ref());
    let intent = facts.intents.keys().chain(of_charges).min();
    let object = intent
        .or_else(|| facts.charges.keys().next())
        .or_else(|| facts.sessions.keys().next())
        .or_else(|| facts.disputes.keys().next())
        .or_else(|| facts.refunds.keys().next());
    let qualified = |id: &String| match facts.realm_of(id) {
        Some(realm) => format!("{realm}/{id}"),
        None => id.clone(),
    };
    let order = || facts.orders.first().map(|order| order_name(facts.livemode, None, order));
    let own = || facts.ours.keys().next().cloned();
    object.map(qualified).or_else(order).or_else(own).unwrap_or_default()
}

fn announce(key: impl Into<String>, event_type: &'static str, about: Value) -> Due {
    Due { key: key.into(), what: What::Announce { event_type, about } }
}

/// Where it stands while no money came.
fn standing(derived: &Derived) -> Option<Due> {
    let event_type = match derived.status {
        Status::Processing => "payment.processing",
        Status::Failed => "payment.failed",
        Status::Expired => "payment.expired",
        Status::Cancelled => "payment.cancelled",
        Status::Unpaid | Status::Paid | Status::PartiallyRefunded | Status::Refunded => return None,
    };
    Some(announce(event_type, event_type, json!({})))
}

fn paid(derived: &Derived) -> Option<Due> {
    let about = json!({ "amount_received": derived.received });
    let is_paid = derived.received > 0 || derived.status == Status::Paid;
    is_paid.then(|| announce("payment.paid", "payment.paid", about))
}

/// It was announced as paid before anybody knew for what.
const PAID_UNLINKED: &str = "paid_unlinked";

/// Whoever was told of money without an order, and so could do nothing, is told again when the order is known.
fn linked(facts: &Facts, derived: &Derived) -> Option<Due> {
    if facts.emitted.contains(PAID_UNLINKED) {
        let about = json!({ "reference": derived.reference, "tenant": derived.tenant });
        return derived.linked.then(|| announce("payment.linked", "payment.linked", about));
    }
    let is_first = !facts.emitted.contains("payment.paid");
    let remembers = derived.received > 0 && !derived.linked && is_first;
    remembers.then(|| Due { key: PAID_UNLINKED.to_owned(), what: What::Remember })
}

/// More money came after it was paid: each time it grows, somebody must look.
fn overpaid(facts: &Facts, derived: &Derived) -> Option<Due> {
    let about = json!({ "amount": derived.amount, "amount_received": derived.received });
    let key = format!("payment.overpaid/{}", derived.received);
    is_overpaid(facts, derived).then(|| announce(key, "payment.overpaid", about))
}

fn refunds(facts: &Facts, derived: &Derived) -> Vec<Due> {
    let event_type = match derived.status {
        Status::PartiallyRefunded => Some("payment.partially_refunded"),
        Status::Refunded => Some("payment.refunded"),
        Status::Unpaid
        | Status::Processing
        | Status::Failed
        | Status::Expired
        | Status::Cancelled
        | Status::Paid => None,
    };
    let cumulative = Cumulative { returned: derived.refund_returned, refunded: derived.refunded };
    let about =
        json!({ "amount_refunded": derived.refunded, "amount_refund_pending": derived.refund_pending });
    let summary = event_type.map(|event_type| announce(cumulative.key(event_type), event_type, about));
    let failed = facts.refunds.iter().filter(|(_, refund)| refund.status == RefundStatus::Failed);
    let failed = failed.map(|(id, refund)| {
        let about = json!({ "refund": id, "amount": refund.amount, "failure": refund.failure });
        announce(format!("payment.refund_failed/{id}"), "payment.refund_failed", about)
    });
    summary.into_iter().chain(failed).collect()
}

fn dispute(id: &str, dispute: &Dispute) -> Option<Due> {
    let event_type = match dispute.status {
        DisputeStatus::NeedsResponse | DisputeStatus::UnderReview => "payment.disputed",
        DisputeStatus::Won => "payment.dispute_won",
        DisputeStatus::Lost => "payment.dispute_lost",
        DisputeStatus::Inquiry | DisputeStatus::InquiryClosed => return None,
    };
    let about = json!({ "dispute": id, "amount": dispute.amount, "reason": dispute.reason });
    Some(announce(format!("{event_type}/{id}"), event_type, about))
}

fn fee(derived: &Derived) -> Option<Due> {
    let (fee, net) = derived.fee.zip(derived.net)?;
    Some(announce("payment.fee_known", "payment.fee_known", json!({ "fee": fee, "net": net })))
}

const CREDITED: &str = "balance.credited";
const DEBITED: &str = "balance.debited";

/// What became of the customer's balance: told as the books have it, each change once.
fn balance(facts: &Facts, derived: &Derived) -> Vec<Due> {
    let Some(customer) = derived.topped_up() else { return Vec::new() };
    // Money in another currency than the payment's is booked, and left to the person who looks at it.
    let mut posted = lines(facts, derived);
    posted.retain(|line, _| Some(line.currency) == derived.currency);
    let credited = of_customer(&posted, "captured").saturating_neg();
    if credited <= 0 {
        return Vec::new();
    }
    let about = |amount: i64| json!({ "customer": customer, "amount": amount, "currency": derived.currency });
    let now = Cumulative { returned: derived.refund_returned, refunded: of_customer(&posted, "refunded") };
    let told = Cumulative::told(facts).refunded;
    let back = match now.refunded.cmp(&told) {
        std::cmp::Ordering::Greater => Some((DEBITED, now.refunded.saturating_sub(told))),
        std::cmp::Ordering::Less => Some((CREDITED, told.saturating_sub(now.refunded))),
        std::cmp::Ordering::Equal => None,
    };
    let back = back.map(|(event_type, amount)| announce(now.key(event_type), event_type, about(amount)));
    std::iter::once(announce(CREDITED, CREDITED, about(credited))).chain(back).collect()
}

fn of_customer(lines: &Lines, wanted: &str) -> i64 {
    let own = |line: &Line| line.cause == wanted && line.account.starts_with("customer/");
    crate::money::sum(lines.iter().filter(|(line, _)| own(line)).map(|(_, amount)| *amount))
}

/// How much was refunded while how much had come back. The order of the fields is the order of time: what came back
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
            let text = key.strip_prefix(DEBITED).or_else(|| key.strip_prefix(CREDITED))?.strip_prefix('/')?;
            let (refunded, returned) = text.split_once('-').unwrap_or((text, "0"));
            Some(Self { returned: returned.parse().ok()?, refunded: refunded.parse().ok()? })
        });
        amounts.max().unwrap_or_default()
    }
}

fn fetches(facts: &Facts, can_fetch: impl Fn(&str) -> bool) -> Vec<Due> {
    let unknown = facts.charges.iter().filter_map(|(id, charge)| {
        let transaction = charge.transaction.as_ref().filter(|id| !facts.transactions.contains_key(*id))?;
        let realm = facts.realm_of(id).filter(|realm| can_fetch(realm))?;
        let fetch = Fetch::of(realm, "balance_transaction", transaction)?;
        Some(Due { key: format!("fetch/{transaction}"), what: What::Fetch(fetch) })
    });
    unknown.collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::super::{Ours, balance_of, customer_account};
    use super::{Derived, Facts, PAID_UNLINKED, Status, What, anchor, due, json, lines};

    #[test]
    fn d2_the_fee_is_known_by_the_balance_transaction_only() {
        let named = ("charge.updated", charge(json!({ "balance_transaction": "txn_1" })));
        let mut known = facts(&[named]);
        assert_eq!(Derived::of(&known).fee, None);
        let [_, _, due] = &due(&known, &Derived::of(&known), |realm| realm == "stripe/-/live")[..] else {
            panic!()
        };
        assert_eq!(due.key, "fetch/txn_1");
        let What::Fetch(fetch) = &due.what else { panic!("{due:?}") };
        assert_eq!(
            (fetch.provider.name(), &fetch.account, fetch.livemode, &*fetch.id),
            ("stripe", &None, Some(true), "txn_1")
        );
        assert_eq!(ask(&mut known), ["payment.paid", "fetch/txn_1"]);
        let (event_type, entry) = transaction(json!({}));
        known.join(&read(event_type, entry).facts);
        assert_eq!((Derived::of(&known).fee, Derived::of(&known).net), (Some(43), Some(1157)));
        assert_eq!(ask(&mut known), ["payment.fee_known"]);
        assert_eq!(
            derived(&[paid(), transaction(json!({}))]).fee,
            Some(43),
            "the entry names its charge, too"
        );
        let foreign = derived(&[paid(), transaction(json!({ "currency": "usd" }))]);
        assert_eq!(foreign.fee, None, "a fee in another currency is not taken for one in ours");
        let two = [
            paid(),
            transaction(json!({})),
            ("charge.succeeded", charge(json!({ "id": "ch_2", "amount": 5 }))),
        ];
        assert_eq!(derived(&two).fee, None, "one charge's fee is not the payment's");
        let more = ("payment_intent.succeeded", intent("succeeded", 1500));
        assert_eq!(derived(&[paid(), transaction(json!({})), more]).fee, None, "a charge was not seen yet");
    }

    #[test]
    fn d2_what_cannot_be_fetched_is_not_asked_for() {
        let known = facts(&[("charge.updated", charge(json!({ "balance_transaction": "txn_1" })))]);
        let keys: Vec<_> =
            due(&known, &Derived::of(&known), |_| false).into_iter().map(|due| due.key).collect();
        assert_eq!(keys, ["payment.paid", PAID_UNLINKED]);
    }

    #[test]
    fn d2_partial_refunds_add_up_and_each_is_announced_once() {
        let mut known = facts(&[paid()]);
        assert_eq!(ask(&mut known), ["payment.paid"]);
        let first = [
            refund("re_1", "pending", 400),
            ("charge.refunded", charge(json!({ "amount_refunded": 400 }))),
            refund("re_1", "succeeded", 400),
        ];
        let mut asked = Vec::new();
        for (event_type, object) in first {
            known.join(&read(event_type, object).facts);
            asked.extend(ask(&mut known));
        }
        assert_eq!(asked, ["payment.partially_refunded/400"]);
        let (event_type, rest) = refund("re_2", "pending", 800);
        known.join(&read(event_type, rest).facts);
        assert_eq!(ask(&mut known), ["payment.refunded/1200"]);
        let now = Derived::of(&known);
        assert_eq!((now.status, now.refunded, now.refund_pending), (Status::Refunded, 1200, 800));
    }

    #[test]
    fn d5_only_the_present_is_announced_and_each_once() {
        let voucher = ("payment_intent.requires_action", intent("requires_action", 0));
        let mut known = facts(std::slice::from_ref(&voucher));
        assert_eq!(ask(&mut known), ["payment.processing"]);
        assert!(ask(&mut known).is_empty());
        let mut late = facts(&[voucher, paid(), refund("re_1", "succeeded", 1200)]);
        assert_eq!(ask(&mut late), ["payment.paid", "payment.refunded/1200"]);
        late.emitted.clear();
        late.merged_into = Some("pay_2".into());
        assert!(ask(&mut late).is_empty());
        assert!(lines(&late, &Derived::of(&late)).is_empty());
    }

    #[test]
    fn d5_an_announcement_is_called_after_what_is_paid() {
        assert_eq!(anchor(&facts(&[paid()])), "stripe/-/live/pi_1");
        let alone = charge(json!({ "payment_intent": null }));
        assert_eq!(anchor(&facts(&[("charge.succeeded", alone)])), "stripe/-/live/ch_1");
        let mut ordered = Facts { livemode: Some(true), ..Facts::default() };
        ordered.ours.insert("pay_1".into(), Ours::default());
        assert_eq!(anchor(&ordered), "pay_1");
        ordered.orders.insert("o_1".into());
        assert_eq!(anchor(&ordered), "live/order/o_1");
    }

    #[test]
    fn d7_a_top_up_is_credited_once_and_refunds_take_it_back() {
        let label = json!({ "metadata": { "purpose": "top_up", "customer_id": "c_1" } });
        let mut known = facts(&[("charge.succeeded", charge(label))]);
        let balance = |facts: &Facts| {
            let account = customer_account(None, "c_1");
            let entries = lines(facts, &Derived::of(facts));
            let own = entries.iter().filter(|(line, _)| line.account == account).map(|(_, amount)| *amount);
            balance_of(&account, own.sum())
        };
        assert_eq!(
            (balance(&known), ask(&mut known)),
            (1200, vec!["payment.paid".into(), "balance.credited".into()])
        );
        let steps = [
            (refund("re_1", "succeeded", 400), 800, ("balance.debited/400", 400)),
            (refund("re_1", "failed", 400), 1200, ("balance.credited/0-400", 400)),
            (refund("re_2", "succeeded", 1200), 0, ("balance.debited/1200-400", 1200)),
        ];
        for ((event_type, object), expected, (key, amount)) in steps {
            known.join(&read(event_type, object).facts);
            assert_eq!(balance(&known), expected, "{key}");
            let told = due(&known, &Derived::of(&known), |_| true);
            let [told] = &told.iter().filter(|due| due.key.starts_with("balance.")).collect::<Vec<_>>()[..]
            else {
                panic!("{told:?}")
            };
            let What::Announce { about, .. } = &told.what else { panic!("{told:?}") };
            assert_eq!(
                (&*told.key, &about["amount"], &about["customer"]),
                (key, &json!(amount), &json!("c_1"))
            );
            ask(&mut known);
        }
        assert!(ask(&mut known).is_empty());
    }
}
