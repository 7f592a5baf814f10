//! A trace, as it is shown: each span with its place and its depth.

use std::collections::BTreeMap;

use sekisho_core::Time;
use sekisho_core::trace::{Attribute, Span};

use crate::types::{Trace, TraceAttribute, TraceSpan};

/// `None` where there are no spans.
pub fn trace(spans: &[Span], trace_url: Option<&str>) -> Option<Trace> {
    let began = spans.iter().map(|span| span.start_us).min()?;
    let ended = spans.iter().map(|span| span.end_us).max()?;
    let trace_id = spans.first()?.trace.to_string();
    let mut depths = BTreeMap::new();
    let shown = spans.iter().map(|span| {
        let depth = span.parent.and_then(|parent| depths.get(&parent)).map_or(0, |above: &usize| above + 1);
        depths.insert(span.id, depth);
        TraceSpan {
            id: span.id.to_string(),
            parent: span.parent.map(|parent| parent.to_string()),
            name: span.name.clone(),
            kind: span.kind.name().to_owned(),
            start: Time::from_ms(span.start_us.div_euclid(1_000)),
            after_us: span.start_us - began,
            took_us: span.end_us - span.start_us,
            depth,
            error: span.error.clone(),
            attributes: span.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
        }
    });
    let spans = shown.collect();
    let url = trace_url.map(|url| url.replace("{trace_id}", &trace_id));
    Some(Trace { url, took_us: ended - began, spans, trace_id })
}

fn attribute(name: &str, value: &Attribute) -> TraceAttribute {
    let value = match value {
        Attribute::Text(text) => text.clone(),
        Attribute::Number(number) => number.to_string(),
    };
    TraceAttribute { name: name.to_owned(), value }
}

/// For people: in the unit that says most.
pub fn duration(us: i64) -> String {
    match us {
        ..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{:.1} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..60_000_000 => format!("{:.1} s", us as f64 / 1e6),
        60_000_000..3_600_000_000 => format!("{:.1} min", us as f64 / 6e7),
        _ => format!("{:.1} h", us as f64 / 3.6e9),
    }
}
