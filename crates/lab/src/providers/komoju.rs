//! KOMOJU: the list of payments. Put in `payment`.

use std::io;

use serde_json::json;

use super::{Asked, Fake, ProviderState, is_between, page, reply};
use crate::app::Reply;

pub const KEY: &str = "sk_test_komojulab4242";

pub fn start() -> io::Result<Fake> {
    Fake::start(answer)
}

fn answer(state: &mut ProviderState, asked: &Asked<'_>) -> Reply {
    let trouble = |status, code: &str, message: &str| {
        reply(status, &json!({ "error": { "code": code, "message": message, "param": null } }))
    };
    if !asked.is_by(KEY, "") {
        return trouble(401, "unauthorized", "The API key is not valid.");
    }
    match asked.endpoint() {
        ("GET", "/api/v1/payments") => {
            let (since, until) = (asked.param("start_time"), asked.param("end_time"));
            let (per_page, number) = (asked.number("per_page", 10), asked.number("page", 1));
            let all = state.of("payment", |payment| is_between(&payment["created_at"], since, until));
            let total = all.len();
            let (data, _) = page(all, (number - 1) * per_page, per_page);
            let last = total.div_ceil(per_page).max(1);
            reply(
                200,
                &json!({
                    "resource": "list", "total": total, "page": number, "per_page": per_page, "last_page": last, "data": data,
                }),
            )
        }
        _ => trouble(404, "not_found", "The requested resource could not be found."),
    }
}
