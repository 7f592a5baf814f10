//! What templates can do with a value: amounts, dates and links as people read them, in the language of the mail and in
//! the time zone of the data. What is empty becomes a dash; what is none of it is an error that says what was expected.

use jiff::civil::{Date, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::money::{self, Currency};

pub const NAMES: [&str; 5] = ["money", "date", "datetime", "days_left", "href"];

const NOTHING: &str = "–";

pub fn add(environment: &mut Environment<'static>) {
    environment.add_filter("money", money);
    environment.add_filter("date", date);
    environment.add_filter("datetime", datetime);
    environment.add_filter("days_left", days_left);
    environment.add_filter("href", href);
}

/// `{{ payment.amount | money(payment.currency) }}`: `¥5,000`, `5,000円`.
fn money(state: &State, amount: &Value, currency: &Value) -> Result<String, Error> {
    if amount.is_none() || currency.is_none() {
        return Ok(NOTHING.to_owned());
    }
    let whole = amount.is_integer().then(|| amount.as_i64()).flatten();
    let whole = whole.ok_or_else(|| wrong("`money` needs a whole number in the smallest unit"))?;
    let currency = currency.as_str().and_then(Currency::parse);
    let currency = currency.ok_or_else(|| wrong("`money` needs a currency: money(payment.currency)"))?;
    Ok(amount_in_words(whole, currency, language(state)))
}

pub fn amount_in_words(amount: i64, currency: Currency, language: Language) -> String {
    let plain = money::format_decimal(amount, currency);
    let (sign, plain) = plain.strip_prefix('-').map_or(("", &*plain), |plain| ("-", plain));
    let (whole, part) = plain.split_once('.').map_or((plain, None), |(whole, part)| (whole, Some(part)));
    let digits = match part {
        Some(part) => format!("{}.{part}", grouped(whole)),
        None => grouped(whole),
    };
    let code = currency.as_str().to_uppercase();
    match (language, currency.as_str()) {
        (Language::Ja, "jpy") => format!("{sign}{digits}円"),
        (Language::Ja, "usd") => format!("{sign}{digits}米ドル"),
        (Language::Ja, "eur") => format!("{sign}{digits}ユーロ"),
        (Language::Ja, _) => format!("{sign}{digits} {code}"),
        (Language::En, "jpy") => format!("{sign}¥{digits}"),
        (Language::En, "usd") => format!("{sign}${digits}"),
        (Language::En, "eur") => format!("{sign}€{digits}"),
        (Language::En, "gbp") => format!("{sign}£{digits}"),
        (Language::En, _) => format!("{sign}{code} {digits}"),
    }
}

/// `1234567` → `1,234,567`
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `2026年11月16日(月)`, `Mon, Nov 16, 2026`. Of a moment, in the time zone; of a date, as it is.
fn date(state: &State, value: &Value) -> Result<String, Error> {
    if value.is_none() {
        return Ok(NOTHING.to_owned());
    }
    let text = value.as_str().unwrap_or_default();
    let date = match moment(state, text)? {
        Some(moment) => moment.date(),
        None => text.parse().map_err(|_| {
            wrong("`date` needs a date such as 2026-11-16, or a time such as 2026-11-16T05:05:00Z")
        })?,
    };
    Ok(date_in_words(date, language(state)))
}

/// `2026年11月16日(月) 14:05`, `Mon, Nov 16, 2026, 14:05`
fn datetime(state: &State, value: &Value) -> Result<String, Error> {
    if value.is_none() {
        return Ok(NOTHING.to_owned());
    }
    let moment = moment(state, value.as_str().unwrap_or_default())?.ok_or_else(|| {
        wrong("`datetime` needs a time such as 2026-11-16T05:05:00Z; for a date, use `date`")
    })?;
    let (hour, minute) = (moment.hour(), moment.minute());
    let language = language(state);
    let date = date_in_words(moment.date(), language);
    Ok(match language {
        Language::Ja => format!("{date} {hour:02}:{minute:02}"),
        Language::En => format!("{date}, {hour:02}:{minute:02}"),
    })
}

/// Of a number of days, or of a date with today's: `あと3日`, `in 3 days`.
fn days_left(state: &State, value: &Value, today: Option<&Value>) -> Result<String, Error> {
    if value.is_none() {
        return Ok(NOTHING.to_owned());
    }
    let count = if value.is_integer() {
        value.as_i64()
    } else {
        let date = |value: &Value| value.as_str()?.parse::<Date>().ok();
        date(value)
            .zip(today.and_then(date))
            .and_then(|(due, today)| Some(i64::from(today.until(due).ok()?.get_days())))
    };
    let count = count.ok_or_else(|| {
        wrong("`days_left` needs a number of days, or a date and today's: days_left(reminder.today)")
    })?;
    let days = count.unsigned_abs();
    let plural = if days == 1 { "" } else { "s" };
    Ok(match (language(state), count) {
        (Language::Ja, 0) => "本日".to_owned(),
        (Language::Ja, 1..) => format!("あと{days}日"),
        (Language::Ja, _) => format!("{days}日超過"),
        (Language::En, 0) => "today".to_owned(),
        (Language::En, 1..) => format!("in {days} day{plural}"),
        (Language::En, _) => format!("{days} day{plural} overdue"),
    })
}

/// What may stand in `href="…"`: a web address, or `mailto:` before a mail address; otherwise null, so that nobody
/// clicks on a script.
fn href(value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default().trim();
    let is_web = ["https://", "http://"]
        .iter()
        .any(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let is_plain = !text.contains(|letter: char| letter.is_control() || letter.is_whitespace());
    if is_web && is_plain {
        return Value::from(text);
    }
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    match address.parse::<MailAddress>() {
        Ok(_) => Value::from(format!("mailto:{address}")),
        Err(_) => Value::from(()),
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn date_in_words(date: Date, language: Language) -> String {
    let (year, month, day) = (date.year(), date.month(), date.day());
    let (ja, en) = match date.weekday() {
        Weekday::Monday => ("月", "Mon"),
        Weekday::Tuesday => ("火", "Tue"),
        Weekday::Wednesday => ("水", "Wed"),
        Weekday::Thursday => ("木", "Thu"),
        Weekday::Friday => ("金", "Fri"),
        Weekday::Saturday => ("土", "Sat"),
        Weekday::Sunday => ("日", "Sun"),
    };
    let name = MONTHS[usize::from(month.unsigned_abs()) - 1];
    match language {
        Language::Ja => format!("{year}年{month}月{day}日({ja})"),
        Language::En => format!("{en}, {name} {day}, {year}"),
    }
}

/// A moment in the time zone of the data.
fn moment(state: &State, text: &str) -> Result<Option<Zoned>, Error> {
    let Ok(stamp) = text.parse::<Timestamp>() else { return Ok(None) };
    let zone = match state.lookup("time_zone").as_ref().and_then(Value::as_str) {
        Some(name) => TimeZoneDatabase::bundled().get(name).map_err(|_| {
            wrong(format!("there is no time zone {name:?}; expected a name such as Asia/Tokyo"))
        })?,
        None => TimeZone::UTC,
    };
    Ok(Some(stamp.to_zoned(zone)))
}

fn language(state: &State) -> Language {
    let name = state.lookup("language");
    name.as_ref().and_then(Value::as_str).and_then(|name| name.parse().ok()).unwrap_or_default()
}

fn wrong(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.into())
}
