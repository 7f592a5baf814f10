//! Bodies that no provider would send: cut off anywhere, or with something odd in any place. A reader may refuse them, and
//! must not panic or let in an amount that is none.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::reading::{Reading, UnreadableEvent};
use crate::money;

/// Values that may stand where something else is expected.
pub fn odd() -> impl Strategy<Value = Value> {
    let odd =
        [json!(null), json!(-1), json!(0.5), json!(1e300), json!(i64::MAX), json!(u64::MAX), json!(true)];
    let texts =
        ["", "x", "-1.00", "1e9", "円円円", "99999999999999999999", "COMPLETED"].map(|text| json!(text));
    select(
        [odd.to_vec(), texts.to_vec(), vec![json!([]), json!([null]), json!({}), json!({"id": ""})]].concat(),
    )
}

/// Reads the body cut off, and then with something odd in one place.
pub fn spoil(
    body: &str,
    at: Index,
    cut: Index,
    odd: Value,
    read: impl Fn(&str) -> Result<Option<Reading>, UnreadableEvent>,
) {
    assert!(read(&body[..cut.index(body.len())]).is_err());
    let mut changed: Value = serde_json::from_str(body).unwrap();
    let places = places(&changed, "");
    *changed.pointer_mut(at.get(&places).as_str()).unwrap() = odd;
    if let Ok(Some(reading)) = read(&changed.to_string()) {
        let part = reading.payment.unwrap();
        assert!(part.names.iter().all(|name| !name.ends_with('/')));
        let charges = part.charges.values();
        let mut amounts = charges.flat_map(|one| [one.amount, one.captured, one.refunded]);
        assert!(amounts.all(|amount| money::checked(amount).is_some()));
        assert!(part.refunds.values().all(|one| money::checked(one.amount).is_some()));
    }
}

/// The places of everything in a body.
fn places(value: &Value, at: &str) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = inside.into_iter().flat_map(|(key, value)| places(value, &format!("{at}/{key}")));
    std::iter::once(at.to_owned()).chain(below).collect()
}
