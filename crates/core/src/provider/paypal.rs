//! PayPal: an RSA signature over `<transmission id>|<time>|<webhook id>|<CRC32 of the body>`, made with a
//! certificate whose address stands in a header and so is believed only on PayPal's own hosts. The webhook id, which
//! the request does not carry, binds it to our endpoint.
//!
//! A CRC32 can be steered: whoever has seen one genuine request can write another body for it. So a transmission stands for
//! the body it came with first, and for no longer than PayPal goes on sending: another body under it, or a time long past,
//! is a forgery. Until the genuine one came, only the transport's secrecy stands against that.

use std::borrow::Cow;

use serde::Deserialize;

use super::certificate::{HashAlgorithm, read_signature};
use super::{
    AboutProvider, CannotSign, Draft, Provider, ProviderSetting, Request, RequestReading, RequestRefusal,
    Scheme, Setup, SetupError, Signed, Unusable, Verified, check_sides, signed_time,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct PayPal;

const ID: &str = "paypal-transmission-id";
const TIME: &str = "paypal-transmission-time";
const SIGNATURE: &str = "paypal-transmission-sig";
const CERTIFICATE: &str = "paypal-cert-url";
const ALGORITHM: &str = "paypal-auth-algo";

const CERTIFICATE_HOSTS: [&str; 4] =
    ["api.paypal.com", "api.sandbox.paypal.com", "api-m.paypal.com", "api-m.sandbox.paypal.com"];

/// PayPal sends again for three days, up to 25 times.
const TOLERANCE_S: i64 = 4 * 86_400;
/// What is remembered of a transmission goes with its event, after 35 days at the earliest.
const TOLERANCE_MAX_S: i64 = 30 * 86_400;
const FUTURE_S: i64 = 300;

static ABOUT: AboutProvider = AboutProvider {
    proof: "RSA signature by PayPal's certificate over ids, time and the body's CRC32",
    tolerance_s: Some(TOLERANCE_S),
    has_certificate: true,
    settings: &[ProviderSetting {
        name: "webhook_id",
        help: "the webhook's id at PayPal, which the signature covers (Developer Dashboard → app → Webhooks)",
        example: "1JE4291016473214C",
        required: true,
    }],
    sample_type: "PAYMENT.CAPTURE.COMPLETED",
    ..AboutProvider::new("paypal", "PayPal")
};

impl Provider for PayPal {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        let tolerance_s = setup.tolerance_s.unwrap_or(TOLERANCE_S);
        if tolerance_s > TOLERANCE_MAX_S {
            return Err(SetupError(
                "`tolerance` is longer than 30 days, and what came longer ago may be forgotten: write at most \"30d\""
                    .into(),
            ));
        }
        Ok(Box::new(Open { webhook_id: setup.required("webhook_id")?.to_owned(), tolerance_s }))
    }
}

struct Open {
    webhook_id: String,
    tolerance_s: i64,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow)]
    id: Cow<'r, str>,
    #[serde(borrow)]
    event_type: Cow<'r, str>,
    #[serde(borrow)]
    create_time: Option<Cow<'r, str>>,
    #[serde(borrow)]
    resource_type: Option<Cow<'r, str>>,
    #[serde(borrow)]
    resource: Option<Resource<'r>>,
}

#[derive(Deserialize)]
struct Resource<'r> {
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
}

impl Scheme for Open {
    fn certificate_url(&self, request: &Request<'_>) -> Result<Option<String>, RequestRefusal> {
        Ok(Some(examine(request)?.certificate_url.to_owned()))
    }

    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        let Proof { id, time, signed_at, signature, .. } = examine(request)?;
        let certificate = request.certificate.ok_or(RequestRefusal::BadCertificate("was not at hand"))?;
        let sum = crc32fast::hash(request.body);
        let text = format!("{id}|{time}|{}|{sum}", self.webhook_id);
        certificate.verify(HashAlgorithm::Sha256, text.as_bytes(), &signature, now)?;
        check_sides(signed_at.seconds(), now, self.tolerance_s, FUTURE_S)
    }

    fn transmission(&self, request: &Verified<'_>) -> Option<String> {
        // Neither holds the line between them: the one is refused with it, the other is ours.
        request.header(ID).ok().map(|id| format!("{}|{id}", self.webhook_id))
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        let object = body.resource_type.zip(body.resource.and_then(|resource| resource.id));
        Ok(RequestReading::event(Event {
            created: signed_time(body.create_time.as_deref()),
            object: object.map(|(kind, id)| ObjectRef { kind, id }),
            ..Event::new(body.id, body.event_type, request.body)
        }))
    }

    fn read_listed<'r>(&self, event: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        self.read(event)
    }

    fn sign(&self, _draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        Err(CannotSign(
            "only PayPal holds the key that signs its webhooks: pay something in the sandbox, or resend an event \
             from the Developer Dashboard"
                .into(),
        ))
    }
}

/// All that a request brings to be believed by; only the certificate is not at hand yet.
struct Proof<'r> {
    id: &'r str,
    time: &'r str,
    signed_at: Time,
    signature: Vec<u8>,
    certificate_url: &'r str,
}

/// The longest id, time and name of a certificate that are believed: more than twice what PayPal writes.
const TEXT_MAX: usize = 100;

