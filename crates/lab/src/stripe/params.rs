//! Which parameters Stripe takes where, and how they are written in a query or a form.
//!
//! `a[b][0][c]=1` nests; every value is a text. A parameter that is not in `params.json` is refused as Stripe
//! refuses it: a caller's spelling mistake must not pass here and fail there.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::refusal::StripeRefusal;

/// Deepest nesting and highest list index taken.
const DEPTH_MAX: usize = 8;
const INDEX_MAX: usize = 100;

/// The table of an endpoint, named as `GET /v1/refunds/{id}`. `None` when there is no such endpoint.
pub fn of(endpoint: &str) -> Option<&'static Value> {
    static TABLE: OnceLock<Value> = OnceLock::new();
    let table = TABLE
        .get_or_init(|| serde_json::from_str(include_str!("params.json")).expect("the table is valid JSON"));
    table["endpoints"].get(endpoint)
}

/// Reads `application/x-www-form-urlencoded` text into nested objects and lists.
pub fn read(text: &[u8]) -> Result<Value, StripeRefusal> {
    let mut all = Value::Object(Map::new());
    for (name, value) in form_urlencoded::parse(text) {
        let parts = split(&name).ok_or_else(|| StripeRefusal::unknown(&name))?;
        place(&mut all, &parts, &value).ok_or_else(|| StripeRefusal::unknown(&name))?;
    }
    Ok(all)
}

/// `a[b][]` as `a`, `b` and an empty text.
fn split(name: &str) -> Option<Vec<&str>> {
    let Some((first, rest)) = name.split_once('[') else { return Some(vec![name]) };
    let inner = rest.strip_suffix(']')?;
    let parts: Vec<_> = std::iter::once(first).chain(inner.split("][")).collect();
    (parts.len() <= DEPTH_MAX).then_some(parts)
}

