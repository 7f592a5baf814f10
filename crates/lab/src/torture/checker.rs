//! Were all promises kept? Joins what the provider was told, what the store holds and what the application did.
//!
//! Pure: [`Evidence`] in, [`Findings`] out, so that made-up ledgers show that it can find each kind of wrong.
//!
//! What counts as a stale write, seen from outside: a job that ended and is still there, or ended twice; a try recorded
//! after the end or beside a success; a success the application did not answer; a request with a later attempt than the
//! one that ended the job. A write that a fence let through by mistake would show as one of these.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use super::report::Findings;

/// A route of the torture's configuration: one path at the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenRoute {
    pub name: &'static str,
    /// Gets only `payment_intent.…`.
    pub only_payments: bool,
    pub fifo: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub routes: Vec<SeenRoute>,
    /// Answered 2xx; may hold an id more than once.
    pub acknowledged: Vec<String>,
    /// Acknowledged, but not at the first try.
    pub resent: HashSet<String>,
    /// Everything genuine that may have been sent.
    pub sent: Vec<String>,
    pub forgeries_accepted: u64,
    pub events: Vec<CheckedEvent>,
    pub outcomes: Vec<SeenOutcome>,
    pub attempts: Vec<SeenAttempt>,
    pub dead: Vec<Left>,
    pub left: Vec<Left>,
    /// Everything the application was asked, in the order it finished.
    pub requests: Vec<SeenRequest>,
    /// Repeats that kills and pauses may have caused: what was leased when they struck.
    pub repeats_allowed: u64,
    /// What one node took in and settled is in order. With one node at a time, everything is.
    pub one_node_at_a_time: bool,
}

#[derive(Clone, Debug)]
pub struct CheckedEvent {
    pub seq: i64,
    pub id: String,
    pub kind: String,
    /// The FIFO key.
    pub object: String,
}

#[derive(Clone, Debug)]
pub struct SeenOutcome {
    pub job: i64,
    pub result: String,
    pub attempts: u32,
    /// The route, and the event delivered; `None` for a settling.
    pub delivered: Option<(String, i64)>,
}

#[derive(Clone, Debug)]
pub struct SeenAttempt {
    pub job: i64,
    pub n: u32,
    pub well: bool,
}

/// A job that has not ended, or ended before a person.
#[derive(Clone, Debug)]
pub struct Left {
    pub job: i64,
    pub event: i64,
    /// Empty for a settling.
    pub route: String,
    pub what: String,
}

#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// 0 when it named no message of ours.
    pub message: i64,
    pub event: String,
    pub attempt: u32,
    pub route: String,
    pub at_ms: u64,
    /// Did its work, and said so with a 2xx.
    pub answered_well: bool,
    /// Did its work, whether or not it said so.
    pub processed: bool,
}

pub fn check(evidence: &Evidence) -> Findings {
    let mut findings = Findings::default();
    arrivals(evidence, &mut findings);
    deliveries(evidence, &mut findings);
    endings(evidence, &mut findings);
    repeats(evidence, &mut findings);
    order(evidence, &mut findings);
    findings
}

/// Each acknowledged event is stored once; nothing else is stored.
fn arrivals(evidence: &Evidence, findings: &mut Findings) {
    let mut stored: BTreeMap<&str, u32> = BTreeMap::new();
    for event in &evidence.events {
        *stored.entry(&event.id).or_default() += 1;
    }
    let acknowledged: BTreeSet<&str> = evidence.acknowledged.iter().map(String::as_str).collect();
    let sent: HashSet<&str> = evidence.sent.iter().map(String::as_str).collect();
    findings.acknowledged = acknowledged.len() as u64;
    findings.stored = evidence.events.len() as u64;
    for id in acknowledged {
        if !stored.contains_key(id) {
            findings.lost.push(format!("{id} was acknowledged and is not stored"));
        }
    }
    for (id, times) in stored {
        if times > 1 {
            findings.doubled.push(format!("{id} is stored {times} times"));
        }
        if !sent.contains(id) {
            findings.invented.push(format!("{id} is stored and was never sent"));
        }
    }
    if evidence.forgeries_accepted > 0 {
        findings.invented.push(format!("{} forgeries were answered 2xx", evidence.forgeries_accepted));
    }
}

