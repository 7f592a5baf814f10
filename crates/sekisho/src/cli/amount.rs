//! Amounts and modes, as people type and read them.

use sekisho_core::money::{AMOUNT_MAX, Currency, format_decimal};
use sekisho_core::settlement::reading::mode;

/// Which mode; both when neither is given.
#[derive(clap::Args, Default)]
pub struct Mode {
    /// Only test mode
    #[arg(long, conflicts_with = "live")]
    test: bool,
    /// Only live mode
    #[arg(long)]
    live: bool,
}

impl Mode {
    pub const fn livemode(&self) -> Option<bool> {
        match (self.live, self.test) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }

    pub fn allows(&self, found: Option<bool>) -> bool {
        self.livemode().is_none_or(|wanted| found == Some(wanted))
    }
}

/// `live`, `test`, or nothing where that is not known.
pub fn mode_text(livemode: Option<bool>) -> &'static str {
    livemode.map_or("", |_| mode(livemode))
}

/// `12.50 usd`; nothing where there is no amount.
pub fn amount_text(amount: impl Into<Option<i64>>, currency: Option<&str>) -> String {
    match (amount.into(), currency.and_then(Currency::parse)) {
        (None, _) => String::new(),
        (Some(amount), Some(currency)) => format!("{} {currency}", format_decimal(amount, currency)),
        (Some(amount), None) => amount.to_string(),
    }
}

/// An amount in the smallest unit.
pub fn minor(text: &str) -> Result<i64, String> {
    let amount = text.parse().ok().filter(|amount| (1..=AMOUNT_MAX).contains(amount));
    amount.ok_or_else(|| {
        format!(
            "expected a whole number from 1 to {AMOUNT_MAX} of the currency's smallest unit: 1200 is 1,200 yen or 12 dollars"
        )
    })
}

pub fn currency(text: &str) -> Result<Currency, String> {
    Currency::parse(text)
        .filter(|currency| currency.is_known())
        .ok_or_else(|| "no such currency; expected three letters of ISO 4217 such as jpy".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_amounts_are_read_with_the_decimals_of_their_currency() {
        let cases = [
            (Some(1200), Some("jpy"), "1200 jpy"),
            (Some(-1250), Some("usd"), "-12.50 usd"),
            (Some(1250), None, "1250"),
            (None, Some("usd"), ""),
        ];
        for (amount, currency, expected) in cases {
            assert_eq!(amount_text(amount, currency), expected);
        }
    }

    #[test]
    fn h2_what_is_no_amount_or_currency_is_refused() {
        for wrong in ["-1", "0", "1.5", "1e3", "", "1,200", "10000000000001", "99999999999999999999"] {
            assert!(minor(wrong).is_err(), "{wrong}");
        }
        assert_eq!(minor("1200"), Ok(1200));
        for wrong in ["", "yen", "jp", "xau", "円"] {
            assert!(currency(wrong).is_err(), "{wrong}");
        }
        assert_eq!(currency("JPY").unwrap().as_str(), "jpy");
    }
}
