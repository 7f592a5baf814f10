//! A phone call that says the subject, twice, by Twilio: one try, and what became of it.
//!
//! Promises: whatever stands in the subject is spoken and never obeyed; the token is in no error or log. Accepted
//! means that Twilio will call, not that anybody picked up. Twilio does not know a copy when it sees one: a lost
//! answer is uncertain.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use sekisho_core::Secret;
use sekisho_core::language::Language;
use sekisho_core::notification::{Message, Sent};
use sekisho_core::provider::encode_base64;
use url::Url;

use super::post::{self, Copies, Post, ServiceResponse};
use crate::env::Env;

/// Where Twilio is.
pub const BASE_URL: &str = "https://api.twilio.com";

/// What is said, escaped: twice that and the tags around it stay below the 4000 letters that Twilio takes.
const SAID_MAX: usize = 1500;
/// Digits of a number, by E.164.
const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Without `/2010-04-01`, such as [`BASE_URL`].
    pub url: String,
    pub account_sid: String,
    pub auth_token: Secret,
    /// A number of this account: `+815012345678`.
    pub from: String,
    /// Who is called: `+819012345678`.
    pub to: String,
    /// For a service on the operator's own network that speaks like Twilio.
    pub allow_private: bool,
}

#[derive(Clone, Debug)]
pub struct Twilio {
    post: Post,
    from: String,
    to: String,
}

impl Twilio {
    pub fn new(settings: Settings, env: &Env) -> anyhow::Result<Self> {
        let Settings { url, account_sid, auth_token, from, to, allow_private } = settings;
        if account_sid.is_empty() || !account_sid.bytes().all(|letter| letter.is_ascii_alphanumeric()) {
            bail!("{account_sid:?} is no account SID; Twilio's console shows it, it begins with AC");
        }
        if auth_token.expose().is_empty() {
            bail!("Twilio's auth token is empty");
        }
        for (name, number) in [("from", &from), ("to", &to)] {
            if !is_number(number) {
                bail!(
                    "{name} = {number:?} is no phone number; write it with its country, such as +819012345678"
                );
            }
        }
        let base = post::address(&url, allow_private)?;
        let url = post::below(&base, &format!("/2010-04-01/Accounts/{account_sid}/Calls.json"))?;
        let form = "application/x-www-form-urlencoded";
        let post = Post::new("Twilio", Copies::Seen, &url, form, allow_private, env)?;
        let both = encode_base64(format!("{account_sid}:{}", auth_token.expose()));
        let basic = HeaderValue::from_str(&format!("Basic {both}")).context("base 64 fits into a header")?;
        let post = post.with_authorization(basic).hiding(auth_token).hiding(Secret::new(both));
        Ok(Self { post, from, to })
    }

    pub async fn send(&self, message: &Message, within: Duration) -> Sent {
        let twiml = twiml(message);
        let form = form(&[("To", &self.to), ("From", &self.from), ("Twiml", &twiml)]);
        match self.post.send(HeaderMap::new(), form, within).await {
            Ok(response) => judge(&response),
            Err(sent) => sent,
        }
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or_default();
    DIGITS.contains(&digits.len()) && digits.bytes().all(|letter| letter.is_ascii_digit())
}

/// Pairs as a form is sent; the URL standard's own writing of them.
fn form(pairs: &[(&str, &str)]) -> Bytes {
    let url = Url::parse_with_params("https://form.invalid/", pairs).expect("this address is one");
    Bytes::from(url.query().unwrap_or_default().to_owned())
}

fn twiml(message: &Message) -> String {
    let language = match message.language {
        Language::Ja => "ja-JP",
        Language::En => "en-US",
    };
    let subject = post::fit(post::headline(message).chars().map(spoken), SAID_MAX);
    let say = format!("<Say language=\"{language}\">{subject}</Say>");
    format!("<Response>{say}<Pause length=\"1\"/>{say}</Response>")
}

/// A letter as XML may hold it.
fn spoken(letter: char) -> Cow<'static, str> {
    match letter {
        '&' => Cow::Borrowed("&amp;"),
        '<' => Cow::Borrowed("&lt;"),
        '>' => Cow::Borrowed("&gt;"),
        '"' => Cow::Borrowed("&quot;"),
        '\'' => Cow::Borrowed("&apos;"),
        // XML has no word for most of these, nor has a voice.
        '\u{fffe}' | '\u{ffff}' => Cow::Borrowed(" "),
        letter if letter.is_control() => Cow::Borrowed(" "),
        letter => Cow::Owned(letter.to_string()),
    }
}

fn judge(response: &ServiceResponse) -> Sent {
    const CREDENTIALS: &str = "write the account SID and auth token that Twilio's console shows";
    const UNKNOWN: &str = "look the code up in Twilio's documentation, then send it once more";
    let answer = response.json();
    let cure = answer["code"].as_i64().and_then(cure);
    match response.status() {
        200..=299 => response.accepted(answer["sid"].as_str().map(str::to_owned)),
        401 | 403 | 404 => response.closed("bad_credentials", cure.unwrap_or(CREDENTIALS)),
        400 => response.refused("refused", cure.unwrap_or(UNKNOWN)),
        _ => response.otherwise(),
    }
}

/// For the codes that Twilio gives to calls.
fn cure(code: i64) -> Option<&'static str> {
    match code {
        21201 | 21211 | 21214 | 21217 => Some(
            "write the number to call with its country, such as +819012345678, and see that it can be called",
        ),
        21210 | 21212 | 21213 => {
            Some("write a number of this Twilio account as `from`, such as +815012345678")
        }
        21215 | 21216 => Some("allow calls to this country in Twilio's voice geographic permissions"),
        21219 => Some("a trial account calls verified numbers only: verify this one, or upgrade the account"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
