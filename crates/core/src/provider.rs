//! Which requests are genuine, and what events they carry.
//!
//! A provider is one file below this one: an [`AboutProvider`] that says what it is in words, `open` that turns a
//! source's configuration into keys, and a [`Scheme`] that checks, reads and signs requests. All files have that
//! shape in that order; adding a provider is adding its file and its line in [`ALL`]. No file does I/O: a scheme
//! that needs a certificate names its URL, and the caller brings it along.

mod about;
mod adyen;
mod certificate;
mod generic_hmac;
mod github;
mod gitlab;
mod komoju;
mod line;
pub mod line_pay;
mod listed;
mod mollie;
mod paddle;
mod payjp;
mod paypal;
mod qstash;
mod razorpay;
mod refusal;
mod shopify;
mod signature;
mod slack;
mod sns;
mod square;
mod standard_webhooks;
mod stripe;
mod text;
mod twilio;
pub mod vectors;

use std::borrow::Cow;

use http::{HeaderMap, Method};
use serde::Deserialize;

pub use about::{AboutProvider, ProviderSetting, Setup, SetupError};
pub use certificate::Certificate;
pub use listed::read_listed;
pub use refusal::RequestRefusal;
pub(crate) use signature::to_base64;
pub use signature::{from_base64 as decode_base64, sha256, to_base64 as encode_base64, to_hex as encode_hex};
pub(crate) use stripe::open_decoded as open_stripe_decoded;

use crate::event::{Created, Event};
use crate::time::Time;

/// Every provider, in the order the README lists them.
pub const ALL: &[&dyn Provider] = &[
    &stripe::Stripe,
    &paypal::PayPal,
    &komoju::Komoju,
    &payjp::PayJp,
    &square::Square,
    &adyen::Adyen,
    &adyen::AdyenBanking,
    &paddle::Paddle,
    &mollie::Mollie,
    &mollie::MollieClassic,
    &razorpay::Razorpay,
    &line_pay::LinePay,
    &shopify::Shopify,
    &line::Line,
    &slack::Slack,
    &github::GitHub,
    &gitlab::GitLabSigning,
    &gitlab::GitLabToken,
    &twilio::Twilio,
    &qstash::QStash,
    &sns::Sns,
    &standard_webhooks::StandardWebhooks,
    &standard_webhooks::Svix,
    &generic_hmac::GenericHmac,
];

/// Finds a provider by its name; `-` and `_` are the same.
pub fn find(name: &str) -> Option<&'static dyn Provider> {
    let name = name.replace('-', "_");
    ALL.iter().copied().find(|provider| provider.about().name == name)
}

pub trait Provider: Sync {
    fn about(&self) -> &'static AboutProvider;

    /// Turns a source's configuration into a scheme with its keys ready. The error says what to write instead.
    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError>;
}

/// A request as it came in: raw, unparsed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    pub method: &'r Method,
    pub headers: &'r HeaderMap,
    pub query: &'r str,
    pub body: &'r [u8],
    /// The certificate behind [`Scheme::certificate_url`], fetched by the caller.
    pub certificate: Option<&'r Certificate>,
}

impl<'r> Request<'r> {
    /// A header that must be there once, as text. Repeated headers are refused: which one was signed?
    fn header(&self, name: &str) -> Result<&'r str, RequestRefusal> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().ok_or_else(|| RequestRefusal::missing(name))?;
        if values.next().is_some() {
            return Err(RequestRefusal::malformed(name));
        }
        value.to_str().map_err(|_| RequestRefusal::malformed(name))
    }

    /// A header that need not be there; unreadable ones count as absent.
    fn optional_header(&self, name: &str) -> Option<&'r str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A request whose scheme found it genuine. Only [`verify`] makes one, and [`read_listed`] of what the provider itself
/// answered to us, so nothing unverified can be read.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'r> {
    request: Request<'r>,
    now: Time,
}

impl<'r> Verified<'r> {
    /// When the request was verified.
    pub fn now(&self) -> Time {
        self.now
    }