/// Each stored event was settled, and reached every route that wants it as one message.
fn deliveries(evidence: &Evidence, findings: &mut Findings) {
    let settled: HashSet<i64> = evidence
        .outcomes
        .iter()
        .filter(|outcome| outcome.delivered.is_none())
        .map(|outcome| outcome.job)
        .collect();
    let mut messages: BTreeMap<(&str, &str), BTreeSet<i64>> = BTreeMap::new();
    let mut processed: HashSet<(&str, &str)> = HashSet::new();
    for request in &evidence.requests {
        let effect = (request.event.as_str(), request.route.as_str());
        messages.entry(effect).or_default().insert(request.message);
        if request.processed {
            processed.insert(effect);
        }
    }
    findings.effects = processed.len() as u64;
    let known: HashSet<&str> = evidence.events.iter().map(|event| event.id.as_str()).collect();
    for (effect, messages) in &messages {
        if messages.len() > 1 {
            findings.doubled.push(format!("{} at {}: messages {messages:?}", effect.0, effect.1));
        }
        if !known.contains(effect.0) {
            findings.invented.push(format!("{} at {} is an event nobody stored", effect.0, effect.1));
        }
    }
    let mut ended: HashMap<(i64, &str), u32> = HashMap::new();
    for outcome in &evidence.outcomes {
        if let Some((route, event)) = &outcome.delivered {
            *ended.entry((*event, route)).or_default() += 1;
        }
    }
    // What waits, or was buried, is not lost: it is found as such.
    let kept: HashSet<(i64, &str)> =
        evidence.left.iter().chain(&evidence.dead).map(|left| (left.event, left.route.as_str())).collect();
    for event in &evidence.events {
        if !settled.contains(&event.seq) {
            if !kept.contains(&(event.seq, "")) {
                let (id, seq) = (&event.id, event.seq);
                findings.lost.push(format!("{id} ({seq}) was never settled, and nothing will settle it"));
            }
            continue;
        }
        for route in evidence.routes.iter().filter(|route| route.wants(&event.kind)) {
            let ends = ended.get(&(event.seq, route.name)).copied().unwrap_or_default();
            if ends > 1 {
                findings.doubled.push(format!("{} ended {ends} times for route {}", event.id, route.name));
            }
            let reached = processed.contains(&(event.id.as_str(), route.name));
            if !reached && !kept.contains(&(event.seq, route.name)) {
                findings.lost.push(format!("{} ({}) never reached {}", event.id, event.seq, route.name));
            }
        }
    }
    findings.left.extend(evidence.left.iter().map(|left| format!("job {}: {}", left.job, left.what)));
    findings.buried.extend(evidence.dead.iter().map(|dead| format!("job {}: {}", dead.job, dead.what)));
}

impl SeenRoute {
    fn wants(&self, kind: &str) -> bool {
        !self.only_payments || kind.starts_with("payment_intent.")
    }
}

/// Each job has one end, and nothing happened after it.
fn endings(evidence: &Evidence, findings: &mut Findings) {
    let mut ends: HashMap<i64, &SeenOutcome> = HashMap::new();
    for outcome in &evidence.outcomes {
        if ends.insert(outcome.job, outcome).is_some() {
            findings.stale.push(format!("job {} has two outcomes", outcome.job));
        }
    }
    for job in evidence.left.iter().map(|left| left.job).chain(evidence.dead.iter().map(|dead| dead.job)) {
        if ends.contains_key(&job) {
            findings.stale.push(format!("job {job} has an outcome and is still there"));
        }
    }
    let answered: HashSet<(i64, u32)> = evidence
        .requests
        .iter()
        .filter(|request| request.answered_well)
        .map(|request| (request.message, request.attempt))
        .collect();
    let mut tries: BTreeMap<i64, BTreeMap<u32, bool>> = BTreeMap::new();
    for attempt in &evidence.attempts {
        if tries.entry(attempt.job).or_default().insert(attempt.n, attempt.well).is_some() {
            findings.stale.push(format!("job {} has two tries numbered {}", attempt.job, attempt.n));
        }
    }
    for (job, tries) in tries {
        let Some(end) = ends.get(&job) else { continue };
        for (n, well) in tries {
            if n > end.attempts {
                findings.stale.push(format!("job {job} ended with try {} and has a try {n}", end.attempts));
            } else if well && n < end.attempts {
                findings
                    .stale
                    .push(format!("job {job} succeeded with try {n} and ended with try {}", end.attempts));
            } else if well && !answered.contains(&(job, n)) {
                findings.stale.push(format!("job {job}: try {n} is a success the application never gave"));
            }
        }
    }
    for outcome in evidence.outcomes.iter().filter(|outcome| outcome.delivered.is_some()) {
        if outcome.result == "success" && !answered.contains(&(outcome.job, outcome.attempts)) {
            let (job, n) = (outcome.job, outcome.attempts);
            findings
                .stale
                .push(format!("job {job} ended well with try {n}, which the application never answered"));
        }
    }
    for request in &evidence.requests {
        if let Some(end) = ends.get(&request.message)
            && request.attempt > end.attempts
        {
            let (job, n) = (request.message, request.attempt);
            findings
                .stale
                .push(format!("job {job} ended with try {} and was tried again as {n}", end.attempts));
        }
    }
}

