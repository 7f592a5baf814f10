//! PayPal: tokens for the client's id and secret, and the list of events. Put in `event`.

use std::io;

use serde_json::json;

use super::{Asked, Fake, ProviderState, is_between, page, reply};
use crate::app::Reply;

pub const CLIENT_ID: &str = "paypal-lab-client";
pub const KEY: &str = "paypal-lab-secret";

/// How long a token is good, in seconds.
pub const TOKEN_S: i64 = 32_400;

pub fn start() -> io::Result<Fake> {
    Fake::start(answer)
}

/// The one that is good now, if any was given out.
fn token(state: &ProviderState) -> String {
    format!("A21AA-lab-{}", state.tokens)
}

fn answer(state: &mut ProviderState, asked: &Asked<'_>) -> Reply {
    let unauthorized = |error| reply(401, &error);
    match asked.endpoint() {
        ("POST", "/v1/oauth2/token") if !asked.is_by(CLIENT_ID, KEY) => unauthorized(
            json!({ "error": "invalid_client", "error_description": "Client Authentication failed" }),
        ),
        ("POST", "/v1/oauth2/token") if asked.request.body != b"grant_type=client_credentials" => {
            reply(400, &json!({ "error": "unsupported_grant_type" }))
        }
        ("POST", "/v1/oauth2/token") => {
            state.tokens += 1;
            let body = json!({ "access_token": token(state), "token_type": "Bearer", "expires_in": TOKEN_S });
            reply(200, &body)
        }
        _ if !asked.bears(&token(state)) => {
            unauthorized(json!({ "name": "AUTHENTICATION_FAILURE", "message": "Authentication failed" }))
        }
        ("GET", "/v1/notifications/webhooks-events") => events(state, asked),
        _ => reply(404, &json!({ "name": "RESOURCE_NOT_FOUND", "message": "The resource does not exist." })),
    }
}

fn events(state: &ProviderState, asked: &Asked<'_>) -> Reply {
    let (since, until) = (asked.param("start_time"), asked.param("end_time"));
    let (size, offset) = (asked.number("page_size", 10), asked.number("next_page_token", 0));
    let all = state.of("event", |event| is_between(&event["create_time"], since, until));
    let (events, has_more) = page(all, offset, size);
    let mut links =
        vec![json!({ "href": "https://api-m.paypal.com/v1/notifications/webhooks-events", "rel": "self" })];
    if has_more {
        let next = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("start_time", since), ("end_time", until)])
            .extend_pairs([("page_size", size.to_string()), ("next_page_token", (offset + size).to_string())])
            .finish();
        links.push(json!({
            "href": format!("https://api-m.paypal.com/v1/notifications/webhooks-events?{next}"),
            "rel": "next", "method": "GET",
        }));
    }
    reply(200, &json!({ "count": events.len(), "events": events, "links": links }))
}
