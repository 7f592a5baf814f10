//! Who is asking: a session's cookie, or a header from a proxy that is believed. And whether a form is our own.
//!
//! The token in a form is worked out from a cookie that other sites can neither read nor set: the session's, or before
//! there is one, a seed. So nothing is stored for it, and every node agrees.

use http::{HeaderMap, HeaderValue, header};
use ring::hmac;
use sekisho_core::Time;
use sekisho_core::notification::Language;
use sekisho_core::provider::{encode_base64, encode_hex};
use sekisho_core::user::{Rank, check_name};

use super::page::{Flash, Who};
use super::trouble::Trouble;
use super::{Console, ROOT};
use crate::chance;
use crate::http::Peer;
use crate::transition;

/// The name of the field that carries the token.
pub const CSRF: &str = "csrf";

const TOKEN: &str = "sekisho_session";
const SEED: &str = "sekisho_seed";
const FLASH: &str = "sekisho_flash";
const LANGUAGE: &str = "sekisho_language";
/// 256 bits, in hex.
const SECRET_LETTERS: usize = 64;
const FLASH_LETTERS_MAX: usize = 1_000;
const YEAR_SECONDS: u32 = 365 * 24 * 3600;
const WEEK_SECONDS: u32 = 7 * 24 * 3600;
const FLASH_SECONDS: u32 = 30;

/// The cookies of a request. Who brings neither session nor seed is given a seed.
pub struct Cookies {
    pairs: Vec<(String, String)>,
    fresh: Option<String>,
}

impl Cookies {
    pub fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        let pairs: Vec<_> =
            pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
        let has_own = pairs
            .iter()
            .any(|(name, value)| [TOKEN, SEED].contains(&&**name) && value.len() >= SECRET_LETTERS);
        Self { pairs, fresh: (!has_own).then(chance::token::<32>) }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn token(&self) -> Option<&str> {
        self.secret(TOKEN)
    }

    /// What is too short to have been made here is none.
    fn secret(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| value.len() >= SECRET_LETTERS)
    }

    /// The language that was chosen, or else the first that the browser asks for and we speak.
    pub fn language(&self, headers: &HeaderMap) -> Language {
        let asked = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let asked = asked.unwrap_or_default().split(',').filter_map(|one| one.trim().get(..2));
        let mut known = self.get(LANGUAGE).into_iter().chain(asked).filter_map(|code| code.parse().ok());
        known.next().unwrap_or(Language::En)
    }

    /// A seed that must be set, because there was none.
    pub fn seed(&self) -> Option<String> {
        self.fresh.clone()
    }

    pub fn flash(&self) -> Option<Flash> {
        let text = self.get(FLASH)?;
        let (is_good, text) = text.split_once('.')?;
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).ok()?;
        Some(Flash { is_good: is_good == "1", text: String::from_utf8(bytes).ok()? })
    }

    /// What a form of ours carries.
    pub fn csrf(&self) -> String {
        let own = self.token().or_else(|| self.secret(SEED)).or(self.fresh.as_deref()).unwrap_or_default();
        let key = hmac::Key::new(hmac::HMAC_SHA256, own.as_bytes());
        encode_hex(hmac::sign(&key, b"a form of ours"))
    }
}

/// Who it is, if anybody we know.
pub async fn find(
    console: &Console,
    headers: &HeaderMap,
    cookies: &Cookies,
    peer: Option<Peer>,
    at: Time,
) -> Result<Option<Who>, Trouble> {
    if let Some(who) = vouched(console, headers, peer) {
        // Who was shut out here stays out, whoever vouches for them.
        let is_out = transition::is_disabled(&*console.store, &who.name).await?;
        return Ok(Some(who).filter(|_| !is_out));
    }
    let Some(token) = cookies.token() else { return Ok(None) };
    let known = transition::find_session(&*console.store, token, at).await?;
    Ok(known.map(|known| Who { name: known.name, rank: known.rank, session: Some(known.hash) }))
}

/// Whom a proxy vouches for, if it is one of those that are believed.
fn vouched(console: &Console, headers: &HeaderMap, peer: Option<Peer>) -> Option<Who> {
    let settings = &console.settings;
    let (name, peer) = (settings.user_header.as_ref()?, peer?.socket.to_canonical());
    if !settings.proxies.iter().any(|network| network.contains(&peer)) {
        return None;
    }
    let name = headers.get(name)?.to_str().ok()?.trim().to_lowercase();
    let said = settings.rank_header.as_ref().and_then(|header| headers.get(header));
    let rank = match said {
        // A rank that can't be read is the least.
        Some(said) => said.to_str().ok().and_then(Rank::parse).unwrap_or(Rank::Viewer),
        None => settings.rank,
    };
    check_name(&name).is_ok().then_some(Who { name, rank, session: None })
}

/// A form counts if its token is that of this browser, and no other site sent it.
pub fn check_csrf(headers: &HeaderMap, form: &[(String, String)], wanted: &str) -> Result<(), Trouble> {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_near = site.is_none_or(|site| ["same-origin", "none"].contains(&site));
    let given = form.iter().find(|(name, _)| name == CSRF).map_or("", |(_, value)| value);
    // Hashes are compared, so how long it takes tells nothing about the token.
    let is_ours = chance::hash(given) == chance::hash(wanted);
    if is_near && is_ours { Ok(()) } else { Err(Trouble::ForeignForm) }
}

pub fn set_token(headers: &mut HeaderMap, token: Option<&str>, is_secure: bool) {
    set(headers, TOKEN, token, WEEK_SECONDS, is_secure);
}

pub fn set_seed(headers: &mut HeaderMap, seed: &str, is_secure: bool) {
    set(headers, SEED, Some(seed), YEAR_SECONDS, is_secure);
}

pub fn set_language(headers: &mut HeaderMap, lang: Language, is_secure: bool) {
    set(headers, LANGUAGE, Some(lang.name()), YEAR_SECONDS, is_secure);
}

/// Kept for half a minute, and taken away by the page that shows it.
pub fn set_flash(headers: &mut HeaderMap, flash: Option<&Flash>, is_secure: bool) {
    let Some(flash) = flash else { return };
    let text: String = flash.text.chars().take(FLASH_LETTERS_MAX).collect();
    let value = format!("{}.{}", u8::from(flash.is_good), encode_base64(text.as_bytes()));
    set(headers, FLASH, Some(&value), FLASH_SECONDS, is_secure);
}

pub fn clear_flash(headers: &mut HeaderMap, is_secure: bool) {
    set(headers, FLASH, None, 0, is_secure);
}

/// For this browser and these pages alone; no script reads it.
fn set(headers: &mut HeaderMap, name: &str, value: Option<&str>, seconds: u32, is_secure: bool) {
    let seconds = if value.is_some() { seconds } else { 0 };
    let secure = if is_secure { "; Secure" } else { "" };
    let value = value.unwrap_or_default();
    let line = format!("{name}={value}; Path={ROOT}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    if let Ok(line) = HeaderValue::from_str(&line) {
        headers.append(header::SET_COOKIE, line);
    }
}
