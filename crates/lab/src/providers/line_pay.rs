//! LINE Pay: the details of one transaction. Put in `payment`. Like the real one, it says what is wrong with status 200.

use std::io;

use sekisho_core::Secret;
use sekisho_core::provider::line_pay::authorization;
use serde_json::json;

use super::{Asked, Fake, ProviderState, reply};
use crate::app::Reply;

pub const CHANNEL: &str = "1479113123";
pub const KEY: &str = "line-pay-lab-secret";

pub fn start() -> io::Result<Fake> {
    Fake::start(answer)
}

fn answer(state: &mut ProviderState, asked: &Asked<'_>) -> Reply {
    let said =
        |code: &str, message: &str| reply(200, &json!({ "returnCode": code, "returnMessage": message }));
    let header = |name: &str| asked.request.header(name).unwrap_or_default();
    let query = asked.request.path.split_once('?').map_or("", |(_, query)| query);
    let signed = authorization(&Secret::new(KEY), asked.path, query, header("x-line-authorization-nonce"));
    if header("x-line-channelid") != CHANNEL {
        return said("1104", "Non-existing merchant");
    }
    if header("x-line-authorization") != signed {
        return said("1106", "A header info error");
    }
    if asked.endpoint() != ("GET", "/v3/payments") {
        return reply(404, &json!({}));
    }
    let id = asked.param("transactionId");
    match state.of("payment", |payment| payment["transactionId"].to_string().trim_matches('"') == id).pop() {
        Some(payment) => {
            reply(200, &json!({ "returnCode": "0000", "returnMessage": "Success.", "info": [payment] }))
        }
        None => said("1150", "Cannot find the transaction history"),
    }
}
