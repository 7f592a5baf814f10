//! A mail as it came, and as its reader would see it: headers unfolded and decoded, parts decoded.
//!
//! Reads what well-made mails hold: encoded words in UTF-8, multiparts, base 64 and quoted-printable. What it can't
//! read stays as it came, so that a test sees it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The envelope's sender.
    pub from: String,
    /// The envelope's recipients.
    pub to: Vec<String>,
    /// Milliseconds since 1970, when it was taken.
    pub at_ms: u64,
    /// The number of its connection, from 0.
    pub connection: usize,
    pub encrypted: bool,
    /// Without the dots that the protocol doubles.
    pub raw: Vec<u8>,
    /// Names in lower case, values decoded.
    pub headers: Vec<(String, String)>,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// With its parameters.
    pub content_type: String,
    pub text: String,
}

impl Mail {
    /// `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The part of this type: `text/plain`.
    pub fn part(&self, content_type: &str) -> Option<&str> {
        let part = self.parts.iter().find(|part| part.content_type.starts_with(content_type));
        part.map(|part| part.text.as_str())
    }
}

/// The headers and the parts of what came.
pub(super) fn read(raw: &[u8]) -> (Vec<(String, String)>, Vec<Part>) {
    let text = String::from_utf8_lossy(raw);
    let (headers, body) = split(&text);
    let mut parts = Vec::new();
    collect(&headers, body, PARTS_DEPTH, &mut parts);
    let decoded = headers.into_iter().map(|(name, value)| (name, decode_words(&value))).collect();
    (decoded, parts)
}

/// How deep multiparts may lie in each other.
const PARTS_DEPTH: u32 = 8;

fn split(text: &str) -> (Vec<(String, String)>, &str) {
    let (head, body) = match text.strip_prefix("\r\n") {
        Some(body) => ("", body),
        None => text.split_once("\r\n\r\n").unwrap_or((text, "")),
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in head.split("\r\n") {
        if let (true, Some((_, value))) = (line.starts_with([' ', '\t']), headers.last_mut()) {
            value.push(' ');
            value.push_str(line.trim_start());
        } else {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    (headers, body)
}

fn collect(headers: &[(String, String)], body: &str, depth: u32, parts: &mut Vec<Part>) {
    let value = |name: &str| {
        headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    let content_type = value("content-type");
    let boundary = content_type
        .split("boundary=")
        .nth(1)
        .map(|rest| rest.split(';').next().unwrap_or_default().trim().trim_matches('"'));
    if let (Some(boundary), true) = (boundary, depth > 0) {
        let marked = format!("\r\n{body}");
        let mark = format!("\r\n--{boundary}");
        for part in marked.split(mark.as_str()).skip(1) {
            if part.starts_with("--") {
                return;
            }
            let (headers, body) = split(part.strip_prefix("\r\n").unwrap_or(part));
            collect(&headers, body, depth - 1, parts);
        }
        return;
    }
    let text = match value("content-transfer-encoding").to_ascii_lowercase().as_str() {
        "base64" => base64(body),
        "quoted-printable" => quoted_printable(body),
        _ => None,
    };
    let text = text.unwrap_or_else(|| body.to_owned());
    parts.push(Part { content_type: content_type.to_owned(), text });
}

fn base64(text: &str) -> Option<String> {
    let packed: String = text.split_whitespace().collect();
    String::from_utf8(STANDARD.decode(packed).ok()?).ok()
}

fn quoted_printable(text: &str) -> Option<String> {
    let joined = text.replace("=\r\n", "");
    let mut bytes = Vec::with_capacity(joined.len());
    let mut rest = joined.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'=' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Encoded words side by side are one text; the space between them is none.
fn decode_words(value: &str) -> String {
    let mut decoded = String::new();
    let mut after_word = false;
    let mut rest = value;
    while let Some(start) = rest.find("=?") {
        let (before, word) = rest.split_at(start);
        let Some((text, length)) = decode_word(word) else {
            decoded.push_str(before);
            decoded.push_str("=?");
            (rest, after_word) = (&word[2..], false);
            continue;
        };
        if !after_word || !before.trim().is_empty() {
            decoded.push_str(before);
        }
        decoded.push_str(&text);
        (rest, after_word) = (&word[length..], true);
    }
    decoded + rest
}

/// One `=?utf-8?b?…?=` at the beginning, and how long it is.
fn decode_word(text: &str) -> Option<(String, usize)> {
    let mut fields = text.strip_prefix("=?")?.splitn(4, '?');
    let (charset, encoding, encoded, after) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    if !charset.eq_ignore_ascii_case("utf-8") || !after.starts_with('=') {
        return None;
    }
    let decoded = match encoding {
        "b" | "B" => base64(encoded)?,
        "q" | "Q" => quoted_printable(&encoded.replace('_', " "))?,
        _ => return None,
    };
    Some((decoded, text.len() - after.len() + 1))
}
