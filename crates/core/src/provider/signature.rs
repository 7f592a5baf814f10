//! Message authentication codes over several parts, with several active secrets, compared in constant time; and
//! [`BodyCode`], the most common way to send one.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use super::{Request, RequestRefusal, Setup, SetupError, check_window};
use crate::secret::Secret;
use crate::time::Time;

/// A source's keys, prepared once. Never empty.
pub struct Keys(Vec<hmac::Key>);

impl Keys {
    /// The secret's text is the key.
    pub fn from_text(setup: &Setup, algorithm: hmac::Algorithm) -> Result<Self, SetupError> {
        Self::new(setup, algorithm, |secret| Ok(secret.as_bytes().to_vec()))
    }

    /// The key is what base 64 decodes from the secret without its `whsec_`: Standard Webhooks' convention.
    pub fn from_whsec(setup: &Setup) -> Result<Self, SetupError> {
        Self::new(setup, hmac::HMAC_SHA256, |secret| {
            from_base64(secret.strip_prefix("whsec_").unwrap_or(secret))
                .ok_or("is not base 64: copy it whole, with or without its `whsec_`")
        })
    }

    /// The key is what the secret's hex digits say.
    pub fn from_hex(setup: &Setup) -> Result<Self, SetupError> {
        Self::new(setup, hmac::HMAC_SHA256, |secret| {
            from_hex(secret).ok_or("is not hex: copy the HMAC key whole, digits 0-9 and letters A-F only")
        })
    }

    /// Each secret is decoded into key bytes; the error says what is wrong with it without showing it.
    pub fn new(
        setup: &Setup,
        algorithm: hmac::Algorithm,
        decode: impl Fn(&str) -> Result<Vec<u8>, &'static str>,
    ) -> Result<Self, SetupError> {
        let keys = secrets(setup)?
            .iter()
            .enumerate()
            .map(|(n, secret)| match decode(secret.expose()) {
                Ok(key) if key.is_empty() => Err(SetupError(format!("secret {} is empty", n + 1))),
                Ok(key) => Ok(hmac::Key::new(algorithm, &key)),
                Err(what) => Err(SetupError(format!("secret {} {what}", n + 1))),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self(keys))
    }

    /// Does any key make any of the given codes over the parts, joined?
    pub fn accept(&self, parts: &[&[u8]], given: &[Vec<u8>]) -> bool {
        if given.is_empty() {
            return false;
        }
        self.0.iter().any(|key| {
            let tag = tag(key, parts);
            given.iter().any(|code| bool::from(tag.as_ref().ct_eq(code)))
        })
    }

    /// The code that the first key makes.
    pub fn sign(&self, parts: &[&[u8]]) -> hmac::Tag {
        tag(&self.0[0], parts)
    }

    /// The codes of all keys, for schemes that can carry several: the receiver may rotate its secret.
    pub fn sign_with_all(&self, parts: &[&[u8]]) -> impl Iterator<Item = hmac::Tag> {
        self.0.iter().map(move |key| tag(key, parts))
    }
}

/// Codes over a time and the raw body, with that time beside them in one header: `t=…,v1=…,v1=…`.
pub struct StampedCode {
    pub header: &'static str,
    /// Between the entries of the header.
    pub between: char,
    /// What the time and the codes are called there.
    pub time: &'static str,
    pub code: &'static str,
    /// Between time and body in what is signed.
    pub joint: &'static [u8],
}

impl StampedCode {
    /// Any code may match; entries of other names are passed over.
    pub fn check(
        &self,
        keys: &Keys,
        request: &Request<'_>,
        now: Time,
        tolerance_s: i64,
    ) -> Result<(), RequestRefusal> {
        let mut stamp = None;
        let mut codes = Vec::new();
        for entry in request.header(self.header)?.split(self.between) {
            match entry.trim().split_once('=') {
                Some((name, seconds)) if name == self.time => stamp = Some(seconds),
                Some((name, code)) if name == self.code => codes.extend(from_hex(code)),
                _ => {}
            }
        }
        let stamp = stamp.ok_or_else(|| RequestRefusal::malformed(self.header))?;
        let signed_at = stamp.parse().map_err(|_| RequestRefusal::malformed(self.header))?;
        if !keys.accept(&[stamp.as_bytes(), self.joint, request.body], &codes) {
            return Err(RequestRefusal::BadSignature);
        }
        check_window(signed_at, now, tolerance_s)
    }

    pub fn sign(&self, keys: &Keys, body: &[u8], now: Time) -> (&'static str, String) {
        let seconds = now.seconds().to_string();
        let Self { header, between, time, code: name, .. } = self;
        let mut value = format!("{time}={seconds}");
        for code in keys.sign_with_all(&[seconds.as_bytes(), self.joint, body]) {
            value.push_str(&format!("{between}{name}={}", to_hex(code)));
        }
        (header, value)
    }
}

/// A code over the raw body in one header of its own: the way most providers sign.
pub struct BodyCode {
    pub header: &'static str,
    /// Stands before the code.
    pub prefix: &'static str,
    pub encoding: Encoding,
}

impl BodyCode {
    pub const fn hex(header: &'static str) -> Self {
        Self { header, prefix: "", encoding: Encoding::Hex }
    }

