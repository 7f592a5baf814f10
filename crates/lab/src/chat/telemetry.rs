//! A collector of traces and a Sentry: what they take, and what they remember of it, read back as they would show it.

use serde_json::{Value, json};

use super::{Chat, Got, SENTRY_PUBLIC_KEY, Service};
use crate::app::Reply;

/// A span as the collector has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedSpan {
    pub trace: String,
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub kind: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub attributes: Vec<(String, String)>,
    pub is_error: bool,
    /// Whose it is: `service.name` of the resource.
    pub service: String,
}

impl CollectedSpan {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// `None` where it is no span by the specification.
    fn read(span: &Value, service: &str) -> Option<Self> {
        let text = |name: &str| span[name].as_str().map(str::to_owned);
        let hex =
            |text: &String, len| text.len() == len && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let parent = text("parentSpanId").filter(|parent| !parent.is_empty());
        Some(Self {
            trace: text("traceId").filter(|id| hex(id, 32))?,
            id: text("spanId").filter(|id| hex(id, 16))?,
            parent: match parent {
                Some(parent) => Some(Some(parent).filter(|id| hex(id, 16))?),
                None => None,
            },
            name: text("name").filter(|name| !name.is_empty())?,
            kind: span["kind"].as_i64().filter(|kind| (1..=5).contains(kind))?,
            start_ns: text("startTimeUnixNano")?.parse().ok()?,
            end_ns: text("endTimeUnixNano")?.parse().ok()?,
            attributes: attributes(&span["attributes"])?,
            is_error: span["status"]["code"] == 2,
            service: service.to_owned(),
        })
    }
}

/// Texts, and numbers that are written as texts.
fn attributes(list: &Value) -> Option<Vec<(String, String)>> {
    let each = list.as_array()?.iter().map(|pair| {
        let (key, value) = (pair["key"].as_str()?, &pair["value"]);
        let number = value["intValue"].as_str().filter(|text| text.parse::<i64>().is_ok());
        Some((key.to_owned(), value["stringValue"].as_str().or(number)?.to_owned()))
    });
    each.collect()
}

/// Every span of a request; `None` if anything in it can't be read.
fn spans(request: &Value) -> Option<Vec<CollectedSpan>> {
    let mut found = Vec::new();
    for resource in request["resourceSpans"].as_array()? {
        let of = attributes(&resource["resource"]["attributes"])?;
        let service = of.iter().find(|(name, _)| name == "service.name").map(|(_, value)| value.clone())?;
        for scope in resource["scopeSpans"].as_array()? {
            for span in scope["spans"].as_array()? {
                found.push(CollectedSpan::read(span, &service)?);
            }
        }
    }
    Some(found)
}

/// The event of an envelope; `None` if it is none.
pub(super) fn envelope(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?;
    let (head, rest) = text.split_once('\n')?;
    let (item, rest) = rest.split_once('\n')?;
    let (head, item): (Value, Value) = (serde_json::from_str(head).ok()?, serde_json::from_str(item).ok()?);
    let event: Value = serde_json::from_str(rest.get(..item["length"].as_u64()? as usize)?).ok()?;
    let is_whole = item["type"] == "event" && event["event_id"] == head["event_id"];
    let is_id = |id: &Value| id.as_str().is_some_and(|id| id.len() == 32);
    (is_whole && is_id(&head["event_id"]) && event["message"]["formatted"].is_string()).then_some(event)
}

pub(super) fn collect(got: &Got) -> Reply {
    match spans(&got.json()) {
        Some(_) => Reply::status(200).with_header("content-type", "application/json").with_body("{}"),
        None => Reply::status(400).with_body("not a request to export traces"),
    }
}

pub(super) fn report(got: &Got) -> Reply {
    let key = format!("sentry_key={SENTRY_PUBLIC_KEY}");
    let is_known =
        got.header("x-sentry-auth").is_some_and(|auth| auth.split([' ', ',']).any(|one| one == key));
    match (is_known, envelope(&got.body)) {
        (false, _) => Service::Sentry.refusal(403),
        (true, None) => Service::Sentry.refusal(400),
        (true, Some(event)) => Reply::status(200).with_body(&json!({ "id": event["event_id"] }).to_string()),
    }
}

impl Chat {
    /// Every span that the collector took, in order.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        let got = self.received().into_iter().filter(|got| got.service == Service::Otlp && got.taken);
        got.flat_map(|got| spans(&got.json()).unwrap_or_default()).collect()
    }

    /// The events of all envelopes that Sentry took, copies too.
    pub fn envelopes(&self) -> Vec<Value> {
        let got = self.received().into_iter().filter(|got| got.service == Service::Sentry && got.taken);
        got.filter_map(|got| envelope(&got.body)).collect()
    }
}
