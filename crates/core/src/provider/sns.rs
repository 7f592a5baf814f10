//! Amazon SNS: the signature is inside the JSON, made with a certificate whose address stands beside it. That
//! proves "AWS sent it", not "our topic sent it": any AWS customer can get a valid signature, so the topic must be
//! one we configured, and the certificate must come from SNS's own hosts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;

use super::certificate::{HashAlgorithm, read_signature};
use super::{
    AboutProvider, CannotSign, Draft, Handshake, Provider, ProviderSetting, Request, RequestReading,
    RequestRefusal, Scheme, Setup, SetupError, Signed, Unusable, Verified, signed_time,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct Sns;

const RAW_DELIVERY: &str = "x-amz-sns-rawdelivery";

static ABOUT: AboutProvider = AboutProvider {
    proof: "RSA signature by AWS's certificate, topic compared",
    has_certificate: true,
    settings: &[ProviderSetting {
        name: "topic_arn",
        help: "the topic, or several, comma-separated; messages of any other topic are refused",
        example: "arn:aws:sns:ap-northeast-1:123456789012:ses-events",
        required: true,
    }],
    names_account: true,
    ..AboutProvider::new("sns", "Amazon SNS (SES bounces and complaints)")
};

impl Provider for Sns {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        let topics = setup.required("topic_arn")?.split(',').map(|topic| topic.trim().to_owned()).collect();
        Ok(Box::new(Open { topics }))
    }
}

struct Open {
    topics: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope<'r> {
    #[serde(borrow, rename = "Type")]
    kind: Cow<'r, str>,
    #[serde(borrow)]
    message_id: Cow<'r, str>,
    #[serde(borrow)]
    topic_arn: Cow<'r, str>,
    #[serde(borrow)]
    message: Cow<'r, str>,
    #[serde(borrow)]
    subject: Option<Cow<'r, str>>,
    #[serde(borrow)]
    timestamp: Cow<'r, str>,
    #[serde(borrow)]
    token: Option<Cow<'r, str>>,
    #[serde(borrow, rename = "SubscribeURL")]
    subscribe_url: Option<Cow<'r, str>>,
    #[serde(borrow)]
    signature_version: Cow<'r, str>,
    #[serde(borrow)]
    signature: Cow<'r, str>,
    #[serde(borrow, rename = "SigningCertURL", alias = "SigningCertUrl")]
    signing_cert_url: Cow<'r, str>,
}

/// What SES writes into `Message`, in its two spellings.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inner {
    #[serde(alias = "eventType")]
    notification_type: Option<String>,
    mail: Option<InnerMail>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InnerMail {
    message_id: Option<String>,
}

impl Scheme for Open {
    fn certificate_url(&self, request: &Request<'_>) -> Result<Option<String>, RequestRefusal> {
        Ok(Some(self.examine(request)?.envelope.signing_cert_url.into_owned()))
    }

    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        let Proof { text, hash, signature, .. } = self.examine(request)?;
        let certificate = request.certificate.ok_or(RequestRefusal::BadCertificate("was not at hand"))?;
        certificate.verify(hash, text.as_bytes(), &signature, now)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let envelope = envelope(request).map_err(|_| Unusable::missing("Type"))?;
        match envelope.kind.as_ref() {
            "SubscriptionConfirmation" => {
                let url = envelope.subscribe_url.filter(|url| sns_url(url).is_some());
                let url =
                    url.ok_or_else(|| Unusable("SubscribeURL is not an address of SNS".into()))?.into_owned();
                Ok(RequestReading::Handshake(Handshake::Confirm { url }))
            }
            // The topic falls silent from here on: somebody must be able to see that.
            "UnsubscribeConfirmation" => Ok(RequestReading::event(event(envelope, request.body))),
            "Notification" => {
                let inner = serde_json::from_str::<Inner>(&envelope.message).ok();
                let (kind, mail) = inner.map_or((None, None), |inner| (inner.notification_type, inner.mail));
                let event = event(envelope, request.body);
                Ok(RequestReading::event(Event {
                    kind: kind.map_or(event.kind, Cow::Owned),
                    object: mail.and_then(|mail| mail.message_id).map(|id| ObjectRef::new("mail", id)),
                    ..event
                }))
            }
            other => Err(Unusable(format!("SNS has no message of Type {other:?}"))),
        }
    }

    fn sign(&self, _draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        Err(CannotSign(
            "only AWS holds the key that signs SNS messages: publish a test message to the topic instead"
                .into(),
        ))
    }
}

/// All that a message brings to be believed by; only the certificate is not at hand yet.
struct Proof<'r> {
    envelope: Envelope<'r>,
    /// What is signed.
    text: String,
    hash: HashAlgorithm,
    signature: Vec<u8>,
}

