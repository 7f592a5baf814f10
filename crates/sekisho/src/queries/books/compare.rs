//! Two accounts of the same money, side by side.

use std::collections::BTreeMap;
use std::fmt;

use sekisho_core::money::{Currency, format_decimal, minus, sum};
use sekisho_core::settlement::payment::{Derived, Facts, balance_of, customer_of, lines};
use sekisho_core::settlement::reading::mode;
use sekisho_core::state::Posting;
use sekisho_store::Sum;

use crate::types::{Difference, Warning};

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced { currency, livemode, sum } => write!(
                f,
                "all lines in {currency} ({}) sum to {}, not to zero",
                mode(*livemode),
                amount(*sum, currency)
            ),
            Self::Lopsided { payment, currency, livemode, sum } => write!(
                f,
                "{payment}: its lines in {currency} ({}) sum to {}, not to zero",
                mode(*livemode),
                amount(*sum, currency)
            ),
            Self::Wrong { payment, account, currency, cause, expected, booked } => write!(
                f,
                "{payment}: {account} should have {} {currency} as {cause}, and has {}",
                amount(*expected, currency),
                amount(*booked, currency)
            ),
            Self::Orphaned { payment } => write!(f, "{payment}: it has lines, but is not there"),
            Self::Unreadable { payment, error } => {
                write!(f, "{payment}: its stored state can't be read: {error}")
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative { account, currency, livemode, balance } => write!(
                f,
                "{account} ({}) is below zero: {} {currency}",
                mode(*livemode),
                amount(*balance, currency)
            ),
            Self::Restless { payment } => {
                write!(f, "{payment} changed each time it was looked at; check again later")
            }
        }
    }
}

fn amount(amount: i64, currency: &str) -> String {
    Currency::parse(currency).map_or_else(|| amount.to_string(), |currency| format_decimal(amount, currency))
}

/// (currency, mode) whose lines don't sum to zero.
pub fn unbalanced(sums: &[Sum]) -> Vec<Difference> {
    let each = sums.iter().map(|sum| (&*sum.currency, sum.livemode, sum.amount));
    let odd = totals(each).into_iter();
    odd.map(|((currency, livemode), sum)| Difference::Unbalanced { currency, livemode, sum }).collect()
}

/// Customers who have less than nothing.
pub fn negative(sums: &[Sum]) -> Vec<Warning> {
    let customers = sums.iter().filter(|sum| customer_of(&sum.account).is_some());
    let balances = customers.map(|sum| (sum, balance_of(&sum.account, sum.amount)));
    let below = balances.filter(|(_, balance)| *balance < 0).map(|(sum, balance)| Warning::Negative {
        account: sum.account.clone(),
        currency: sum.currency.clone(),
        livemode: sum.livemode,
        balance,
    });
    below.collect()
}

/// What a payment's lines say, against what its facts give.
pub fn compare(payment: &str, facts: &Facts, booked: &[Posting]) -> Vec<Difference> {
    let each = booked.iter().map(|line| (&*line.currency, line.livemode, line.amount));
    let lopsided = totals(each).into_iter().map(|((currency, livemode), sum)| Difference::Lopsided {
        payment: payment.to_owned(),
        currency,
        livemode,
        sum,
    });
    let mut found: Vec<_> = lopsided.collect();

    // (account, currency, cause) → (expected, booked). Not by mode: what is known of it may come after the first lines.
    let mut sides: BTreeMap<(String, String, String), (i64, i64)> = BTreeMap::new();
    for (line, amount) in lines(facts, &Derived::of(facts)) {
        sides.entry((line.account, line.currency.into(), line.cause)).or_default().0 = amount;
    }
    for line in booked {
        let key = (line.account.clone(), line.currency.clone(), line.cause.clone());
        let side = &mut sides.entry(key).or_default().1;
        *side = sum([*side, line.amount]);
    }
    let wrong = sides.into_iter().filter(|(_, (expected, booked))| minus(*expected, *booked) != 0);
    found.extend(wrong.map(|((account, currency, cause), (expected, booked))| Difference::Wrong {
        payment: payment.to_owned(),
        account,
        currency,
        cause,
        expected,
        booked,
    }));
    found
}

/// Who ended in whom, however many steps it took.
pub fn followers(into: &BTreeMap<String, String>) -> BTreeMap<String, Vec<String>> {
    let mut followers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (one, target) in into {
        // A ring, which nothing we do can make, ends somewhere on it.
        let mut last = target;
        for _ in 0..into.len() {
            let Some(next) = into.get(last) else { break };
            last = next;
        }
        followers.entry(last.clone()).or_default().push(one.clone());
    }
    followers
}

/// What does not sum to zero, by currency and mode.
fn totals<'l>(
    lines: impl Iterator<Item = (&'l str, Option<bool>, i64)>,
) -> BTreeMap<(String, Option<bool>), i64> {
    let mut totals: BTreeMap<(String, Option<bool>), i64> = BTreeMap::new();
    for (currency, livemode, amount) in lines {
        let total = totals.entry((currency.to_owned(), livemode)).or_default();
        *total = sum([*total, amount]);
    }
    totals.retain(|_, total| *total != 0);
    totals
}
