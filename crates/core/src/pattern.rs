//! A text with `*` for whatever stands there.

/// A text, or one with `*` for any letters: `payment_intent.*`, `*.succeeded`, `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Without any letters left open.
    pub fn is(&self, text: &str) -> bool {
        self.0 == text
    }

    /// Of the whole text. One pass from the left is enough: `*` may as well take as little as it can.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let Some(mut text) = text.strip_prefix(first) else { return false };
        let mut parts: Vec<_> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let Some(found) = text.find(part) else { return false };
            text = &text[found + part.len()..];
        }
        text.ends_with(last)
    }
}