    fn json<T: Deserialize<'r>>(&self) -> Result<T, Unusable> {
        // Checked once, text need not be checked again piece by piece. Other bytes may be usable in what is read of them.
        let read = match std::str::from_utf8(self.request.body) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(self.request.body),
        };
        read.map_err(|error| Unusable::json(&error))
    }

    /// A header without which there is no event.
    fn needed_header(&self, name: &str) -> Result<&'r str, Unusable> {
        self.optional_header(name)
            .ok_or_else(|| Unusable(format!("the request has no usable header `{name}`")))
    }

    /// An event id for providers that send none. Deliveries of one event have one body; two events whose bodies
    /// agree to the byte say the same thing.
    pub fn digest_id(&self) -> String {
        format!("sha256:{}", signature::to_hex(signature::sha256(self.request.body)))
    }

    /// An event id for a hint, of what it speaks of and when it came.
    ///
    /// Invariant: no hint is taken for a repetition of an earlier one. It proves nothing, so anybody may have sent the
    /// earlier one, before there was anything to be found at the provider; and every change of a thing may be announced
    /// by the same bytes. What arrives after the look-up that the first one caused must cause another. The price is one
    /// more look-up for each repetition, bounded by the source's rates.
    fn hint_id(&self, subject: &str) -> String {
        format!("{subject}@{}", self.now.ms())
    }
}

impl<'r> std::ops::Deref for Verified<'r> {
    type Target = Request<'r>;
    fn deref(&self) -> &Request<'r> {
        &self.request
    }
}

pub fn verify<'r>(
    scheme: &dyn Scheme,
    request: Request<'r>,
    now: Time,
) -> Result<Verified<'r>, RequestRefusal> {
    scheme.check(&request, now)?;
    Ok(Verified { request, now })
}

/// The most bytes an event's id, type or reference may have.
const NAME_BYTES_MAX: usize = 255;

/// What a genuine request says, with ids and types that every store, header and log line can carry.
pub fn read<'r>(scheme: &dyn Scheme, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
    usable(scheme.read(request)?)
}

fn usable(reading: RequestReading<'_>) -> Result<RequestReading<'_>, Unusable> {
    let mut events = match reading {
        RequestReading::Events(events) => events,
        handshake @ RequestReading::Handshake(_) => return Ok(handshake),
    };
    if events.is_empty() {
        return Err(Unusable("the body holds no event".into()));
    }
    if events.len() > EVENTS_MAX {
        return Err(Unusable(format!("the body holds {} events, more than {EVENTS_MAX}", events.len())));
    }
    for event in &mut events {
        for (what, name) in [("id", &event.id), ("type", &event.kind)] {
            if !is_usable(name) {
                return Err(Unusable(format!(
                    "the event's {what} is empty, longer than {NAME_BYTES_MAX} bytes or has control characters"
                )));
            }
        }
        // Only references: the body still holds them.
        event.object.take_if(|object| !is_usable(&object.kind) || !is_usable(&object.id));
        event.account.take_if(|account| !is_usable(account));
    }
    Ok(RequestReading::Events(events))
}

/// Most events in one request: no provider sends nearly as many.
const EVENTS_MAX: usize = 1_000;

/// Reads without having verified: only to tell a person what an unproven request looks like.
pub(crate) fn peek<'r>(
    scheme: &dyn Scheme,
    request: Request<'r>,
    now: Time,
) -> Result<RequestReading<'r>, Unusable> {
    read(scheme, &Verified { request, now })
}

fn is_usable(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control)
}

/// The time in a signed body that stays the same on every delivery of the event.
fn signed_time(rfc3339: Option<&str>) -> Option<Created> {
    rfc3339.and_then(Time::parse_rfc3339).map(|at| Created { at, immutable: true })
}

/// What a dotted type is about: `payment` of `payment.captured`.
fn subject(kind: &str) -> &str {
    kind.split('.').next().unwrap_or(kind)
}

