//! The trace of an event as a waterfall: what was done because of it, in its order, each as a bar from its beginning to its
//! end. Drawn from what is stored; no collector is needed.

use sekisho_core::language::Language;
use sekisho_core::trace::Span;

use crate::types::TraceSpan;
use crate::view::{self, duration, words};

/// Rows that are shown.
const ROWS_MAX: usize = 60;
/// The width of all bars together, and the least of one that can be seen.
const WIDTH: i64 = 1_000;
const WIDTH_MIN: i64 = 6;
/// How far rows move to the right.
const DEPTH_MAX: usize = 4;

pub struct Waterfall {
    pub trace_id: String,
    /// Where the collector shows it.
    pub url: Option<String>,
    pub took: String,
    pub rows: Vec<WaterfallRow>,
    pub more: usize,
}

pub struct WaterfallRow {
    pub name: String,
    pub depth: usize,
    pub x: i64,
    pub width: i64,
    pub error: Option<String>,
    pub after: String,
    pub took: String,
}

impl Waterfall {
    pub fn of(spans: &[Span], trace_url: Option<&str>, lang: Language) -> Option<Self> {
        let trace = view::trace(spans, trace_url)?;
        let rows = trace.spans.iter().take(ROWS_MAX).map(|span| WaterfallRow::of(span, trace.took_us, lang));
        Some(Self {
            took: duration(trace.took_us),
            rows: rows.collect(),
            more: trace.spans.len().saturating_sub(ROWS_MAX),
            trace_id: trace.trace_id,
            url: trace.url,
        })
    }
}

impl WaterfallRow {
    fn of(span: &TraceSpan, whole_us: i64, lang: Language) -> Self {
        let place = |us: i64| us.saturating_mul(WIDTH) / whole_us.max(1);
        let x = place(span.after_us).min(WIDTH - WIDTH_MIN);
        let error = span.error.as_deref().map(|reason| words::reason(reason, lang).to_owned());
        Self {
            name: words::span(&span.name, lang),
            depth: span.depth.min(DEPTH_MAX),
            x,
            width: place(span.took_us).clamp(WIDTH_MIN, WIDTH - x),
            error,
            after: duration(span.after_us),
            took: duration(span.took_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h3_bars_lie_within_their_row_and_can_be_seen() {
        let span = |after_us, took_us| TraceSpan {
            id: "1".into(),
            parent: None,
            name: "deliver app".into(),
            kind: "client".into(),
            start: sekisho_core::Time::from_ms(0),
            after_us,
            took_us,
            depth: 9,
            error: None,
            attributes: Vec::new(),
        };
        for (after_us, took_us, whole_us) in
            [(0, 0, 0), (0, 10, 10), (999_999, 1, 1_000_000), (5, 1, 1_000_000)]
        {
            let row = WaterfallRow::of(&span(after_us, took_us), whole_us, Language::En);
            assert!(
                row.x >= 0 && row.width >= WIDTH_MIN && row.x + row.width <= WIDTH,
                "{after_us} {took_us}"
            );
            assert_eq!((row.depth, row.name.as_str()), (DEPTH_MAX, "Deliver to app"));
        }
        let texts = [
            (7, "7 µs"),
            (1_500, "1.5 ms"),
            (20_000, "20 ms"),
            (1_500_000, "1.5 s"),
            (7_200_000_000, "2.0 h"),
        ];
        for (us, text) in texts {
            assert_eq!(duration(us), text);
        }
    }
}
