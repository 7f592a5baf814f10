//! Square: the search for events, and the lists of payments and refunds. Put in `event`, `payment` or `refund`. There are
//! two locations; a payment without a `location_id` was made at the main one.

use std::io;

use serde_json::{Value, json};

use super::{Asked, Fake, ProviderState, is_between, page, reply};
use crate::app::Reply;

pub const KEY: &str = "EAAAl-lab4242";
pub const LOCATIONS: [&str; 2] = ["LMAIN00000001", "LOTHER0000002"];

pub fn start() -> io::Result<Fake> {
    Fake::start(answer)
}

fn answer(state: &mut ProviderState, asked: &Asked<'_>) -> Reply {
    let trouble = |status, code: &str, detail: &str| {
        let error = json!({ "category": "API_ERROR", "code": code, "detail": detail });
        reply(status, &json!({ "errors": [error] }))
    };
    if !asked.bears(KEY) {
        return trouble(401, "UNAUTHORIZED", "This request could not be authorized.");
    }
    match asked.endpoint() {
        ("POST", "/v2/events") => {
            let search: Value = serde_json::from_slice(&asked.request.body).unwrap_or_default();
            let times = &search["query"]["filter"]["created_at"];
            let time = |name: &str| times[name].as_str().unwrap_or_default();
            let all =
                state.of("event", |event| is_between(&event["created_at"], time("start_at"), time("end_at")));
            let limit = search["limit"].as_u64().unwrap_or(100) as usize;
            list("events", all, search["cursor"].as_str().unwrap_or_default(), limit)
        }
        ("GET", "/v2/locations") => {
            let location = |id: &str| json!({ "id": id, "status": "ACTIVE" });
            reply(200, &json!({ "locations": LOCATIONS.map(location) }))
        }
        ("GET", "/v2/payments") => {
            let wanted = Some(asked.param("location_id")).filter(|id| !id.is_empty()).unwrap_or(LOCATIONS[0]);
            let is_there = |one: &Value| one["location_id"].as_str().unwrap_or(LOCATIONS[0]) == wanted;
            objects(state, asked, ("payments", "payment"), is_there)
        }
        ("GET", "/v2/refunds") => objects(state, asked, ("refunds", "refund"), |_| true),
        _ => trouble(404, "NOT_FOUND", "API endpoint not found."),
    }
}

fn objects(
    state: &ProviderState,
    asked: &Asked<'_>,
    (name, kind): (&str, &str),
    is_wanted: impl Fn(&Value) -> bool,
) -> Reply {
    let (since, until) = (asked.param("begin_time"), asked.param("end_time"));
    let all = state.of(kind, |object| is_wanted(object) && is_between(&object["created_at"], since, until));
    list(name, all, asked.param("cursor"), asked.number("limit", 100))
}

/// As Square does, an empty list is left out, and so is the cursor of the last page.
fn list(name: &str, all: Vec<Value>, cursor: &str, limit: usize) -> Reply {
    let offset = cursor.strip_prefix("cursor-").and_then(|offset| offset.parse().ok()).unwrap_or(0);
    let (items, has_more) = page(all, offset, limit);
    let mut body = json!({});
    if !items.is_empty() {
        body[name] = items.into();
    }
    if has_more {
        body["cursor"] = format!("cursor-{}", offset + limit).into();
    }
    reply(200, &body)
}
