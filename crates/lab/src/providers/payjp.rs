//! PAY.JP, version 1: the lists of events and charges. Put in `event` or `charge`.

use std::io;

use serde_json::json;

use super::{Asked, Fake, ProviderState, page, reply};
use crate::app::Reply;

pub const KEY: &str = "sk_test_payjplab4242";

pub fn start() -> io::Result<Fake> {
    Fake::start(answer)
}

fn answer(state: &mut ProviderState, asked: &Asked<'_>) -> Reply {
    let trouble = |status: u16, code: &str, message: &str| {
        reply(status, &json!({ "error": { "status": status, "code": code, "message": message } }))
    };
    if !asked.is_by(KEY, "") {
        return trouble(401, "invalid_key", "Invalid API Key");
    }
    match asked.endpoint() {
        ("GET", "/v1/events") => list(state, asked, "event"),
        ("GET", "/v1/charges") => list(state, asked, "charge"),
        _ => trouble(404, "invalid_id", "No such resource"),
    }
}

fn list(state: &ProviderState, asked: &Asked<'_>, kind: &str) -> Reply {
    let time = |name: &str, default: i64| asked.param(name).parse().unwrap_or(default);
    let (since, until) = (time("since", 0), time("until", i64::MAX));
    let all = state.of(kind, |one| (since..=until).contains(&one["created"].as_i64().unwrap_or(0)));
    let (data, has_more) = page(all, asked.number("offset", 0), asked.number("limit", 10));
    reply(
        200,
        &json!({ "object": "list", "count": data.len(), "has_more": has_more, "url": asked.path, "data": data }),
    )
}