/// A message answered 2xx more than once: the answer, or its commit, was lost on the way.
fn repeats(evidence: &Evidence, findings: &mut Findings) {
    let mut well: HashMap<i64, u64> = HashMap::new();
    for request in evidence.requests.iter().filter(|request| request.answered_well) {
        *well.entry(request.message).or_default() += 1;
    }
    findings.repeats = well.values().map(|times| times - 1).sum();
    findings.repeats_allowed = evidence.repeats_allowed;
    findings.repeats_of_drops =
        evidence.requests.iter().filter(|request| request.processed && !request.answered_well).count() as u64;
}

/// The first processing of each key's events follows their arrival. Message numbers say nothing about that: they are
/// given when an event is settled, in whatever order that happens.
fn order(evidence: &Evidence, findings: &mut Findings) {
    let events: HashMap<&str, &CheckedEvent> =
        evidence.events.iter().map(|event| (event.id.as_str(), event)).collect();
    let fifo: HashSet<&str> =
        evidence.routes.iter().filter(|route| route.fifo).map(|route| route.name).collect();
    let again: HashSet<i64> =
        evidence.outcomes.iter().filter(|outcome| outcome.attempts > 1).map(|outcome| outcome.job).collect();
    let mut seen: HashSet<(&str, i64)> = HashSet::new();
    let mut last: HashMap<(&str, &str, Option<Nodes>), (&CheckedEvent, Nodes)> = HashMap::new();
    let mut last_of_all: HashMap<(&str, &str), i64> = HashMap::new();
    for request in &evidence.requests {
        let route = request.route.as_str();
        let Some(event) = events.get(request.event.as_str()).copied() else { continue };
        if !fifo.contains(route) || !request.processed || !seen.insert((route, event.seq)) {
            continue;
        }
        findings.ordered += 1;
        let object = event.object.as_str();
        let newest = last_of_all.entry((route, object)).or_default();
        let is_overtaken = *newest > event.seq;
        *newest = event.seq.max(*newest);
        let nodes = Nodes { took_in: node_of(event.seq), settled: node_of(request.message) };
        let was_handed_over = nodes.took_in != nodes.settled || again.contains(&event.seq);
        let may_be_late = evidence.resent.contains(&event.id);
        if !evidence.one_node_at_a_time && (was_handed_over || may_be_late) {
            // Another node settled it or had it for a while, or its batch took longer than a webhook may wait: order is
            // not promised (ADR 11).
            findings.overtaken_across_nodes += u64::from(is_overtaken);
            continue;
        }
        let kept_apart = (!evidence.one_node_at_a_time).then_some(nodes);
        let before = last.entry((route, object, kept_apart)).or_insert((event, nodes));
        if before.0.seq > event.seq {
            let (late, early) = (&event.id, &before.0.id);
            findings
                .disordered
                .push(format!("{object} at {route}: {late} ({nodes}) came after {early} ({})", before.1));
        } else {
            findings.overtaken_across_nodes += u64::from(is_overtaken);
            *before = (event, nodes);
        }
    }
}

/// The nodes that had an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Nodes {
    took_in: i64,
    settled: i64,
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "taken in by epoch {}, settled by {}", self.took_in, self.settled)
    }
}

