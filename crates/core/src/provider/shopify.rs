//! Shopify: `X-Shopify-Hmac-Sha256`, HMAC-SHA256 in base 64 over the body, keyed by the app's client secret. The new
//! event family writes the same headers without `X-`. Topic, event id and time stand in headers, which the
//! signature does not cover.

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

pub struct Shopify;

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over the body",
    secret: "the app's client secret (or the secret shown under Settings → Notifications → Webhooks)",
    sample_type: "orders/paid",
    sample: r#"{"id":820982911946154508,"name":"{id}","total_price":"1200","currency":"JPY"}"#,
    names_account: true,
    ..AboutProvider::new("shopify", "Shopify")
};

struct Names {
    code: BodyCode,
    topic: &'static str,
    /// The same for all subscriptions and retries.
    event_id: &'static str,
    /// One per delivery to a subscription, kept on its retries.
    webhook_id: &'static str,
    shop: &'static str,
    triggered_at: &'static str,
}

static CLASSIC: Names = Names {
    code: BodyCode::base64("x-shopify-hmac-sha256"),
    topic: "x-shopify-topic",
    event_id: "x-shopify-event-id",
    webhook_id: "x-shopify-webhook-id",
    shop: "x-shopify-shop-domain",
    triggered_at: "x-shopify-triggered-at",
};

static PLAIN: Names = Names {
    code: BodyCode::base64("shopify-hmac-sha256"),
    topic: "shopify-topic",
    event_id: "shopify-event-id",
    webhook_id: "shopify-webhook-id",
    shop: "shopify-shop-domain",
    triggered_at: "shopify-triggered-at",
};

impl Provider for Shopify {
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
    id: Option<Text<'r>>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        names(request).code.check(&self.keys, request)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let names = names(request);
        let topic = request.needed_header(names.topic)?;
        let id = match request.optional_header(names.event_id) {
            Some(id) => id,
            None => request.needed_header(names.webhook_id)?,
        };
        let triggered_at = request.optional_header(names.triggered_at).and_then(Time::parse_rfc3339);
        let object = request.json::<Body<'r>>().ok().and_then(|body| body.id);
        Ok(RequestReading::event(Event {
            created: triggered_at.map(|at| Created { at, immutable: false }),
            object: object.map(|id| ObjectRef::new(topic.split('/').next().unwrap_or(topic), id.0)),
            account: request.optional_header(names.shop).map(Into::into),
            ..Event::with_open_id(id, topic, request.body)
        }))
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let headers = vec![
            CLASSIC.code.sign(&self.keys, &draft.body),
            (CLASSIC.topic, draft.kind.clone()),
            (CLASSIC.event_id, draft.id.clone()),
            (CLASSIC.triggered_at, now.to_string()),
        ];
        Ok(Signed::json(draft, headers))
    }
}

/// The family of headers whose signature is there.
fn names(request: &Request<'_>) -> &'static Names {
    if request.headers.contains_key(PLAIN.code.header) { &PLAIN } else { &CLASSIC }
}
