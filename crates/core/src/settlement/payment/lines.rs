//! A payment in the books, by double entry: every amount leaves one account and arrives at another in its own currency, so
//! the lines of each currency always sum to zero. The books are changed by the lines after minus the lines before.
//!
//! Positive is what we have or have spent (money at the provider, fees, disputes); negative is where it came from or
//! whom we owe it (sales, customers). [`balance_of`] turns a sum round to what its owner expects.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::amounts::{Amounts, exchanged};
use super::{Derived, Facts};
use crate::directory::{scoped, unscoped};
use crate::money::{Currency, minus};
use crate::state::PROVIDER_ACCOUNTS;

/// What is booked, and by how much.
pub type Lines = BTreeMap<BookLine, i64>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BookLine {
    pub currency: Currency,
    pub cause: String,
    pub account: String,
}

impl BookLine {
    fn new(currency: Currency, cause: &str, account: &str) -> Self {
        Self { currency, cause: cause.to_owned(), account: account.to_owned() }
    }
}

const SALES: &str = "sales";
const TIPS: &str = "tips";
const CUSTOMER: &str = "customer/";
const FEES: &str = "fees";
const DISPUTES: &str = "disputes";
const DISPUTE_FEES: &str = "dispute_fees";

pub fn lines(facts: &Facts, derived: &Derived) -> Lines {
    let mut lines = Lines::new();
    let Some(own) = derived.currency.filter(|_| facts.merged_into.is_none()) else { return lines };
    let against = match derived.topped_up() {
        Some(customer) => customer_account(derived.tenant.as_deref(), customer),
        None => SALES.to_owned(),
    };
    for realm in &facts.realms {
        let part = within(facts, realm);
        let provider = format!("{PROVIDER_ACCOUNTS}{realm}");
        for currency in others(&part, own) {
            book(&mut lines, currency, &Amounts::beside(&part, currency), &provider, &against);
        }
        book(&mut lines, own, &Amounts::of(&part, Some(own)), &provider, &against);
        for (currency, sums) in exchanged(&part, Some(own)) {
            post(&mut lines, currency, "fee", (FEES, &provider), sums.fee);
        }
    }
    lines
}

fn book(lines: &mut Lines, currency: Currency, amounts: &Amounts, provider: &str, against: &str) {
    // A refund may be heard of before the money it returns. What is on its way back is not ours any more.
    let refunded = amounts.back.gone().min(amounts.received);
    // A top-up that was lost is not the customer's to spend.
    let lost_by = if against == SALES { DISPUTES } else { against };
    let mut post = |cause, to, from, amount| post(lines, currency, cause, (to, from), amount);
    post("captured", provider, against, amounts.received);
    post("tip", provider, TIPS, amounts.tips);
    post("refunded", against, provider, refunded);
    // What the provider kept for itself is given back at our cost.
    let tips_back = amounts.refunded_beside.min(amounts.tips);
    post("tip_refunded", TIPS, provider, tips_back);
    post("surcharge_refunded", FEES, provider, minus(amounts.refunded_beside, tips_back));
    post("fee", FEES, provider, amounts.cost.map_or(0, |(fee, _)| fee));
    post("disputed", DISPUTES, provider, amounts.disputed);
    post("disputed", lost_by, provider, amounts.dispute_lost);
    post("dispute_fee", DISPUTE_FEES, provider, amounts.dispute_fee);
}

/// An amount that arrives at one account and leaves another.
fn post(lines: &mut Lines, currency: Currency, cause: &str, (to, from): (&str, &str), amount: i64) {
    if amount != 0 {
        let into = lines.entry(BookLine::new(currency, cause, to)).or_default();
        *into = into.saturating_add(amount);
        let out_of = lines.entry(BookLine::new(currency, cause, from)).or_default();
        *out_of = minus(*out_of, amount);
    }
}

/// The currencies beside the payment's own in which money came or was taken.
fn others(facts: &Facts, own: Currency) -> BTreeSet<Currency> {
    let intents = facts.intents.values().map(|intent| intent.currency);
    let charges = facts.charges.values().map(|charge| charge.currency);
    let refunds = facts.refunds.values().map(|refund| refund.currency);
    let disputes = facts.disputes.values().map(|dispute| dispute.currency);
    let all = intents.chain(charges).chain(refunds).chain(disputes).flatten();
    all.filter(|currency| *currency != own).collect()
}

/// The account of what a customer of a tenant, or of none, has with us.
pub fn customer_account(tenant: Option<&str>, customer: &str) -> String {
    format!("{CUSTOMER}{}", scoped(tenant, customer))
}

/// Whose account it is, if a customer's: tenant and id.
pub fn customer_of(account: &str) -> Option<(Option<String>, &str)> {
    account.strip_prefix(CUSTOMER).map(unscoped)
}

