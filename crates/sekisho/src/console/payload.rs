//! A body from outside, shown to people: JSON in lines and colours, forms as a list, other text as it is, bytes in hex.
//!
//! JSON is walked token by token and never parsed into values, so a number stands as it came, keys keep their order, and
//! what is there twice is shown twice. Broken JSON is shown as far as it goes, and is said to be broken. What looks like
//! a secret is hidden from everybody, mail addresses from whoever may only look. Nothing is shown beyond a [`Bound`], and
//! everything is escaped.

mod secret;
mod token;

use std::fmt::Write;

use sekisho_core::mail_address::mask_text;

use crate::view::show::{Html, escape};
pub use secret::mask_header;
use secret::{is_secret_name, is_secret_value};
use token::{Token, Tokens};

/// How much of a body is shown.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub bytes: usize,
    pub lines: usize,
}

impl Bound {
    /// The body of an event.
    pub const BODY: Self = Self { bytes: 256 << 10, lines: 5_000 };
    /// The beginning of what somebody answered.
    pub const ANSWER: Self = Self { bytes: 4 << 10, lines: 60 };
}

/// JSON that goes deeper is cut there.
const DEPTH_MAX: usize = 64;
/// Letters of one text.
const TEXT_MAX: usize = 4_000;
/// Bytes in hex.
const HEX_MAX: usize = 256;
const HEX_ROW: usize = 16;
const HIDDEN: &str = "••••••";

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyes {
    /// May only look: mail addresses are masked.
    Viewer,
    Operator,
}

/// What a body turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Empty,
    Json,
    /// Begins like JSON and is none.
    BrokenJson,
    Fields,
    Text,
    Bytes,
}

pub struct Shown {
    pub html: Html,
    pub form: Form,
    /// There is more than is shown.
    pub is_cut: bool,
    /// Something was hidden or masked.
    pub is_veiled: bool,
    pub bytes: usize,
}

pub fn show(body: &[u8], eyes: Eyes, bound: Bound) -> Shown {
    let mut out = Out { html: String::new(), eyes, is_cut: false, is_veiled: false };
    let form = match readable(body) {
        _ if body.is_empty() => Form::Empty,
        None => out.hex(body),
        Some(text) if text.trim_start().starts_with(['{', '[']) => {
            let form = out.json(text, body.len(), bound);
            // What is no JSON has no words to find an address by: if one may be left, nothing is shown.
            let is_bare = |at: usize| !out.html[..at].ends_with("***");
            let has_bare = out.html.match_indices('@').any(|(at, _)| is_bare(at));
            if form == Form::BrokenJson && eyes == Eyes::Viewer && has_bare {
                out.hide_all();
            }
            form
        }
        Some(text) => match fields(text) {
            Some(pairs) => out.fields(&pairs, bound),
            None => out.plain(text, bound),
        },
    };
    let Out { html, is_cut, is_veiled, .. } = out;
    Shown { html: Html::new(html), form, is_cut, is_veiled, bytes: body.len() }
}

/// Text, if it is one; what a cut tore from its last letter is left out.
fn readable(body: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&body[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_odd = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    (!text.chars().take(TEXT_MAX).any(is_odd)).then_some(text)
}

/// Names and values, if it is a form as browsers send it.
fn fields(text: &str) -> Option<Vec<(String, String)>> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.[]%+".contains(&byte))
    };
    let text = text.trim_end();
    let is_form = text.split('&').all(|pair| pair.split_once('=').is_some_and(|(name, _)| is_name(name)))
        && !text.contains(char::is_whitespace);
    is_form.then(|| form_urlencoded::parse(text.as_bytes()).into_owned().collect())
}

/// What a text may do to the page it stands on: turn its direction around, or vanish.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

struct Out {
    html: String,
    eyes: Eyes,
    is_cut: bool,
    is_veiled: bool,
}

impl Out {
    fn json(&mut self, text: &str, whole: usize, bound: Bound) -> Form {
        let mut tokens = Tokens::new(text);
        let mut nest: Vec<Level> = Vec::new();
        let (mut lines, mut is_deep) = (1, false);
        while let Some((at, token)) = tokens.next() {
            if at >= bound.bytes || lines >= bound.lines {
                self.is_cut = true;
                break;
            }
            match token {
                Token::Open(letter) if nest.len() == DEPTH_MAX => {
                    (self.is_cut, is_deep) = (true, true);
                    let close = tokens.skip_level().map(String::from).unwrap_or_default();
                    let _ = write!(self.html, "{letter} <span class=\"hidden\">…</span> {close}");
                }
                Token::Open(letter) => {
                    self.html.push(letter);
                    let above = nest.last();
                    let name = above.and_then(|level| level.key.clone());
                    // What stands in a list is judged by the name of the list; what stands in an object has its own.
                    nest.push(if letter == '{' {
                        Level { is_object: true, awaits_key: true, key: None, parent: name }
                    } else {
                        let parent = above.and_then(|level| level.parent.clone());
                        Level { is_object: false, awaits_key: false, key: name, parent }
                    });
                    if !tokens.peek_close() {
                        lines += self.line(nest.len());
                    }
                }
                Token::Close(letter) => {
                    let was_empty = self.html.ends_with(['{', '[']);
                    nest.pop();
                    if !was_empty {
                        lines += self.line(nest.len());
                    }
                    self.html.push(letter);
                }
                Token::Comma => {
                    self.html.push(',');
                    if let Some(level) = nest.last_mut() {
                        level.awaits_key = level.is_object;
                    }
                    lines += self.line(nest.len());
                }
                Token::Colon => {
                    self.html.push_str(": ");
                    if let Some(level) = nest.last_mut() {
                        level.awaits_key = false;
                    }
                }
                Token::Text(raw) => match nest.last_mut().filter(|level| level.awaits_key) {
                    Some(level) => {
                        let name = token::decode(raw);
                        let shown = self.veil(&name);
                        level.key = Some(name);
                        self.span("key", &shown);
                    }
                    None => self.text(&token::decode(raw), nest.last()),
                },
                Token::Number(raw) => self.scalar("number", raw, nest.last()),
                Token::Word(raw) => self.html.push_str(&escape(raw)),
                Token::Odd(letter) => self.html.push_str(&escape(&visible(&letter.to_string()))),
            }
        }
        // What is deeper than anybody looks is not said to be broken: nobody looked.
        let is_json = is_deep || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if is_json && text.len() == whole { Form::Json } else { Form::BrokenJson }
    }

