//! Paddle: `Paddle-Signature: ts=…;h1=…`, HMAC-SHA256 in hex over `<ts>:<body>`. Any `h1` may match. Paddle's own
//! libraries forgive five seconds only, and so do we unless `tolerance` says otherwise.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{Keys, StampedCode};
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified, signed_time, subject,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct Paddle;

const SIGNATURE: StampedCode =
    StampedCode { header: "paddle-signature", between: ';', time: "ts", code: "h1", joint: b":" };
const TOLERANCE_S: i64 = 5;

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over timestamp and body",
    secret: "the destination's secret key, `pdl_ntfset_…` (Developer tools → Notifications)",
    tolerance_s: Some(TOLERANCE_S),
    sample_type: "transaction.completed",
    sample: r#"{"event_id":"{id}","event_type":"{type}","occurred_at":"{rfc3339}","notification_id":"ntf_{id}","data":{"id":"txn_{id}"}}"#,
    ..AboutProvider::new("paddle", "Paddle")
};

impl Provider for Paddle {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open {
            keys: Keys::from_text(setup, hmac::HMAC_SHA256)?,
            tolerance_s: setup.tolerance_s.unwrap_or(TOLERANCE_S),
        }))
    }
}

struct Open {
    keys: Keys,
    tolerance_s: i64,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow)]
    event_id: Cow<'r, str>,
    #[serde(borrow)]
    event_type: Cow<'r, str>,
    #[serde(borrow)]
    occurred_at: Option<Cow<'r, str>>,
    #[serde(borrow)]
    data: Option<Data<'r>>,
}

#[derive(Deserialize)]
struct Data<'r> {
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        SIGNATURE.check(&self.keys, request, now, self.tolerance_s)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        let object = body.data.and_then(|data| data.id);
        Ok(RequestReading::event(Event {
            created: signed_time(body.occurred_at.as_deref()),
            object: object.map(|id| ObjectRef::new(subject(&body.event_type).to_owned(), id)),
            ..Event::new(body.event_id, body.event_type, request.body)
        }))
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let code = SIGNATURE.sign(&self.keys, &draft.body, now);
        Ok(Signed::json(draft, vec![code]))
    }
}
