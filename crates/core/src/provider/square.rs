//! Square: `x-square-hmacsha256-signature`, HMAC-SHA256 in base 64 over the notification URL and the body, joined. The
//! URL is the one registered there, to the byte; the older SHA-1 header is not looked at.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{Keys, from_base64, to_base64};
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified, signed_time,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct Square;

const SIGNATURE: &str = "x-square-hmacsha256-signature";

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over our address and the body",
    secret: "the subscription's signature key (Developer Console → application → Webhooks)",
    signs_url: true,
    sample_type: "payment.updated",
    sample: r#"{"merchant_id":"M0","type":"{type}","event_id":"{id}","created_at":"{rfc3339}","data":{"type":"payment","id":"{id}"}}"#,
    names_account: true,
    ..AboutProvider::new("square", "Square")
};

impl Provider for Square {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open {
            keys: Keys::from_text(setup, hmac::HMAC_SHA256)?,
            url: setup.required_public_url()?.to_owned(),
        }))
    }
}

struct Open {
    keys: Keys,
    url: String,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow)]
    event_id: Cow<'r, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    #[serde(borrow)]
    created_at: Option<Cow<'r, str>>,
    #[serde(borrow)]
    merchant_id: Option<Cow<'r, str>>,
    #[serde(borrow)]
    data: Option<Data<'r>>,
}

#[derive(Deserialize)]
struct Data<'r> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'r, str>>,
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        let code =
            from_base64(request.header(SIGNATURE)?).ok_or_else(|| RequestRefusal::malformed(SIGNATURE))?;
        let genuine = self.keys.accept(&[self.url.as_bytes(), request.body], &[code]);
        if genuine { Ok(()) } else { Err(RequestRefusal::BadSignature) }
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        Ok(RequestReading::event(Event {
            created: signed_time(body.created_at.as_deref()),
            object: body.data.and_then(|data| Some(ObjectRef { kind: data.kind?, id: data.id? })),
            account: body.merchant_id,
            ..Event::new(body.event_id, body.kind, request.body)
        }))
    }

    fn read_listed<'r>(&self, event: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        self.read(event)
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let code = to_base64(self.keys.sign(&[self.url.as_bytes(), &draft.body]));
        Ok(Signed::json(draft, vec![(SIGNATURE, code)]))
    }
}