    /// A text of JSON, in its quotes.
    fn text(&mut self, text: &str, level: Option<&Level>) {
        if level.is_some_and(Level::is_secret) || is_secret_value(text) {
            return self.hide();
        }
        let shown = self.veil(text);
        self.span("text", &shown);
    }

    fn scalar(&mut self, class: &str, raw: &str, level: Option<&Level>) {
        if level.is_some_and(Level::is_secret) {
            return self.hide();
        }
        let _ = write!(self.html, "<span class=\"{class}\">{}</span>", escape(raw));
    }

    fn hide(&mut self) {
        self.is_veiled = true;
        let _ = write!(self.html, "<span class=\"hidden\">{HIDDEN}</span>");
    }

    fn span(&mut self, class: &str, text: &str) {
        let mut letters = text.char_indices();
        let cut = letters.nth(TEXT_MAX).map(|(at, _)| at);
        let shown = quoted(&text[..cut.unwrap_or(text.len())]);
        let more = if cut.is_some() { "…" } else { "" };
        self.is_cut |= cut.is_some();
        let _ = write!(self.html, "<span class=\"{class}\">\"{}{more}\"</span>", escape(&shown));
    }

    /// Hides addresses from who may only look.
    fn veil(&mut self, text: &str) -> String {
        match self.eyes {
            Eyes::Operator => text.to_owned(),
            Eyes::Viewer => {
                let masked = mask_text(text);
                self.is_veiled |= masked != text;
                masked
            }
        }
    }

    fn line(&mut self, depth: usize) -> usize {
        let _ = write!(self.html, "\n{:1$}", "", depth * 2);
        1
    }

    fn fields(&mut self, pairs: &[(String, String)], bound: Bound) -> Form {
        for (n, (name, value)) in pairs.iter().enumerate() {
            if self.html.len() >= bound.bytes || n >= bound.lines {
                self.is_cut = true;
                break;
            }
            let _ = write!(self.html, "<span class=\"key\">{}</span> = ", escape(&visible(name)));
            // Slack sends JSON in a field.
            if value.starts_with(['{', '[']) {
                self.json(value, value.len(), bound);
            } else if is_secret_name(name, None) || is_secret_value(value) {
                self.hide();
            } else {
                let shown = self.veil(value);
                let _ = write!(self.html, "<span class=\"text\">{}</span>", escape(&visible(&shown)));
            }
            self.html.push('\n');
        }
        Form::Fields
    }

    fn plain(&mut self, text: &str, bound: Bound) -> Form {
        let mut left = bound.bytes;
        for (n, line) in text.lines().enumerate() {
            if n >= bound.lines || left == 0 {
                self.is_cut = true;
                break;
            }
            let kept = &line[..line.floor_char_boundary(left.min(line.len()))];
            self.is_cut |= kept.len() < line.len();
            left = left.saturating_sub(kept.len() + 1);
            let shown = self.veil(kept);
            let shown: Vec<_> =
                shown.split(' ').map(|word| if is_secret_value(word) { HIDDEN } else { word }).collect();
            self.html.push_str(&escape(&visible(&shown.join(" "))));
            self.html.push('\n');
        }
        Form::Text
    }

    /// All of it, because nobody can say what is in it.
    fn hide_all(&mut self) {
        self.is_veiled = true;
        self.html = format!("<span class=\"hidden\">{HIDDEN}</span>");
    }

    fn hex(&mut self, body: &[u8]) -> Form {
        if self.eyes == Eyes::Viewer {
            // An address may stand there in any encoding.
            self.hide_all();
            return Form::Bytes;
        }
        self.is_cut = body.len() > HEX_MAX;
        for (n, row) in body[..body.len().min(HEX_MAX)].chunks(HEX_ROW).enumerate() {
            let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
            let plain = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '·' };
            let text: String = row.iter().map(plain).collect();
            let _ = writeln!(self.html, "{:04x}  {:<47}  {}", n * HEX_ROW, hex.join(" "), escape(&text));
        }
        Form::Bytes
    }
}

/// Where the walk is.
struct Level {
    is_object: bool,
    awaits_key: bool,
    /// What the value that comes next is called.
    key: Option<String>,
    /// What the object that it stands in is called.
    parent: Option<String>,
}

impl Level {
    fn is_secret(&self) -> bool {
        self.key.as_ref().is_some_and(|key| is_secret_name(key, self.parent.as_deref()))
    }
}

/// A text as JSON writes it, with letters in place of codes wherever a letter can be seen.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter => push_visible(&mut out, letter),
        }
    }
    out
}

/// A text with its invisible letters as codes.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|letter| match letter {
        '\t' | '\n' => out.push(letter),
        letter => push_visible(&mut out, letter),
    });
    out
}

fn push_visible(out: &mut String, letter: char) {
    if is_invisible(letter) {
        let _ = write!(out, "\\u{:04x}", u32::from(letter));
    } else {
        out.push(letter);
    }
}

#[cfg(test)]
mod tests;
