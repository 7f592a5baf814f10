//! One page of a list: newest first, cut by cursor and limit after everything else was filtered.

use serde_json::{Value, json};

use super::books::{Age, StripeBooks, text};
use super::params::number;
use super::refusal::StripeRefusal;

const LIMIT_DEFAULT: i64 = 10;
const LIMIT_MAX: i64 = 100;
const TYPES_MAX: usize = 20;
/// Parameters that ask for a field of the same name with the same value.
const SAME: [&str; 10] = [
    "payment_intent",
    "charge",
    "customer",
    "currency",
    "payment_link",
    "payout",
    "source",
    "status",
    "subscription",
    "transfer_group",
];

pub fn page(books: &StripeBooks, kind: &str, path: &str, params: &Value) -> Result<Value, StripeRefusal> {
    let limit = number(params, "limit").unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(StripeRefusal::invalid("limit", &format!("Invalid limit: must be 1 to {LIMIT_MAX}")));
    }
    let limit = limit as usize;
    let older_than = cursor(books, kind, params, "starting_after")?;
    let newer_than = cursor(books, kind, params, "ending_before")?;
    if older_than.is_some() && newer_than.is_some() {
        let message = "Received both starting_after and ending_before: please use one of them.";
        return Err(StripeRefusal::new(400, None, message));
    }
    let wanted = Wanted::read(params)?;
    let candidates: Box<dyn DoubleEndedIterator<Item = &Value>> = match parent(books, params)? {
        Some(payment) => Box::new(books.children_of(kind, payment)),
        None => Box::new(books.all(kind)),
    };
    let age = |value: &Value| books.age(&text(value, "id"));
    let fitting = candidates
        .filter(|value| wanted.takes(value))
        .filter(|value| older_than.is_none_or(|cursor| age(value) < Some(cursor)))
        .filter(|value| newer_than.is_none_or(|cursor| age(value) > Some(cursor)));
    // Going forward, the page is the one next to the cursor, and still newest first.
    let mut data: Vec<&Value> = match newer_than {
        Some(_) => fitting.take(limit + 1).collect(),
        None => fitting.rev().take(limit + 1).collect(),
    };
    let has_more = data.len() > limit;
    data.truncate(limit);
    if newer_than.is_some() {
        data.reverse();
    }
    Ok(json!({ "object": "list", "url": path, "has_more": has_more, "data": data }))
}

/// The payment intent or charge that the list is about. One that does not exist is refused, as Stripe does: the list is
/// not just empty.
fn parent<'a>(books: &StripeBooks, params: &'a Value) -> Result<Option<&'a str>, StripeRefusal> {
    let mut first = None;
    for name in ["payment_intent", "charge"] {
        let Some(id) = params[name].as_str() else { continue };
        if !books.knows(name, id) {
            return Err(StripeRefusal::no_such(404, name, id, name));
        }
        first = first.or(Some(id));
    }
    Ok(first)
}

/// What the object named by a cursor is as old as.
fn cursor(books: &StripeBooks, kind: &str, params: &Value, name: &str) -> Result<Option<Age>, StripeRefusal> {
    let Some(id) = params[name].as_str() else { return Ok(None) };
    match books.find(kind, id) {
        Some(_) => Ok(books.age(id)),
        None => Err(StripeRefusal::no_such(400, kind, id, name)),
    }
}

struct Wanted {
    types: Vec<String>,
    is_delivered: Option<bool>,
    same: Vec<(&'static str, String)>,
    created: [Option<i64>; 4],
}

impl Wanted {
    fn read(params: &Value) -> Result<Self, StripeRefusal> {
        let mut types: Vec<_> =
            params["types"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match params["type"].as_str() {
            Some(_) if !types.is_empty() => {
                let message = "You may pass either type or types, not both.";
                return Err(StripeRefusal::new(400, None, message).about("types"));
            }
            one => types.extend(one),
        }
        if types.len() > TYPES_MAX {
            return Err(StripeRefusal::invalid(
                "types",
                &format!("At most {TYPES_MAX} types can be passed."),
            ));
        }
        let same = SAME.map(|name| (name, text(params, name)));
        Ok(Self {
            types: types.into_iter().map(str::to_owned).collect(),
            is_delivered: params["delivery_success"].as_str().map(|text| text == "true"),
            same: same.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            created: ["gt", "gte", "lt", "lte"].map(|name| number(&params["created"], name)),
        })
    }

    fn takes(&self, value: &Value) -> bool {
        let created = value["created"].as_i64().unwrap_or_default();
        let [gt, gte, lt, lte] = self.created;
        gt.is_none_or(|bound| created > bound)
            && gte.is_none_or(|bound| created >= bound)
            && lt.is_none_or(|bound| created < bound)
            && lte.is_none_or(|bound| created <= bound)
            && self.same.iter().all(|(name, wanted)| value[*name] == wanted.as_str())
            && self.is_delivered.is_none_or(|wanted| (value["pending_webhooks"] == 0) == wanted)
            && (self.types.is_empty() || self.types.iter().any(|one| fits(one, &text(value, "type"))))
    }
}

/// `charge.*` is all that begins with `charge.`.
fn fits(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => kind.starts_with(prefix),
        None => kind == pattern,
    }
}
