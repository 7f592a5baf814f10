//! Stripe: `Stripe-Signature: t=…,v1=…`, HMAC-SHA256 in hex over `<t>.<body>`. The key is the secret's text as
//! it is, `whsec_` included. Any `v1` may match; `v0` and unknown schemes are passed over.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{Keys, StampedCode};
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified,
};
use crate::event::{Created, Event, ObjectRef};
use crate::time::Time;

pub struct Stripe;

const SIGNATURE: StampedCode =
    StampedCode { header: "stripe-signature", between: ',', time: "t", code: "v1", joint: b"." };
const TOLERANCE_S: i64 = 300;

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over timestamp and body",
    secret: "the endpoint's signing secret, `whsec_…` (Dashboard → Developers → Webhooks)",
    tolerance_s: Some(TOLERANCE_S),
    sample_type: "payment_intent.succeeded",
    sample: r#"{"id":"{id}","object":"event","type":"{type}","created":{seconds},"livemode":false,"data":{"object":{"id":"pi_{id}","object":"payment_intent"}}}"#,
    names_account: true,
    ..AboutProvider::new("stripe", "Stripe")
};

impl Provider for Stripe {
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

/// As `open`, but with the key that Standard Webhooks would take from the same secret. Nobody should sign so; the
/// diagnosis tells those who do.
pub fn open_decoded(setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
    Ok(Box::new(Open { keys: Keys::from_whsec(setup)?, tolerance_s: TOLERANCE_S }))
}

struct Open {
    keys: Keys,
    tolerance_s: i64,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow)]
    id: Cow<'r, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    created: CreatedField<'r>,
    livemode: Option<bool>,
    #[serde(borrow)]
    account: Option<Cow<'r, str>>,
    #[serde(borrow)]
    data: Option<Data<'r>>,
    /// Thin events (v2) name their object here and hold no copy of it.
    #[serde(borrow)]
    related_object: Option<Related<'r>>,
}

#[derive(Deserialize)]
struct Data<'r> {
    #[serde(borrow)]
    object: Object<'r>,
}

#[derive(Deserialize)]
struct Object<'r> {
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
    #[serde(borrow)]
    object: Option<Cow<'r, str>>,
}

/// What a thin event is about: here its kind is called `type`, which in whole objects is something else (`card`).
#[derive(Deserialize)]
struct Related<'r> {
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
    #[serde(borrow, rename = "type")]
    object: Option<Cow<'r, str>>,
}

/// Seconds in classic events, RFC 3339 text in thin ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum CreatedField<'r> {
    Seconds(i64),
    Text(#[serde(borrow)] Cow<'r, str>),
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        SIGNATURE.check(&self.keys, request, now, self.tolerance_s)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        let created = match &body.created {
            CreatedField::Seconds(seconds) => Some(Time::from_seconds(*seconds)),
            CreatedField::Text(text) => Time::parse_rfc3339(text),
        };
        let whole = body.data.map(|data| (data.object.object, data.object.id));
        let object = whole.or(body.related_object.map(|related| (related.object, related.id)));
        Ok(RequestReading::event(Event {
            created: created.map(|at| Created { at, immutable: true }),
            object: object.and_then(|(kind, id)| Some(ObjectRef { kind: kind?, id: id? })),
            account: body.account,
            livemode: body.livemode,
            ..Event::new(body.id, body.kind, request.body)
        }))
    }

    /// The list renders an event in the account's own version, so only its id and time are the webhook's to the letter.
    fn read_listed<'r>(&self, event: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        self.read(event)
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let code = SIGNATURE.sign(&self.keys, &draft.body, now);
        Ok(Signed::json(draft, vec![code]))
    }
}
