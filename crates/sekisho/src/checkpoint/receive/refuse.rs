//! Every "no" of the checkpoint: its answer, its count and, where somebody tried something, its record.
//!
//! An answer says nothing that helps a forger; the record has the reason.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{HeaderValue, StatusCode, header};
use sekisho_core::provider::RequestRefusal;

use super::{Answer, Visit};
use crate::checkpoint::Checkpoint;
use crate::checkpoint::certificate::NotAtHand;
use crate::checkpoint::committer::{Overloaded, Unavailable};
use crate::checkpoint::rejection::RefusedRequest;
use crate::http::Problem;

/// In the place of a source's name. No source can have it.
const NOWHERE: &str = "?";

/// Every way in which a request does not become an event.
pub enum No {
    Method,
    /// Than so many bytes.
    TooLarge(usize),
    TooSlow,
    Broken,
    Address,
    Overloaded(Overloaded),
    RateLimited,
    Unavailable,
    NotAtHand(NotAtHand),
    /// Whoever offered the subscription did not take our yes.
    Unconfirmed(String),
    Forged(RequestRefusal),
    /// Another body came by the same transmission before.
    SecondBody,
    Unusable,
}

impl From<RequestRefusal> for No {
    fn from(refusal: RequestRefusal) -> Self {
        Self::Forged(refusal)
    }
}

impl From<NotAtHand> for No {
    fn from(not_at_hand: NotAtHand) -> Self {
        Self::NotAtHand(not_at_hand)
    }
}

impl From<Overloaded> for No {
    fn from(overloaded: Overloaded) -> Self {
        Self::Overloaded(overloaded)
    }
}

impl From<Unavailable> for No {
    fn from(_: Unavailable) -> Self {
        Self::Unavailable
    }
}

impl Visit<'_> {
    /// One place turns every "no" into an answer, a count and, where somebody tried something, a record.
    pub fn refuse(&self, no: No) -> Answer {
        let counts = &self.source.counts;
        let (mut close, mut allow) = (false, false);
        let mut problem = match no {
            No::Method => {
                self.malformed("method_not_allowed", "only POST brings webhooks");
                allow = true;
                Problem::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "urn:sekisho:problem:method",
                    "Method not allowed",
                )
            }
            No::TooLarge(most) => {
                self.malformed("too_large", &format!("more than {most} bytes"));
                close = true;
                Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "urn:sekisho:problem:too-large",
                    "Payload too large",
                )
            }
            No::TooSlow => {
                self.malformed("too_slow", "the body did not come in time");
                close = true;
                Problem::new(StatusCode::REQUEST_TIMEOUT, "urn:sekisho:problem:too-slow", "Request timeout")
            }
            No::Broken => {
                self.malformed("broken_off", "the body was not sent to its end");
                close = true;
                Problem::new(StatusCode::BAD_REQUEST, "urn:sekisho:problem:broken", "Incomplete body")
            }
            No::Overloaded(Overloaded { retry_after }) => {
                counts.overloaded.inc();
                self.not_published();
                come_again("urn:sekisho:problem:overloaded", "Overloaded; retry later", retry_after)
            }
            No::RateLimited => {
                counts.overloaded.inc();
                come_again("urn:sekisho:problem:rate-limited", "Too many requests for this source", 1)
            }
            No::Unavailable => {
                counts.unavailable.inc();
                self.not_published();
                come_again("urn:sekisho:problem:unavailable", "The event could not be stored in time", 5)
            }
            No::Unconfirmed(reason) => {
                counts.unavailable.inc();
                self.turned_away("subscription_not_confirmed", &reason);
                come_again("urn:sekisho:problem:unavailable", "The subscription could not be confirmed", 5)
            }
            No::NotAtHand(NotAtHand { reason, .. }) => {
                counts.unavailable.inc();
                self.turned_away("certificate_not_at_hand", &reason);
                come_again("urn:sekisho:problem:unavailable", "The request could not be checked in time", 5)
            }
            No::Unusable => Problem::new(
                StatusCode::BAD_REQUEST,
                "urn:sekisho:problem:unusable",
                "The body holds no usable event",
            ),
            No::Address => self.reject("address_not_allowed", "the caller's address is not in allow_ips"),
            No::SecondBody => self.reject("second_body", "another body came by this transmission before"),
            No::Forged(refusal) => {
                if matches!(refusal, RequestRefusal::BadSignature | RequestRefusal::BadToken) {
                    counts.meter.wrong_signature.fetch_add(1, Ordering::Relaxed);
                }
                self.reject(refusal.reason(), &refusal.to_string())
            }
        };
        problem.request_id = Some(self.id.as_request().to_string().into());
        let mut answer = problem.into_response();
        if allow {
            let methods = if self.proves_nothing() { "GET, POST" } else { "POST" };
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
        }
        if close {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    fn reject(&self, reason: &'static str, detail: &str) -> Problem {
        self.source.counts.rejected.inc();
        self.source.counts.meter.refused.fetch_add(1, Ordering::Relaxed);
        self.turned_away(reason, detail);
        Problem::new(self.source.config.reject_status, "urn:sekisho:problem:refused", "Request rejected")
    }

    /// What the provider offered was not taken: it is asked to come again.
    fn not_published(&self) {
        self.source.counts.unpublished.inc();
        self.checkpoint.metrics.meters.unstored();
    }

    fn malformed(&self, reason: &'static str, detail: &str) {
        self.source.counts.malformed.inc();
        self.turned_away(reason, detail);
    }

    fn turned_away(&self, reason: &'static str, detail: &str) {
        self.checkpoint.turned_away(RefusedRequest {
            source: &self.source.config.name,
            peer: self.peer,
            reason,
            detail,
            request_id: &self.id.as_request().to_string(),
            at: self.at,
        });
    }
}

fn come_again(kind: &'static str, title: &'static str, seconds: u64) -> Problem {
    Problem { retry_after: Some(seconds), ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, kind, title) }
}

/// The answer where no source is.
pub fn no_door(checkpoint: &Checkpoint, peer: IpAddr, path: &str) -> Answer {
    let at = checkpoint.node.env.wall();
    let id = checkpoint.node.next_seq(at).as_request().to_string();
    let (source, reason) = (&Arc::from(NOWHERE), "unknown_source");
    checkpoint.turned_away(RefusedRequest { source, peer, reason, detail: path, request_id: &id, at });
    let mut problem = Problem::new(
        StatusCode::NOT_FOUND,
        "urn:sekisho:problem:not-found",
        "There is no source at this path",
    );
    problem.detail =
        Some("Webhooks come in at /webhooks/{source}, where {source} is a configured name".into());
    problem.request_id = Some(id.into());
    problem.into_response()
}
