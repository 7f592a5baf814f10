//! One field of an order, read as what it should be. What is wrong with it is noted under its name.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use sekisho_core::mail_address::MailAddress;
use sekisho_core::money::{AMOUNT_MAX, Currency};
use sekisho_core::user::Rank;
use serde_json::Value;

use crate::types::FieldError;

/// Entries of metadata, and the characters of their keys and values.
const METADATA_MAX: usize = 50;
const METADATA_KEY_MAX: usize = 40;
const METADATA_VALUE_MAX: usize = 500;

/// Characters of what is read into something else: languages, zones, days.
const PARSED_MAX: usize = 100;
/// Characters of an address, with blanks around it.
const EMAIL_MAX: usize = 300;

pub struct Field<'f> {
    pub(super) name: &'static str,
    /// `None` where it is left out, or null.
    pub(super) value: Option<Value>,
    pub(super) errors: &'f mut Vec<FieldError>,
}

impl Field<'_> {
    /// A text of at most so many characters, none of them a control character.
    pub fn text(mut self, characters_max: usize) -> Option<String> {
        self.read_text(characters_max)
    }

    fn read_text(&mut self, characters_max: usize) -> Option<String> {
        let value = self.value.take()?;
        let Value::String(text) = value else {
            self.wrong("expected a text");
            return None;
        };
        if text.trim().is_empty() || text.contains(char::is_control) {
            self.wrong("expected a text that is not empty and has no control characters");
            return None;
        }
        if text.chars().count() > characters_max {
            self.wrong(format!("expected at most {characters_max} characters"));
            return None;
        }
        Some(text)
    }

    /// An id of the caller's: what can stand in an address.
    pub fn id(mut self) -> Option<String> {
        let text = self.read_text(200)?;
        if text.trim() != text || text.contains(['/', '?', '#']) {
            self.wrong("expected an id without / ? # and without blanks around it");
            return None;
        }
        Some(text)
    }

    /// A list of texts, one or more.
    pub fn texts(mut self) -> Option<Vec<String>> {
        let texts = serde_json::from_value(self.value.take()?).ok();
        let texts = texts.filter(|texts: &Vec<_>| !texts.is_empty());
        if texts.is_none() {
            self.wrong("expected a list of texts that is not empty");
        }
        texts
    }

    pub fn boolean(mut self) -> Option<bool> {
        let value = self.value.take()?;
        if value.as_bool().is_none() {
            self.wrong("expected true or false");
        }
        value.as_bool()
    }

    /// An amount in the smallest unit: 1200 is 1,200 yen, or 12 dollars.
    pub fn amount(mut self) -> Option<i64> {
        let value = self.value.take()?;
        let amount = value.as_i64().filter(|amount| (1..=AMOUNT_MAX).contains(amount));
        if amount.is_none() {
            let wanted = "expected a whole number of the currency's smallest unit, 1 or more (1200 is 1,200 yen or 12 dollars)";
            self.wrong(wanted);
        }
        amount
    }

    pub fn currency(mut self) -> Option<Currency> {
        let text = self.read_text(10)?;
        let currency = Currency::parse(&text).filter(|currency| currency.is_known());
        if currency.is_none() {
            self.wrong(format!("{text:?} is no currency; expected three letters of ISO 4217 such as jpy"));
        }
        currency
    }

    pub fn whole_number(mut self, range: RangeInclusive<u16>) -> Option<u16> {
        let value = self.value.take()?;
        let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong(format!("expected a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// A language, a time zone, a day: what says itself what is wrong with a text.
    pub fn parsed<T: FromStr<Err: fmt::Display>>(mut self) -> Option<T> {
        let text = self.read_text(PARSED_MAX)?;
        text.parse().map_err(|error| self.wrong(format!("{text:?} is {error}"))).ok()
    }

    pub fn rank(mut self) -> Option<Rank> {
        let text = self.read_text(PARSED_MAX)?;
        let rank = Rank::parse(&text);
        if rank.is_none() {
            self.wrong("expected viewer, operator or admin");
        }
        rank
    }

    /// What is wrong with an address is said without showing it.
    pub fn email(mut self) -> Option<MailAddress> {
        let text = self.read_text(EMAIL_MAX)?;
        text.parse().map_err(|error| self.wrong(format!("is {error}"))).ok()
    }

    pub fn metadata(mut self) -> BTreeMap<String, String> {
        let Some(value) = self.value.take() else { return BTreeMap::new() };
        let Value::Object(entries) = value else {
            self.wrong("expected an object of texts");
            return BTreeMap::new();
        };
        if entries.len() > METADATA_MAX {
            self.wrong(format!("expected at most {METADATA_MAX} entries, found {}", entries.len()));
            return BTreeMap::new();
        }
        let mut metadata = BTreeMap::new();
        for (key, value) in entries {
            let place = format!("{}.{}", self.name, key.chars().take(METADATA_KEY_MAX).collect::<String>());
            match value {
                _ if key.is_empty() || key.chars().count() > METADATA_KEY_MAX => {
                    self.wrong_at(&place, format!("expected a key of 1 to {METADATA_KEY_MAX} characters"));
                }
                Value::String(text) if text.chars().count() <= METADATA_VALUE_MAX => {
                    metadata.insert(key, text);
                }
                Value::String(_) => {
                    self.wrong_at(&place, format!("expected at most {METADATA_VALUE_MAX} characters"));
                }
                _ => self.wrong_at(&place, "expected a text"),
            }
        }
        metadata
    }

    fn wrong(&mut self, detail: impl Into<String>) {
        self.errors.push(FieldError::new(self.name, detail));
    }

    fn wrong_at(&mut self, place: &str, detail: impl Into<String>) {
        self.errors.push(FieldError::new(place, detail));
    }
}
