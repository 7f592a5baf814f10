//! GitLab, in its two ways. A signing token makes Standard Webhooks signatures over id, time and body. The classic
//! secret token only comes along in a header: whoever has seen it once can write any body. The type stands in a
//! header that neither of them covers.

use std::borrow::Cow;

use serde::Deserialize;

use super::signature::{is_token, secrets};
use super::standard_webhooks::{Envelope, PLAIN_NAMES};
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified,
};
use crate::event::{Event, ObjectRef, Trust};
use crate::secret::Secret;
use crate::time::Time;

pub struct GitLabSigning;
pub struct GitLabToken;

const EVENT: &str = "x-gitlab-event";
const TOKEN: &str = "x-gitlab-token";
/// The same on every retry; newer installations only.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const EVENT_UUID: &str = "x-gitlab-event-uuid";

const SAMPLE: &str =
    r#"{"object_kind":"push","checkout_sha":"{id}","project":{"path_with_namespace":"acme/shop"}}"#;

static SIGNING: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over id, timestamp and body",
    secret: "the webhook's signing token, `whsec_…` and base 64",
    tolerance_s: Some(300),
    // A hook may have both tokens, and then sends both.
    secret_headers: &[TOKEN],
    sample_type: "Push Hook",
    sample: SAMPLE,
    ..AboutProvider::new("gitlab_signing", "GitLab (signing token)")
};

static CLASSIC: AboutProvider = AboutProvider {
    proof: "a secret token in a header; the body is not signed",
    secret: "the webhook's secret token",
    trust: Trust::Token,
    secret_headers: &[TOKEN],
    sample_type: "Push Hook",
    sample: SAMPLE,
    ..AboutProvider::new("gitlab_token", "GitLab (secret token)")
};

impl Provider for GitLabSigning {
    fn about(&self) -> &'static AboutProvider {
        &SIGNING
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(OpenSigning { envelope: Envelope::open(setup, &PLAIN_NAMES)? }))
    }
}

impl Provider for GitLabToken {
    fn about(&self) -> &'static AboutProvider {
        &CLASSIC
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(OpenToken { secrets: secrets(setup)?.to_vec() }))
    }
}

struct OpenSigning {
    envelope: Envelope,
}

struct OpenToken {
    secrets: Vec<Secret>,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow)]
    project: Option<Project<'r>>,
}

#[derive(Deserialize)]
struct Project<'r> {
    #[serde(borrow)]
    path_with_namespace: Cow<'r, str>,
}

impl Scheme for OpenSigning {
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        self.envelope.check(request, now)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let event = Event::new(self.envelope.id(request)?, kind(request)?, request.body);
        Ok(about_project(request, event))
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let mut headers = self.envelope.sign(&draft, now);
        headers.push((EVENT, draft.kind.clone()));
        Ok(Signed::json(draft, headers))
    }
}

impl Scheme for OpenToken {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        if is_token(&self.secrets, request.header(TOKEN)?) { Ok(()) } else { Err(RequestRefusal::BadToken) }
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let id = request.optional_header(IDEMPOTENCY_KEY).or_else(|| request.optional_header(EVENT_UUID));
        let kind = kind(request)?;
        let event = match id {
            Some(id) => Event::with_open_id(id, kind, request.body),
            None => Event::new(request.digest_id(), kind, request.body),
        };
        Ok(about_project(request, event))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let headers = vec![
            (TOKEN, self.secrets[0].expose().to_owned()),
            (EVENT, draft.kind.clone()),
            (IDEMPOTENCY_KEY, draft.id.clone()),
        ];
        Ok(Signed::json(draft, headers))
    }
}

fn kind<'r>(request: &Verified<'r>) -> Result<&'r str, Unusable> {
    request.needed_header(EVENT)
}

/// With the project it is about.
fn about_project<'r>(request: &Verified<'r>, event: Event<'r>) -> RequestReading<'r> {
    let project = request.json::<Body<'r>>().ok().and_then(|body| body.project);
    let object = project.map(|project| ObjectRef::new("project", project.path_with_namespace));
    RequestReading::event(Event { object, ..event })
}
