//! Where a person finds a payment at its provider.
//!
//! Addresses are made of ids alone, and of no id that would mean something else in an address. A provider without a page
//! for one payment, or whose page nobody here knows, has none.

use super::payment::Facts;
use super::reading::Realm;

/// Of all objects of a payment the one that the provider shows as the payment.
pub fn of(facts: &Facts) -> Option<String> {
    let find = |id: &String| url(facts.realm_of(id)?, id);
    // Money that was taken says more than what was tried before it.
    let taken = facts.charges.iter().rev().find_map(|(id, charge)| {
        let intent = charge.intent.as_ref().filter(|_| !shows_captures(facts, id)).and_then(find);
        intent.or_else(|| find(id))
    });
    let tried = || facts.intents.keys().rev().filter(|id| !shows_captures(facts, id)).find_map(find);
    taken.or_else(tried)
}

/// The page of an object in its provider's dashboard.
pub fn url(realm: &str, id: &str) -> Option<String> {
    let (provider, account, livemode) = Realm::parse(realm)?;
    if !is_plain(id) || !account.as_deref().is_none_or(is_plain) {
        return None;
    }
    let is_test = livemode == Some(false);
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| id.starts_with(prefix));
    match provider {
        "stripe" if begins(&["pi_", "ch_", "py_"]) => {
            let account = account.map(|account| format!("{account}/")).unwrap_or_default();
            let test = if is_test { "test/" } else { "" };
            Some(format!("https://dashboard.stripe.com/{account}{test}payments/{id}"))
        }
        "paypal" => {
            let host = if is_test { "www.sandbox.paypal.com" } else { "www.paypal.com" };
            Some(format!("https://{host}/activity/payment/{id}"))
        }
        "square" => {
            let host = if is_test { "squareupsandbox.com" } else { "squareup.com" };
            Some(format!("https://{host}/dashboard/sales/transactions/{id}"))
        }
        "payjp" if begins(&["ch_"]) => Some(format!("https://pay.jp/d/charges/{id}")),
        "komoju" => Some(format!("https://komoju.com/admin/payments/{id}")),
        _ => None,
    }
}

/// PayPal has pages for captures, and none for orders.
fn shows_captures(facts: &Facts, id: &str) -> bool {
    facts.realm_of(id).is_some_and(|realm| realm.starts_with("paypal/"))
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"_-".contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settlement::payment::{Charge, Intent};

    #[test]
    fn h2_a_payment_is_found_in_its_providers_dashboard() {
        for (realm, id, expected) in [
            ("stripe/-/live", "pi_1", Some("https://dashboard.stripe.com/payments/pi_1")),
            ("stripe/-/test", "pi_1", Some("https://dashboard.stripe.com/test/payments/pi_1")),
            ("stripe/acct_1/live", "ch_1", Some("https://dashboard.stripe.com/acct_1/payments/ch_1")),
            ("stripe/acct_1/test", "py_1", Some("https://dashboard.stripe.com/acct_1/test/payments/py_1")),
            ("stripe/-/any", "cs_1", None),
            (
                "paypal/-/live",
                "27M47624FP291604U",
                Some("https://www.paypal.com/activity/payment/27M47624FP291604U"),
            ),
            ("paypal/-/test", "27M4", Some("https://www.sandbox.paypal.com/activity/payment/27M4")),
            ("square/ML1/live", "hYy9", Some("https://squareup.com/dashboard/sales/transactions/hYy9")),
            (
                "square/ML1/test",
                "hYy9",
                Some("https://squareupsandbox.com/dashboard/sales/transactions/hYy9"),
            ),
            ("payjp/-/live", "ch_1", Some("https://pay.jp/d/charges/ch_1")),
            ("komoju/-/test", "7mom8", Some("https://komoju.com/admin/payments/7mom8")),
            ("line_pay/-/live", "2021", None),
            ("stripe/-/live", "pi_1/../../x", None),
            ("stripe/a?b/live", "pi_1", None),
            ("komoju/-/live", "", None),
            ("nothing", "pi_1", None),
        ] {
            assert_eq!(url(realm, id).as_deref(), expected, "{realm} {id}");
        }
    }

    #[test]
    fn h2_the_link_leads_to_the_money_that_was_taken() {
        let mut facts = Facts::default();
        facts.realms.insert("stripe/-/live".into());
        assert_eq!(of(&facts), None);
        for id in ["pi_1", "pi_9"] {
            facts.intents.insert(id.into(), Intent::default());
        }
        assert_eq!(of(&facts).unwrap(), "https://dashboard.stripe.com/payments/pi_9");
        let charge = Charge { intent: Some("pi_1".into()), ..Charge::default() };
        facts.charges.insert("ch_1".into(), charge);
        assert_eq!(of(&facts).unwrap(), "https://dashboard.stripe.com/payments/pi_1");
        let order = Charge { intent: Some("5O19".into()), ..Charge::default() };
        let mut paypal = Facts { charges: [("27M4".to_owned(), order)].into(), ..Facts::default() };
        paypal.realms.insert("paypal/-/live".into());
        assert_eq!(of(&paypal).unwrap(), "https://www.paypal.com/activity/payment/27M4");
    }
}