    pub const fn base64(header: &'static str) -> Self {
        Self { header, prefix: "", encoding: Encoding::Base64 }
    }

    pub const fn after(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    pub fn check(&self, keys: &Keys, request: &Request<'_>) -> Result<(), RequestRefusal> {
        let code = self
            .decode(request.header(self.header)?)
            .ok_or_else(|| RequestRefusal::malformed(self.header))?;
        if keys.accept(&[request.body], &[code]) { Ok(()) } else { Err(RequestRefusal::BadSignature) }
    }

    /// For the provider that repeats the header, one per active secret.
    pub fn check_any(&self, keys: &Keys, request: &Request<'_>) -> Result<(), RequestRefusal> {
        let mut values = request.headers.get_all(self.header).iter().peekable();
        if values.peek().is_none() {
            return Err(RequestRefusal::missing(self.header));
        }
        let codes: Vec<_> = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
            .filter_map(|value| self.decode(value.trim()))
            .collect();
        if keys.accept(&[request.body], &codes) { Ok(()) } else { Err(RequestRefusal::BadSignature) }
    }

    pub fn sign(&self, keys: &Keys, body: &[u8]) -> (&'static str, String) {
        (self.header, format!("{}{}", self.prefix, self.encoding.write(keys.sign(&[body]))))
    }

    fn decode(&self, value: &str) -> Option<Vec<u8>> {
        self.encoding.read(value.strip_prefix(self.prefix)?)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Hex,
    Base64,
}

impl Encoding {
    pub fn read(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => from_hex(text),
            Self::Base64 => from_base64(text),
        }
    }

    pub fn write(self, bytes: impl AsRef<[u8]>) -> String {
        match self {
            Self::Hex => to_hex(bytes),
            Self::Base64 => to_base64(bytes),
        }
    }
}

fn tag(key: &hmac::Key, parts: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    context.sign()
}

/// The configured secrets: at least one, none blank.
pub fn secrets(setup: &Setup) -> Result<&[Secret], SetupError> {
    if setup.secrets.is_empty() {
        return Err(SetupError(
            "`secrets` is missing: write secrets = [\"env:NAME\"] and put the secret there".into(),
        ));
    }
    if let Some(n) = setup.secrets.iter().position(|secret| secret.expose().trim().is_empty()) {
        return Err(SetupError(format!("secret {} is empty", n + 1)));
    }
    Ok(&setup.secrets)
}

/// Is the token one of the secrets? Takes as long whichever it is.
pub fn is_token(secrets: &[Secret], token: &str) -> bool {
    secrets
        .iter()
        .fold(false, |found, secret| found | bool::from(secret.expose().as_bytes().ct_eq(token.as_bytes())))
}

pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |letter: u8| char::from(letter).to_digit(16).map(|digit| digit as u8);
    text.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

pub fn to_hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).expect("four bits are a hex digit"));
        }
        text
    })
}

/// Base 64 with or without padding.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()
}

pub fn to_base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// The URL-safe alphabet, with or without padding.
pub fn from_base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

pub fn to_base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn sha256(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(secrets: &[&str]) -> Setup {
        Setup { secrets: secrets.iter().map(|text| Secret::new(*text)).collect(), ..Setup::default() }
    }

    #[test]
    fn a2_parts_are_joined_and_any_key_and_any_code_may_match() {
        let keys = Keys::from_text(&setup(&["old", "new"]), hmac::HMAC_SHA256).unwrap();
        let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"new"), b"12.body").as_ref().to_vec();
        assert!(keys.accept(&[b"12", b".", b"body"], &[vec![1, 2], code.clone()]));
        assert!(!keys.accept(&[b"12", b"body"], std::slice::from_ref(&code)));
        assert!(!keys.accept(&[b"12.body"], &[]));
        assert!(!keys.accept(&[b"12.body"], &[code[..31].to_vec()]));
    }

    #[test]
    fn a2_no_secret_or_an_empty_one_is_refused_and_never_shown() {
        for bad in [&[][..], &[""], &["good", " "]] {
            assert!(Keys::from_text(&setup(bad), hmac::HMAC_SHA256).is_err());
        }
        let wrong = Keys::new(&setup(&["canary"]), hmac::HMAC_SHA256, |_| Err("is not hex"));
        assert_eq!(wrong.err().unwrap().0, "secret 1 is not hex");
    }

    #[test]
    fn hex_reads_back_and_refuses_garbage() {
        assert_eq!(from_hex("00ff10"), Some(vec![0, 255, 16]));
        assert_eq!(from_hex("00FF10"), Some(vec![0, 255, 16]));
        assert_eq!(to_hex([0, 255, 16]), "00ff10");
        assert!(["0", "0g", "é0"].iter().all(|text| from_hex(text).is_none()));
    }
}
