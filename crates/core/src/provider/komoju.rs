//! KOMOJU: `X-Komoju-Signature`, HMAC-SHA256 in hex over the body. Id and type stand in headers too; those in the body
//! are signed, so those are read. A new webhook is greeted with a `ping`.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{BodyCode, Keys};
use super::{
    AboutProvider, CannotSign, Draft, Handshake, Provider, Request, RequestReading, RequestRefusal, Scheme,
    Setup, SetupError, Signed, Unusable, Verified, signed_time, subject,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct Komoju;

const CODE: BodyCode = BodyCode::hex("x-komoju-signature");

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over the body",
    secret: "the webhook's secret token (管理画面 → Webhook)",
    sample_type: "payment.captured",
    sample: r#"{"id":"{id}","type":"{type}","resource":"event","created_at":"{rfc3339}","data":{"id":"pay_{id}","resource":"payment"}}"#,
    ..AboutProvider::new("komoju", "KOMOJU")
};

impl Provider for Komoju {
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
    id: Option<Cow<'r, str>>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    #[serde(borrow)]
    created_at: Option<Cow<'r, str>>,
    #[serde(borrow)]
    data: Option<Data<'r>>,
}

#[derive(Deserialize)]
struct Data<'r> {
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
    #[serde(borrow)]
    resource: Option<Cow<'r, str>>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        CODE.check(&self.keys, request)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        if body.kind == "ping" {
            return Ok(RequestReading::Handshake(Handshake::Acknowledge));
        }
        let object = body.data.and_then(|data| {
            let kind = data.resource.unwrap_or_else(|| subject(&body.kind).to_owned().into());
            Some(ObjectRef { kind, id: data.id? })
        });
        Ok(RequestReading::event(Event {
            created: signed_time(body.created_at.as_deref()),
            object,
            ..Event::new(body.id.ok_or_else(|| Unusable::missing("id"))?, body.kind, request.body)
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let code = CODE.sign(&self.keys, &draft.body);
        Ok(Signed::json(draft, vec![code]))
    }
}