impl Open {
    /// Everything that can be judged without the certificate: nothing is fetched on a stranger's word for a message
    /// that could not be accepted anyway.
    fn examine<'r>(&self, request: &Request<'r>) -> Result<Proof<'r>, RequestRefusal> {
        if request.headers.contains_key(RAW_DELIVERY) {
            return Err(RequestRefusal::Unsigned);
        }
        let envelope = envelope(request)?;
        if !self.topics.contains(envelope.topic_arn.as_ref()) {
            return Err(RequestRefusal::foreign_topic(&envelope.topic_arn));
        }
        let url = envelope.signing_cert_url.as_ref();
        if !sns_url(url).is_some_and(|(_, path)| is_plain_pem(path)) {
            return Err(RequestRefusal::foreign_certificate(url));
        }
        let hash = match envelope.signature_version.as_ref() {
            "1" => HashAlgorithm::Sha1,
            "2" => HashAlgorithm::Sha256,
            _ => return Err(RequestRefusal::MalformedBody),
        };
        if !is_unequivocal(&envelope) {
            return Err(RequestRefusal::MalformedBody);
        }
        let signature = read_signature(&envelope.signature).ok_or(RequestRefusal::MalformedBody)?;
        let text = signed_text(&envelope).ok_or(RequestRefusal::MalformedBody)?;
        Ok(Proof { envelope, text, hash, signature })
    }
}

fn envelope<'r>(request: &Request<'r>) -> Result<Envelope<'r>, RequestRefusal> {
    serde_json::from_slice(request.body).map_err(|_| RequestRefusal::MalformedBody)
}

/// Whether its signed text can be read in one way only. It has a line for each field: none but the message, which comes first,
/// may have several.
fn is_unequivocal(envelope: &Envelope<'_>) -> bool {
    let lines = [&envelope.message_id, &envelope.timestamp, &envelope.kind].into_iter();
    let mut lines = lines.chain(&envelope.subject).chain(&envelope.token).chain(&envelope.subscribe_url);
    Time::parse_rfc3339(&envelope.timestamp).is_some() && !lines.any(|line| line.contains(['\n', '\r']))
}

/// What every message says of itself. Its time is kept on every retry, and part of what is signed.
fn event<'r>(envelope: Envelope<'r>, body: &'r [u8]) -> Event<'r> {
    Event {
        created: signed_time(Some(&envelope.timestamp)),
        account: Some(envelope.topic_arn),
        ..Event::new(envelope.message_id, envelope.kind, body)
    }
}

/// `Key\nValue\n` for the fields that this kind of message signs, in SNS's order. `None` for other kinds, and when a
/// field is missing.
fn signed_text(envelope: &Envelope<'_>) -> Option<String> {
    let mut text = String::with_capacity(envelope.message.len() + 512);
    let mut add = |key: &str, value: &str| {
        for part in [key, "\n", value, "\n"] {
            text.push_str(part);
        }
    };
    add("Message", &envelope.message);
    add("MessageId", &envelope.message_id);
    match envelope.kind.as_ref() {
        "Notification" => {
            if let Some(subject) = &envelope.subject {
                add("Subject", subject);
            }
            add("Timestamp", &envelope.timestamp);
        }
        "SubscriptionConfirmation" | "UnsubscribeConfirmation" => {
            add("SubscribeURL", envelope.subscribe_url.as_deref()?);
            add("Timestamp", &envelope.timestamp);
            add("Token", envelope.token.as_deref()?);
        }
        _ => return None,
    }
    add("TopicArn", &envelope.topic_arn);
    add("Type", &envelope.kind);
    Some(text)
}

/// The longest region and the longest name of a certificate that are believed: twice what there is.
const REGION_MAX: usize = 40;
const PEM_NAME_MAX: usize = 100;

/// Host and rest of an `https` address on one of SNS's own hosts: `sns.<region>.amazonaws.com`, or `.com.cn`.
fn sns_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("https://")?;
    let (host, path) = rest.split_at(rest.find('/')?);
    let region = host.strip_prefix("sns.")?;
    let region =
        region.strip_suffix(".amazonaws.com").or_else(|| region.strip_suffix(".amazonaws.com.cn"))?;
    let plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    ((3..=REGION_MAX).contains(&region.len()) && region.bytes().all(plain)).then_some((host, path))
}

