//! Mail addresses hidden in what came from outside: headers, bodies and answers, for whoever may not see whole ones.
//!
//! JSON stays JSON, letter by letter, but for the texts that hold an address; of forms and plain text the words that hold one
//! are masked. What can't be searched, bytes and broken JSON that may hold one, is left out.

use sekisho_core::link::RESULT_TAG;
use sekisho_core::mail_address::mask_text;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::types::{Call, Content, DeadLetterDetail, EventDetail, MessageDetail};

/// What may be shown to somebody who may not see whole addresses, once they are masked.
pub trait Veiled {
    fn veil(&mut self);
}

impl Veiled for EventDetail {
    fn veil(&mut self) {
        veil_content(&mut self.content);
    }
}

impl Veiled for DeadLetterDetail {
    fn veil(&mut self) {
        self.letter.error = veiled_text(&self.letter.error);
        veil_content(&mut self.content);
        self.calls.iter_mut().for_each(veil_call);
    }
}

impl Veiled for MessageDetail {
    fn veil(&mut self) {
        self.message.error = self.message.error.as_deref().map(veiled_text);
        self.calls.iter_mut().for_each(veil_call);
    }
}

fn veil_call(call: &mut Call) {
    call.error = call.error.as_deref().map(veiled_text);
    veil_content(&mut call.answer);
}

/// `body_masked` says whether its body is not what came.
fn veil_content(content: &mut Content) {
    for (name, value) in content.headers.iter_mut().flatten() {
        (*name, *value) = (veiled_text(name), veiled_text(value));
    }
    let body = content.body.as_deref().and_then(veiled);
    let was_bytes = content.body_base64.take().is_some();
    content.body_masked = was_bytes || body != content.body;
    content.body = body;
}

/// A body without whole addresses; none, if that can't be made sure of.
fn veiled(text: &str) -> Option<String> {
    if !may_hold_one(text) {
        return Some(text.to_owned());
    }
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Some(veiled_json(text));
    }
    if text.trim_start().starts_with(['{', '[', '"']) {
        return None;
    }
    Some(text.split('&').map(veiled_text).collect::<Vec<_>>().join("&"))
}

/// However it is written: in JSON by its number, in forms and links by its percent. Or a token by which a run is answered.
fn may_hold_one(text: &str) -> bool {
    text.contains('@') || text.contains("%40") || text.contains("\\u0040") || text.contains(RESULT_TAG)
}

fn veiled_text(text: &str) -> String {
    if text.starts_with(RESULT_TAG) {
        "••••••".to_owned()
    } else if may_hold_one(text) {
        mask_text(&text.replace("%40", "@").replace("\\u0040", "@"))
    } else {
        text.to_owned()
    }
}

/// JSON that is in order, its texts masked one by one.
fn veiled_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('"') {
        let length = quoted(&rest[begin..]);
        let (before, literal) = (&rest[..begin], &rest[begin..begin + length]);
        out.push_str(before);
        match serde_json::from_str::<String>(literal) {
            _ if !may_hold_one(literal) => out.push_str(literal),
            Ok(decoded) => out.push_str(&Value::from(veiled_text(&decoded)).to_string()),
            // Half of a letter stands in it; what it says is no text.
            Err(_) => out.push_str("\"***\""),
        }
        rest = &rest[begin + length..];
    }
    out.push_str(rest);
    out
}

/// How long the text is that begins here, with its quotes.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return at + 1,
            byte => is_escaped = byte == b'\\' && !is_escaped,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: Option<&str>) {
        let mut content = Content::of(Some(r#"[["from","taro@example.jp"]]"#), Some(body.as_bytes()));
        veil_content(&mut content);
        assert_eq!(content.body.as_deref(), expected, "{body}");
        assert_eq!(content.body_masked, expected != Some(body), "{body}");
        assert_eq!(content.headers.unwrap()[0].1, "t***@example.jp");
    }

    #[test]
    fn g5_a_body_is_shown_without_whole_addresses() {
        let plain = r#"{"id": "evt_1", "amount": 1.50, "id": "twice", "big": 12345678901234567890}"#;
        check(plain, Some(plain));
        check(
            r#"{ "email":"taro@example.jp", "n": 1.50, "to":["Taro <taro@example.jp>"] }"#,
            Some(r#"{ "email":"t***@example.jp", "n": 1.50, "to":["Taro <t***@example.jp>"] }"#),
        );
        check(r#"{"a":"taro\u0040example.jp"}"#, Some(r#"{"a":"t***@example.jp"}"#));
        check(r#"{"taro@example.jp":1}"#, Some(r#"{"t***@example.jp":1}"#));
        check(
            r#"{"in":"{\"mail\":\"taro@example.jp\"}"}"#,
            Some(r#"{"in":"{\"mail\":\"t***@example.jp\"}"}"#),
        );
        check(r#"{"a":"\ud800 taro@example.jp"}"#, Some(r#"{"a":"***"}"#));
        check("mail=taro%40example.jp&x=1", Some("m***@example.jp&x=1"));
        check("write to taro@example.jp now", Some("write to t***@example.jp now"));
        check(r#"{"broken": "taro@example.jp""#, None);
    }

    #[test]
    fn g5_bytes_and_answers_are_veiled_too() {
        let mut content = Content::of(None, Some(b"\xfftaro@example.jp"));
        assert!(content.body_base64.is_some());
        veil_content(&mut content);
        assert_eq!(content, Content { body_masked: true, ..Content::default() });
        let mut call = Call {
            attempt: 1,
            at: sekisho_core::Time::from_ms(0),
            took_ms: 1,
            status: None,
            reason: None,
            error: Some("550 taro@example.jp".into()),
            answer: Content::of(None, Some(b"no taro@example.jp here")),
        };
        veil_call(&mut call);
        assert!(!format!("{call:?}").contains("taro@"), "{call:?}");
    }
}