fn place(at: &mut Value, parts: &[&str], value: &str) -> Option<()> {
    let Some((part, rest)) = parts.split_first() else {
        *at = Value::String(value.to_owned());
        return Some(());
    };
    let is_index = part.is_empty() || part.bytes().all(|letter| letter.is_ascii_digit());
    if at.is_null() {
        *at = if is_index { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
    }
    match at {
        Value::Array(list) => {
            let index = if part.is_empty() { list.len() } else { part.parse().ok()? };
            if index > list.len() || index >= INDEX_MAX {
                return None;
            }
            if index == list.len() {
                list.push(Value::Null);
            }
            place(&mut list[index], rest, value)
        }
        Value::Object(map) => place(map.entry(*part).or_insert(Value::Null), rest, value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Refuses what the table does not hold, and what is missing.
pub fn check(given: &Value, table: &Value) -> Result<(), StripeRefusal> {
    check_object(given, table, "")
}

fn check_object(given: &Value, table: &Value, path: &str) -> Result<(), StripeRefusal> {
    let Value::Object(map) = given else { return Err(StripeRefusal::invalid(path, "Invalid object")) };
    for name in table["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !map.contains_key(name) {
            return Err(StripeRefusal::missing(&below(path, name)));
        }
    }
    for (name, value) in map {
        let path = below(path, name);
        match &table["properties"] {
            Value::Array(names) if names.iter().any(|known| known == name) => {}
            Value::Object(known) if known.contains_key(name) => check_value(value, &known[name], &path)?,
            _ => return Err(StripeRefusal::unknown(&path)),
        }
    }
    Ok(())
}

fn check_value(given: &Value, table: &Value, path: &str) -> Result<(), StripeRefusal> {
    // An empty text clears what is clearable.
    if given == "" && table["clearable"] == true {
        return Ok(());
    }
    match table["type"].as_str() {
        Some("object") if table.get("map_of").is_some() => match given {
            Value::Object(map) if map.values().all(Value::is_string) => Ok(()),
            _ => Err(StripeRefusal::invalid(path, "Invalid object")),
        },
        Some("object") => check_object(given, table, path),
        Some("array") => {
            let Value::Array(list) = given else { return Err(StripeRefusal::invalid(path, "Invalid array")) };
            let mut entries = list.iter().enumerate();
            entries.try_for_each(|(n, one)| check_value(one, &table["items"], &format!("{path}[{n}]")))
        }
        _ => check_text(given, table, path),
    }
}

fn check_text(given: &Value, table: &Value, path: &str) -> Result<(), StripeRefusal> {
    let Some(text) = given.as_str() else { return Err(StripeRefusal::invalid(path, "Invalid string")) };
    if text.is_empty() {
        return Err(StripeRefusal::empty(path));
    }
    let fits = match table["type"].as_str() {
        Some("integer") => text.parse::<i64>().is_ok(),
        Some("number") => text.parse::<f64>().is_ok(),
        Some("boolean") => matches!(text, "true" | "false"),
        _ => {
            let max = table["maxLength"].as_u64().unwrap_or(5_000);
            text.chars().count() as u64 <= max
                && table["enum"].as_array().is_none_or(|values| values.iter().any(|value| value == text))
        }
    };
    if fits { Ok(()) } else { Err(StripeRefusal::invalid(path, &format!("Invalid value: {text}"))) }
}

/// What a caller wrote into `metadata`, empty without any.
pub fn metadata(params: &Value) -> Value {
    params["metadata"].as_object().map_or_else(|| Value::Object(Map::new()), |map| Value::Object(map.clone()))
}

/// A parameter that is a whole number.
pub fn number(params: &Value, name: &str) -> Option<i64> {
    params[name].as_str().and_then(|text| text.parse().ok())
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}[{name}]") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(endpoint: &str, form: &str) -> Result<Value, String> {
        let given = read(form.as_bytes()).map_err(|refusal| refusal.message)?;
        super::check(&given, of(endpoint).unwrap()).map_err(|refusal| refusal.message)?;
        Ok(given)
    }

    #[test]
    fn e1_a_form_nests_as_written() {
        let form = "success_url=https%3A%2F%2Fa.test%2F&line_items[0][price_data][currency]=jpy\
                    &line_items[0][quantity]=2&metadata[order_id]=1&payment_method_types[]=card";
        assert_eq!(
            check("POST /v1/checkout/sessions", form),
            Ok(json!({
                "success_url": "https://a.test/",
                "line_items": [{ "price_data": { "currency": "jpy" }, "quantity": "2" }],
                "metadata": { "order_id": "1" },
                "payment_method_types": ["card"],
            }))
        );
    }

    #[test]
    fn e1_what_stripe_would_refuse_is_refused() {
        for (endpoint, form, expected) in [
            ("POST /v1/refunds", "payment_intent=pi_1&ammount=5", "unknown parameter: ammount"),
            ("POST /v1/refunds", "amount=five", "Invalid value: five"),
            ("POST /v1/refunds", "payment_intent=", "empty string for 'payment_intent'"),
            ("POST /v1/refunds", "reason=bored", "Invalid value: bored"),
            ("POST /v1/refunds", "metadata=x", "Invalid object"),
            ("POST /v1/refunds", "a[b=1", "unknown parameter: a[b"),
            ("POST /v1/refunds", "a=1&a[b]=2", "unknown parameter: a[b]"),
            ("POST /v1/refunds", "expand[5]=x", "unknown parameter: expand[5]"),
            ("POST /v1/checkout/sessions", "mode=payment", "Missing required param: success_url"),
            ("POST /v1/checkout/sessions", "success_url=a&line_items[0][cost]=5", "line_items[0][cost]"),
            ("GET /v1/events", "created[since]=5", "created[since]"),
            ("GET /v1/charges/{id}", "limit=5", "unknown parameter: limit"),
        ] {
            let refused = check(endpoint, form).unwrap_err();
            assert!(refused.contains(expected), "{form}: {refused}");
        }
        assert!(check("POST /v1/refunds", "payment_intent=pi_1&metadata=").is_ok());
        assert!(of("DELETE /v1/refunds").is_none());
    }
}
