//! The providers' side of the wire: which sources there are, and requests signed as each provider signs them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use sekisho_core::provider::{self, Certificate, Draft, Scheme, Setup};
use sekisho_core::{Secret, Time};
use sekisho_lab::certificate::CertificateSigner;

use super::at_text;
use super::paypal::crc32;
use crate::support::Letter;

const SECRET: &str = "canary_of_histories_8c1f";
const WEBHOOK_ID: &str = "1JE4291016473214C";

/// A provider's webhooks, as the gateway is told to expect them.
pub struct Source {
    pub name: &'static str,
    pub provider: &'static str,
    /// Of those whose events don't say it.
    pub livemode: Option<bool>,
    pub scheme: Box<dyn Scheme>,
}

/// All sources, by name.
pub fn sources() -> &'static BTreeMap<&'static str, Source> {
    static SOURCES: OnceLock<BTreeMap<&str, Source>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let all = [
            ("stripe", "stripe", None),
            ("paypal", "paypal", Some(true)),
            ("paypal-test", "paypal", Some(false)),
            ("komoju", "komoju", Some(true)),
            ("komoju-test", "komoju", Some(false)),
            ("payjp", "payjp", Some(true)),
            ("payjp-test", "payjp", Some(false)),
            ("square", "square", Some(true)),
            ("square-test", "square", Some(false)),
        ];
        let open = |(name, provider, livemode): (&'static str, &'static str, Option<bool>)| {
            let setup = Setup {
                secrets: vec![Secret::new(SECRET)],
                public_url: Some(public_url(name)),
                settings: BTreeMap::from([("webhook_id".to_owned(), WEBHOOK_ID.to_owned())]),
                ..Setup::default()
            };
            let scheme = provider::find(provider).expect("a provider we know").open(&setup).unwrap();
            (name, Source { name, provider, livemode, scheme })
        };
        all.into_iter().map(open).collect()
    })
}

/// The same as a configuration; `certificate` is the file that PayPal's is kept in.
pub fn configuration(certificate: &str) -> String {
    let each = sources().values().map(|source| {
        let mut text =
            format!("[[source]]\nname = \"{}\"\nprovider = \"{}\"\n", source.name, source.provider);
        match source.provider {
            "paypal" => {
                text += &format!("webhook_id = \"{WEBHOOK_ID}\"\ncertificate = \"file:{certificate}\"\n");
            }
            "square" => {
                text += &format!("secrets = [\"{SECRET}\"]\npublic_url = \"{}\"\n", public_url(source.name));
            }
            _ => text += &format!("secrets = [\"{SECRET}\"]\n"),
        }
        if let Some(livemode) = source.livemode {
            text += &format!("livemode = {livemode}\n");
        }
        text
    });
    each.collect()
}

fn public_url(name: &str) -> String {
    format!("https://gateway.example.com/webhooks/{name}")
}

/// A request as the provider sends it.
pub fn letter(source: &Source, body: String, now: i64) -> Letter {
    let path = format!("/webhooks/{}", source.name);
    if source.provider == "paypal" {
        return by_paypal(path, body.into_bytes(), now);
    }
    let draft = Draft { id: String::new(), kind: String::new(), body: body.into_bytes() };
    let signed = source.scheme.sign(draft, Time::from_seconds(now)).unwrap();
    Letter {
        method: signed.method.to_string(),
        path,
        headers: signed.headers.into_iter().map(|(name, value)| (name.into_owned(), value)).collect(),
        body: signed.body,
    }
}

fn by_paypal(path: String, body: Vec<u8>, now: i64) -> Letter {
    // Each event is sent under an id of its own, which its repeats keep.
    let (time, sum) = (at_text(now), crc32(&body));
    let id = format!("69cd13f0-d67a-11e5-baa3-{sum:012}");
    let key = &paypal().key;
    let mut signature = vec![0; key.public().modulus_len()];
    let text = format!("{id}|{time}|{WEBHOOK_ID}|{sum}");
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("paypal-transmission-id", id),
        ("paypal-transmission-time", time),
        ("paypal-transmission-sig", BASE64.encode(signature)),
        (
            "paypal-cert-url",
            "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594".to_owned(),
        ),
        ("paypal-auth-algo", "SHA256withRSA".to_owned()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value)).into();
    Letter { method: "POST".into(), path, headers, body }
}

/// PayPal's key and its certificate.
pub struct PayPal {
    key: RsaKeyPair,
    pub pem: String,
    pub certificate: Certificate,
}

pub fn paypal() -> &'static PayPal {
    static PAYPAL: OnceLock<PayPal> = OnceLock::new();
    PAYPAL.get_or_init(|| {
        let signer = CertificateSigner::new().unwrap();
        let key: String = signer.key().unwrap().lines().filter(|line| !line.starts_with("--")).collect();
        let pem = signer.certificate().unwrap();
        PayPal {
            key: RsaKeyPair::from_pkcs8(&BASE64.decode(key).unwrap()).unwrap(),
            certificate: Certificate::from_pem(pem.as_bytes()).unwrap(),
            pem,
        }
    })
}
