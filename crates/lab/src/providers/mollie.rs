//! Mollie: one payment by its id. Put in `payment`.

use std::io;

use serde_json::json;

use super::{Asked, Fake, ProviderState, reply};
use crate::app::Reply;

pub const KEY: &str = "test_mollielab4242";

pub fn start() -> io::Result<Fake> {
    Fake::start(answer)
}

fn answer(state: &mut ProviderState, asked: &Asked<'_>) -> Reply {
    let trouble = |status: u16, title: &str, detail: &str| {
        reply(status, &json!({ "status": status, "title": title, "detail": detail }))
    };
    if !asked.bears(KEY) {
        return trouble(401, "Unauthorized Request", "Missing authentication, or failed to authenticate");
    }
    let id = asked.path.strip_prefix("/v2/payments/").filter(|_| asked.request.method == "GET");
    match id.and_then(|id| state.of("payment", |payment| payment["id"] == id).pop()) {
        Some(payment) => reply(200, &payment),
        None => trouble(404, "Not Found", "No payment exists with token."),
    }
}
