//! What is sent: headers and body of one attempt.
//!
//! Raw is the provider's request as it came, so that an existing handler works unchanged; Event is Sekisho's own JSON
//! around it. Both say which event, message and attempt they are, and the same attempt at the same moment is the same
//! bytes.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::header::is_strangers;
use super::route::{Route, Send};
use super::sign::{Signer, Signing};
use crate::event::Stored;
use crate::header::{plain, trace_id};
use crate::id::Seq;
use crate::provider::encode_base64;
use crate::time::Time;
use crate::traceparent::{TRACEPARENT, Traceparent};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

pub fn outgoing(
    route: &Route,
    signer: &Signer,
    event: &Stored,
    message: Seq,
    attempt: i32,
    trace: Option<Traceparent>,
    now: Time,
) -> Outgoing {
    let stored: Vec<(String, String)> = serde_json::from_str(&event.headers).unwrap_or_default();
    // As it came, where this attempt has none of its own.
    let came =
        || stored.iter().find(|(name, value)| name == TRACEPARENT && trace_id(value).is_some()).cloned();
    let trace = trace.map_or_else(came, |own| Some((TRACEPARENT.to_owned(), own.to_string())));
    let message = message.as_message().to_string();
    let (kept, body) = match route.send {
        Send::Raw | Send::Settled => (stored, event.body.clone()),
        Send::Event => (vec![("content-type".into(), "application/json".into())], wrapped(event)),
    };

    let mut ours = vec![
        ("user-agent".to_owned(), concat!("Sekisho/", env!("CARGO_PKG_VERSION")).to_owned()),
        ("sekisho-event-id".to_owned(), plain(&event.event_id)),
        ("sekisho-message-id".to_owned(), message.clone()),
        ("sekisho-attempt".to_owned(), attempt.to_string()),
        ("sekisho-source".to_owned(), plain(&event.source)),
        ("sekisho-trust".to_owned(), event.trust.name().to_owned()),
    ];
    ours.extend(trace);
    ours.extend(signer.sign(&message, &body, now));
    if signer.kind() == Signing::Upstash {
        ours.push(("upstash-retried".to_owned(), attempt.saturating_sub(1).max(0).to_string()));
    }
    for (name, value) in &route.headers {
        let name = name.to_ascii_lowercase();
        ours.retain(|(known, _)| *known != name);
        ours.push((name, value.expose().to_owned()));
    }

    let mut headers: Vec<_> = kept.into_iter().filter(|(name, _)| is_forwarded(name, &ours)).collect();
    headers.extend(ours);
    Outgoing { headers, body }
}

/// Ours replace the provider's of the same name; nobody else may speak as us.
fn is_forwarded(name: &str, ours: &[(String, String)]) -> bool {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    let speaks_as_us = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("sekisho-"));
    !speaks_as_us && !is("traceparent") && !is_strangers(name) && !ours.iter().any(|(known, _)| is(known))
}

#[derive(Serialize)]
struct Envelope<'e> {
    id: String,
    #[serde(rename = "type")]
    kind: &'e str,
    source: &'e str,
    event_id: &'e str,
    created_at: Option<Time>,
    received_at: Time,
    object: Option<Object<'e>>,
    account: Option<&'e str>,
    livemode: Option<bool>,
    trust: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'e RawValue>,
    /// A body that is no JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_base64: Option<String>,
}

#[derive(Serialize)]
struct Object<'e> {
    kind: &'e str,
    id: &'e str,
}

