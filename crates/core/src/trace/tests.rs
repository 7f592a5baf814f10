use std::collections::BTreeSet;

use super::*;
use crate::job::{Attempt, Lane};
use crate::notification::{NoticeStatus, Step};
use crate::time::Time;
use crate::traceparent::TRACEPARENT;

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn house() -> Installation {
    Installation::from_hex("000102030405060708090a0b0c0d0e0f").unwrap()
}

fn seq(n: i64) -> Seq {
    Seq::from_i64(Seq::floor_of(Time::from_ms(1_770_000_000_000)).as_i64() + n)
}

fn ms(ms: i64) -> Time {
    Time::from_ms(1_770_000_000_000 + ms)
}

#[test]
fn h3_a_traceparent_is_read_as_it_is_written_and_nothing_else_is_one() {
    let read = Traceparent::parse(GOOD).unwrap();
    assert_eq!((read.to_string().as_str(), read.is_sampled), (GOOD, true));
    assert!(!Traceparent::parse(&GOOD.replace("-01", "-00")).unwrap().is_sampled);
    let zeros = "0".repeat(32);
    let bad = [
        String::new(),
        "00-xyz-1-01".to_owned(),
        GOOD.to_uppercase(),
        GOOD.replace("00-4", "01-4"),
        format!("{GOOD}-00"),
        format!("00-{zeros}-00f067aa0ba902b7-01"),
        format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", &zeros[..16]),
    ];
    for bad in bad {
        assert_eq!(Traceparent::parse(&bad), None, "{bad}");
    }
}

#[test]
fn h3_it_is_found_where_stored_headers_begin() {
    let trace = Traceparent::parse(GOOD).unwrap();
    for headers in ["[]", r#"[["content-type","application/json"]]"#] {
        let with = trace.put_before(headers);
        assert_eq!(Traceparent::carried(&with), Some(trace), "{with}");
        let pairs: Vec<(String, String)> = serde_json::from_str(&with).unwrap();
        assert_eq!(pairs[0], (TRACEPARENT.to_owned(), GOOD.to_owned()));
    }
    for headers in ["", "[]", r#"[["x","traceparent"]]"#, r#"[["traceparent","short"]]"#] {
        assert_eq!(Traceparent::carried(headers), None, "{headers}");
    }
}

#[test]
fn h3_ids_are_the_same_for_ever_and_differ_where_anything_does() {
    let house = house();
    assert_eq!(house.trace_of(seq(1)), house.trace_of(seq(1)));
    let other = Installation::from_bytes([9; 16]);
    let traces: BTreeSet<_> =
        (0..10_000).flat_map(|n| [house.trace_of(seq(n)), other.trace_of(seq(n))]).collect();
    assert_eq!(traces.len(), 20_000);
    let mut spans = BTreeSet::new();
    for n in 0..1_000 {
        spans.insert(house.span_of(seq(n)));
        spans.insert(house.span_of_request(seq(n)));
        for kind in JobKind::ALL {
            spans.extend((1..4).map(|attempt| house.span_of_run(kind, seq(n), attempt)));
        }
    }
    assert_eq!(spans.len(), 1_000 * (2 + JobKind::ALL.len() * 3));
}

#[test]
fn h3_of_all_traces_the_share_is_sampled_and_a_flag_that_came_counts() {
    for share in [0.0, 0.1, 0.5, 1.0] {
        let sampler = Sampler::new(house(), share);
        let taken = (0..20_000).filter(|n| sampler.of(seq(*n), "stripe", None).is_sampled).count();
        assert!((taken as f64 / 20_000.0 - share).abs() < 0.01, "{share}: {taken}");
        let carried = Traceparent::parse(GOOD);
        assert!(sampler.of(seq(1), "stripe", carried).is_sampled);
        let not = carried.map(|trace| Traceparent { is_sampled: false, ..trace });
        assert!(!sampler.of(seq(1), "stripe", not).is_sampled);
    }
    let (few, many) = (Sampler::new(house(), 0.1), Sampler::new(house(), 0.5));
    let is = |sampler: Sampler, n| sampler.of(seq(n), "stripe", None).is_sampled;
    assert!((0..10_000).all(|n| !is(few, n) || is(many, n)), "who samples more has the others', too");
}

fn call(at: i64, took_ms: i64, status: i32, reason: Option<&str>) -> Attempt {
    Attempt {
        at: ms(at),
        took_ms,
        status: Some(status),
        reason: reason.map(str::to_owned),
        error: None,
        headers: None,
        body: None,
    }
}

