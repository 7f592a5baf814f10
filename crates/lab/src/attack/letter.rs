//! Requests as providers write them, signed with the house's own secrets or with others.

use std::time::SystemTime;

use ring::digest;
use sekisho_core::provider::{
    self, ALL, AboutProvider, Draft, Provider, Scheme, Setup, encode_base64, encode_hex,
};
use sekisho_core::{Secret, Time};

use crate::certificate::CertificateSigner;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Letter {
    pub fn post(path: &str, body: &str) -> Self {
        Self { method: "POST".into(), path: path.into(), headers: Vec::new(), body: body.into() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.and(name, value)
    }

    /// Beside others of that name.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// As it goes over the wire, with these lines instead of those that say how long the body is.
    pub fn bytes(&self, framing: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: lab\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        [head.as_bytes(), framing.as_bytes(), b"\r\n"].concat()
    }

    pub fn whole(&self) -> Vec<u8> {
        let framing = format!("content-length: {}\r\n", self.body.len());
        [self.bytes(&framing), self.body.clone()].concat()
    }
}

/// Everybody's webhooks go to the source of their own name.
pub fn path(about: &AboutProvider) -> String {
    format!("/webhooks/{}", about.name)
}

pub fn public_url(about: &AboutProvider) -> String {
    format!("https://shop.example.test{}", path(about))
}

/// Good as text, as hex and as base 64; another one for each provider, and for each `salt`.
pub fn secret(about: &AboutProvider, salt: u8) -> String {
    let n = ALL.iter().position(|one| one.about().name == about.name).unwrap_or_default();
    format!("cafe0123456789abcdef{salt:02x}{n:02x}")
}

pub fn find(name: &str) -> &'static dyn Provider {
    provider::find(name).expect("a provider we know")
}

/// Somebody who signs as this provider does. Salt 0 is the provider itself.
pub fn scheme(about: &'static AboutProvider, salt: u8) -> Box<dyn Scheme> {
    let required = about.settings.iter().filter(|setting| setting.required);
    let setup = Setup {
        secrets: vec![Secret::new(secret(about, salt))],
        public_url: Some(public_url(about)),
        tolerance_s: None,
        settings: required.map(|setting| (setting.name.into(), setting.example.into())).collect(),
    };
    find(about.name).open(&setup).expect("the settings are the examples of the documentation")
}

/// `None` for those who sign with a key that only they have.
pub fn sign(about: &'static AboutProvider, salt: u8, draft: Draft, at: Time) -> Option<Letter> {
    let signed = scheme(about, salt).sign(draft, at).ok()?;
    let query = signed.query.map(|query| format!("?{query}")).unwrap_or_default();
    Some(Letter {
        method: signed.method.to_string(),
        path: format!("{}{query}", path(about)),
        headers: signed.headers.into_iter().map(|(name, value)| (name.into_owned(), value)).collect(),
        body: signed.body,
    })
}

/// Any body, rightly signed.
pub fn genuine(name: &str, id: &str, kind: &str, body: impl AsRef<[u8]>) -> Letter {
    let draft = Draft { id: id.into(), kind: kind.into(), body: body.as_ref().into() };
    sign(find(name).about(), 0, draft, now()).expect("a provider that can be signed for")
}

pub fn now() -> Time {
    let age = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Time::from_ms(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

/// Of bodies that look random and are the same for the same words.
pub fn word(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    encode_hex(digest)[..12].to_owned()
}

/// PayPal, with the certificate that the house was given.
pub fn paypal(signer: &CertificateSigner, id: &str, time: &str, body: &str) -> Result<Letter, String> {
    let about = find("paypal").about();
    let webhook = about.settings[0].example;
    let text = format!("{id}|{time}|{webhook}|{}", crc32(body.as_bytes()));
    let signature = signer.sign(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(Letter::post(&path(about), body)
        .with("paypal-transmission-id", id)
        .with("paypal-transmission-time", time)
        .with("paypal-transmission-sig", &encode_base64(signature))
        .with("paypal-cert-url", "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594")
        .with("paypal-auth-algo", "SHA256withRSA"))
}

/// Bit by bit: a few bodies are worth no table.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

/// A charge that Stripe says was paid.
pub fn charge(n: &str, metadata: &serde_json::Value, email: &str) -> Letter {
    let body = serde_json::json!({
        "id": format!("evt_{n}"), "object": "event", "type": "charge.succeeded", "livemode": true,
        "created": now().seconds(),
        "data": { "object": {
            "object": "charge", "id": format!("ch_{n}"), "payment_intent": format!("pi_{n}"), "status": "succeeded",
            "paid": true, "captured": true, "amount": 5000, "amount_captured": 5000, "currency": "jpy",
            "receipt_email": email, "metadata": metadata,
        } },
    });
    genuine("stripe", &format!("evt_{n}"), "charge.succeeded", body.to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sum_is_the_published_one() {
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