fn wrapped(event: &Stored) -> Bytes {
    let data: Option<&RawValue> = serde_json::from_slice(&event.body).ok();
    let envelope = Envelope {
        id: event.seq.as_event().to_string(),
        kind: &event.event_type,
        source: &event.source,
        event_id: &event.event_id,
        created_at: event.created_at,
        received_at: event.received_at,
        object: event.object.as_ref().map(|(kind, id)| Object { kind, id }),
        account: event.account.as_deref(),
        livemode: event.livemode,
        trust: event.trust.name(),
        data,
        data_base64: data.is_none().then(|| encode_base64(&event.body)),
    };
    serde_json::to_vec(&envelope).expect("texts, numbers and checked JSON serialise").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::route::tests::{route, stored};
    use crate::event::Trust;
    use crate::secret::Secret;

    const NOW: Time = Time::from_ms(1_770_000_000_000);
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn send(route: &Route, signer: &Signer, event: &Stored) -> Outgoing {
        outgoing(route, signer, event, event.seq, 2, None, NOW)
    }

    fn header<'o>(outgoing: &'o Outgoing, name: &str) -> Option<&'o str> {
        let mut found = outgoing.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert_eq!(found.next(), None, "{name} stands once");
        value
    }

    #[test]
    fn c1_raw_is_the_providers_request_with_our_headers() {
        let mut event = stored("{\"a\" :1}\r\n");
        let headers = [
            ("content-type", "application/json; charset=utf-8"),
            ("stripe-signature", "t=1,v1=00"),
            ("user-agent", "Stripe/1.0"),
            ("Sekisho-Message-Id", "forged"),
            ("host", "pay.example.com"),
            ("accept-encoding", "br"),
            ("x-forwarded-for", "203.0.113.9"),
            ("sekisho-trust", "signed"),
            ("traceparent", TRACE),
        ];
        event.headers = serde_json::to_string(&headers).unwrap().into();
        let sent = send(&route(), &Signer::none(), &event);
        assert_eq!(sent.body, event.body);
        assert_eq!(header(&sent, "content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(header(&sent, "stripe-signature"), Some("t=1,v1=00"), "not ours, so it stays");
        assert_eq!(header(&sent, "user-agent"), Some(concat!("Sekisho/", env!("CARGO_PKG_VERSION"))));
        assert_eq!(header(&sent, "sekisho-event-id"), Some("evt_1"));
        assert_eq!(
            header(&sent, "sekisho-message-id").map(str::to_owned),
            Some(event.seq.as_message().to_string())
        );
        assert_eq!(header(&sent, "sekisho-attempt"), Some("2"));
        assert_eq!(header(&sent, "sekisho-source"), Some("stripe"));
        assert_eq!(header(&sent, "sekisho-trust"), Some("signed"));
        assert_eq!(header(&sent, "traceparent"), Some(TRACE));
        assert_eq!((header(&sent, "host"), header(&sent, "accept-encoding")), (None, None));
        assert_eq!(header(&sent, "x-forwarded-for"), None);
        assert_eq!(sent, send(&route(), &Signer::none(), &event), "the same again");
    }

    #[test]
    fn h3_an_attempt_of_a_trace_names_its_own_span() {
        let mut event = stored("{}");
        event.headers = format!(r#"[["traceparent","{TRACE}"]]"#).into();
        let own = TRACE.replace("b7ad6b7169203331", "00000000000000aa");
        let trace = Traceparent::parse(&own);
        let sent = outgoing(&route(), &Signer::none(), &event, event.seq, 2, trace, NOW);
        assert_eq!(header(&sent, "traceparent"), Some(&*own));
    }

    #[test]
    fn c3_what_is_signed_again_replaces_the_providers_signature() {
        let mut event = stored("{}");
        event.headers = r#"[["Stripe-Signature","t=1,v1=00"]]"#.into();
        let signer = Signer::open(Signing::Stripe, vec![Secret::new("whsec_1")], "https://app").unwrap();
        let sent = send(&route(), &signer, &event);
        assert!(header(&sent, "stripe-signature").unwrap().starts_with("t=1770000000,v1="));
        let signer = Signer::open(Signing::Upstash, vec![Secret::new("sig_1")], "https://app").unwrap();
        let sent = send(&route(), &signer, &event);
        assert_eq!(header(&sent, "upstash-retried"), Some("1"));
        assert_eq!(header(&sent, "upstash-message-id"), header(&sent, "sekisho-message-id"));
        assert!(header(&sent, "upstash-signature").is_some());
    }

    #[test]
    fn c1_an_envelope_holds_the_event_and_its_body() {
        let mut event = stored("{\"amount\": 820982911946154508123}");
        event.headers = format!(r#"[["x-secret-ish","1"],["traceparent","{TRACE}"]]"#).into();
        let sent = send(&Route { send: Send::Event, ..route() }, &Signer::none(), &event);
        assert_eq!(
            std::str::from_utf8(&sent.body).unwrap(),
            format!(
                concat!(
                    r#"{{"id":"{}","type":"payment_intent.succeeded","source":"stripe","event_id":"evt_1","#,
                    r#""created_at":"2026-02-02T02:39:59.000Z","received_at":"2026-02-02T02:40:00.000Z","#,
                    r#""object":{{"kind":"payment_intent","id":"pi_1"}},"account":null,"livemode":true,"trust":"signed","#,
                    r#""data":{{"amount": 820982911946154508123}}}}"#
                ),
                event.seq.as_event()
            )
        );
        assert_eq!(header(&sent, "content-type"), Some("application/json"));
        assert_eq!(header(&sent, "x-secret-ish"), None);
        assert_eq!(header(&sent, "traceparent"), Some(TRACE));
    }

    #[test]
    fn c3_how_far_an_event_may_be_believed_is_told() {
        let hint = Stored { trust: Trust::Hint, ..stored("id=tr_1") };
        let sent = send(&Route { send: Send::Event, ..route() }, &Signer::none(), &hint);
        assert_eq!(header(&sent, "sekisho-trust"), Some("hint"));
        let json: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
        assert_eq!(json["trust"], "hint");
    }

    #[test]
    fn c1_a_body_that_is_no_json_travels_in_base_64() {
        for body in ["", "a=1&b=2", "{", "{} {}"] {
            let sent = send(&Route { send: Send::Event, ..route() }, &Signer::none(), &stored(body));
            let json: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
            assert_eq!(json["data_base64"], encode_base64(body));
            assert_eq!(json.get("data"), None);
        }
    }

    #[test]
    fn c1_odd_ids_headers_and_traces_do_no_harm() {
        let mut event = stored("{}");
        event.event_id = "注文 1%".into();
        for headers in ["not json", "{}", r#"[["traceparent","00-0-0-0"]]"#] {
            event.headers = headers.into();
            let sent = send(&route(), &Signer::none(), &event);
            assert_eq!(header(&sent, "sekisho-event-id"), Some("%E6%B3%A8%E6%96%87%201%25"));
            assert_eq!(header(&sent, "traceparent"), None);
        }
    }

    #[test]
    fn c1_a_routes_own_headers_win() {
        let mut event = stored("{}");
        event.headers = r#"[["x-api-key","theirs"]]"#.into();
        let own = vec![
            ("X-Api-Key".to_owned(), Secret::new("ours")),
            ("User-Agent".to_owned(), Secret::new("me/1")),
        ];
        let sent = send(&Route { headers: own, ..route() }, &Signer::none(), &event);
        assert_eq!((header(&sent, "x-api-key"), header(&sent, "user-agent")), (Some("ours"), Some("me/1")));
    }
}
