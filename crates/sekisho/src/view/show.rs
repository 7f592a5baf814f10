//! How times, amounts and texts are written down. What comes from outside goes through [`escape`].

use std::fmt;

use sekisho_core::Time;
use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::money::{Currency, format_decimal};
use sekisho_core::time::{DAY_MS, HOUR_MS};

/// Markup that was put together here and needs no escaping any more.
pub struct Html(String);

impl Html {
    pub const fn new(markup: String) -> Self {
        Self(markup)
    }
}

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

/// By the house's clock; the exact moment in UTC behind it.
pub fn time(at: Time, zone: &Zone) -> Html {
    let shown = zone.clock(at);
    Html(format!("<time datetime=\"{at}\" title=\"{at}\">{}</time>", escape(&shown)))
}

/// What somebody typed: `2026-02-02 11:40` by the house's clock, a day, or a moment with its zone.
pub fn moment(text: &str, zone: &Zone) -> Option<Time> {
    Time::parse_rfc3339(text).or_else(|| zone.moment(text))
}

const MINUTE_MS: i64 = 60_000;

pub fn ago(at: Time, now: Time, zone: &Zone, lang: Language) -> Html {
    let ms = now.ms() - at.ms();
    let text = distance(ms.saturating_abs(), lang);
    let text = match (ms >= 0, lang) {
        (true, Language::En) => format!("{text} ago"),
        (false, Language::En) => format!("in {text}"),
        (true, Language::Ja) => format!("{text}前"),
        (false, Language::Ja) => format!("{text}後"),
    };
    Html(format!("<time datetime=\"{at}\" title=\"{}\">{text}</time>", escape(&zone.clock(at))))
}

pub fn distance(ms: i64, lang: Language) -> String {
    match ms {
        ..MINUTE_MS => format!("{} {}", ms / 1000, lang.t("s", "秒")),
        MINUTE_MS..HOUR_MS => format!("{} {}", ms / MINUTE_MS, lang.t("min", "分")),
        HOUR_MS..DAY_MS => format!("{} {}", ms / HOUR_MS, lang.t("h", "時間")),
        _ => format!("{} {}", ms / DAY_MS, lang.t("days", "日")),
    }
}

/// `¥1,200`, `$12.50`, `12.50 CHF`.
pub fn money(amount: i64, currency: &str) -> String {
    let Some(known) = Currency::parse(currency) else { return format!("{amount} {currency}") };
    let plain = format_decimal(amount, known);
    let (sign, digits) = plain.strip_prefix('-').map_or(("", &*plain), |digits| ("−", digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number = if part.is_empty() { grouped(whole) } else { format!("{}.{part}", grouped(whole)) };
    match known.as_str() {
        "jpy" => format!("{sign}¥{number}"),
        "usd" => format!("{sign}${number}"),
        "eur" => format!("{sign}€{number}"),
        other => format!("{sign}{number} {}", other.to_uppercase()),
    }
}

/// Digits in groups of three.
pub fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("−", digits));
    let mut out = String::from(sign);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h1_amounts_read_as_people_write_them() {
        for (amount, currency, shown) in [
            (1_200, "jpy", "¥1,200"),
            (1_250, "usd", "$12.50"),
            (-1_234_567, "usd", "−$12,345.67"),
            (100_000, "chf", "1,000.00 CHF"),
            (5, "nonsense", "5 nonsense"),
        ] {
            assert_eq!(money(amount, currency), shown);
        }
        assert_eq!(grouped("1000000"), "1,000,000");
        assert_eq!(grouped("-999"), "−999");
    }

    #[test]
    fn h1_a_time_is_read_by_the_clock_it_is_shown_by() {
        let tokyo: Zone = "Asia/Tokyo".parse().unwrap();
        let york: Zone = "America/New_York".parse().unwrap();
        for (text, zone, expected) in [
            ("2026-02-02T11:40", &tokyo, Some("2026-02-02T02:40:00.000Z")),
            ("2026-02-02 11:40:07", &tokyo, Some("2026-02-02T02:40:07.000Z")),
            ("2026-02-02", &tokyo, Some("2026-02-01T15:00:00.000Z")),
            ("2026-02-02T02:40:00.123Z", &tokyo, Some("2026-02-02T02:40:00.123Z")),
            ("2026-07-01T12:00", &york, Some("2026-07-01T16:00:00.000Z")),
            ("2026-03-08T03:30", &york, Some("2026-03-08T07:30:00.000Z")),
            ("yesterday", &tokyo, None),
            ("", &tokyo, None),
        ] {
            assert_eq!(moment(text, zone).map(|at| at.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn h1_nothing_from_outside_becomes_markup() {
        let shown = escape("<img src=x onerror='a' \"&>");
        assert_eq!(shown, "&lt;img src=x onerror=&#39;a&#39; &quot;&amp;&gt;");
    }
}
