//! Signature vectors: recorded requests with the verdict they must get, for our own tests and for
//! `sekisho verify --vectors`. Each is checked at its own clock with its own secrets and settings.

use std::collections::BTreeMap;
use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;

use super::signature::from_base64;
use super::{
    Certificate, Handshake, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup, find, line_pay,
    read, verify,
};
use crate::secret::Secret;
use crate::time::Time;

/// Reads a file of vectors: `{"vectors": […]}`, or the list alone.
pub fn parse(json: &str) -> Result<Vec<Vector>, String> {
    #[derive(Deserialize)]
    struct File {
        vectors: Vec<Vector>,
    }
    let parsed = if json.trim_start().starts_with('[') {
        serde_json::from_str(json)
    } else {
        serde_json::from_str::<File>(json).map(|file| file.vectors)
    };
    parsed.map_err(|error| format!("this is no file of signature vectors: {error}"))
}

#[derive(Deserialize)]
pub struct Vector {
    pub provider: String,
    pub name: String,
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body_base64: String,
    now_unix: i64,
    expect: Expect,
    /// Why the verdict must be so, for people.
    #[serde(default)]
    pub why: String,
    dedupe_key: Option<String>,
    event_type: Option<String>,
    #[serde(default)]
    context: Context,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Valid,
    Invalid,
}

/// What the receiver knows beside secrets. Text that is not named here is a setting of the provider.
#[derive(Default, Deserialize)]
struct Context {
    method: Option<String>,
    #[serde(default)]
    uri: String,
    #[serde(default)]
    query: String,
    #[serde(alias = "notification_url")]
    url: Option<String>,
    tolerance: Option<i64>,
    expected_topic_arn: Option<String>,
    #[serde(default)]
    cert_url_to_pem: BTreeMap<String, String>,
    #[serde(flatten)]
    settings: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub passed: bool,
    /// `stripe/valid`
    pub name: String,
    pub message: String,
}

impl Vector {
    pub fn check(&self) -> Verdict {
        let outcome = match self.provider.as_str() {
            // Not a webhook: a request of ours, whose signature must come out as recorded.
            "line_pay_request" => self.check_line_pay_request(),
            name => match find(name) {
                Some(provider) => self.check_webhook(provider),
                None => Err(format!("there is no provider named {name}")),
            },
        };
        let (passed, message) = match outcome {
            Ok(message) => (true, message),
            Err(message) => (false, message),
        };
        Verdict { passed, name: format!("{}/{}", self.provider, self.name), message }
    }

    fn check_webhook(&self, provider: &dyn Provider) -> Result<String, String> {
        let scheme = provider.open(&self.setup()).map_err(|error| error.0)?;
        let scheme = scheme.as_ref();
        let body = self.body()?;
        let headers = self.header_map()?;
        let method = self.method()?;
        let query =
            self.context.url.as_ref().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
        let request = Request { method: &method, headers: &headers, query, body: &body, certificate: None };
        let now = Time::from_seconds(self.now_unix);
        let verified = self.certificate(scheme, &request).and_then(|certificate| {
            let request = Request { certificate: certificate.as_ref(), ..request };
            verify(scheme, request, now).map(|verified| self.compare(read(scheme, &verified)))
        });
        match (self.expect, verified) {
            (Expect::Valid, Ok(comparison)) => comparison,
            (Expect::Invalid, Err(refusal)) => Ok(format!("refused: {refusal}")),
            (Expect::Valid, Err(refusal)) => Err(format!("should be accepted, but {refusal}")),
            (Expect::Invalid, Ok(_)) => Err("should be refused, but was accepted".into()),
        }
    }

    fn certificate(
        &self,
        scheme: &dyn Scheme,
        request: &Request<'_>,
    ) -> Result<Option<Certificate>, RequestRefusal> {
        let Some(url) = scheme.certificate_url(request)? else { return Ok(None) };
        let pem = self.context.cert_url_to_pem.get(&url);
        pem.map(|pem| Certificate::from_pem(pem.as_bytes()).map_err(RequestRefusal::BadCertificate))
            .transpose()
    }

    /// Is the first event the one the vector names?
    fn compare(&self, reading: Result<RequestReading<'_>, super::Unusable>) -> Result<String, String> {
        if self.dedupe_key.is_none() && self.event_type.is_none() {
            return Ok("accepted".into());
        }
        match reading {
            Err(unusable) => Err(format!("accepted, but {unusable}")),
            Ok(RequestReading::Handshake(Handshake::Confirm { url })) => self.compare_subscription(&url),
            Ok(RequestReading::Handshake(Handshake::Acknowledge | Handshake::Echo { .. })) => {
                Err("accepted as a handshake, but the vector names an event".into())
            }
            Ok(RequestReading::Events(events)) => {
                let event = events.first().ok_or("accepted, but without an event")?;
                self.compare_names(&event.id, &event.kind)?;
                Ok(format!("accepted: {} {}", event.kind, event.id))
            }
        }
    }