/// A certificate file at the top of the host. A query or a second segment could lead somewhere else.
fn is_plain_pem(path: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
    let stem = path.strip_prefix('/').and_then(|name| name.strip_suffix(".pem"));
    stem.is_some_and(|stem| (1..=PEM_NAME_MAX).contains(&stem.len()) && stem.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use serde_json::{Value, json};

    use super::super::signature::to_base64;
    use super::super::{find, peek};
    use super::*;

    const TOPIC: &str = "arn:aws:sns:ap-northeast-1:123456789012:ses-events";

    fn open() -> Box<dyn Scheme> {
        let settings = [("topic_arn".to_owned(), TOPIC.to_owned())].into();
        find("sns").unwrap().open(&Setup { settings, ..Setup::default() }).unwrap()
    }

    /// A message as SNS writes it, with what is given in place of its own.
    fn message(kind: &str, (name, value): (&str, Value)) -> Vec<u8> {
        let mut message = json!({
            "Type": kind,
            "MessageId": "m-1",
            "TopicArn": TOPIC,
            "Message": "words",
            "Timestamp": "2026-02-02T02:40:00.000Z",
            "Token": "t",
            "SubscribeURL": "https://sns.ap-northeast-1.amazonaws.com/?Action=ConfirmSubscription",
            "SignatureVersion": "2",
            "Signature": to_base64([7; 256]),
            "SigningCertURL": "https://sns.ap-northeast-1.amazonaws.com/SimpleNotificationService-01.pem",
        });
        message[name] = value;
        message.to_string().into_bytes()
    }

    fn request<'r>(headers: &'r HeaderMap, body: &'r [u8]) -> Request<'r> {
        Request { method: &Method::POST, headers, query: "", body, certificate: None }
    }

    #[test]
    fn a2_nothing_is_fetched_for_a_message_that_could_not_be_accepted() {
        let refusal = |kind: &str, change: (&str, Value)| {
            open()
                .certificate_url(&request(&HeaderMap::new(), &message(kind, change)))
                .map_err(|no| no.reason())
        };
        for kind in ["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"] {
            assert!(matches!(refusal(kind, ("Subject", "hello".into())), Ok(Some(_))), "{kind}");
        }
        assert!(matches!(refusal("Notification", ("Token", Value::Null)), Ok(Some(_))));
        let long = |stem: usize| format!("https://sns.us-east-1.amazonaws.com/{}.pem", "a".repeat(stem));
        assert!(refusal("Notification", ("SigningCertURL", long(100).into())).is_ok());
        let region = format!("https://sns.{}.amazonaws.com/a.pem", "a".repeat(41));
        for (kind, name, value, reason) in [
            ("Notification", "TopicArn", "arn:theirs".into(), "foreign_topic"),
            ("Notification", "SigningCertURL", long(101).into(), "foreign_certificate"),
            ("Notification", "SigningCertURL", long(60_000).into(), "foreign_certificate"),
            ("Notification", "SigningCertURL", long(0).into(), "foreign_certificate"),
            ("Notification", "SigningCertURL", region.into(), "foreign_certificate"),
            ("Notification", "SignatureVersion", "3".into(), "malformed_body"),
            ("Notification", "Signature", "no base 64".into(), "malformed_body"),
            ("Notification", "Signature", to_base64([7; 20]).into(), "malformed_body"),
            ("Notification", "Signature", to_base64(vec![7; 60_000]).into(), "malformed_body"),
            ("Notification", "MessageId", Value::Null, "malformed_body"),
            ("Notification", "MessageId", "m-1\nSubject\nx".into(), "malformed_body"),
            ("Notification", "Subject", "a\nTimestamp\nb".into(), "malformed_body"),
            ("Notification", "Timestamp", "2026-02-02T02:40:00.000Z\nx".into(), "malformed_body"),
            ("Notification", "Timestamp", "now".into(), "malformed_body"),
            ("SubscriptionConfirmation", "Token", "t\rx".into(), "malformed_body"),
            ("Invitation", "Token", "t".into(), "malformed_body"),
            ("SubscriptionConfirmation", "Token", Value::Null, "malformed_body"),
            ("UnsubscribeConfirmation", "SubscribeURL", Value::Null, "malformed_body"),
        ] {
            assert_eq!(refusal(kind, (name, value)), Err(reason), "{kind} {name}");
        }
    }

    #[test]
    fn a3_the_end_of_a_subscription_is_an_event() {
        // Whatever it says of itself, it is no bounce.
        let words = r#"{"notificationType":"Bounce","mail":{"messageId":"x"}}"#;
        let body = message("UnsubscribeConfirmation", ("Message", words.into()));
        let headers = HeaderMap::new();
        let reading = peek(open().as_ref(), request(&headers, &body), Time::from_ms(0));
        let expected = Event {
            created: signed_time(Some("2026-02-02T02:40:00Z")),
            account: Some(TOPIC.into()),
            ..Event::new("m-1", "UnsubscribeConfirmation", &body)
        };
        assert_eq!(reading, Ok(RequestReading::event(expected)));
    }

    #[test]
    fn a2_only_snss_own_hosts_are_believed() {
        for good in
            ["https://sns.us-east-1.amazonaws.com/x.pem", "https://sns.cn-north-1.amazonaws.com.cn/x.pem"]
        {
            assert!(sns_url(good).is_some(), "{good}");
        }
        for bad in [
            "http://sns.us-east-1.amazonaws.com/x.pem",
            "https://sns.us-east-1.amazonaws.com.evil.example/x.pem",
            "https://evil.s3.amazonaws.com/x.pem",
            "https://sns.a.b.amazonaws.com/x.pem",
            "https://user@sns.us-east-1.amazonaws.com/x.pem",
            "https://sns.us-east-1.amazonaws.com:8443/x.pem",
            "https://sns.us-east-1.amazonaws.com",
            "https://SNS.us-east-1.amazonaws.com/x.pem",
        ] {
            assert!(sns_url(bad).is_none(), "{bad}");
        }
        assert!(is_plain_pem("/SimpleNotificationService-01.pem"));
        for bad in ["/", "/x", "/?Action=x.pem", "/a/x.pem", "/%2e%2e/x.pem"] {
            assert!(!is_plain_pem(bad), "{bad}");
        }
    }
}
