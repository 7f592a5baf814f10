//! How a delivery is signed: with the same schemes that verify what comes in, so that an app behind Sekisho can use the
//! library it already has.

use std::fmt;

use bytes::Bytes;

use crate::provider::{self, Draft, Scheme, Setup, SetupError};
use crate::secret::Secret;
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    StandardWebhooks,
    Stripe,
    Upstash,
    None,
}

impl Signing {
    pub const ALL: [Self; 4] = [Self::StandardWebhooks, Self::Stripe, Self::Upstash, Self::None];

    pub const fn name(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "standard-webhooks",
            Self::Stripe => "stripe",
            Self::Upstash => "upstash",
            Self::None => "none",
        }
    }

    /// All names, for whoever is asked for one.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signing| signing.name() == name)
    }

    /// The provider that whoever believes such a signature believes to hear. Of the others' libraries nobody expects to
    /// know who wrote the event.
    pub const fn speaks_for(self) -> Option<&'static str> {
        match self {
            Self::Stripe => Some("stripe"),
            Self::StandardWebhooks | Self::Upstash | Self::None => None,
        }
    }

    /// The provider whose scheme it is.
    const fn provider(self) -> Option<&'static str> {
        match self {
            Self::StandardWebhooks => Some("standard_webhooks"),
            Self::Stripe => Some("stripe"),
            Self::Upstash => Some("qstash"),
            Self::None => None,
        }
    }
}

/// A way to sign with its keys ready. With several secrets Standard Webhooks and Stripe carry a signature of each, so
/// that the app can rotate; Upstash's token has room for one, the first's.
pub struct Signer {
    kind: Signing,
    scheme: Option<Box<dyn Scheme>>,
}

impl Signer {
    pub const fn none() -> Self {
        Self { kind: Signing::None, scheme: None }
    }

    /// `url` is the destination: Upstash's token names it.
    pub fn open(kind: Signing, secrets: Vec<Secret>, url: &str) -> Result<Self, SetupError> {
        let Some(name) = kind.provider() else { return Ok(Self::none()) };
        let provider = provider::find(name).expect("these providers are in the list");
        let setup = Setup { secrets, public_url: Some(url.to_owned()), ..Setup::default() };
        Ok(Self { kind, scheme: Some(provider.open(&setup)?) })
    }

    pub const fn kind(&self) -> Signing {
        self.kind
    }

    /// The headers that prove this body. `message` is stable over all attempts.
    pub fn sign(&self, message: &str, body: &Bytes, now: Time) -> Vec<(String, String)> {
        let Some(scheme) = &self.scheme else { return Vec::new() };
        let draft = Draft { id: message.to_owned(), kind: String::new(), body: body.to_vec() };
        let signed = scheme.sign(draft, now).expect("these schemes sign any body");
        let headers = signed.headers.into_iter().map(|(name, value)| (name.into_owned(), value));
        headers.filter(|(name, _)| name != "content-type").collect()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.kind.name())
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, Method};

    use super::*;
    use crate::provider::Request;

    const NOW: Time = Time::from_ms(1_770_000_000_000);
    const URL: &str = "https://app.example.com/hook";
    const OLD: &str = "whsec_b2xkIHNlY3JldA==";
    const NEW: &str = "whsec_bmV3IHNlY3JldA==";

    /// Does an app that knows only this secret believe what was signed with those?
    fn is_believed(kind: Signing, signed_with: &[&str], app_has: &str) -> bool {
        let secrets = |texts: &[&str]| texts.iter().map(|text| Secret::new(*text)).collect::<Vec<_>>();
        let body = Bytes::from_static(b"{\"a\": 1}");
        let signer = Signer::open(kind, secrets(signed_with), URL).unwrap();
        let headers: HeaderMap = signer
            .sign("msg_1", &body, NOW)
            .into_iter()
            .map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(&value).unwrap())
            })
            .collect();
        let request =
            Request { method: &Method::POST, headers: &headers, query: "", body: &body, certificate: None };
        let app = Signer::open(kind, secrets(&[app_has]), URL).unwrap().scheme.unwrap();
        app.check(&request, NOW).is_ok()
    }

    #[test]
    fn c3_what_is_signed_is_believed_by_the_holder_of_the_secret_alone() {
        for kind in [Signing::StandardWebhooks, Signing::Stripe, Signing::Upstash] {
            assert!(is_believed(kind, &[OLD], OLD), "{kind:?}");
            assert!(!is_believed(kind, &[OLD], NEW), "{kind:?}");
        }
    }

    #[test]
    fn c3_an_app_may_rotate_its_secret() {
        for kind in [Signing::StandardWebhooks, Signing::Stripe] {
            for app_has in [OLD, NEW] {
                assert!(is_believed(kind, &[NEW, OLD], app_has), "{kind:?}");
            }
        }
        assert!(is_believed(Signing::Upstash, &[NEW, OLD], NEW));
    }

    #[test]
    fn c3_the_message_id_is_the_webhook_id() {
        let signer = Signer::open(Signing::StandardWebhooks, vec![Secret::new(NEW)], URL).unwrap();
        let headers = signer.sign("msg_1", &Bytes::new(), NOW);
        assert!(headers.contains(&("webhook-id".to_owned(), "msg_1".to_owned())));
    }

    #[test]
    fn c3_kinds_have_names_and_without_a_secret_nothing_opens() {
        for kind in Signing::ALL {
            assert_eq!(Signing::parse(kind.name()), Some(kind));
            let opened = Signer::open(kind, vec![], URL);
            assert_eq!(opened.is_ok(), kind == Signing::None);
        }
        assert_eq!(Signing::parse("hmac"), None);
        assert!(Signer::none().sign("msg_1", &Bytes::new(), NOW).is_empty());
        assert_eq!(format!("{:?}", Signer::none()), "Signer(none)");
    }
}
