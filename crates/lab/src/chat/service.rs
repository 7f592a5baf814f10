//! What each service takes, and how it says yes and no.

use serde_json::{Value, json};

use super::{Got, ROUTING_KEY, telemetry};
use crate::app::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Slack,
    Discord,
    PagerDuty,
    Twilio,
    /// A collector of traces.
    Otlp,
    Sentry,
    /// A program that receives webhooks.
    Hook,
}

/// `AClab4242:twilio-secret` in base 64.
const TWILIO_BASIC: &str = "Basic QUNsYWI0MjQyOnR3aWxpby1zZWNyZXQ=";

impl Service {
    /// Who answers at this path, which has no query.
    pub(super) fn at(path: &str) -> Self {
        match path {
            _ if path.starts_with("/services/") => Self::Slack,
            _ if path.starts_with("/api/webhooks/") => Self::Discord,
            _ if path.starts_with("/2010-04-01/") => Self::Twilio,
            "/v2/enqueue" => Self::PagerDuty,
            _ if path.ends_with("/v1/traces") => Self::Otlp,
            _ if path.starts_with("/api/") && path.ends_with("/envelope/") => Self::Sentry,
            _ => Self::Hook,
        }
    }

    /// The right answer to this request; `n` requests came before.
    pub(super) fn answer(self, got: &Got, n: usize) -> Reply {
        if got.method != "POST" {
            return self.refusal(405);
        }
        match self {
            Self::Slack if !is_slack_message(&got.json()) => Reply::status(400).with_body("invalid_blocks"),
            Self::Slack => Reply::status(200).with_body("ok"),
            Self::Discord if !is_discord_message(&got.json()) => self.refusal(400),
            // Without being told to wait it says nothing of the message.
            Self::Discord if !got.path.contains("wait=true") => Reply::status(204),
            Self::Discord => json_reply(200, &json!({ "id": format!("9000{n}"), "type": 0 })),
            Self::PagerDuty => pagerduty(&got.json()),
            Self::Twilio if got.header("authorization") != Some(TWILIO_BASIC) => self.refusal(401),
            Self::Twilio => twilio(got, n),
            Self::Otlp => telemetry::collect(got),
            Self::Sentry => telemetry::report(got),
            Self::Hook => Reply::status(204),
        }
    }

    pub(super) fn busy(self, retry_after_ms: u32) -> Reply {
        let seconds = retry_after_ms.div_ceil(1000).to_string();
        let body = match self {
            Self::Discord => json!({
                "message": "You are being rate limited.",
                "retry_after": f64::from(retry_after_ms) / 1000.0,
                "global": false,
            }),
            Self::Slack | Self::PagerDuty | Self::Twilio | Self::Otlp | Self::Sentry | Self::Hook => {
                json!({ "message": "slow down" })
            }
        };
        json_reply(429, &body).with_header("retry-after", &seconds)
    }

    pub(super) fn refusal(self, status: u16) -> Reply {
        match self {
            Self::Slack => Reply::status(status).with_body(match status {
                400 => "invalid_payload",
                403 => "action_prohibited",
                404 => "no_service",
                410 => "channel_is_archived",
                _ => "rollup_error",
            }),
            Self::Discord => {
                let (message, code) = match status {
                    401 => ("Invalid Webhook Token", 50027),
                    404 => ("Unknown Webhook", 10015),
                    400 => ("Invalid Form Body", 50035),
                    _ => ("500: Internal Server Error", 0),
                };
                json_reply(status, &json!({ "message": message, "code": code }))
            }
            Self::PagerDuty => {
                let body = json!({
                    "status": "invalid event",
                    "message": "Event object is invalid",
                    "errors": ["Length of 'routing_key' is incorrect (should be 32 characters)"],
                });
                json_reply(status, &body)
            }
            Self::Twilio => {
                let (code, message) = match status {
                    401 => (20003, "Authenticate"),
                    400 => (21211, "The phone number you are attempting to call is not valid."),
                    _ => (20500, "An internal server error has occurred"),
                };
                json_reply(status, &json!({ "code": code, "message": message, "status": status }))
            }
            Self::Otlp | Self::Sentry => json_reply(status, &json!({ "detail": "no" })),
            Self::Hook => Reply::status(status).with_body("no"),
        }
    }
}

/// A text of this length, counted as the strictest of them count.
fn is_text(value: &Value, letters_max: usize) -> bool {
    value.as_str().is_some_and(|text| (1..=letters_max).contains(&text.encode_utf16().count()))
}

fn is_slack_message(message: &Value) -> bool {
    let is_block = |block: &Value| match block["type"].as_str() {
        Some("header") => is_text(&block["text"]["text"], 150),
        Some("section") => is_text(&block["text"]["text"], 3000),
        _ => false,
    };
    let blocks = message["blocks"].as_array();
    is_text(&message["text"], 40_000) && blocks.is_none_or(|blocks| blocks.iter().all(is_block))
}

fn is_discord_message(message: &Value) -> bool {
    let is_embed = |embed: &Value| is_text(&embed["description"], 4096);
    let embeds = message["embeds"].as_array();
    is_text(&message["content"], 2000) && embeds.is_none_or(|embeds| embeds.iter().all(is_embed))
}

fn pagerduty(event: &Value) -> Reply {
    if event["routing_key"] != ROUTING_KEY {
        return Service::PagerDuty.refusal(403);
    }
    let payload = &event["payload"];
    // Only what opens an incident must say what it is.
    let is_said = match event["event_action"].as_str() {
        Some("trigger") => {
            is_text(&payload["summary"], 1024)
                && is_text(&payload["source"], 1024)
                && is_text(&payload["severity"], 8)
        }
        Some("acknowledge" | "resolve") => true,
        _ => false,
    };
    let fits = is_text(&event["dedup_key"], 255) && is_said && event.to_string().len() <= 512 << 10;
    if !fits {
        return Service::PagerDuty.refusal(400);
    }
    let body = json!({ "status": "success", "message": "Event processed", "dedup_key": event["dedup_key"] });
    json_reply(202, &body)
}

fn twilio(got: &Got, n: usize) -> Reply {
    let field = |name: &str| got.field(name).unwrap_or_default();
    let twiml = field("Twiml");
    if !field("To").starts_with('+') || !field("From").starts_with('+') || twiml.encode_utf16().count() > 4000
    {
        return Service::Twilio.refusal(400);
    }
    json_reply(201, &json!({ "sid": format!("CAlab{n:04}"), "status": "queued", "to": field("To") }))
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Reply::status(status).with_header("content-type", "application/json").with_body(&body.to_string())
}
