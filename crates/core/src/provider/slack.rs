//! Slack: `X-Slack-Signature: v0=…`, HMAC-SHA256 in hex over `v0:<time>:<body>`. Events come as JSON, and the first
//! one is a challenge to be echoed; slash commands and interactions come as forms, named by their trigger.

use std::borrow::Cow;

use ring::hmac;
use serde::Deserialize;

use super::signature::{Keys, from_hex, to_hex};
use super::{
    AboutProvider, CannotSign, Draft, Handshake, Provider, Request, RequestReading, RequestRefusal, Scheme,
    Setup, SetupError, Signed, Unusable, Verified, check_window,
};
use crate::event::{Created, Event};
use crate::time::Time;

pub struct Slack;

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";
const TOLERANCE_S: i64 = 300;

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over timestamp and body",
    secret: "the app's signing secret (api.slack.com → app → Basic Information)",
    tolerance_s: Some(TOLERANCE_S),
    sample_type: "app_mention",
    sample: r#"{"type":"event_callback","event_id":"{id}","event_time":{seconds},"event":{"type":"{type}"}}"#,
    names_account: true,
    ..AboutProvider::new("slack", "Slack")
};

impl Provider for Slack {
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

struct Open {
    keys: Keys,
    tolerance_s: i64,
}

#[derive(Deserialize)]
struct Body<'r> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    challenge: Option<String>,
    #[serde(borrow)]
    event_id: Option<Cow<'r, str>>,
    event_time: Option<i64>,
    #[serde(borrow)]
    team_id: Option<Cow<'r, str>>,
    #[serde(borrow)]
    event: Option<Inner<'r>>,
}

#[derive(Deserialize)]
struct Inner<'r> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
}

/// The JSON inside an interaction's form.
#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "type")]
    kind: String,
    trigger_id: Option<String>,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        let text = request.header(TIMESTAMP)?;
        let signed_at = text.parse().map_err(|_| RequestRefusal::malformed(TIMESTAMP))?;
        let code = request.header(SIGNATURE)?.strip_prefix("v0=").and_then(from_hex);
        let code = code.ok_or_else(|| RequestRefusal::malformed(SIGNATURE))?;
        if !self.keys.accept(&[b"v0:", text.as_bytes(), b":", request.body], &[code]) {
            return Err(RequestRefusal::BadSignature);
        }
        check_window(signed_at, now, self.tolerance_s)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        if request.body.starts_with(b"{") { read_json(request) } else { read_form(request) }
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let seconds = now.seconds().to_string();
        let code = to_hex(self.keys.sign(&[b"v0:", seconds.as_bytes(), b":", &draft.body]));
        let is_json = draft.body.starts_with(b"{");
        let headers = vec![(SIGNATURE, format!("v0={code}")), (TIMESTAMP, seconds)];
        Ok(if is_json { Signed::json(draft, headers) } else { Signed::form(draft, headers) })
    }
}

fn read_json<'r>(request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
    let body: Body<'r> = request.json()?;
    match body.kind.as_ref() {
        "url_verification" => {
            let body = body.challenge.ok_or_else(|| Unusable::missing("challenge"))?;
            Ok(RequestReading::Handshake(Handshake::Echo { body }))
        }
        "event_callback" => {
            let id = body.event_id.ok_or_else(|| Unusable::missing("event_id"))?;
            let kind = body.event.ok_or_else(|| Unusable::missing("event.type"))?.kind;
            Ok(RequestReading::event(Event {
                created: body
                    .event_time
                    .map(|seconds| Created { at: Time::from_seconds(seconds), immutable: true }),
                account: body.team_id,
                ..Event::new(id, kind, request.body)
            }))
        }
        other => Err(Unusable(format!("a message of type {other:?} carries no event"))),
    }
}

fn read_form<'r>(request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
    let field = |wanted: &str| {
        form_urlencoded::parse(request.body).find(|(name, _)| name == wanted).map(|(_, value)| value)
    };
    let (kind, trigger) = if let Some(payload) = field("payload") {
        let payload: Payload = serde_json::from_str(&payload).map_err(|error| Unusable::json(&error))?;
        (Cow::Owned(payload.kind), payload.trigger_id.map(Cow::Owned))
    } else if field("command").is_some() {
        (Cow::Borrowed("slash_command"), field("trigger_id"))
    } else if field("ssl_check").as_deref() == Some("1") {
        return Ok(RequestReading::Handshake(Handshake::Acknowledge));
    } else {
        return Err(Unusable("neither an event, nor a slash command, nor an interaction".into()));
    };
    let trigger = trigger.ok_or_else(|| Unusable::missing("trigger_id"))?;
    Ok(RequestReading::event(Event { account: field("team_id"), ..Event::new(trigger, kind, request.body) }))
}
