//! LINE Messaging API: `x-line-signature`, HMAC-SHA256 in base 64 over the body, keyed by the channel secret. One
//! request holds several events, each with its own id; the console's "Verify" button sends none and wants its 200.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::signature::{BodyCode, Keys};
use super::{
    AboutProvider, CannotSign, Draft, Handshake, Provider, Request, RequestReading, RequestRefusal, Scheme,
    Setup, SetupError, Signed, Unusable, Verified,
};
use crate::event::{Created, Event, ObjectRef};
use crate::time::Time;

pub struct Line;

const CODE: BodyCode = BodyCode::base64("x-line-signature");

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over the body",
    secret: "the channel secret (LINE Developers → channel → Basic settings)",
    sample_type: "message",
    sample: r#"{"destination":"U0","events":[{"type":"{type}","webhookEventId":"{id}","timestamp":{ms},"mode":"active","deliveryContext":{"isRedelivery":false}}]}"#,
    names_account: true,
    ..AboutProvider::new("line", "LINE Messaging API")
};

impl Provider for Line {
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
    destination: Option<Cow<'r, str>>,
    #[serde(borrow)]
    events: Vec<&'r RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'r> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    #[serde(borrow)]
    webhook_event_id: Cow<'r, str>,
    timestamp: Option<i64>,
    #[serde(borrow)]
    message: Option<Message<'r>>,
}

#[derive(Deserialize)]
struct Message<'r> {
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        CODE.check(&self.keys, request)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        if body.events.is_empty() {
            return Ok(RequestReading::Handshake(Handshake::Acknowledge));
        }
        let event = |raw: &'r RawValue| {
            let item: Item<'r> = serde_json::from_str(raw.get()).map_err(|error| Unusable::json(&error))?;
            Ok(Event {
                // Redeliveries keep it; only `deliveryContext` changes.
                created: item.timestamp.map(|ms| Created { at: Time::from_ms(ms), immutable: true }),
                object: item.message.and_then(|message| Some(ObjectRef::new("message", message.id?))),
                account: body.destination.clone(),
                ..Event::new(item.webhook_event_id, item.kind, raw.get().as_bytes())
            })
        };
        body.events.into_iter().map(event).collect::<Result<_, _>>().map(RequestReading::Events)
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let code = CODE.sign(&self.keys, &draft.body);
        Ok(Signed::json(draft, vec![code]))
    }
}