/// The sum of an account's lines as its owner reads it: what a customer has and what was sold are above zero.
pub fn balance_of(account: &str, posted: i64) -> i64 {
    let is_owed = account == SALES || account == TIPS || customer_of(account).is_some();
    if is_owed { posted.saturating_neg() } else { posted }
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
            read_of_account(true, Some(account), with(intent("succeeded", 1200), json!({ "id": id })))
        };
        let mut known = event("acct_1", "pi_2");
        known.join(&event("acct_2", "pi_1"));
        let entries = lines(&known, &Derived::of(&known));
        for account in ["provider/stripe/acct_1/live", "provider/stripe/acct_2/live"] {
            assert_eq!(booked(&entries, "jpy", "captured", account), 1200, "{account}");
        }
        assert_eq!(anchor(&known), "stripe/acct_2/live/pi_1");
    }

    #[test]
    fn d7_customers_of_two_tenants_with_one_id_have_two_balances() {
        let top_up = |tenant: Option<&str>| {
            let metadata = json!({ "purpose": "balance", "customer_id": "c_1", "tenant_id": tenant });
            let known = facts(&[paid(), ("charge.succeeded", charge(json!({ "metadata": metadata })))]);
            let entries = lines(&known, &Derived::of(&known));
            let mut accounts: BTreeSet<_> = entries.into_keys().map(|line| line.account).collect();
            accounts.remove("provider/stripe/-/live");
            accounts.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(top_up(None), ["customer//c_1"]);
        assert_eq!(top_up(Some("a")), ["customer/a/c_1"]);
        assert_eq!(top_up(Some("a/c")), ["customer/a%2Fc/c_1"]);
        for tenant in [None, Some("a"), Some("a/c")] {
            let account = customer_account(tenant, "c/1");
            assert_eq!(customer_of(&account), Some((tenant.map(str::to_owned), "c/1")));
            assert_eq!(balance_of(&account, -5), 5);
        }
        assert_eq!(customer_of("customers"), None);
    }

    #[test]
    fn d2_a_fee_in_the_providers_currency_is_shown_and_booked_in_it() {
        let dollars = json!({ "currency": "usd", "balance_transaction": "txn_1" });
        let entry = transaction(json!({ "amount": 180_000, "fee": 6_480, "net": 173_520 }));
        let intent = with(intent("succeeded", 1200), json!({ "currency": "usd" }));
        let known =
            facts(&[("payment_intent.succeeded", intent), ("charge.succeeded", charge(dollars)), entry]);
        let derived = Derived::of(&known);
        assert_eq!((derived.fee, derived.net), (None, None));
        let settled = &super::super::view("pay_1", &known, &derived)["settled"];
        let wanted = json!([{ "currency": "jpy", "amount": 180_000, "fee": 6_480, "net": 173_520 }]);
        assert_eq!(*settled, wanted);
        let entries = lines(&known, &derived);
        assert_eq!(booked(&entries, "jpy", "fee", "fees"), 6_480);
        assert_eq!(booked(&entries, "jpy", "fee", "provider/stripe/-/live"), -6_480);
        assert_eq!(booked(&entries, "usd", "captured", "sales"), -1_200);
        assert_eq!(booked(&entries, "usd", "fee", "fees"), 0);
    }

    #[test]
    fn d7_each_currency_is_booked_by_itself_and_sums_to_zero() {
        let dollars =
            json!({ "id": "ch_2", "payment_intent": "pi_2", "amount_captured": 50, "currency": "usd" });
        let (event_type, object) = refund("re_1", "succeeded", 20);
        let back = with(object, json!({ "charge": "ch_2", "currency": "usd" }));
        let lost = json!([{ "id": "txn_1", "amount": -1200, "fee": 1300, "net": -2500, "currency": "jpy" }]);
        let known = facts(&[
            paid(),
            ("charge.succeeded", charge(dollars)),
            (event_type, back),
            dispute("lost", lost),
        ]);
        let derived = Derived::of(&known);
        assert_eq!((derived.currency.unwrap().as_str(), derived.received), ("jpy", 1200));
        let entries = lines(&known, &derived);
        let provider = "provider/stripe/-/live";
        for (currency, cause, account, amount) in [
            ("jpy", "captured", provider, 1200),
            ("usd", "captured", provider, 50),
            ("usd", "captured", "sales", -50),
            ("usd", "refunded", provider, -20),
            ("jpy", "refunded", provider, 0),
            ("jpy", "disputed", "disputes", 1200),
            ("usd", "disputed", "disputes", 0),
        ] {
            assert_eq!(booked(&entries, currency, cause, account), amount, "{currency} {cause} {account}");
        }
        for currency in ["jpy", "usd"] {
            let own = entries.iter().filter(|(line, _)| line.currency.as_str() == currency);
            assert_eq!(own.map(|(_, amount)| amount).sum::<i64>(), 0, "{currency}");
        }
        // What says no currency is the payment's, and counted once.
        let mut silent = known.clone();
        silent.charges.get_mut("ch_1").unwrap().currency = None;
        assert_eq!(lines(&silent, &derived), entries);
    }
}