/// Everything that can be judged without the certificate: nothing is fetched on a stranger's word for a request that
/// could not be accepted anyway.
fn examine<'r>(request: &Request<'r>) -> Result<Proof<'r>, RequestRefusal> {
    let text = |name: &str| {
        let text = request.header(name)?;
        // The parts are signed with `|` between them: one that holds it could be cut in two ways.
        let is_plain = (1..=TEXT_MAX).contains(&text.len()) && !text.contains('|');
        if is_plain { Ok(text) } else { Err(RequestRefusal::malformed(name)) }
    };
    let (id, time) = (text(ID)?, text(TIME)?);
    let signed_at = Time::parse_rfc3339(time).ok_or_else(|| RequestRefusal::malformed(TIME))?;
    let signature =
        read_signature(request.header(SIGNATURE)?).ok_or_else(|| RequestRefusal::malformed(SIGNATURE))?;
    if request.header(ALGORITHM)? != "SHA256withRSA" {
        return Err(RequestRefusal::malformed(ALGORITHM));
    }
    let certificate_url = request.header(CERTIFICATE)?;
    if !is_paypal_certificate(certificate_url) {
        return Err(RequestRefusal::foreign_certificate(certificate_url));
    }
    Ok(Proof { id, time, signed_at, signature, certificate_url })
}

/// A plain file among the certificates of one of PayPal's own hosts: no port, user, query or detour.
fn is_paypal_certificate(url: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_".contains(&letter);
    url.strip_prefix("https://")
        .and_then(|rest| rest.split_once('/'))
        .filter(|(host, _)| CERTIFICATE_HOSTS.contains(host))
        .and_then(|(_, path)| path.strip_prefix("v1/notifications/certs/"))
        .is_some_and(|name| (1..=TEXT_MAX).contains(&name.len()) && name.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, Method};

    use super::super::signature::to_base64;
    use super::*;

    #[test]
    fn a2_nothing_is_fetched_for_a_request_that_could_not_be_accepted() {
        let url = |name: usize| format!("https://api.paypal.com/v1/notifications/certs/{}", "a".repeat(name));
        let refusal = |changed: &str, value: Option<&str>| {
            let mut headers = HeaderMap::new();
            for (name, own) in [
                (ID, "69cd13f0-d67a-11e5-baa3-778b53f4ae55"),
                (TIME, "2026-02-02T02:40:00Z"),
                (SIGNATURE, &to_base64([7; 256])),
                (ALGORITHM, "SHA256withRSA"),
                (CERTIFICATE, &url(100)),
            ] {
                let value = if name == changed { value } else { Some(own) };
                value.map(|value| headers.insert(HeaderName::from_static(name), value.parse().unwrap()));
            }
            let request = Request {
                method: &Method::POST,
                headers: &headers,
                query: "",
                body: b"{}",
                certificate: None,
            };
            let scheme = Open { webhook_id: "1JE4291016473214C".into(), tolerance_s: TOLERANCE_S };
            scheme.certificate_url(&request).err().map(|no| no.reason())
        };
        assert_eq!(refusal("", None), None);
        for name in [ID, TIME, SIGNATURE, ALGORITHM, CERTIFICATE] {
            assert_eq!(refusal(name, None), Some("missing_header"), "{name}");
        }
        let long = "a".repeat(101);
        for (name, value, reason) in [
            (ID, "", "malformed_header"),
            (ID, &*long, "malformed_header"),
            (TIME, "", "malformed_header"),
            (TIME, &*long, "malformed_header"),
            (ID, "69cd13f0|2026-02-02T02:40:00Z", "malformed_header"),
            (TIME, "2026-02-02T02:40:00Z|1JE", "malformed_header"),
            (TIME, "yesterday", "malformed_header"),
            (SIGNATURE, "no base 64", "malformed_header"),
            (SIGNATURE, &*to_base64([7; 20]), "malformed_header"),
            (SIGNATURE, &*to_base64(vec![7; 40_000]), "malformed_header"),
            (ALGORITHM, "SHA1withRSA", "malformed_header"),
            (CERTIFICATE, &*url(101), "foreign_certificate"),
            (CERTIFICATE, &*url(60_000), "foreign_certificate"),
        ] {
            assert_eq!(refusal(name, Some(value)), Some(reason), "{name}");
        }
    }

    #[test]
    fn a2_a_tolerance_ends_before_transmissions_are_forgotten() {
        let open = |days: i64| {
            let settings = [("webhook_id".to_owned(), "1JE4291016473214C".to_owned())].into();
            let setup = Setup { tolerance_s: Some(days * 86_400), settings, ..Setup::default() };
            PayPal.open(&setup).map(drop)
        };
        assert_eq!(open(30), Ok(()));
        assert!(open(31).unwrap_err().0.contains("30d"));
    }

    #[test]
    fn a2_only_paypals_own_certificates_are_believed() {
        for host in CERTIFICATE_HOSTS {
            let url = format!("https://{host}/v1/notifications/certs/CERT-360caa42-fca2a594-5a29e601");
            assert!(is_paypal_certificate(&url), "{url}");
        }
        for bad in [
            "",
            "http://api.paypal.com/v1/notifications/certs/CERT-1",
            "https://api.paypal.com",
            "https://api.paypal.com/v1/notifications/certs/",
            "https://api.paypal.com/v1/notifications/certs/../x",
            "https://api.paypal.com/v1/notifications/certs/a/b",
            "https://api.paypal.com/v1/notifications/certs/a?b",
            "https://api.paypal.com/v1/notifications/certs/%2e%2e",
            "https://api.paypal.com/other/CERT-1",
            "https://API.paypal.com/v1/notifications/certs/CERT-1",
            "https://www.paypal.com/v1/notifications/certs/CERT-1",
            "https://api.paypal.com:444/v1/notifications/certs/CERT-1",
            "https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1",
            "https://evil@api.paypal.com/v1/notifications/certs/CERT-1",
            "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
        ] {
            assert!(!is_paypal_certificate(bad), "{bad}");
        }
    }
}
