//! A payment in the books, by double entry: every amount leaves one account and arrives at another, so the lines always
//! sum to zero. The books are changed by the lines after minus the lines before, in the currency of each.
//!
//! Positive is what we have or have spent (money at the provider, fees, disputes); negative is where it came from or
//! whom we owe it (sales, customers). [`balance_of`] turns a sum round to what its owner expects.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::amounts::Amounts;
use super::{Derived, Facts};
use crate::money::minus;

/// (cause, account) → amount.
pub type Lines = BTreeMap<(String, String), i64>;

const SALES: &str = "sales";
const FEES: &str = "fees";
const DISPUTES: &str = "disputes";
const DISPUTE_FEES: &str = "dispute_fees";

pub fn lines(facts: &Facts, derived: &Derived) -> Lines {
    let mut lines = Lines::new();
    if facts.merged_into.is_some() || derived.currency.is_none() {
        return lines;
    }
    let against = derived.topped_up().map_or_else(|| SALES.to_owned(), customer_account);
    for realm in &facts.realms {
        let amounts = Amounts::of(&within(facts, realm), derived.currency);
        let provider = format!("provider/{realm}");
        // A refund may be heard of before the money it returns.
        let refunded = amounts.refunded.min(amounts.received);
        let mut post = |cause: &str, to: &str, from: &str, amount: i64| {
            if amount != 0 {
                let into = lines.entry((cause.to_owned(), to.to_owned())).or_default();
                *into = into.saturating_add(amount);
                let out_of = lines.entry((cause.to_owned(), from.to_owned())).or_default();
                *out_of = minus(*out_of, amount);
            }
        };
        post("captured", &provider, &against, amounts.received);
        post("refunded", &against, &provider, refunded);
        post("fee", FEES, &provider, amounts.cost.map_or(0, |(fee, _)| fee));
        post("disputed", DISPUTES, &provider, amounts.disputed);
        post("dispute_fee", DISPUTE_FEES, &provider, amounts.dispute_fee);
    }
    lines
}

/// The account of what a customer has with us.
pub fn customer_account(customer: &str) -> String {
    format!("customer/{customer}")
}

/// The sum of an account's lines as its owner reads it: what a customer has and what was sold are above zero.
pub fn balance_of(account: &str, posted: i64) -> i64 {
    if account == SALES || account.starts_with("customer/") { posted.saturating_neg() } else { posted }
}

/// The facts whose objects belong to one realm.
fn within<'f>(facts: &'f Facts, realm: &str) -> Cow<'f, Facts> {
    if facts.realms.len() == 1 {
        return Cow::Borrowed(facts);
    }
    let own = |id: &str| facts.realm_of(id) == Some(realm);
    let mut part = facts.clone();
    part.intents.retain(|id, _| own(id));
    part.charges.retain(|id, _| own(id));
    part.transactions.retain(|id, _| own(id));
    part.refunds.retain(|id, _| own(id));
    part.disputes.retain(|id, _| own(id));
    Cow::Owned(part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::anchor;
    use super::super::samples::*;
    use super::*;

    #[test]
    fn d1_money_of_two_accounts_stands_in_two_accounts() {
        let event = |account, id| {
            read_of_account(true, Some(account), with(intent("succeeded", 1200), json!({ "id": id }))).facts
        };
        let mut known = event("acct_1", "pi_2");
        known.join(&event("acct_2", "pi_1"));
        let entries = lines(&known, &Derived::of(&known));
        for account in ["provider/stripe/acct_1/live", "provider/stripe/acct_2/live"] {
            assert_eq!(entries[&("captured".into(), account.into())], 1200, "{account}");
        }
        assert_eq!(anchor(&known), "stripe/acct_2/live/pi_1");
    }
}
