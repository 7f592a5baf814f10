//! Mail addresses hidden in what came from outside: headers, bodies and answers, for whoever may not see whole ones.
//!
//! JSON stays JSON, letter by letter, but for the texts that hold an address; of forms and plain text the words that hold one
//! are masked. What can't be searched, bytes and broken JSON that may hold one, is left out.

use sekisho_core::mail_address::mask_text;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Masks an event, a dead letter or a message with all that belongs to it; `body_masked` says whether its body is not what came.
pub fn veil(value: &mut Value) {
    veil_one(value);
    value.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten().for_each(veil_one);
}

fn veil_one(value: &mut Value) {
    for name in ["headers", "error"] {
        value.get_mut(name).into_iter().for_each(veil_texts);
    }
    if value.get("body").is_some() {
        veil_body(value);
    }
}

fn veil_body(value: &mut Value) {
    let is_bytes = value["body_base64"].is_string();
    let veiled = value["body"].as_str().map(|text| (veiled(text), text));
    let is_masked =
        is_bytes || veiled.as_ref().is_some_and(|(veiled, text)| veiled.as_deref() != Some(*text));
    if let Some((veiled, _)) = veiled {
        value["body"] = json!(veiled);
    }
    value["body_base64"] = Value::Null;
    value["body_masked"] = is_masked.into();
}

fn veil_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = veiled_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::Array(items) => items.iter_mut().for_each(veil_texts),
        Value::Object(fields) => fields.values_mut().for_each(veil_texts),
    }
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

/// However it is written: in JSON by its number, in forms and links by its percent.
fn may_hold_one(text: &str) -> bool {
    text.contains('@') || text.contains("%40") || text.contains("\\u0040")
}

fn veiled_text(text: &str) -> String {
    if may_hold_one(text) {
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
        let mut value =
            json!({ "headers": [["from", "taro@example.jp"]], "body": body, "body_base64": null });
        veil(&mut value);
        assert_eq!(value["body"].as_str(), expected, "{body}");
        assert_eq!(value["body_masked"], expected != Some(body), "{body}");
        assert_eq!(value["headers"][0][1], "t***@example.jp");
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
        let call =
            json!({ "headers": null, "error": "550 taro@example.jp", "body": "no taro@example.jp here" });
        let mut value = json!({ "headers": null, "body": null, "body_base64": "dGFybw==", "calls": [call] });
        veil(&mut value);
        assert_eq!((&value["body_base64"], &value["body_masked"]), (&Value::Null, &json!(true)));
        assert!(!value.to_string().contains("taro@"), "{value}");
    }
}
