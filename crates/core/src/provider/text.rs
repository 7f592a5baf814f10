//! A JSON string, number or boolean as text, exactly as it was written: ids of 19 digits must not pass through
//! floating point. Also finds such a value by a dotted path.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'r>(pub Cow<'r, str>);

impl<'r> Text<'r> {
    /// The value at `data.items.0.id`.
    pub fn at(body: &'r [u8], path: &str) -> Option<Self> {
        let mut value: &'r RawValue = serde_json::from_slice(body).ok()?;
        for step in path.split('.') {
            value = if value.get().starts_with('[') {
                *serde_json::from_str::<Vec<&'r RawValue>>(value.get())
                    .ok()?
                    .get(step.parse::<usize>().ok()?)?
            } else {
                serde_json::from_str::<BTreeMap<String, &'r RawValue>>(value.get()).ok()?.get(step)?
            };
        }
        Self::of(value)
    }

    fn of(value: &'r RawValue) -> Option<Self> {
        let json = value.get();
        match json.as_bytes().first()? {
            b'"' => serde_json::from_str::<&str>(json)
                .map(Cow::Borrowed)
                .or_else(|_| serde_json::from_str::<String>(json).map(Cow::Owned))
                .ok()
                .map(Self),
            b'{' | b'[' | b'n' => None,
            _ => Some(Self(Cow::Borrowed(json))),
        }
    }
}

impl<'r, 'de: 'r> Deserialize<'de> for Text<'r> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&'de RawValue>::deserialize(deserializer)?;
        Self::of(value).ok_or_else(|| D::Error::custom("expected text, a number or a boolean"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_every_digit_and_are_found_by_path() {
        let body =
            br#"{"a":{"b":[{"id":820982911946154508123},"x\u0041"]},"t":true,"n":null,"e":"\"\u0000"}"#;
        let at = |path| Text::at(body, path).map(|text| text.0.into_owned());
        assert_eq!(at("a.b.0.id").as_deref(), Some("820982911946154508123"));
        assert_eq!(at("a.b.1").as_deref(), Some("xA"));
        assert_eq!(at("t").as_deref(), Some("true"));
        assert_eq!(at("e").as_deref(), Some("\"\0"));
        for none in ["", "a", "a.b", "a.b.7", "a.b.x", "t.x", "n", "zz", "a..b"] {
            assert_eq!(at(none), None, "{none}");
        }
        assert_eq!(Text::at(b"not json", "a"), None);
        assert_eq!(Text::at(&[0xff], "a"), None);
    }
}
