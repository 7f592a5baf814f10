//! Paddle: `Paddle-Signature: ts=…;h1=…`, HMAC-SHA256 in hex over `<ts>:<body>`. Any `h1` may match. Paddle's own
//! libraries forgive five seconds only, and so do we unless `tolerance` says otherwise.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{Keys, from_hex, to_hex};
use super::{
    About, CannotSign, Draft, Provider, Reading, Refusal, Request, Scheme, Setup, SetupError, Signed,
    Unusable, Verified, check_window, signed_time, subject,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct Paddle;

const SIGNATURE: &str = "paddle-signature";
const TOLERANCE_S: i64 = 5;

static ABOUT: About = About {
    proof: "HMAC-SHA256 over timestamp and body",
    secret: "the destination's secret key, `pdl_ntfset_…` (Developer tools → Notifications)",
    tolerance_s: Some(TOLERANCE_S),
    sample_type: "transaction.completed",
    sample: r#"{"event_id":"{id}","event_type":"{type}","occurred_at":"{rfc3339}","notification_id":"ntf_{id}","data":{"id":"txn_{id}"}}"#,
    ..About::new("paddle", "Paddle")
};

impl Provider for Paddle {
    fn about(&self) -> &'static About {
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
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), Refusal> {
        let mut signed_at = None;
        let mut codes = Vec::new();
        for part in request.header(SIGNATURE)?.split(';') {
            match part.trim().split_once('=') {
                Some(("ts", seconds)) => signed_at = Some(seconds),
                Some(("h1", code)) => codes.extend(from_hex(code)),
                _ => {}
            }
        }
        let text = signed_at.ok_or_else(|| Refusal::malformed(SIGNATURE))?;
        let signed_at = text.parse().map_err(|_| Refusal::malformed(SIGNATURE))?;
        if !self.keys.accept(&[text.as_bytes(), b":", request.body], &codes) {
            return Err(Refusal::BadSignature);
        }
        check_window(signed_at, now, self.tolerance_s)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<Reading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        let object = body.data.and_then(|data| data.id);
        Ok(Reading::event(Event {
            created: signed_time(body.occurred_at.as_deref()),
            object: object.map(|id| ObjectRef::new(subject(&body.event_type).to_owned(), id)),
            ..Event::new(body.event_id, body.event_type, request.body)
        }))
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let seconds = now.seconds().to_string();
        let code = to_hex(self.keys.sign(&[seconds.as_bytes(), b":", &draft.body]));
        Ok(Signed::json(draft, vec![(SIGNATURE, format!("ts={seconds};h1={code}"))]))
    }
}
