//! Razorpay: `X-Razorpay-Signature`, HMAC-SHA256 in hex over the body. The event id stands in a header, which the
//! signature does not cover. After a change of secret old events still come with the old one: keep both for a day.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{BodyCode, Keys};
use super::text::Text;
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified,
};
use crate::event::{Created, Event, ObjectRef};
use crate::time::Time;

pub struct Razorpay;

const CODE: BodyCode = BodyCode::hex("x-razorpay-signature");
const EVENT_ID: &str = "x-razorpay-event-id";

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over the body",
    secret: "the webhook's secret (Dashboard → Account & Settings → Webhooks)",
    sample_type: "payment.captured",
    sample: r#"{"entity":"event","account_id":"acc_0","event":"{type}","contains":["payment"],"payload":{"payment":{"entity":{"id":"pay_{id}"}}},"created_at":{seconds}}"#,
    names_account: true,
    ..AboutProvider::new("razorpay", "Razorpay")
};

impl Provider for Razorpay {
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
    event: Cow<'r, str>,
    created_at: Option<i64>,
    #[serde(borrow)]
    account_id: Option<Cow<'r, str>>,
    /// What `payload` holds; the first is what the event is about.
    #[serde(default)]
    contains: Vec<String>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        CODE.check(&self.keys, request)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        let object = body.contains.into_iter().next().and_then(|kind| {
            let id = Text::at(request.body, &format!("payload.{kind}.entity.id"))?;
            Some(ObjectRef::new(kind, id.0))
        });
        Ok(RequestReading::event(Event {
            created: body
                .created_at
                .map(|seconds| Created { at: Time::from_seconds(seconds), immutable: true }),
            object,
            account: body.account_id,
            ..match request.optional_header(EVENT_ID) {
                Some(id) => Event::with_open_id(id, body.event, request.body),
                None => Event::new(request.digest_id(), body.event, request.body),
            }
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let headers = vec![CODE.sign(&self.keys, &draft.body), (EVENT_ID, draft.id.clone())];
        Ok(Signed::json(draft, headers))
    }
}
