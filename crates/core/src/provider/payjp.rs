//! PAY.JP: a fixed token in `X-Payjp-Webhook-Token`. The body is not signed: whoever has seen the token once can
//! write any body under any id. What such an event says is believed as far as the token is secret. Deliveries of one event
//! differ in `pending_webhooks`, how many are still to be made, and in nothing else.

use std::borrow::Cow;

use serde::Deserialize;

use super::signature::{is_token, secrets};
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified,
};
use crate::event::{BodyDigest, Created, Event, IdProof, ObjectRef, Trust};
use crate::secret::Secret;
use crate::time::Time;

pub struct PayJp;

const TOKEN: &str = "x-payjp-webhook-token";

static ABOUT: AboutProvider = AboutProvider {
    proof: "a secret token in a header; the body is not signed",
    secret: "the webhook token, `whook_…` (管理画面 → API → Webhook)",
    trust: Trust::Token,
    secret_headers: &[TOKEN],
    sample_type: "charge.succeeded",
    sample: r#"{"id":"{id}","object":"event","type":"{type}","created":{seconds},"livemode":false,"data":{"id":"ch_{id}","object":"charge"}}"#,
    ..AboutProvider::new("payjp", "PAY.JP")
};

impl Provider for PayJp {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open { secrets: secrets(setup)?.to_vec() }))
    }
}

struct Open {
    secrets: Vec<Secret>,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow)]
    id: Cow<'r, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    created: Option<i64>,
    livemode: Option<bool>,
    #[serde(borrow)]
    data: Option<Object<'r>>,
}

#[derive(Deserialize)]
struct Object<'r> {
    #[serde(borrow)]
    id: Option<Cow<'r, str>>,
    #[serde(borrow)]
    object: Option<Cow<'r, str>>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        if is_token(&self.secrets, request.header(TOKEN)?) { Ok(()) } else { Err(RequestRefusal::BadToken) }
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: Body<'r> = request.json()?;
        Ok(RequestReading::event(Event {
            created: body
                .created
                .map(|seconds| Created { at: Time::from_seconds(seconds), immutable: false }),
            object: body.data.and_then(|data| Some(ObjectRef { kind: data.object?, id: data.id? })),
            livemode: body.livemode,
            id_proof: IdProof::Open(digest(request)?),
            ..Event::new(body.id, body.kind, request.body)
        }))
    }

    fn read_listed<'r>(&self, event: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        self.read(event)
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        Ok(Signed::json(draft, vec![(TOKEN, self.secrets[0].expose().to_owned())]))
    }
}

/// Of everything that is the same on each delivery.
fn digest(request: &Verified<'_>) -> Result<BodyDigest, Unusable> {
    // Written anew: the list of events may space and order the same fields otherwise.
    let mut fields: serde_json::Map<String, serde_json::Value> = request.json()?;
    fields.remove("pending_webhooks");
    let fields = serde_json::Value::Object(fields).to_string();
    Ok(BodyDigest::of(&[fields.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::super::{find, peek};
    use super::*;

    #[test]
    fn a4_deliveries_of_one_event_may_differ_in_how_many_are_still_to_be_made() {
        let setup = Setup { secrets: vec![Secret::new("whook_1")], ..Setup::default() };
        let scheme = find("payjp").unwrap().open(&setup).unwrap();
        let proof = |pending: u32, amount: u32| {
            let body = format!(
                r#"{{"id":"evnt_1","type":"charge.succeeded","pending_webhooks":{pending},"data":{{"amount":{amount}}}}}"#
            );
            let headers = HeaderMap::new();
            let request = super::super::Request {
                method: &Method::POST,
                headers: &headers,
                query: "",
                body: body.as_bytes(),
                certificate: None,
            };
            match peek(&*scheme, request, Time::from_ms(0)).unwrap() {
                RequestReading::Events(events) => events[0].id_proof,
                RequestReading::Handshake(_) => panic!("it is an event"),
            }
        };
        assert_eq!(proof(2, 100), proof(1, 100));
        assert_ne!(proof(1, 100), proof(1, 200), "another body");
    }
}
