//! Mollie, in its two ways. Next-generation webhooks: `X-Mollie-Signature: sha256=…`, HMAC-SHA256 in hex over the
//! body, with the header sent twice while a secret is rotated. Classic webhooks: an unsigned form `id=tr_…`, a hint
//! that something changed and that must be looked up.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{BodyCode, Keys};
use super::{
    AboutProvider, CannotSign, Draft, Handshake, Provider, Request, RequestReading, RequestRefusal, Scheme,
    Setup, SetupError, Signed, Unusable, Verified, signed_time, subject,
};
use crate::event::{Event, ObjectRef, Trust};
use crate::time::Time;

pub struct Mollie;
pub struct MollieClassic;

const CODE: BodyCode = BodyCode::hex("x-mollie-signature").after("sha256=");
const CLASSIC_KIND: &str = "mollie.changed";
const CLASSIC_ID_BYTES_MAX: usize = 64;

static SIGNED: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over the body",
    secret: "the webhook's signing secret (Dashboard → Developers → Webhooks)",
    sample_type: "payment-link.paid",
    sample: r#"{"resource":"event","id":"{id}","type":"{type}","entityId":"pl_{id}","createdAt":"{rfc3339}"}"#,
    ..AboutProvider::new("mollie", "Mollie")
};

static CLASSIC: AboutProvider = AboutProvider {
    proof: "none: a hint, to be looked up at Mollie",
    trust: Trust::Hint,
    sample_type: CLASSIC_KIND,
    sample: "id={id}",
    hint_headers: &[("content-type", "application/x-www-form-urlencoded")],
    ..AboutProvider::new("mollie_classic", "Mollie (classic webhooks)")
};

impl Provider for Mollie {
    fn about(&self) -> &'static AboutProvider {
        &SIGNED
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(OpenSigned { keys: Keys::from_text(setup, hmac::HMAC_SHA256)? }))
    }
}

impl Provider for MollieClassic {
    fn about(&self) -> &'static AboutProvider {
        &CLASSIC
    }

    fn open(&self, _setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(OpenClassic))
    }
}

struct OpenSigned {
    keys: Keys,
}

struct OpenClassic;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'r> {
    #[serde(borrow)]
    id: Cow<'r, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    #[serde(borrow)]
    entity_id: Option<Cow<'r, str>>,
    #[serde(borrow)]
    created_at: Option<Cow<'r, str>>,
}

impl Scheme for OpenSigned {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        CODE.check_any(&self.keys, request)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        if body.kind == "hook.ping" {
            return Ok(RequestReading::Handshake(Handshake::Acknowledge));
        }
        Ok(RequestReading::event(Event {
            created: signed_time(body.created_at.as_deref()),
            object: body.entity_id.map(|id| ObjectRef::new(subject(&body.kind).to_owned(), id)),
            ..Event::new(body.id, body.kind, request.body)
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let code = CODE.sign(&self.keys, &draft.body);
        Ok(Signed::json(draft, vec![code]))
    }
}

impl Scheme for OpenClassic {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        announced(request.body)
            .map(|_| ())
            .ok_or(RequestRefusal::ForeignCall("the form holds no id of Mollie's"))
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let id = announced(request.body).ok_or_else(|| Unusable::missing("id"))?;
        Ok(RequestReading::event(Event {
            // All that was understood. The rest of the form may be anybody's words, and is kept nowhere.
            body: format!("id={id}").into_bytes().into(),
            object: Some(ObjectRef::new(kind_of(&id), id.clone())),
            ..Event::new(request.hint_id(&id), CLASSIC_KIND, &[])
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        Ok(Signed::form(draft, Vec::new()))
    }
}

/// The id in a classic hint, which stands there once.
fn announced(body: &[u8]) -> Option<String> {
    let mut ids = form_urlencoded::parse(body).filter(|(name, _)| name == "id");
    let (_, id) = ids.next()?;
    if ids.next().is_some() {
        return None;
    }
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"_-".contains(&letter);
    let is_id = (1..=CLASSIC_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_plain);
    is_id.then(|| id.into_owned())
}

fn kind_of(id: &str) -> &'static str {
    match id.split('_').next() {
        Some("tr") => "payment",
        Some("ord") => "order",
        Some("sub") => "subscription",
        Some("pl") => "payment-link",
        _ => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_a_classic_hint_is_an_id_and_nothing_else() {
        assert_eq!(announced(b"id=tr_7UhSN1zuXS&testByMollie=1").as_deref(), Some("tr_7UhSN1zuXS"));
        for bad in ["", "id=", "id=a%00", "id=a/../b", "x=tr_1", "id=tr_1&id=tr_2", "{\"id\":\"tr_1\"}"] {
            assert_eq!(announced(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(announced(format!("id={}", "a".repeat(65)).as_bytes()), None);
    }
}