    /// Is the subscription the one of the message?
    fn compare_subscription(&self, url: &str) -> Result<String, String> {
        #[derive(Deserialize)]
        struct Message {
            #[serde(rename = "Type")]
            kind: String,
            #[serde(rename = "MessageId")]
            id: String,
            #[serde(rename = "SubscribeURL")]
            url: String,
        }
        let message: Message = serde_json::from_slice(&self.body()?).map_err(|error| error.to_string())?;
        if message.url != url {
            return Err(format!("accepted, but {url} would be called and not {}", message.url));
        }
        self.compare_names(&message.id, &message.kind)?;
        Ok("accepted: a subscription to be confirmed".into())
    }

    fn compare_names(&self, id: &str, kind: &str) -> Result<(), String> {
        for (what, wanted, found) in [("id", &self.dedupe_key, id), ("type", &self.event_type, kind)] {
            if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != found) {
                return Err(format!("accepted, but the event's {what} is {found} and not {wanted}"));
            }
        }
        Ok(())
    }

    fn check_line_pay_request(&self) -> Result<String, String> {
        let header = |wanted: &str| {
            let mut all = self.headers.iter();
            all.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map_or("", |(_, value)| value)
        };
        let secret = Secret::new(self.secrets.first().ok_or("the vector has no secret")?.as_str());
        let body = String::from_utf8(self.body()?).map_err(|_| "the body is not text")?;
        let payload = if self.method()? == Method::GET { &self.context.query } else { &body };
        let nonce = header("X-LINE-Authorization-Nonce");
        let code = line_pay::authorization(&secret, &self.context.uri, payload, nonce);
        let same = code == header("X-LINE-Authorization");
        if same == (self.expect == Expect::Valid) {
            Ok("our signature comes out as recorded".into())
        } else {
            Err("our signature is another than recorded".into())
        }
    }

    fn setup(&self) -> Setup {
        let mut settings: BTreeMap<_, _> = (self.context.settings.iter())
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect();
        if let Some(topic) = &self.context.expected_topic_arn {
            settings.insert("topic_arn".into(), topic.clone());
        }
        Setup {
            secrets: self.secrets.iter().map(Secret::new).collect(),
            public_url: self.context.url.clone(),
            tolerance_s: self.context.tolerance,
            settings,
        }
    }

    fn method(&self) -> Result<Method, String> {
        let name = self.context.method.as_deref().unwrap_or("POST");
        Method::from_str(name).map_err(|_| format!("{name} is no method"))
    }

    fn body(&self) -> Result<Vec<u8>, String> {
        from_base64(&self.body_base64).ok_or_else(|| "body_base64 is not base 64".into())
    }

    fn header_map(&self) -> Result<HeaderMap, String> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let unreadable = || format!("header {name} can't be sent");
            map.append(
                HeaderName::from_str(name).map_err(|_| unreadable())?,
                HeaderValue::from_str(value).map_err(|_| unreadable())?,
            );
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../../tests-data/signatures.json");

    #[test]
    fn a2_all_87_vectors_pass() {
        let vectors = parse(FILE).unwrap();
        assert_eq!(vectors.len(), 87);
        let failed: Vec<_> = vectors.iter().map(Vector::check).filter(|verdict| !verdict.passed).collect();
        assert!(failed.is_empty(), "{failed:#?}");
    }

    #[test]
    fn a2_a_vector_with_the_wrong_verdict_fails() {
        let mut vectors = parse(FILE).unwrap();
        for vector in &mut vectors {
            vector.expect = if vector.expect == Expect::Valid { Expect::Invalid } else { Expect::Valid };
        }
        assert!(vectors.iter().all(|vector| !vector.check().passed));
    }

    #[test]
    fn a3_a_subscription_is_confirmed_at_its_own_address_and_nowhere_else() {
        let mut vectors = parse(FILE).unwrap();
        let vector = vectors.iter_mut().find(|one| one.name == "valid-subscription-confirmation").unwrap();
        let confirm = |url: &str| Ok(RequestReading::Handshake(Handshake::Confirm { url: url.into() }));
        let url = "https://sns.ap-northeast-1.amazonaws.com/?Action=ConfirmSubscription\
                   &TopicArn=arn:aws:sns:ap-northeast-1:123456789012:ses-events&Token=FAKETOKEN";
        assert_eq!(vector.compare(confirm(url)), Ok("accepted: a subscription to be confirmed".into()));
        assert!(vector.compare(confirm(&url.replace("FAKETOKEN", "OTHER"))).is_err());
        for other in [Handshake::Acknowledge, Handshake::Echo { body: url.into() }] {
            assert!(vector.compare(Ok(RequestReading::Handshake(other))).is_err());
        }
        vector.event_type = Some("Notification".into());
        assert!(vector.compare(confirm(url)).is_err());
    }

    #[test]
    fn a_file_that_is_none_and_a_provider_that_is_none_are_named() {
        assert!(parse("{}").is_err());
        assert!(parse("[]").unwrap().is_empty());
        let json = r#"[{"provider":"nobody","name":"x","body_base64":"","now_unix":0,"expect":"valid"}]"#;
        let verdict = parse(json).unwrap()[0].check();
        assert!(!verdict.passed);
        assert_eq!(verdict.name, "nobody/x");
        assert!(verdict.message.contains("nobody"));
    }
}
