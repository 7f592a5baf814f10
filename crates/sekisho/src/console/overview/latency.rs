//! How long things took: from arrival to settled, by the newest events; from request to acknowledgement, by the figures
//! of this process, which know only between which bounds each lay.

use sekisho_store::EventSummary;

/// Half of all, all but five in a hundred, all but one in a hundred.
const RANKS: [f64; 3] = [0.50, 0.95, 0.99];
/// The histogram's lines in the text of all figures.
const ACKNOWLEDGED: &str = "sekisho_acknowledge_seconds_bucket{le=\"";

/// At three ranks, in milliseconds; none where it lies beyond all bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spans(pub [Option<f64>; 3]);

/// From arrival to settled; none while nothing is.
pub fn settled(events: &[EventSummary]) -> Option<Spans> {
    let took = |event: &EventSummary| Some((event.processed_at?.ms() - event.received_at.ms()).max(0));
    let mut all: Vec<i64> = events.iter().filter_map(took).collect();
    all.sort_unstable();
    let at = |rank: f64| {
        let n = (rank * all.len() as f64).ceil() as usize;
        all.get(n.saturating_sub(1)).map(|ms| *ms as f64)
    };
    (!all.is_empty()).then(|| Spans(RANKS.map(at)))
}

/// To acknowledgement: the upper bounds, from the text of all figures; none while there was no request.
pub fn acknowledged(figures: &str) -> Option<Spans> {
    let bound = |line: &str| {
        let (bound, count) = line.strip_prefix(ACKNOWLEDGED)?.split_once("\"} ")?;
        Some((bound.parse::<f64>().ok()?, count.trim().parse::<f64>().ok()?))
    };
    let bounds: Vec<(f64, f64)> = figures.lines().filter_map(bound).collect();
    let all = bounds.last().map_or(0.0, |(_, count)| *count);
    let at = |rank: f64| {
        let found = bounds.iter().find(|(_, count)| *count >= rank * all);
        found.map(|(bound, _)| bound * 1_000.0).filter(|ms| ms.is_finite())
    };
    (all > 0.0).then(|| Spans(RANKS.map(at)))
}

/// `< 1 ms`, `0.5 ms`, `12 ms`, `1.2 s`, `3 min`.
pub fn shown(ms: f64) -> String {
    match ms {
        0.0 => "< 1 ms".into(),
        ..1.0 => format!("{ms:.1} ms"),
        1.0..1_000.0 => format!("{ms:.0} ms"),
        1_000.0..60_000.0 => format!("{:.1} s", ms / 1_000.0),
        _ => format!("{:.0} min", ms / 60_000.0),
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::Seq;
    use sekisho_core::Time;
    use sekisho_core::event::About;
    use sekisho_store::Status;

    use super::*;
    use crate::telemetry::Metrics;

    fn event(took_ms: Option<i64>) -> EventSummary {
        let received_at = Time::from_ms(1_780_000_000_000);
        EventSummary {
            seq: Seq::ZERO,
            event_id: "e".into(),
            source: "s".into(),
            event_type: "t".into(),
            status: Status::Success,
            received_at,
            created_at: None,
            object: None,
            account: None,
            livemode: None,
            trust: "signed".into(),
            id_reused: false,
            note: None,
            processed_at: took_ms.map(|ms| received_at.plus_ms(ms)),
            about: About::default(),
        }
    }

    #[test]
    fn h1_ranks_are_those_of_the_events_that_were_settled() {
        let events: Vec<_> = (1..=100).rev().map(|ms| event(Some(ms))).chain([event(None)]).collect();
        assert_eq!(settled(&events), Some(Spans([Some(50.0), Some(95.0), Some(99.0)])));
        assert_eq!(settled(&[event(Some(7))]), Some(Spans([Some(7.0); 3])));
        assert_eq!(settled(&[event(Some(-5))]), Some(Spans([Some(0.0); 3])), "clocks of two nodes");
        assert_eq!(settled(&[event(None)]), None);
    }

    #[test]
    fn h1_the_time_to_acknowledge_is_read_from_the_figures() {
        let metrics = Metrics::default();
        assert_eq!(acknowledged(&metrics.encode()), None, "nothing came in yet");
        for _ in 0..90 {
            metrics.acknowledge_seconds.observe(0.003);
        }
        for _ in 0..8 {
            metrics.acknowledge_seconds.observe(0.15);
        }
        metrics.acknowledge_seconds.observe(60.0);
        metrics.acknowledge_seconds.observe(60.0);
        assert_eq!(acknowledged(&metrics.encode()), Some(Spans([Some(5.0), Some(200.0), None])));
    }

    #[test]
    fn h1_spans_read_well() {
        for (ms, text) in
            [(0.0, "< 1 ms"), (0.5, "0.5 ms"), (12.4, "12 ms"), (1_250.0, "1.2 s"), (180_000.0, "3 min")]
        {
            assert_eq!(shown(ms), text);
        }
    }
}