fn rows() -> Vec<TraceRows> {
    let settled = |n, at| JobRows {
        job: seq(n),
        lane: Lane::settle(),
        attempts: 1,
        calls: Vec::new(),
        end: RunEnd::Done(ms(at)),
    };
    let delivered = JobRows {
        job: seq(3),
        lane: Lane::to_route("app"),
        attempts: 2,
        calls: vec![(1, call(5, 20, 500, Some("server_error"))), (2, call(1_005, 10, 200, None))],
        end: RunEnd::Done(ms(1_016)),
    };
    let dead = JobRows {
        job: seq(4),
        lane: Lane::to_route("old"),
        attempts: 1,
        calls: vec![(1, call(6, 1, 410, Some("gone")))],
        end: RunEnd::Dead { reason: "gone".into(), at: ms(8) },
    };
    let notify = JobRows { job: seq(5), lane: Lane::notify(), ..settled(5, 9) };
    let notice = NoticeRows {
        id: "ntc_1".into(),
        channel: "ops".into(),
        job: seq(6),
        steps: vec![
            Step::new(ms(10), NoticeStatus::Queued),
            Step::new(ms(11), NoticeStatus::Sending),
            Step::new(ms(13), NoticeStatus::Retrying).because("server_error", "500"),
            Step::new(ms(2_000), NoticeStatus::Sending),
            Step::new(ms(2_004), NoticeStatus::Sent),
        ],
    };
    let first = TraceRows {
        seq: Some(seq(1)),
        source: "stripe".into(),
        event_id: "evt_1".into(),
        event_type: "charge.succeeded".into(),
        payment: Some("pay_1".into()),
        received_at: ms(0),
        headers: format!(r#"[["traceparent","{GOOD}"],["x","y"]]"#),
        jobs: vec![settled(1, 3)],
        ..TraceRows::default()
    };
    let told = TraceRows {
        seq: Some(seq(2)),
        source: "sekisho".into(),
        event_id: "paid/pay_1".into(),
        event_type: "payment.paid".into(),
        received_at: ms(3),
        headers: "[]".into(),
        cause: Some(seq(1)),
        jobs: vec![settled(2, 4), delivered, dead, notify],
        notices: vec![notice],
        ..TraceRows::default()
    };
    vec![first, told]
}

#[test]
fn h3_a_trace_is_put_together_from_rows() {
    let spans = rebuild(&Sampler::new(house(), 0.0), &rows());
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    let expected = [
        "POST /webhooks/stripe",
        "settle",
        "announce payment.paid",
        "settle",
        "deliver app",
        "deliver app",
        "deliver old",
        "notify",
        "send ops",
        "send ops",
    ];
    assert_eq!(names, expected);
    let carried = Traceparent::parse(GOOD).unwrap();
    assert!(spans.iter().all(|span| span.trace == carried.trace), "one trace");
    let ids: BTreeSet<_> = spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), spans.len());
    let parents: Vec<_> = spans.iter().map(|span| span.parent).collect();
    let at = |n: usize| Some(spans[n].id);
    assert_eq!(
        parents,
        [Some(carried.span), at(0), at(1), at(2), at(2), at(2), at(2), at(2), at(7), at(7)],
        "whatever follows hangs below what it follows from"
    );
    let errors: Vec<_> = spans.iter().map(|span| span.error.as_deref()).collect();
    let failed = [(4, "server_error"), (6, "gone"), (8, "server_error")];
    for (n, error) in errors.iter().enumerate() {
        assert_eq!(*error, failed.iter().find(|(at, _)| *at == n).map(|(_, word)| *word), "{}", names[n]);
    }
    let took = |n: usize| spans[n].end_us - spans[n].start_us;
    assert_eq!((took(4), took(5), took(8), took(9)), (20_000, 10_000, 2_000, 4_000));
    assert!(spans.iter().all(|span| span.start_us <= span.end_us));
}

#[test]
fn h3_what_is_recorded_while_it_runs_has_the_same_ids_as_what_is_rebuilt() {
    let sampler = Sampler::new(house(), 1.0);
    let spans = rebuild(&sampler, &rows());
    assert_eq!(spans[0].id, house().span_of(seq(1)));
    assert_eq!(spans[1].id, house().span_of_run(JobKind::Settle, seq(1), 1));
    assert_eq!(spans[5].id, house().span_of_run(JobKind::Deliver, seq(3), 2));
    assert_eq!(spans[9].id, house().span_of_run(JobKind::Send, seq(6), 2));
}

#[test]
fn h3_an_event_of_nothing_has_a_trace_too() {
    let alone = TraceRows { seq: Some(seq(1)), source: "stripe".into(), ..TraceRows::default() };
    let spans = rebuild(&Sampler::new(house(), 0.0), &[alone, TraceRows::default()]);
    assert_eq!((spans.len(), spans[0].trace, spans[0].parent), (1, house().trace_of(seq(1)), None));
}