/// One provider's rules with one source's keys.
pub trait Scheme: Send + Sync {
    /// The certificate this request names, if the scheme works with one and the URL may be trusted.
    fn certificate_url(&self, _request: &Request<'_>) -> Result<Option<String>, RequestRefusal> {
        Ok(None)
    }

    /// Is the request genuine? Over the raw bytes, in constant time, failing closed.
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal>;

    /// The id of this delivery, where the proof covers it but covers the body so loosely that whoever saw one request can
    /// write another body for it. No second body is accepted under it.
    fn transmission(&self, _request: &Verified<'_>) -> Option<String> {
        None
    }

    /// What the operator should know about these settings.
    fn warnings(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// What a genuine request says. Call [`read`], which also makes sure that the names are usable.
    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable>;

    /// What one event says that the provider lists in its API: the same as its webhook, so that both are one event.
    fn read_listed<'r>(&self, _event: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        Err(Unusable("this provider's listed events can't be read yet".into()))
    }

    /// Signs as the provider would, for test traffic.
    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign>;
}

#[derive(Debug, PartialEq, Eq)]
pub enum RequestReading<'r> {
    /// At least one.
    Events(Vec<Event<'r>>),
    Handshake(Handshake),
}

impl<'r> RequestReading<'r> {
    fn event(event: Event<'r>) -> Self {
        Self::Events(vec![event])
    }
}

/// Genuine, but no event: the provider wants a certain answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Handshake {
    /// A ping or an empty batch: the source's usual acknowledgement.
    Acknowledge,
    /// 200 with this text (Slack's challenge).
    Echo { body: String },
    /// 200 once a GET of this address succeeded (SNS subscription).
    Confirm { url: String },
}

/// A genuine request that holds no usable event. Kept as evidence.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Unusable(pub String);

impl Unusable {
    fn missing(field: &str) -> Self {
        Self(format!("the body has no usable field `{field}`"))
    }

    fn json(error: &serde_json::Error) -> Self {
        Self(format!("the body is not the JSON this provider sends: {error}"))
    }
}

/// As much of a stranger's text as is worth keeping.
fn excerpt(text: &str) -> String {
    text.chars().take(NAME_BYTES_MAX).collect()
}

/// The least clock difference into the future that is always forgiven.
const FUTURE_SKEW_S: i64 = 60;

/// Refuses a signed time outside the window. Measured at receipt, never again later.
fn check_window(signed_at: i64, now: Time, tolerance_s: i64) -> Result<(), RequestRefusal> {
    check_sides(signed_at, now, tolerance_s, tolerance_s.max(FUTURE_SKEW_S))
}

/// The same, with a window whose sides differ.
fn check_sides(signed_at: i64, now: Time, past_s: i64, future_s: i64) -> Result<(), RequestRefusal> {
    let age = now.seconds().saturating_sub(signed_at);
    if age > past_s {
        return Err(RequestRefusal::StaleTimestamp(age));
    }
    if age < -future_s {
        return Err(RequestRefusal::FutureTimestamp(-age));
    }
    Ok(())
}

/// A request to be signed as the provider would. `id` and `kind` are for schemes that carry them in headers.
#[derive(Clone, Debug)]
pub struct Draft {
    pub id: String,
    pub kind: String,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub method: Method,
    pub headers: Vec<(Cow<'static, str>, String)>,
    pub body: Vec<u8>,
    /// To be appended to the URL, for the schemes that carry something there.
    pub query: Option<String>,
}

impl Signed {
    fn json(draft: Draft, headers: Vec<(&'static str, String)>) -> Self {
        Self::post("application/json", draft, headers)
    }

    fn form(draft: Draft, headers: Vec<(&'static str, String)>) -> Self {
        Self::post("application/x-www-form-urlencoded", draft, headers)
    }

    fn post(content_type: &str, draft: Draft, headers: Vec<(&'static str, String)>) -> Self {
        let mut all = vec![(Cow::Borrowed("content-type"), content_type.to_owned())];
        all.extend(headers.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)));
        Self { method: Method::POST, headers: all, body: draft.body, query: None }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct CannotSign(pub String);

#[cfg(test)]
mod tests;
