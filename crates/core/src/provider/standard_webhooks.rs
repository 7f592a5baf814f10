//! Standard Webhooks and Svix, which differ in header names only: HMAC-SHA256 in base 64 over `<id>.<time>.<body>`.
//! Unlike Stripe's, the key is what base 64 decodes from the secret without its `whsec_`. The signature header
//! is a list, `v1,… v1,…`; entries of other versions (`v1a` is ed25519) are passed over.

use std::borrow::Cow;

use serde::Deserialize;

use super::signature::{Keys, from_base64, to_base64};
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified, check_window,
};
use crate::event::Event;
use crate::time::Time;

pub struct StandardWebhooks;
pub struct Svix;

const TOLERANCE_S: i64 = 300;
const PROOF: &str = "HMAC-SHA256 over id, timestamp and body";
const SAMPLE: &str = r#"{"type":"{type}","timestamp":"{rfc3339}","data":{"id":"{id}"}}"#;

static STANDARD: AboutProvider = AboutProvider {
    proof: PROOF,
    secret: "the endpoint's secret, `whsec_…` and base 64",
    tolerance_s: Some(TOLERANCE_S),
    sample_type: "invoice.paid",
    sample: SAMPLE,
    ..AboutProvider::new("standard_webhooks", "Standard Webhooks")
};

static SVIX: AboutProvider = AboutProvider {
    proof: PROOF,
    secret: "the endpoint's signing secret, `whsec_…` and base 64",
    tolerance_s: Some(TOLERANCE_S),
    sample_type: "invoice.paid",
    sample: SAMPLE,
    ..AboutProvider::new("svix", "Svix")
};

impl Provider for StandardWebhooks {
    fn about(&self) -> &'static AboutProvider {
        &STANDARD
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open { envelope: Envelope::open(setup, &PLAIN_NAMES)? }))
    }
}

impl Provider for Svix {
    fn about(&self) -> &'static AboutProvider {
        &SVIX
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open { envelope: Envelope::open(setup, &SVIX_NAMES)? }))
    }
}

struct Open {
    envelope: Envelope,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'r, str>>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        self.envelope.check(request, now)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        let kind = body.kind.ok_or_else(|| Unusable::missing("type"))?;
        Ok(RequestReading::event(Event::new(self.envelope.id(request)?, kind, request.body)))
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let headers = self.envelope.sign(&draft, now);
        Ok(Signed::json(draft, headers))
    }
}

/// The three headers and the key behind them; GitLab's signing tokens use it too.
pub struct Envelope {
    names: &'static Names,
    keys: Keys,
    tolerance_s: i64,
}

pub struct Names {
    id: &'static str,
    timestamp: &'static str,
    signature: &'static str,
}

pub static PLAIN_NAMES: Names =
    Names { id: "webhook-id", timestamp: "webhook-timestamp", signature: "webhook-signature" };
static SVIX_NAMES: Names = Names { id: "svix-id", timestamp: "svix-timestamp", signature: "svix-signature" };

impl Envelope {
    pub fn open(setup: &Setup, names: &'static Names) -> Result<Self, SetupError> {
        let keys = Keys::from_whsec(setup)?;
        Ok(Self { names, keys, tolerance_s: setup.tolerance_s.unwrap_or(TOLERANCE_S) })
    }

    pub fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        let id = request.header(self.names.id)?;
        let text = request.header(self.names.timestamp)?;
        let signed_at = text.parse().map_err(|_| RequestRefusal::malformed(self.names.timestamp))?;
        let codes: Vec<_> = request
            .header(self.names.signature)?
            .split(' ')
            .filter_map(|entry| from_base64(entry.strip_prefix("v1,")?))
            .collect();
        if !self.keys.accept(&[id.as_bytes(), b".", text.as_bytes(), b".", request.body], &codes) {
            return Err(RequestRefusal::BadSignature);
        }
        check_window(signed_at, now, self.tolerance_s)
    }

    pub fn id<'r>(&self, request: &Verified<'r>) -> Result<&'r str, Unusable> {
        request.needed_header(self.names.id)
    }

    pub fn sign(&self, draft: &Draft, now: Time) -> Vec<(&'static str, String)> {
        let seconds = now.seconds().to_string();
        let parts: [&[u8]; 5] = [draft.id.as_bytes(), b".", seconds.as_bytes(), b".", &draft.body];
        let codes: Vec<_> =
            self.keys.sign_with_all(&parts).map(|code| format!("v1,{}", to_base64(code))).collect();
        vec![
            (self.names.id, draft.id.clone()),
            (self.names.signature, codes.join(" ")),
            (self.names.timestamp, seconds),
        ]
    }
}
