//! The keyboard, as WebDriver wants it: a key by the name that pages see, with modifiers before it.

use serde_json::{Value, json};

const NAMED: [(&str, char); 19] = [
    ("Alt", '\u{e00a}'),
    ("ArrowDown", '\u{e015}'),
    ("ArrowLeft", '\u{e012}'),
    ("ArrowRight", '\u{e014}'),
    ("ArrowUp", '\u{e013}'),
    ("Backspace", '\u{e003}'),
    ("Control", '\u{e009}'),
    ("Delete", '\u{e017}'),
    ("End", '\u{e010}'),
    ("Enter", '\u{e007}'),
    ("Escape", '\u{e00c}'),
    ("F1", '\u{e031}'),
    ("Home", '\u{e011}'),
    ("Meta", '\u{e03d}'),
    ("PageDown", '\u{e00f}'),
    ("PageUp", '\u{e00e}'),
    ("Shift", '\u{e008}'),
    ("Space", ' '),
    ("Tab", '\u{e004}'),
];

/// Down in order, up in reverse: `Tab`, `/`, `Shift+Tab`, `Control+k`.
pub(super) fn stroke(keys: &str) -> Result<Value, String> {
    let keys = split(keys).into_iter().map(code).collect::<Result<Vec<char>, String>>()?;
    let act = |kind: &str, key: &char| json!({ "type": kind, "value": key.to_string() });
    let down = keys.iter().map(|key| act("keyDown", key));
    let up = keys.iter().rev().map(|key| act("keyUp", key));
    let acts: Vec<Value> = down.chain(up).collect();
    Ok(json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": acts }] }))
}

/// A plus is also a key.
fn split(keys: &str) -> Vec<&str> {
    match keys.strip_suffix('+') {
        Some("") => vec!["+"],
        Some(before) => before.split_terminator('+').chain(["+"]).collect(),
        None => keys.split('+').collect(),
    }
}

fn code(key: &str) -> Result<char, String> {
    let mut letters = key.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok(letter),
        _ => NAMED.iter().find(|(name, _)| *name == key).map(|(_, code)| *code).ok_or_else(|| {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            format!("there is no key {key:?}; write one character or one of {}", names.join(", "))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &str, strokes: &str) {
        let value = stroke(keys).unwrap();
        let acts = value["actions"][0]["actions"].as_array().unwrap();
        let seen: String = acts.iter().map(|act| act["value"].as_str().unwrap()).collect();
        assert_eq!(seen, strokes, "{keys}");
    }

    #[test]
    fn keys_go_down_in_order_and_up_in_reverse() {
        check("a", "aa");
        check("+", "++");
        check("Space", "  ");
        check("Shift+Tab", "\u{e008}\u{e004}\u{e004}\u{e008}");
        check("Control++", "\u{e009}++\u{e009}");
        let error = stroke("Return").unwrap_err();
        assert!(error.contains("Return") && error.contains("Enter"), "{error}");
    }
}
