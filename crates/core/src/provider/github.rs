//! GitHub: `X-Hub-Signature-256: sha256=…`, HMAC-SHA256 in hex over the body. The older SHA-1 header is not looked
//! at. Type and delivery id stand in headers, which the signature does not cover.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{BodyCode, Keys};
use super::{
    AboutProvider, CannotSign, Draft, Handshake, Provider, Request, RequestReading, RequestRefusal, Scheme,
    Setup, SetupError, Signed, Unusable, Verified,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct GitHub;

const CODE: BodyCode = BodyCode::hex("x-hub-signature-256").after("sha256=");
const EVENT: &str = "x-github-event";
const DELIVERY: &str = "x-github-delivery";

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over the body",
    secret: "the webhook's secret (repository or organisation → Settings → Webhooks)",
    sample_type: "push",
    sample: r#"{"action":"{type}","repository":{"full_name":"octo/{id}"}}"#,
    ..AboutProvider::new("github", "GitHub")
};

impl Provider for GitHub {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open { keys: Keys::from_text(setup, hmac::HMAC_SHA256)? }))
    }
}

struct Open {
    keys: Keys,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow)]
    repository: Option<Repository<'r>>,
}

#[derive(Deserialize)]
struct Repository<'r> {
    #[serde(borrow)]
    full_name: Cow<'r, str>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        CODE.check(&self.keys, request)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let kind = request.needed_header(EVENT)?;
        if kind == "ping" {
            return Ok(RequestReading::Handshake(Handshake::Acknowledge));
        }
        // A hook may also send its JSON as a form, and not every event has a repository.
        let repository = request.json::<Body<'r>>().ok().and_then(|body| body.repository);
        Ok(RequestReading::event(Event {
            object: repository.map(|repository| ObjectRef::new("repository", repository.full_name)),
            ..Event::with_open_id(request.needed_header(DELIVERY)?, kind, request.body)
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let code = CODE.sign(&self.keys, &draft.body);
        let headers = vec![code, (EVENT, draft.kind.clone()), (DELIVERY, draft.id.clone())];
        Ok(Signed::json(draft, headers))
    }
}
