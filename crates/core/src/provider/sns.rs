//! Amazon SNS: the signature is inside the JSON, made with a certificate whose address stands beside it. That
//! proves "AWS sent it", not "our topic sent it": any AWS customer can get a valid signature, so the topic must be
//! one we configured, and the certificate must come from SNS's own hosts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;

use super::certificate::{Certificate, Hash};
use super::signature::from_base64;
use super::{
    About, CannotSign, Draft, Handshake, Provider, Reading, Refusal, Request, Scheme, Setting, Setup,
    SetupError, Signed, Unusable, Verified,
};
use crate::event::{Created, Event, ObjectRef};
use crate::time::Time;

pub struct Sns;

const RAW_DELIVERY: &str = "x-amz-sns-rawdelivery";

static ABOUT: About = About {
    proof: "RSA signature by AWS's certificate, topic compared",
    settings: &[Setting {
        name: "topic_arn",
        help: "the topic, or several with commas between; messages of any other topic are refused",
        example: "arn:aws:sns:ap-northeast-1:123456789012:ses-events",
        required: true,
    }],
    ..About::new("sns", "Amazon SNS (SES bounces and complaints)")
};

impl Provider for Sns {
    fn about(&self) -> &'static About {
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
    fn certificate_url(&self, request: &Request<'_>) -> Result<Option<String>, Refusal> {
        if request.headers.contains_key(RAW_DELIVERY) {
            return Err(Refusal::Unsigned);
        }
        let envelope = envelope(request)?;
        // Before anything is fetched on a stranger's word.
        if !self.topics.contains(envelope.topic_arn.as_ref()) {
            return Err(Refusal::foreign_topic(&envelope.topic_arn));
        }
        let url = envelope.signing_cert_url.as_ref();
        if sns_url(url).is_some_and(|(_, path)| is_plain_pem(path)) {
            Ok(Some(url.to_owned()))
        } else {
            Err(Refusal::foreign_certificate(url))
        }
    }

    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), Refusal> {
        self.certificate_url(request)?;
        let envelope = envelope(request)?;
        let hash = match envelope.signature_version.as_ref() {
            "1" => Hash::Sha1,
            "2" => Hash::Sha256,
            _ => return Err(Refusal::MalformedBody),
        };
        let certificate: &Certificate =
            request.certificate.ok_or(Refusal::BadCertificate("was not at hand"))?;
        let signature = from_base64(&envelope.signature).ok_or(Refusal::MalformedBody)?;
        certificate.verify(hash, signed_text(&envelope)?.as_bytes(), &signature, now)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<Reading<'r>, Unusable> {
        let envelope = envelope(request).map_err(|_| Unusable::missing("Type"))?;
        match envelope.kind.as_ref() {
            "SubscriptionConfirmation" => {
                let url = envelope.subscribe_url.filter(|url| sns_url(url).is_some());
                let url =
                    url.ok_or_else(|| Unusable("SubscribeURL is not an address of SNS".into()))?.into_owned();
                Ok(Reading::Handshake(Handshake::Confirm { url }))
            }
            "UnsubscribeConfirmation" => Ok(Reading::Handshake(Handshake::Acknowledge)),
            "Notification" => {
                let inner = serde_json::from_str::<Inner>(&envelope.message).ok();
                let (kind, mail) = inner.map_or((None, None), |inner| (inner.notification_type, inner.mail));
                Ok(Reading::event(Event {
                    // Kept on every retry, and part of what is signed.
                    created: Time::parse_rfc3339(&envelope.timestamp)
                        .map(|at| Created { at, immutable: true }),
                    object: mail.and_then(|mail| mail.message_id).map(|id| ObjectRef::new("mail", id)),
                    account: Some(envelope.topic_arn),
                    ..Event::new(envelope.message_id, kind.map_or(envelope.kind, Cow::Owned), request.body)
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

fn envelope<'r>(request: &Request<'r>) -> Result<Envelope<'r>, Refusal> {
    serde_json::from_slice(request.body).map_err(|_| Refusal::MalformedBody)
}

/// `Key\nValue\n` for the fields that this kind of message signs, in SNS's order.
fn signed_text(envelope: &Envelope<'_>) -> Result<String, Refusal> {
    let mut text = String::with_capacity(envelope.message.len() + 512);
    let mut add = |key: &str, value: &str| {
        for part in [key, "\n", value, "\n"] {
            text.push_str(part);
        }
    };
    add("Message", &envelope.message);
    add("MessageId", &envelope.message_id);
    if envelope.kind == "Notification" {
        if let Some(subject) = &envelope.subject {
            add("Subject", subject);
        }
        add("Timestamp", &envelope.timestamp);
    } else {
        add("SubscribeURL", envelope.subscribe_url.as_deref().ok_or(Refusal::MalformedBody)?);
        add("Timestamp", &envelope.timestamp);
        add("Token", envelope.token.as_deref().ok_or(Refusal::MalformedBody)?);
    }
    add("TopicArn", &envelope.topic_arn);
    add("Type", &envelope.kind);
    Ok(text)
}

/// Host and rest of an `https` address on one of SNS's own hosts: `sns.<region>.amazonaws.com`, or `.com.cn`.
fn sns_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("https://")?;
    let (host, path) = rest.split_at(rest.find('/')?);
    let region = host.strip_prefix("sns.")?;
    let region =
        region.strip_suffix(".amazonaws.com").or_else(|| region.strip_suffix(".amazonaws.com.cn"))?;
    let plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    (region.len() >= 3 && region.bytes().all(plain)).then_some((host, path))
}

/// A certificate file at the top of the host. A query or a second segment could lead somewhere else.
fn is_plain_pem(path: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
    let stem = path.strip_prefix('/').and_then(|name| name.strip_suffix(".pem"));
    stem.is_some_and(|stem| stem.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

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
