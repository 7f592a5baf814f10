//! Amounts in a currency's smallest unit, and the arithmetic on them. Nothing here overflows: an amount beyond
//! [`AMOUNT_MAX`] is refused where it is read, and sums of many stop at the end of the number.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Ten trillion yen, a hundred billion dollars: more is a mistake.
pub const AMOUNT_MAX: i64 = 10_000_000_000_000;

const KNOWN: &[&str] = &[
    "aed", "afn", "all", "amd", "ang", "aoa", "ars", "aud", "awg", "azn", "bam", "bbd", "bdt", "bgn", "bhd",
    "bif", "bmd", "bnd", "bob", "brl", "bsd", "btn", "bwp", "byn", "bzd", "cad", "cdf", "chf", "clp", "cny",
    "cop", "crc", "cup", "cve", "czk", "djf", "dkk", "dop", "dzd", "egp", "ern", "etb", "eur", "fjd", "fkp",
    "gbp", "gel", "ghs", "gip", "gmd", "gnf", "gtq", "gyd", "hkd", "hnl", "htg", "huf", "idr", "ils", "inr",
    "iqd", "irr", "isk", "jmd", "jod", "jpy", "kes", "kgs", "khr", "kmf", "kpw", "krw", "kwd", "kyd", "kzt",
    "lak", "lbp", "lkr", "lrd", "lsl", "lyd", "mad", "mdl", "mga", "mkd", "mmk", "mnt", "mop", "mru", "mur",
    "mvr", "mwk", "mxn", "myr", "mzn", "nad", "ngn", "nio", "nok", "npr", "nzd", "omr", "pab", "pen", "pgk",
    "php", "pkr", "pln", "pyg", "qar", "ron", "rsd", "rub", "rwf", "sar", "sbd", "scr", "sdg", "sek", "sgd",
    "shp", "sle", "sll", "sos", "srd", "ssp", "std", "stn", "svc", "syp", "szl", "thb", "tjs", "tmt", "tnd",
    "top", "try", "ttd", "twd", "tzs", "uah", "ugx", "usd", "uyu", "uzs", "ves", "vnd", "vuv", "wst", "xaf",
    "xcd", "xof", "xpf", "yer", "zar", "zmw", "zwg",
];

/// Three letters, lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

impl Currency {
    pub fn parse(text: &str) -> Option<Self> {
        let letters: [u8; 3] = text.as_bytes().try_into().ok()?;
        letters
            .iter()
            .all(u8::is_ascii_alphabetic)
            .then(|| Self(letters.map(|letter| letter.to_ascii_lowercase())))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters are ASCII")
    }

    /// Is it one that people pay with? Of ISO 4217, without metals and test codes.
    pub fn is_known(self) -> bool {
        KNOWN.contains(&self.as_str())
    }

    /// How many digits stand after the point.
    pub fn decimals(self) -> u32 {
        match self.as_str() {
            "bif" | "clp" | "djf" | "gnf" | "jpy" | "kmf" | "krw" | "mga" | "pyg" | "rwf" | "ugx" | "vnd"
            | "vuv" | "xaf" | "xof" | "xpf" => 0,
            "bhd" | "jod" | "kwd" | "omr" | "tnd" | "iqd" | "lyd" => 3,
            _ => 2,
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<String> for Currency {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
            .ok_or_else(|| format!("{text:?} is no currency: expected three letters such as jpy"))
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.as_str().to_owned()
    }
}

/// Adds up.
pub fn sum(amounts: impl IntoIterator<Item = i64>) -> i64 {
    amounts.into_iter().fold(0, i64::saturating_add)
}

/// What is left of an amount when another is taken away.
pub const fn minus(from: i64, taken: i64) -> i64 {
    from.saturating_sub(taken)
}

/// An amount as the provider wrote it, if it can be one.
pub fn checked(amount: i64) -> Option<i64> {
    (0..=AMOUNT_MAX).contains(&amount).then_some(amount)
}

/// `"12.50"` in the currency's smallest unit. More digits after the point than it has must be zeros.
pub fn parse_decimal(text: &str, currency: Currency) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let decimals = currency.decimals() as usize;
    let (kept, rest) = part.split_at(part.len().min(decimals));
    if rest.bytes().any(|byte| byte != b'0') {
        return None;
    }
    format!("{whole}{kept:0<decimals$}").parse().ok().and_then(checked)
}

/// `1234.50` as people read it.
pub fn format_decimal(amount: i64, currency: Currency) -> String {
    let decimals = currency.decimals();
    let unit = 10_i64.pow(decimals);
    let sign = if amount < 0 { "-" } else { "" };
    let (whole, part) =
        (amount.unsigned_abs() / unit.unsigned_abs(), amount.unsigned_abs() % unit.unsigned_abs());
    match decimals {
        0 => format!("{sign}{whole}"),
        decimals => format!("{sign}{whole}.{part:0width$}", width = decimals as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d2_decimals_follow_the_currency() {
        let cases = [
            ("1200", "JPY", Some(1200)),
            ("1200.00", "jpy", Some(1200)),
            ("1200.5", "jpy", None),
            ("12.5", "usd", Some(1250)),
            ("12.345", "usd", None),
            ("12.345", "kwd", Some(12_345)),
            ("0.1", "kwd", Some(100)),
            ("-1", "usd", None),
            ("1e3", "usd", None),
            ("", "usd", None),
            (".5", "usd", None),
            ("99999999999999999999", "usd", None),
        ];
        for (text, currency, expected) in cases {
            let currency = Currency::parse(currency).unwrap();
            assert_eq!(parse_decimal(text, currency), expected, "{text} {currency}");
        }
        let shown = |amount, currency| format_decimal(amount, Currency::parse(currency).unwrap());
        assert_eq!(
            (&*shown(1200, "jpy"), &*shown(-1205, "usd"), &*shown(5, "kwd")),
            ("1200", "-12.05", "0.005")
        );
    }

    #[test]
    fn d2_a_currency_is_three_letters() {
        for wrong in ["", "jp", "jpyy", "j1y", "円円円"] {
            assert_eq!(Currency::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Currency::parse("JPY").unwrap().as_str(), "jpy");
    }
}
