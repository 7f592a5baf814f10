//! Money beside traffic: what was paid, refunded and disputed, by currency, live and test apart. From the books, so it is what the
//! payments say; currencies are never added up.

use std::collections::BTreeMap;

use sekisho_core::money;
use sekisho_store::HourMoney;

/// Of one mode and currency; each as people say it, so nothing is negative but a correction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoneyRow {
    /// `None` where the provider does not say.
    pub livemode: Option<bool>,
    pub currency: String,
    pub paid: i64,
    pub refunded: i64,
    pub disputed: i64,
}

/// Live before test; nothing for a currency in which nothing moved.
pub fn rows(hours: &[HourMoney]) -> Vec<MoneyRow> {
    let mut rows: BTreeMap<(bool, &str), MoneyRow> = BTreeMap::new();
    for hour in hours {
        let row = rows.entry((hour.livemode == Some(false), &hour.currency)).or_insert_with(|| MoneyRow {
            livemode: hour.livemode,
            currency: hour.currency.clone(),
            ..MoneyRow::default()
        });
        let (place, amount) = match &*hour.cause {
            "captured" | "tip" => (&mut row.paid, hour.amount),
            "refunded" | "tip_refunded" | "surcharge_refunded" => (&mut row.refunded, -hour.amount),
            "disputed" => (&mut row.disputed, -hour.amount),
            // What the provider keeps for itself is another matter.
            _ => continue,
        };
        *place = money::sum([*place, amount]);
    }
    let moved = |row: &MoneyRow| row.paid != 0 || row.refunded != 0 || row.disputed != 0;
    rows.into_values().filter(moved).collect()
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;

    use super::*;

    #[test]
    fn h1_money_is_told_by_currency_and_mode_as_people_say_it() {
        let hour = |n: i64, livemode, currency: &str, cause: &str, amount| HourMoney {
            hour: Time::from_ms(n * 3_600_000),
            livemode,
            currency: currency.into(),
            cause: cause.into(),
            amount,
            lines: 1,
        };
        let rows = rows(&[
            hour(1, Some(true), "jpy", "captured", 5_000),
            hour(2, Some(true), "jpy", "captured", 700),
            hour(2, Some(true), "jpy", "tip", 30),
            hour(2, Some(true), "jpy", "refunded", -700),
            hour(2, Some(true), "jpy", "disputed", -200),
            hour(2, Some(true), "jpy", "fee", -180),
            hour(2, Some(true), "eur", "fee", -1),
            hour(2, None, "usd", "captured", 9),
            hour(2, Some(false), "jpy", "captured", 1),
        ]);
        let row = |livemode, currency: &str, paid, refunded, disputed| MoneyRow {
            livemode,
            currency: currency.into(),
            paid,
            refunded,
            disputed,
        };
        let expected = [
            row(Some(true), "jpy", 5_730, 700, 200),
            row(None, "usd", 9, 0, 0),
            row(Some(false), "jpy", 1, 0, 0),
        ];
        assert_eq!(rows, expected);
    }
}
