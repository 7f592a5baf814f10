//! Who is asking: a session's cookie, or a header from a proxy that is believed. And whether a form is our own.
//!
//! The token in a form is worked out from a cookie that other sites can neither read nor set: the session's, or before
//! there is one, a seed. So nothing is stored for it, and every node agrees. Over TLS the names of cookies begin with
//! `__Host-`, which browsers let no other host set, a sibling of ours neither.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, header};
use ring::hmac;
use sekisho_core::Time;
use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::provider::{encode_base64, encode_hex};
use sekisho_core::user::{Rank, check_name};

use super::page::{Flash, Who};
use super::trouble::Trouble;
use super::{Console, ROOT};
use crate::attempts::FailedAttempt;
use crate::http::RemotePeer;
use crate::{acts, queries, token};

/// The name of the field that carries the token.
pub const CSRF: &str = "csrf";

const TOKEN: &str = "sekisho_session";
const SEED: &str = "sekisho_seed";
const FLASH: &str = "sekisho_flash";
const LANGUAGE: &str = "sekisho_language";
const ZONE: &str = "sekisho_zone";
/// Shows that this browser logged in before.
const DEVICE: &str = "sekisho_device";
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
    is_secure: bool,
}

impl Cookies {
    /// `is_secure`: browsers come by TLS, and only what was set by it counts.
    pub fn of(headers: &HeaderMap, is_secure: bool) -> Self {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        let pairs: Vec<_> =
            pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
        let cookies = Self { pairs, fresh: None, is_secure };
        let has_own = [TOKEN, SEED].iter().any(|name| cookies.secret(name).is_some());
        Self { fresh: (!has_own).then(token::generate::<32>), ..cookies }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let name = full_name(name, self.is_secure);
        self.pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// What this browser was given when it logged in.
    pub fn device(&self) -> Option<&str> {
        self.secret(DEVICE)
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

    /// The time zone that was chosen.
    pub fn zone(&self) -> Option<Zone> {
        self.get(ZONE)?.parse().ok()
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
    peer: Option<RemotePeer>,
    at: Time,
) -> Result<Option<Who>, Trouble> {
    match vouched(console, headers, peer) {
        Vouched::For(who) => {
            // Who was shut out here stays out, whoever vouches for them.
            let is_out = queries::is_disabled(&*console.store, &who.name).await?;
            return Ok(Some(who).filter(|_| !is_out));
        }
        Vouched::Twice(peer) => {
            console.attempts.failed(FailedAttempt::HeaderLogin, peer);
            return Ok(None);
        }
        Vouched::ForNobody => {}
    }
    let Some(token) = cookies.token() else { return Ok(None) };
    let known = acts::find_session(&*console.store, token, at).await?;
    Ok(known.map(|known| Who { name: known.name, rank: known.rank, session: Some(known.hash) }))
}

/// Whom a proxy vouches for.
enum Vouched {
    ForNobody,
    For(Who),
    /// The header came twice: one of them is the client's own, and nobody knows which.
    Twice(IpAddr),
}

/// Whom a proxy vouches for, if it is one of those that are believed.
fn vouched(console: &Console, headers: &HeaderMap, peer: Option<RemotePeer>) -> Vouched {
    let settings = &console.settings;
    let (Some(user_header), Some(peer)) = (&settings.user_header, peer) else { return Vouched::ForNobody };
    let socket = peer.socket.to_canonical();
    if !settings.proxies.iter().any(|network| network.contains(&socket)) {
        return Vouched::ForNobody;
    }
    let both = [Some(user_header), settings.rank_header.as_ref()];
    if both.into_iter().flatten().any(|header| headers.get_all(header).iter().nth(1).is_some()) {
        return Vouched::Twice(peer.named);
    }
    let name = headers.get(user_header).and_then(|name| name.to_str().ok());
    let name = name.map(|name| name.trim().to_lowercase()).filter(|name| check_name(name).is_ok());
    let Some(name) = name else { return Vouched::ForNobody };
    let said = settings.rank_header.as_ref().and_then(|header| headers.get(header));
    let rank = match said {
        // A rank that can't be read is the least.
        Some(said) => said.to_str().ok().and_then(Rank::parse).unwrap_or(Rank::Viewer),
        None => settings.rank,
    };
    Vouched::For(Who { name, rank, session: None })
}

/// A form counts if its token is that of this browser, and no other site sent it. `url` is where browsers find the console,
/// if that is known.
pub fn check_form(
    headers: &HeaderMap,
    form: &[(String, String)],
    wanted: &str,
    url: Option<&str>,
) -> Result<(), Trouble> {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_near = site.is_none_or(|site| ["same-origin", "none"].contains(&site));
    let given = form.iter().find(|(name, _)| name == CSRF).map_or("", |(_, value)| value);
    // Hashes are compared, so how long it takes tells nothing about the token.
    let is_ours = token::hash(given) == token::hash(wanted);
    if is_near && is_ours && is_own_origin(headers, url) { Ok(()) } else { Err(Trouble::ForeignForm) }
}

/// Whether the page that sent a form is one of ours. Browsers always say where a form comes from; what is no browser has no
/// cookie to be abused.
fn is_own_origin(headers: &HeaderMap, url: Option<&str>) -> bool {
    let mut origins =
        headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
    let Some(origin) = origins.next() else { return true };
    if origins.next().is_some() {
        return false;
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_host = authority(origin).is_some_and(|own| own.eq_ignore_ascii_case(host));
    match url {
        None => is_host,
        // By a tunnel to this machine the console is found where no other name leads.
        Some(url) => origin_of(url).eq_ignore_ascii_case(origin) || is_host && is_loopback(host),
    }
}

/// `https://sekisho.example.jp` of the address of a page there, as browsers write it.
fn origin_of(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let origin = &url[..url[begin..].find('/').map_or(url.len(), |at| begin + at)];
    let usual = if origin.starts_with("https:") { ":443" } else { ":80" };
    origin.strip_suffix(usual).unwrap_or(origin)
}

fn authority(origin: &str) -> Option<&str> {
    origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"))
}

fn is_loopback(host: &str) -> bool {
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

pub fn set_token(headers: &mut HeaderMap, token: Option<&str>, is_secure: bool) {
    set(headers, TOKEN, token, WEEK_SECONDS, is_secure);
}

pub fn set_device(headers: &mut HeaderMap, device: &str, is_secure: bool) {
    set(headers, DEVICE, Some(device), YEAR_SECONDS, is_secure);
}

pub fn set_seed(headers: &mut HeaderMap, seed: &str, is_secure: bool) {
    set(headers, SEED, Some(seed), YEAR_SECONDS, is_secure);
}

pub fn set_language(headers: &mut HeaderMap, lang: Language, is_secure: bool) {
    set(headers, LANGUAGE, Some(lang.name()), YEAR_SECONDS, is_secure);
}

pub fn set_zone(headers: &mut HeaderMap, zone: &Zone, is_secure: bool) {
    set(headers, ZONE, Some(zone.name()), YEAR_SECONDS, is_secure);
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
    let (path, secure) = if is_secure { ("/", "; Secure") } else { (ROOT, "") };
    let (name, value) = (full_name(name, is_secure), value.unwrap_or_default());
    let line = format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    if let Ok(line) = HeaderValue::from_str(&line) {
        headers.append(header::SET_COOKIE, line);
    }
}

/// Browsers take a name that begins so by TLS alone, for the whole of one host and from no other.
fn full_name(name: &str, is_secure: bool) -> String {
    if is_secure { format!("__Host-{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn h1_a_form_must_come_from_where_the_console_is() {
        let check = |origin: &str, host: &str, url: Option<&str>| {
            is_own_origin(&headers(&[("origin", origin), ("host", host)]), url)
        };
        for (origin, host) in [
            ("http://127.0.0.1:8787", "127.0.0.1:8787"),
            ("https://sekisho.example.jp", "sekisho.example.jp"),
            ("http://Sekisho.example.jp", "sekisho.example.jp"),
        ] {
            assert!(check(origin, host, None), "{origin} {host}");
        }
        for (origin, host) in [
            ("http://evil.example.jp", "sekisho.example.jp"),
            ("http://sekisho.example.jp:81", "sekisho.example.jp"),
            ("null", "sekisho.example.jp"),
            ("", ""),
            ("sekisho.example.jp", "sekisho.example.jp"),
            ("https://sekisho.example.jp.evil.example", "sekisho.example.jp"),
        ] {
            assert!(!check(origin, host, None), "{origin} {host}");
        }
        for url in ["https://sekisho.example.jp", "https://sekisho.example.jp:443/ops"] {
            assert!(
                check("https://sekisho.example.jp", "10.0.0.3:8787", Some(url)),
                "a proxy changed the host"
            );
            assert!(!check("http://sekisho.example.jp", "10.0.0.3:8787", Some(url)), "by clear text");
            assert!(!check("http://evil.example", "evil.example", Some(url)), "a name that leads here");
            for host in ["127.0.0.1:8787", "localhost:8787", "[::1]:8787"] {
                assert!(check(&format!("http://{host}"), host, Some(url)), "by a tunnel");
                assert!(!check("http://evil.example", host, Some(url)));
            }
        }
        let twice = headers(&[("origin", "http://a"), ("origin", "http://a"), ("host", "a")]);
        assert!(!is_own_origin(&twice, None) && is_own_origin(&headers(&[("host", "a")]), None));
    }

    #[test]
    fn h1_over_tls_cookies_are_this_hosts_alone() {
        let mut answer = HeaderMap::new();
        set_token(&mut answer, Some("t"), true);
        let line = answer[header::SET_COOKIE].to_str().unwrap();
        for word in ["__Host-sekisho_session=t;", "Path=/;", "; Secure"] {
            assert!(line.contains(word) && !line.contains("Domain"), "{line}");
        }
        let token = "5".repeat(SECRET_LETTERS);
        let planted = format!("sekisho_session={token}; sekisho_seed={token}");
        let cookies = Cookies::of(&headers(&[("cookie", &planted)]), true);
        assert!(cookies.token().is_none() && cookies.seed().is_some(), "a sibling can set such names");
        let own = format!("__Host-sekisho_session={token}");
        assert_eq!(Cookies::of(&headers(&[("cookie", &own)]), true).token(), Some(&*token));
    }
}
