//! The fields of an order, one by one: what is wrong with each is said by its name, and all of it at once.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use sekisho_core::calendar::{Day, Zone};
use sekisho_core::language::Language;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::money::{AMOUNT_MAX, Currency};
use sekisho_core::user::Rank;
use serde_json::{Map, Value};

use crate::refusal::{Refusal, Result};
use crate::types::FieldError;

/// Entries of metadata, and the letters of their keys and values.
const METADATA_MAX: usize = 50;
const METADATA_KEY_MAX: usize = 40;
const METADATA_VALUE_MAX: usize = 500;

/// Letters of what is read into something else: languages, zones, days.
const PARSED_MAX: usize = 100;
/// Letters of an address, with blanks around it.
const EMAIL_MAX: usize = 300;

/// An order's fields; each is taken out once, and what is left is unknown.
pub struct Fields {
    left: Map<String, Value>,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl Fields {
    pub const fn new(order: Map<String, Value>) -> Self {
        Self { left: order, known: Vec::new(), errors: Vec::new() }
    }

    fn take(&mut self, field: &'static str) -> Option<Value> {
        self.known.push(field);
        self.left.remove(field).filter(|value| !value.is_null())
    }

    pub fn wrong(&mut self, field: &str, detail: impl Into<String>) {
        self.errors.push(FieldError::new(field, detail));
    }

    /// A text of at most so many letters, without control characters.
    pub fn text(&mut self, field: &'static str, letters_max: usize) -> Option<String> {
        let value = self.take(field)?;
        let Value::String(text) = value else {
            self.wrong(field, "expected a text");
            return None;
        };
        if text.trim().is_empty() || text.contains(char::is_control) {
            self.wrong(field, "expected a text that is not empty and has no control characters");
            return None;
        }
        if text.chars().count() > letters_max {
            self.wrong(field, format!("expected at most {letters_max} characters"));
            return None;
        }
        Some(text)
    }

    /// An id of the caller's: what can stand in an address.
    pub fn id(&mut self, field: &'static str) -> Option<String> {
        let text = self.text(field, 200)?;
        if text.trim() != text || text.contains(['/', '?', '#']) {
            self.wrong(field, "expected an id without / ? # and without blanks around it");
            return None;
        }
        Some(text)
    }

    /// A list of texts, one or more.
    pub fn texts(&mut self, field: &'static str) -> Option<Vec<String>> {
        let texts = serde_json::from_value(self.take(field)?).ok();
        let texts = texts.filter(|texts: &Vec<_>| !texts.is_empty());
        if texts.is_none() {
            self.wrong(field, "expected a list of texts that is not empty");
        }
        texts
    }

    pub fn boolean(&mut self, field: &'static str) -> Option<bool> {
        let value = self.take(field)?;
        if value.as_bool().is_none() {
            self.wrong(field, "expected true or false");
        }
        value.as_bool()
    }

    /// An amount in the smallest unit: 1200 is 1,200 yen, or 12 dollars.
    pub fn amount(&mut self, field: &'static str) -> Option<i64> {
        let value = self.take(field)?;
        let amount = value.as_i64().filter(|amount| (1..=AMOUNT_MAX).contains(amount));
        if amount.is_none() {
            let wanted = "expected a whole number of the currency's smallest unit, 1 or more (1200 is 1,200 yen or 12 dollars)";
            self.wrong(field, wanted);
        }
        amount
    }

    pub fn currency(&mut self, field: &'static str) -> Option<Currency> {
        let text = self.text(field, 10)?;
        let currency = Currency::parse(&text).filter(|currency| currency.is_known());
        if currency.is_none() {
            self.wrong(
                field,
                format!("{text:?} is no currency; expected three letters of ISO 4217 such as jpy"),
            );
        }
        currency
    }

    pub fn whole_number(&mut self, field: &'static str, range: RangeInclusive<u16>) -> Option<u16> {
        let value = self.take(field)?;
        let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong(field, format!("expected a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    pub fn language(&mut self, field: &'static str) -> Option<Language> {
        let text = self.text(field, PARSED_MAX)?;
        text.parse().map_err(|error| self.wrong(field, format!("{text:?} is {error}"))).ok()
    }

    pub fn rank(&mut self, field: &'static str) -> Option<Rank> {
        let text = self.text(field, PARSED_MAX)?;
        let rank = Rank::parse(&text);
        if rank.is_none() {
            self.wrong(field, "expected viewer, operator or admin");
        }
        rank
    }

    pub fn time_zone(&mut self, field: &'static str) -> Option<Zone> {
        let text = self.text(field, PARSED_MAX)?;
        text.parse().map_err(|error| self.wrong(field, format!("{text:?} is {error}"))).ok()
    }

    pub fn day(&mut self, field: &'static str) -> Option<Day> {
        let text = self.text(field, PARSED_MAX)?;
        text.parse().map_err(|error| self.wrong(field, format!("{text:?} is {error}"))).ok()
    }

    /// What is wrong with an address is said without showing it.
    pub fn email(&mut self, field: &'static str) -> Option<MailAddress> {
        let text = self.text(field, EMAIL_MAX)?;
        text.parse().map_err(|error| self.wrong(field, format!("is {error}"))).ok()
    }

    pub fn metadata(&mut self, field: &'static str) -> BTreeMap<String, String> {
        let Some(value) = self.take(field) else { return BTreeMap::new() };
        let Value::Object(entries) = value else {
            self.wrong(field, "expected an object of texts");
            return BTreeMap::new();
        };
        if entries.len() > METADATA_MAX {
            self.wrong(field, format!("expected at most {METADATA_MAX} entries, found {}", entries.len()));
            return BTreeMap::new();
        }
        let mut metadata = BTreeMap::new();
        for (key, value) in entries {
            let place = format!("{field}.{}", key.chars().take(METADATA_KEY_MAX).collect::<String>());
            match value {
                _ if key.is_empty() || key.chars().count() > METADATA_KEY_MAX => {
                    self.wrong(&place, format!("expected a key of 1 to {METADATA_KEY_MAX} characters"));
                }
                Value::String(text) if text.chars().count() <= METADATA_VALUE_MAX => {
                    metadata.insert(key, text);
                }
                Value::String(_) => {
                    self.wrong(&place, format!("expected at most {METADATA_VALUE_MAX} characters"));
                }
                _ => self.wrong(&place, "expected a text"),
            }
        }
        metadata
    }

    /// Says that a field must be there.
    pub fn need<T>(&mut self, field: &'static str, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.errors.iter().any(|error| error.field == field) {
            self.wrong(field, "is needed");
        }
        value
    }

    /// Everything that was wrong, unknown fields too.
    pub fn finish(mut self) -> Result<()> {
        let known = self.known.join(", ");
        for field in self.left.keys() {
            let shown: String = field.chars().take(100).collect();
            self.errors.push(FieldError::new(&shown, format!("there is no such field; known are {known}")));
        }
        if self.errors.is_empty() { Ok(()) } else { Err(Refusal::Fields(self.errors)) }
    }
}