/// The node bits of an id.
fn node_of(seq: i64) -> i64 {
    (seq >> 12) & 1023
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIFO: SeenRoute = SeenRoute { name: "fifo", only_payments: false, fifo: true };
    const PAID: SeenRoute = SeenRoute { name: "paid", only_payments: true, fifo: false };

    /// Two events about one object, the second a refund, all as it should be.
    fn good() -> Evidence {
        let event = |seq, id: &str, kind: &str| CheckedEvent {
            seq,
            id: id.into(),
            kind: kind.into(),
            object: "pi_1".into(),
        };
        let settled = |job| SeenOutcome { job, result: "success".into(), attempts: 1, delivered: None };
        let done = |job, route: &str, event, attempts| SeenOutcome {
            job,
            result: "success".into(),
            attempts,
            delivered: Some((route.into(), event)),
        };
        let request = |message, event: &str, route: &str, attempt, answered_well| SeenRequest {
            message,
            event: event.into(),
            attempt,
            route: route.into(),
            at_ms: 0,
            answered_well,
            processed: true,
        };
        let attempt = |job, n, well| SeenAttempt { job, n, well };
        Evidence {
            routes: vec![FIFO, PAID],
            acknowledged: vec!["a".into(), "b".into(), "b".into()],
            sent: vec!["a".into(), "b".into(), "c".into()],
            events: vec![event(1, "a", "payment_intent.succeeded"), event(2, "b", "charge.refunded")],
            outcomes: vec![
                settled(1),
                settled(2),
                done(11, "fifo", 1, 2),
                done(12, "paid", 1, 1),
                done(13, "fifo", 2, 1),
            ],
            attempts: vec![
                attempt(11, 1, false),
                attempt(11, 2, true),
                attempt(12, 1, true),
                attempt(13, 1, true),
            ],
            requests: vec![
                request(11, "a", "fifo", 1, false),
                request(12, "a", "paid", 1, true),
                request(11, "a", "fifo", 2, true),
                request(13, "b", "fifo", 1, true),
            ],
            one_node_at_a_time: true,
            ..Evidence::default()
        }
    }

    fn left(job: i64) -> Left {
        Left { job, event: 0, route: "fifo".into(), what: "somewhere".into() }
    }

    /// Other numbers for the messages, everywhere they are named.
    fn renumber(evidence: &mut Evidence, number: impl Fn(i64) -> i64) {
        for request in &mut evidence.requests {
            request.message = number(request.message);
        }
        for outcome in evidence.outcomes.iter_mut().filter(|outcome| outcome.delivered.is_some()) {
            outcome.job = number(outcome.job);
        }
        for attempt in &mut evidence.attempts {
            attempt.job = number(attempt.job);
        }
    }

    /// Spoils good evidence and expects just this kind of finding.
    fn spoiled(expected: &str, spoil: impl FnOnce(&mut Evidence)) {
        let mut evidence = good();
        spoil(&mut evidence);
        let findings = check(&evidence);
        let found: Vec<_> = findings.violations().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(found, [expected], "{findings:#?}");
    }

    #[test]
    fn good_ledgers_pass_and_a_dropped_answer_is_counted_as_such() {
        let findings = check(&good());
        assert!(findings.violations().is_empty(), "{findings:#?}");
        assert_eq!((findings.acknowledged, findings.stored, findings.effects), (2, 2, 3));
        assert_eq!((findings.repeats, findings.repeats_of_drops, findings.ordered), (0, 1, 2));
    }

    #[test]
    fn a5_an_acknowledged_event_that_is_not_stored_is_lost() {
        spoiled("lost", |evidence| evidence.acknowledged.push("c".into()));
    }

    #[test]
    fn a_route_that_was_not_reached_is_a_loss() {
        spoiled("lost", |evidence| {
            evidence.requests.remove(1);
            evidence.outcomes.remove(3);
            evidence.attempts.remove(2);
        });
        spoiled("lost", |evidence| drop(evidence.outcomes.remove(1)));
    }

    #[test]
    fn two_messages_for_one_effect_and_two_rows_for_one_event_are_doubles() {
        spoiled("doubled effects", |evidence| {
            let again = SeenRequest { message: 14, ..evidence.requests[1].clone() };
            evidence.requests.push(again);
        });
        spoiled("doubled effects", |evidence| {
            evidence.outcomes.push(SeenOutcome { job: 14, ..evidence.outcomes[3].clone() });
            evidence.requests.push(SeenRequest {
                message: 14,
                event: "a".into(),
                ..evidence.requests[1].clone()
            });
        });
        spoiled("doubled effects", |evidence| {
            evidence.events.push(CheckedEvent { seq: 3, ..evidence.events[1].clone() });
            evidence.outcomes.push(SeenOutcome { job: 3, ..evidence.outcomes[1].clone() });
        });
    }

    #[test]
    fn events_nobody_sent_are_inventions() {
        spoiled("invented", |evidence| evidence.sent.retain(|id| id != "b"));
        spoiled("invented", |evidence| evidence.forgeries_accepted = 1);
        spoiled("invented", |evidence| {
            let ghost = SeenRequest { message: 99, event: "ghost".into(), ..evidence.requests[1].clone() };
            evidence.requests.push(ghost);
        });
    }

    #[test]
    fn what_a_stale_writer_leaves_behind_is_seen() {
        spoiled("stale writes", |evidence| {
            evidence.attempts.push(SeenAttempt { job: 12, n: 2, well: false });
        });
        spoiled("stale writes", |evidence| evidence.attempts[0].well = true);
        spoiled("stale writes", |evidence| evidence.outcomes[3].attempts = 2);
        spoiled("stale writes", |evidence| evidence.outcomes.push(evidence.outcomes[0].clone()));
        spoiled("stale writes", |evidence| {
            let later = SeenRequest { attempt: 3, answered_well: false, ..evidence.requests[1].clone() };
            evidence.requests.push(later);
        });
        spoiled("stale writes", |evidence| {
            evidence.requests[3].answered_well = false;
        });
    }

    #[test]
    fn c4_an_event_out_of_turn_is_disorder_and_its_repeat_is_not() {
        spoiled("disordered", |evidence| evidence.requests.rotate_right(1));
        let mut evidence = good();
        evidence.repeats_allowed = 1;
        let repeat = evidence.requests[2].clone();
        evidence.requests.push(repeat);
        let findings = check(&evidence);
        assert!(findings.violations().is_empty(), "{findings:#?}");
        assert_eq!(findings.repeats, 1);
    }

    /// As when two events of one batch are settled the wrong way round: their messages then come in the order of
    /// their own numbers, and the application has the refund before the payment.
    #[test]
    fn c4_numbers_that_rise_do_not_excuse_events_out_of_turn() {
        spoiled("disordered", |evidence| {
            renumber(evidence, |message| if message == 13 { 10 } else { message });
            evidence.requests.rotate_right(1);
        });
        let mut evidence = good();
        renumber(&mut evidence, |message| if message == 13 { 10 } else { message });
        let findings = check(&evidence);
        assert!(findings.violations().is_empty(), "events in order are in order: {findings:#?}");
    }

    #[test]
    fn c4_across_nodes_only_what_the_same_node_took_in_and_settled_is_in_order() {
        let at = |node: i64, n: i64| (node << 12) + n;
        // Both events were taken in by node 6, and the later one was settled there. It comes first.
        let overtaken = |settled_by: i64| {
            let mut evidence = good();
            evidence.one_node_at_a_time = false;
            evidence.events.iter_mut().for_each(|event| event.seq = at(6, event.seq));
            for outcome in &mut evidence.outcomes {
                match &mut outcome.delivered {
                    Some((_, event)) => *event = at(6, *event),
                    None => outcome.job = at(6, outcome.job),
                }
            }
            renumber(&mut evidence, |message| at(if message == 13 { 6 } else { settled_by }, message));
            evidence.requests.rotate_right(1);
            let findings = check(&evidence);
            (findings.disordered.len(), findings.overtaken_across_nodes)
        };
        assert_eq!(overtaken(6), (1, 0));
        assert_eq!(overtaken(5), (0, 1), "another node settled the earlier one");
    }

    #[test]
    fn c4_an_event_whose_settling_was_cut_off_may_have_been_with_another_node_in_between() {
        let overtaken = |one_node_at_a_time| {
            let mut evidence = Evidence { one_node_at_a_time, ..good() };
            evidence.requests.rotate_right(1);
            let events: Vec<i64> = evidence.events.iter().map(|event| event.seq).collect();
            let settlings = evidence.outcomes.iter_mut().filter(|outcome| events.contains(&outcome.job));
            settlings.for_each(|outcome| outcome.attempts = 2);
            let findings = check(&evidence);
            (findings.disordered.len(), findings.overtaken_across_nodes)
        };
        assert_eq!(overtaken(true), (1, 0), "where there is one node, it had them all the time");
        assert_eq!(overtaken(false), (0, 1));
    }

    #[test]
    fn c4_an_event_that_was_sent_again_may_have_been_stored_late() {
        let mut evidence = Evidence { one_node_at_a_time: false, ..good() };
        evidence.requests.rotate_right(1);
        assert_eq!(check(&evidence).disordered.len(), 1);
        evidence.resent.insert("a".into());
        let findings = check(&evidence);
        assert_eq!((findings.disordered.len(), findings.overtaken_across_nodes), (0, 1));
    }

    #[test]
    fn repeats_beyond_what_kills_explain_dead_letters_and_leftovers_are_found() {
        spoiled("unexplained repeats", |evidence| {
            let repeat = evidence.requests[2].clone();
            evidence.requests.push(repeat);
        });
        spoiled("wrongly buried", |evidence| {
            evidence.dead.push(left(77));
        });
        spoiled("unfinished", |evidence| {
            evidence.left.push(left(78));
        });
        // A message that still waits is unfinished, not lost.
        spoiled("unfinished", |evidence| {
            evidence.requests.remove(1);
            evidence.outcomes.remove(3);
            evidence.attempts.remove(2);
            evidence.left.push(Left { event: 1, route: "paid".into(), ..left(12) });
        });
    }
}
