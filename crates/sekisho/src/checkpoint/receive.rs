//! The walk of one webhook: limits → verify over the raw bytes → read → store with others → answer.
//!
//! Nothing is parsed before it is verified, nothing is answered 2xx before it is stored, and a refusal says
//! nothing that helps a forger.

mod refuse;
mod traced;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use sekisho_core::change::{Admission, Arrival};
use sekisho_core::event::{Event, Identity, Trust};
use sekisho_core::job::DeadReason;
use sekisho_core::provider::{self, Handshake, Request, RequestReading, Unusable};
use sekisho_core::traceparent::{TRACEPARENT, Traceparent};
use sekisho_core::{Seq, Time, settlement};
use tokio::time::Instant;

use super::committer::Overloaded;
use super::{Checkpoint, OpenSource, certificate};
use crate::config::{Source, UnusableBody};
use crate::http::REQUEST_ID;
use crate::limits::{Held, caller, network};
use crate::telemetry::LineContext;
use refuse::No;

pub use refuse::no_door;

type Answer = Response<Full<Bytes>>;

// What an answer tells about the request, besides its id.
const EVENT_ID: HeaderName = HeaderName::from_static("sekisho-event-id");
const MESSAGE_ID: HeaderName = HeaderName::from_static("sekisho-message-id");
const OUTCOME: HeaderName = HeaderName::from_static("sekisho-outcome");

/// A hint is an id or two; whoever sends more is no provider.
const HINT_BYTES_MAX: usize = 4 << 10;

/// Most memory set aside on a mere announcement of a body.
const BODY_RESERVED: u64 = 16 << 10;

/// One request while it is judged.
struct Visit<'c> {
    checkpoint: &'c Checkpoint,
    source: &'c OpenSource,
    peer: IpAddr,
    id: Seq,
    at: Time,
    /// The caller's `traceparent`: its trace finds the request in the caller's traces and in our log.
    trace: Option<Traceparent>,
    began: Instant,
}

pub async fn receive(
    checkpoint: &Checkpoint,
    source: &OpenSource,
    connection: IpAddr,
    request: http::Request<impl Body<Data = Bytes> + Unpin>,
) -> Answer {
    let (parts, body) = request.into_parts();
    let at = checkpoint.node.env.wall();
    let peer = caller(connection, &parts.headers, checkpoint.server.trusted_proxies);
    let id = checkpoint.node.next_seq(at);
    let trace = parts.headers.get(TRACEPARENT).and_then(|value| Traceparent::parse(value.to_str().ok()?));
    let visit = Visit { checkpoint, source, peer, id, at, trace, began: Instant::now() };
    let name = Some(Arc::clone(&source.config.name));
    let context = LineContext::of_request(id, name, trace.map(|trace| trace.trace));
    context.around(async { visit.admit(&parts, body).await.unwrap_or_else(|no| visit.refuse(no)) }).await
}

