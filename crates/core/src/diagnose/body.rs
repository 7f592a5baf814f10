//! The bytes a body may have had before something on its way rewrote it: other line ends, and the same JSON written
//! in another layout, order or spelling of its text. Order and digits are kept, so that only the writing varies.

use std::fmt::Write;

use serde_json::Value;

/// Beyond this, trying every variation would keep a person waiting.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Each with words for it, the likelier first; none equal to the body itself.
pub fn variations(body: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let text = Some(body)
        .filter(|body| body.len() <= BODY_BYTES_MAX)
        .and_then(|body| std::str::from_utf8(body).ok());
    let all = text.map(|text| line_ends(text).into_iter().chain(rewritten(text)));
    let changed = move |(_, other): &(String, Vec<u8>)| other != body;
    all.into_iter().flatten().map(|(what, text)| (what, text.into_bytes())).filter(changed)
}

fn line_ends(text: &str) -> Vec<(String, String)> {
    let unix = text.replace("\r\n", "\n");
    vec![
        ("the body without the line break at its end".into(), text.trim_end_matches(['\r', '\n']).to_owned()),
        ("the body without the space around it".into(), text.trim().to_owned()),
        ("the body with a line break at its end".into(), format!("{text}\n")),
        ("the body with CR LF at its end".into(), format!("{text}\r\n")),
        ("the body with CR LF line ends".into(), unix.replace('\n', "\r\n")),
        ("the body with LF line ends".into(), unix),
    ]
}

fn rewritten(text: &str) -> impl Iterator<Item = (String, String)> {
    // Its maps are sorted, and it refuses JSON too deep to indent.
    let value = serde_json::from_str::<Value>(text).ok();
    let as_is = value.as_ref().map(|_| ("", text.trim().to_owned()));
    let sorted = value.map(|value| (", keys sorted", value.to_string()));
    as_is.into_iter().chain(sorted).flat_map(|(order, json)| {
        SPELLINGS.iter().flat_map(move |(spelling, respell)| {
            let tokens: Vec<String> = tokens(&json).into_iter().map(respell).collect();
            LAYOUTS.iter().flat_map(move |(layout, write)| {
                let json = write(&tokens);
                let what = format!("the same JSON {layout}{order}{spelling}");
                [(format!("{what}, with a line break at its end"), format!("{json}\n")), (what, json)]
            })
        })
    })
}

type Layout = (&'static str, fn(&[String]) -> String);
type Spelling = (&'static str, fn(&str) -> String);

const LAYOUTS: [Layout; 6] = [
    ("written without spaces", |tokens| tokens.concat()),
    ("with a space after each comma and colon", spaced),
    ("indented by 2 spaces", |tokens| indented(tokens, "  ")),
    ("indented by 4 spaces", |tokens| indented(tokens, "    ")),
    ("indented by 1 space", |tokens| indented(tokens, " ")),
    ("indented by tabs", |tokens| indented(tokens, "\t")),
];

const SPELLINGS: [Spelling; 5] = [
    ("", str::to_owned),
    (", / escaped", |token| with_slash(token)),
    (", non-ASCII letters escaped", |token| with_ascii(token)),
    (", / and non-ASCII letters escaped", |token| with_ascii(&with_slash(token))),
    (", nothing escaped that need not be", plain),
];

/// Strings, numbers, words and punctuation of text that is JSON.
fn tokens(json: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = json.trim_start();
    while let Some(first) = rest.bytes().next() {
        let length = match first {
            b'"' => string_length(rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => rest
                .find(|letter: char| ",:]}".contains(letter) || letter.is_whitespace())
                .unwrap_or(rest.len()),
        };
        // A char boundary: the tokens end in ASCII, or at the end.
        let (token, after) = rest.split_at(length.max(1).min(rest.len()));
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// The length of the string literal at the start, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn spaced(tokens: &[String]) -> String {
    let space = |token: &String| {
        if [",", ":"].contains(&token.as_str()) { format!("{token} ") } else { token.clone() }
    };
    tokens.iter().map(space).collect()
}

fn indented(tokens: &[String], indent: &str) -> String {
    let mut text = String::new();
    let mut depth = 0usize;
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.push_str(&indent.repeat(depth));
    };
    for (at, token) in tokens.iter().enumerate() {
        let opens = |token: &String| token == "{" || token == "[";
        match token.as_str() {
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                if at.checked_sub(1).is_none_or(|before| !opens(&tokens[before])) {
                    line(&mut text, depth);
                }
                text.push_str(token);
            }
            "{" | "[" => {
                depth += 1;
                text.push_str(token);
                if tokens.get(at + 1).is_none_or(|next| next != "}" && next != "]") {
                    line(&mut text, depth);
                }
            }
            "," => {
                text.push(',');
                line(&mut text, depth);
            }
            ":" => text.push_str(": "),
            _ => text.push_str(token),
        }
    }
    text
}

fn with_slash(token: &str) -> String {
    token.replace("\\/", "/").replace('/', "\\/")
}

fn with_ascii(token: &str) -> String {
    let mut units = [0; 2];
    token.chars().fold(String::new(), |mut text, letter| {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut units) {
                write!(text, "\\u{unit:04x}").expect("a String takes any text");
            }
        }
        text
    })
}

fn plain(token: &str) -> String {
    match serde_json::from_str::<String>(token) {
        Ok(text) if token.starts_with('"') => Value::from(text).to_string(),
        _ => token.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(body: &str, wanted: &str) -> Option<String> {
        variations(body.as_bytes()).find(|(_, other)| other == wanted.as_bytes()).map(|(what, _)| what)
    }

    #[test]
    fn the_same_json_is_found_in_the_layouts_of_common_libraries() {
        let compact = r#"{"b":[1,2.50,{}],"a":{"c":"x, y: [\"{\" é"},"d":[]}"#;
        let node = "{\n  \"b\": [\n    1,\n    2.50,\n    {}\n  ],\n  \"a\": {\n    \"c\": \"x, y: [\\\"{\\\" é\"\n  },\n  \"d\": []\n}";
        let python = r#"{"b": [1, 2.50, {}], "a": {"c": "x, y: [\"{\" \u00e9"}, "d": []}"#;
        assert!(written(node, compact).unwrap().contains("without spaces"));
        assert!(written(compact, node).unwrap().contains("2 spaces"));
        assert!(written(compact, python).unwrap().contains("non-ASCII"));
        assert!(written(python, compact).unwrap().contains("need not be"));
        assert!(written(r#"{"u":"a/b"}"#, r#"{"u":"a\/b"}"#).unwrap().contains("/ escaped"));
        assert!(written(r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#).unwrap().contains("sorted"));
        assert!(written("{}", "{}\n").unwrap().contains("line break"));
        assert!(written("{}\r\n", "{}").is_some());
        assert!(written("a\nb", "a\r\nb").is_some());
        assert!(variations(b"{}").all(|(_, other)| other != b"{}"));
    }

    #[test]
    fn what_is_not_json_or_not_text_is_left_alone() {
        assert_eq!(variations(&[0xff]).count(), 0);
        assert!(variations("{\"é".as_bytes()).count() < 7);
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert!(variations(deep.as_bytes()).count() < 7);
    }
}
