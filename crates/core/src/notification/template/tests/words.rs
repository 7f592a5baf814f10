//! What the filters make of values.

use serde_json::{Value, json};

use super::super::{Templates, filter};
use super::{own, sample};
use crate::language::Language;
use crate::money::Currency;

/// The text of a template of one line, filled with the full sample.
fn line(template: &str, language: Language, data: &Value) -> String {
    let content = format!("Subject: x\n\n{template}\n");
    let templates = Templates::with(own(&[("mine.ja.txt", &content), ("mine.en.txt", &content)]));
    templates.unwrap().render("mine", language, data).unwrap().text.trim_end().to_owned()
}

#[test]
fn g3_links_lead_to_the_web_or_to_mail() {
    let cases = [
        ("https://a.example/b?c=d&e", "https://a.example/b?c=d&e"),
        ("HTTP://a.example", "HTTP://a.example"),
        ("help@a.example", "mailto:help@a.example"),
        ("mailto:help@a.example", "mailto:help@a.example"),
        ("javascript:alert(1)", "-"),
        ("java\nscript:alert(1)", "-"),
        ("https://a.example/ b", "-"),
        ("data:text/html,x", "-"),
        ("//a.example", "-"),
        ("03-1234-5678", "-"),
        ("", "-"),
    ];
    for (address, expected) in cases {
        let mut data = sample("mine", Language::En, "full");
        data["brand"]["support"] = json!(address);
        let found = line("{{ brand.support | href | default('-', true) }}", Language::En, &data);
        assert_eq!(found, expected, "{address}");
    }
}

#[test]
fn g3_amounts_are_written_as_people_read_them() {
    let cases = [
        (5000, "jpy", "5,000円", "¥5,000"),
        (0, "jpy", "0円", "¥0"),
        (-1_234_567, "jpy", "-1,234,567円", "-¥1,234,567"),
        (123_450, "usd", "1,234.50米ドル", "$1,234.50"),
        (5, "usd", "0.05米ドル", "$0.05"),
        (100_000, "eur", "1,000.00ユーロ", "€1,000.00"),
        (999, "gbp", "9.99 GBP", "£9.99"),
        (1_234_567, "kwd", "1,234.567 KWD", "KWD 1,234.567"),
        (50_000, "krw", "50,000 KRW", "KRW 50,000"),
    ];
    for (amount, currency, ja, en) in cases {
        let currency = Currency::parse(currency).unwrap();
        let words = |language| filter::amount_in_words(amount, currency, language);
        assert_eq!((&*words(Language::Ja), &*words(Language::En)), (ja, en));
    }
    let mut data = sample("mine", Language::Ja, "full");
    let shown = |data: &Value| line("{{ payment.amount | money(payment.currency) }}", Language::Ja, data);
    assert_eq!(shown(&data), "5,000円");
    data["payment"]["currency"] = Value::Null;
    assert_eq!(shown(&data), "–", "never an amount without its currency");
}

#[test]
fn g3_dates_are_written_as_people_read_them_where_they_are() {
    let cases = [
        ("2026-11-16T05:05:00.000Z", "Asia/Tokyo", "2026年11月16日(月) 14:05", "Mon, Nov 16, 2026, 14:05"),
        ("2026-11-15T20:00:00Z", "Asia/Tokyo", "2026年11月16日(月) 05:00", "Mon, Nov 16, 2026, 05:00"),
        ("2026-11-16T14:05:00+09:00", "UTC", "2026年11月16日(月) 05:05", "Mon, Nov 16, 2026, 05:05"),
        // The clock goes forward, and back again.
        ("2026-03-29T00:59:59Z", "Europe/Berlin", "2026年3月29日(日) 01:59", "Sun, Mar 29, 2026, 01:59"),
        ("2026-03-29T01:00:00Z", "Europe/Berlin", "2026年3月29日(日) 03:00", "Sun, Mar 29, 2026, 03:00"),
        ("2026-11-01T05:30:00Z", "America/New_York", "2026年11月1日(日) 01:30", "Sun, Nov 1, 2026, 01:30"),
        ("2026-11-01T06:30:00Z", "America/New_York", "2026年11月1日(日) 01:30", "Sun, Nov 1, 2026, 01:30"),
        ("2028-02-29T12:00:00Z", "UTC", "2028年2月29日(火) 12:00", "Tue, Feb 29, 2028, 12:00"),
    ];
    for (at, zone, ja, en) in cases {
        let mut data = sample("mine", Language::Ja, "full");
        data["event"]["at"] = json!(at);
        data["time_zone"] = json!(zone);
        assert_eq!(line("{{ event.at | datetime }}", Language::Ja, &data), ja, "{at} {zone}");
        assert_eq!(line("{{ event.at | datetime }}", Language::En, &data), en, "{at} {zone}");
        let day = ja.split(' ').next().unwrap();
        assert_eq!(line("{{ event.at | date }}", Language::Ja, &data), day);
    }
    let mut data = sample("mine", Language::Ja, "full");
    assert_eq!(line("{{ reminder.today | date }}", Language::En, &data), "Mon, Nov 16, 2026");
    data["time_zone"] = json!("Mars/Olympus");
    let flaw = Templates::shipped().render("test", Language::Ja, &data).unwrap_err().to_string();
    assert!(flaw.contains("there is no time zone \"Mars/Olympus\""), "{flaw}");
}

#[test]
fn g4_days_are_counted_in_words() {
    let cases = [
        (3, "あと3日", "in 3 days"),
        (1, "あと1日", "in 1 day"),
        (0, "本日", "today"),
        (-1, "1日超過", "1 day overdue"),
        (-12, "12日超過", "12 days overdue"),
    ];
    let data = sample("mine", Language::Ja, "full");
    for (days, ja, en) in cases {
        let template = format!("{{{{ {days} | days_left }}}}");
        assert_eq!(line(&template, Language::Ja, &data), ja);
        assert_eq!(line(&template, Language::En, &data), en);
    }
    let by_date = "{{ '2026-12-10' | days_left(reminder.today) }}";
    assert_eq!(line(by_date, Language::En, &data), "in 24 days");
}
