//! LINE Pay (Taiwan and Thailand; Japan ended in April 2025) has no signed webhook. After the customer's approval
//! its server, or the customer's browser, calls `confirmUrl?transactionId=…&orderId=…`: a hint anyone can write,
//! which means nothing until the Confirm API says so. Our own calls to that API are signed by [`authorization`].

use http::Method;
use ring::hmac;

use super::signature::to_base64;
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified,
};
use crate::event::{Event, ObjectRef, Trust};
use crate::secret::Secret;
use crate::time::Time;

pub struct LinePay;

/// Transaction ids have 19 digits today.
const TRANSACTION_DIGITS_MAX: usize = 32;
const ORDER_BYTES_MAX: usize = 100;

static ABOUT: AboutProvider = AboutProvider {
    proof: "none: a hint, to be confirmed with LINE Pay",
    trust: Trust::Hint,
    sample_type: KIND,
    ..AboutProvider::new("line_pay", "LINE Pay")
};

const KIND: &str = "line_pay.callback";

impl Provider for LinePay {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, _setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open))
    }
}

struct Open;

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        if request.method != Method::GET {
            return Err(RequestRefusal::ForeignCall("LINE Pay calls back by GET"));
        }
        if !request.body.is_empty() {
            return Err(RequestRefusal::ForeignCall("LINE Pay's callback has no body"));
        }
        callback(request.query)
            .map(|_| ())
            .ok_or(RequestRefusal::ForeignCall("the query holds no transactionId in digits and orderId"))
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let (transaction, order) =
            callback(request.query).ok_or_else(|| Unusable::missing("transactionId"))?;
        Ok(RequestReading::event(Event {
            object: Some(ObjectRef::new("payment", transaction.clone())),
            ..Event::new(request.hint_id(&format!("callback:{transaction}:{order}")), KIND, &[])
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("transactionId", &format!("{:019}", crc32fast::hash(draft.id.as_bytes())))
            .append_pair("orderId", &draft.id)
            .finish();
        Ok(Signed { method: Method::GET, headers: Vec::new(), body: Vec::new(), query: Some(query) })
    }
}

/// Transaction and order id of a callback.
fn callback(query: &str) -> Option<(String, String)> {
    let field = |wanted: &str| {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == wanted);
        let value = values.next()?.1.into_owned();
        values.next().is_none().then_some(value)
    };
    let (transaction, order) = (field("transactionId")?, field("orderId")?);
    let is_number = (1..=TRANSACTION_DIGITS_MAX).contains(&transaction.len())
        && transaction.bytes().all(|digit| digit.is_ascii_digit());
    let is_order = (1..=ORDER_BYTES_MAX).contains(&order.len()) && !order.chars().any(char::is_control);
    (is_number && is_order).then_some((transaction, order))
}

/// `X-LINE-Authorization` of a call to LINE Pay's API. The payload is the body of a POST or the query of a GET,
/// without its `?`.
pub fn authorization(secret: &Secret, uri: &str, payload: &str, nonce: &str) -> String {
    let mut code = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()));
    for part in [secret.expose(), uri, payload, nonce] {
        code.update(part.as_bytes());
    }
    to_base64(code.sign())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_only_whole_callbacks_are_hints() {
        let good = callback("transactionId=2026020100000000001&orderId=ORDER%201");
        assert_eq!(good, Some(("2026020100000000001".into(), "ORDER 1".into())));
        for bad in [
            "",
            "transactionId=1",
            "orderId=1",
            "transactionId=x&orderId=1",
            "transactionId=&orderId=1",
            "transactionId=1&orderId=",
            "transactionId=1&orderId=a%00b",
            "transactionId=1&transactionId=2&orderId=1",
        ] {
            assert_eq!(callback(bad), None, "{bad}");
        }
    }
}