impl Visit<'_> {
    async fn admit(&self, parts: &Parts, body: impl Body<Data = Bytes> + Unpin) -> Result<Answer, No> {
        let source = &self.source.config;
        self.check_limits(parts)?;
        let mut held = self.checkpoint.bodies.hold();
        let body = self.read_body(body, &mut held).await?;
        let received = Instant::now();
        let mut request = Request {
            method: &parts.method,
            headers: &parts.headers,
            query: parts.uri.query().unwrap_or_default(),
            body: &body,
            certificate: None,
        };
        let certificate = self.certificate(&request).await?;
        request.certificate = certificate.as_deref();
        let verified = provider::verify(&*source.scheme, request, self.at)?;
        self.source.counts.meter.accepted.fetch_add(1, Ordering::Relaxed);
        self.check_rate()?;
        let transmission = source.scheme.transmission(&verified);
        let events = match provider::read(&*source.scheme, &verified) {
            Ok(RequestReading::Events(events)) => events,
            Ok(RequestReading::Handshake(handshake)) => return self.shake_hands(handshake).await,
            Err(unusable) => {
                let event = Event::new(verified.digest_id(), settlement::UNUSABLE, &body);
                let identity = Identity::of(&source.name, &event, transmission.as_deref());
                let arrival = self.arrival(&event, identity, &body, &stored_headers(&parts.headers, source));
                return self.keep_evidence(arrival, &unusable, held).await;
            }
        };
        let headers = stored_headers(&parts.headers, source);
        let arrival = |event: &Event<'_>| {
            let identity = Identity::of(&source.name, event, transmission.as_deref());
            self.arrival(event, identity, &body, &headers)
        };
        let arrivals = events.iter().map(arrival).collect();
        let (answer, accepted) = self.store(arrivals, held).await?;
        let counts = &self.source.counts;
        let count = if accepted { &counts.accepted } else { &counts.duplicate };
        count.inc();
        self.checkpoint.metrics.acknowledge_seconds.observe(received.elapsed().as_secs_f64());
        Ok(answer)
    }

    /// Anybody may have sent it. It may come by a browser's redirect.
    fn proves_nothing(&self) -> bool {
        self.source.config.provider.about().trust == Trust::Hint
    }

    fn check_limits(&self, parts: &Parts) -> Result<(), No> {
        let source = &self.source.config;
        if parts.method != Method::POST && !(self.proves_nothing() && parts.method == Method::GET) {
            return Err(No::Method);
        }
        if self.proves_nothing() && parts.uri.query().is_some_and(|query| query.len() > HINT_BYTES_MAX) {
            return Err(No::TooLarge(HINT_BYTES_MAX));
        }
        if !source.allow_ips.is_empty() && !source.allow_ips.iter().any(|net| net.contains(&self.peer)) {
            return Err(No::Address);
        }
        Ok(self.checkpoint.committer.check_room()?)
    }

    /// Asked once the request is proven, so that forgers can't spend the honest sender's share; and of one network first, so
    /// that a noisy one can't spend what is everybody's.
    fn check_rate(&self) -> Result<(), No> {
        let is_noisy =
            self.source.network_rate.as_ref().is_some_and(|rates| !rates.allow(network(self.peer)));
        if is_noisy || self.source.rate.as_ref().is_some_and(|rate| !rate.allow()) {
            return Err(No::RateLimited);
        }
        Ok(())
    }

    /// Reads the body within its limits of size and time, and within what all bodies together may hold.
    async fn read_body<B>(&self, mut body: B, held: &mut Held) -> Result<Bytes, No>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let most = if self.proves_nothing() { HINT_BYTES_MAX } else { self.checkpoint.server.body_bytes_max };
        let announced = body.size_hint().exact();
        if announced.is_some_and(|bytes| bytes > most as u64) {
            return Err(No::TooLarge(most));
        }
        let read = async {
            // Copied once into memory of its own, so that hyper can reuse its buffer while the event waits.
            let mut whole =
                BytesMut::with_capacity(announced.unwrap_or_default().min(BODY_RESERVED) as usize);
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame.map_err(|_| No::Broken)?.into_data() else { continue };
                if whole.len() + data.len() > most {
                    return Err(No::TooLarge(most));
                }
                if !held.grow(data.len()) {
                    return Err(No::Overloaded(Overloaded { retry_after: 1 }));
                }
                whole.extend_from_slice(&data);
            }
            Ok(whole.freeze())
        };
        tokio::time::timeout(self.checkpoint.server.body_timeout, read).await.map_err(|_| No::TooSlow)?
    }

    async fn certificate(&self, request: &Request<'_>) -> Result<Option<Arc<provider::Certificate>>, No> {
        let source = &self.source.config;
        let Some(url) = source.scheme.certificate_url(request)? else { return Ok(None) };
        if let Some(pinned) = &source.certificate {
            return Ok(Some(Arc::clone(pinned)));
        }
        Ok(Some(self.checkpoint.certificates.get(&url, self.peer).await?))
    }

    async fn shake_hands(&self, handshake: Handshake) -> Result<Answer, No> {
        self.source.counts.handshake.inc();
        let source = &self.source.config;
        Ok(match handshake {
            // Not `ack_status`: that is for events, and LINE's button wants exactly this.
            Handshake::Acknowledge => self.acknowledge(StatusCode::OK),
            Handshake::Echo { body } => {
                let mut answer = self.acknowledge(StatusCode::OK);
                *answer.body_mut() = Full::new(Bytes::from(body));
                answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
                answer
            }
            Handshake::Confirm { url } => {
                certificate::get(&url, &self.checkpoint.node.env)
                    .await
                    .map_err(|no| No::Unconfirmed(no.reason))?;
                tracing::info!(source = &*source.name, "the subscription was confirmed");
                self.acknowledge(StatusCode::OK)
            }
        })
    }

    /// Genuine, so it must not be lost: stored, and put before a person.
    async fn keep_evidence(&self, arrival: Arrival, unusable: &Unusable, held: Held) -> Result<Answer, No> {
        let source = &self.source.config;
        let arrival = Arrival { held: Some(DeadReason::of_unusable(unusable)), ..arrival };
        let (answer, new) = self.store(vec![arrival], held).await?;
        self.source.counts.unusable.inc();
        if new {
            tracing::warn!(error_type = "unusable_body", source = &*source.name, reason = %unusable, request_id = %self.id.as_request(),
                "a genuine request holds no usable event; stored as a dead letter");
        }
        match source.unusable {
            UnusableBody::Acknowledge => Ok(answer),
            UnusableBody::Refuse => Err(No::Unusable),
        }
    }

    fn arrival(&self, event: &Event<'_>, identity: Identity, body: &Bytes, headers: &Arc<str>) -> Arrival {
        let source = &self.source.config;
        // The provider's stamps are judged by the wall clock; what is due from here on goes by the steady one.
        let received_at = self.checkpoint.node.now();
        Arrival {
            key: identity.key,
            first_body: identity.first_body,
            seq: self.checkpoint.node.next_seq(received_at),
            received_at,
            source: Arc::clone(&source.name),
            event_id: event.id.clone().into_owned(),
            event_type: event.kind.clone().into_owned(),
            created_at: event.created.map(|created| created.at),
            object: event
                .object
                .as_ref()
                .map(|object| (object.kind.clone().into_owned(), object.id.clone().into_owned())),
            account: event.account.clone().map(Cow::into_owned),
            livemode: event.livemode,
            trust: source.provider.about().trust,
            headers: Arc::clone(headers),
            body: match &event.body {
                Cow::Borrowed(part) => body.slice_ref(part),
                Cow::Owned(written) => Bytes::copy_from_slice(written),
            },
            held: DeadReason::of_age(event.created, self.at.plus_ms(-self.checkpoint.kept_ms))
                .or_else(|| DeadReason::of_mode(source.livemode, event.livemode))
                .or_else(|| DeadReason::of_account(source.account.as_deref(), event.account.as_deref())),
        }
    }

    /// Stores what one request brought, and answers; whether any of it was new is told beside.
    async fn store(&self, arrivals: Vec<Arrival>, mut held: Held) -> Result<(Answer, bool), No> {
        let names: Vec<_> = arrivals.iter().map(|arrival| (arrival.event_id.clone(), arrival.seq)).collect();
        let types = self.types(&arrivals);
        let headers: usize = arrivals.first().map_or(0, |arrival| arrival.headers.len());
        if !held.grow(headers) {
            return Err(No::Overloaded(Overloaded { retry_after: 1 }));
        }
        let admissions = self.checkpoint.committer.admit(arrivals, held).await??;
        let mut ids = Vec::with_capacity(names.len());
        let mut accepted = false;
        for ((event_id, seq), admission) in names.into_iter().zip(admissions) {
            let stored = match admission {
                Admission::Admitted => {
                    accepted = true;
                    self.source.counts.events_accepted.inc();
                    seq
                }
                Admission::IdReused => {
                    accepted = true;
                    self.source.counts.events_accepted.inc();
                    self.source.counts.ids_reused.inc();
                    tracing::warn!(error_type = "id_reused", source = &*self.source.config.name, event_id, id = %seq.as_event(), peer = %self.peer,
                        request_id = %self.id.as_request(),
                        "another body came under this event's id before; the id is not signed, so both are stored");
                    seq
                }
                Admission::OtherBody => return Err(No::SecondBody),
                Admission::Duplicate(stored) => {
                    self.source.counts.events_duplicate.inc();
                    stored
                }
                Admission::Refused(reason) => {
                    tracing::error!(
                        error_type = "unstorable",
                        source = &*self.source.config.name,
                        event_id,
                        reason,
                        "the database refused this event; the provider is asked to retry"
                    );
                    return Err(No::Unavailable);
                }
            };
            self.source.counts.published.inc();
            self.checkpoint.metrics.meters.stored();
            tracing::debug!(source = &*self.source.config.name, event_id, id = %stored.as_event(),
                request_id = %self.id.as_request(), accepted, "an event was acknowledged");
            ids.push((event_id, stored));
        }
        self.record(&ids, &types);
        let mut answer = self.acknowledge(self.source.config.ack_status);
        let headers = answer.headers_mut();
        headers.insert(EVENT_ID, list(ids.iter().map(|(event_id, _)| sekisho_core::header::plain(event_id))));
        headers.insert(MESSAGE_ID, list(ids.iter().map(|(_, seq)| seq.as_message().to_string())));
        let outcome = if accepted { "accepted" } else { "duplicate" };
        headers.insert(OUTCOME, HeaderValue::from_static(outcome));
        Ok((answer, accepted))
    }

    fn acknowledge(&self, status: StatusCode) -> Answer {
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = status;
        let id = HeaderValue::from_str(&self.id.as_request().to_string()).expect("ids are plain letters");
        answer.headers_mut().insert(REQUEST_ID, id);
        answer
    }
}

/// Ids listed of a large batch: a proxy's buffer for headers is small.
const LISTED_MAX: usize = 20;

/// As a header: several with commas between, and an ellipsis where there are too many.
fn list(ids: impl ExactSizeIterator<Item = String>) -> HeaderValue {
    let rest = if ids.len() > LISTED_MAX { ",..." } else { "" };
    let text = ids.take(LISTED_MAX).collect::<Vec<_>>().join(",") + rest;
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// Headers that belong to the connection or may hold a secret.
const NOT_STORED: [&str; 10] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "transfer-encoding",
];

/// What is kept of the headers: enough to show and to deliver again as the provider sent it. Of a hint's none are: its sender
/// may be anybody.
fn stored_headers(headers: &HeaderMap, source: &Source) -> Arc<str> {
    let about = source.provider.about();
    // First, so that it is found without reading the others.
    let trace = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
    let trace = trace.filter(|value| Traceparent::parse(value).is_some());
    let trace = trace.map(|value| (TRACEPARENT, Cow::Borrowed(value)));
    let kept: Vec<_> = if about.trust == Trust::Hint {
        let own = about.hint_headers.iter().map(|(name, value)| (*name, Cow::Borrowed(*value)));
        trace.into_iter().chain(own).collect()
    } else {
        let is_kept = |name: &str| !NOT_STORED.contains(&name) && !about.secret_headers.contains(&name);
        let is_first = |name: &str| trace.is_some() && name == TRACEPARENT;
        let rest = headers.iter().filter(|(name, _)| is_kept(name.as_str()) && !is_first(name.as_str()));
        let rest = rest.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())));
        trace.clone().into_iter().chain(rest).collect()
    };
    serde_json::to_string(&kept).expect("texts always serialise").into()
}
