use super::*;

const NOW: Time = Time::from_ms(1_780_272_000_000);
const MINUTE: i64 = 60_000;
const PACE: AlertPace = AlertPace { hold_ms: 2 * MINUTE, clear_ms: 10 * MINUTE, repeats_when_doubled: false };

fn reading(sight: Sight, measure: i64) -> AlertReading {
    AlertReading {
        alert: AlertName::WorkerErrors,
        subject: "to:app".into(),
        sight,
        measure,
        value: measure.to_string(),
        threshold: "5".into(),
    }
}

/// What is told, minute by minute, of these sights.
fn told(state: &mut AlertState, pace: AlertPace, from: i64, sights: &[Sight]) -> Vec<(i64, AlertStep)> {
    let mut all = Vec::new();
    for (n, sight) in sights.iter().enumerate() {
        let minute = from + n as i64;
        let (next, step) = state.step(&reading(*sight, 7), pace, NOW.plus_ms(minute * MINUTE));
        *state = next;
        all.extend(step.map(|step| (minute, step)));
    }
    all
}

#[test]
fn h4_it_fires_when_it_was_so_for_its_hold_time_and_not_before() {
    use Sight::{Between, Clear, Over, TooLittle};
    for (sights, expected) in [
        (vec![Over, Over], vec![]),
        (vec![Over, Over, Over], vec![(2, AlertStep::Fired)]),
        (vec![Over, Clear, Over, Over], vec![]),
        (vec![Over, Between, Over, Over], vec![]),
        // What can't be said leaves it as it is: neither further nor back.
        (vec![Over, TooLittle, Over], vec![(2, AlertStep::Fired)]),
        (vec![TooLittle, TooLittle, TooLittle, TooLittle], vec![]),
    ] {
        let mut state = AlertState::default();
        assert_eq!(told(&mut state, PACE, 0, &sights), expected, "{sights:?}");
    }
    let mut at_once = AlertState::default();
    let pace = AlertPace { hold_ms: 0, ..PACE };
    assert_eq!(told(&mut at_once, pace, 0, &[Over]), [(0, AlertStep::Fired)]);
}

fn firing() -> AlertState {
    let mut state = AlertState::default();
    assert_eq!(told(&mut state, PACE, 0, &[Sight::Over; 3]).len(), 1);
    state
}

#[test]
fn h4_it_is_over_when_it_looked_well_for_its_time_and_flapping_is_one_incident() {
    use Sight::{Between, Clear, Over, TooLittle};
    let mut state = firing();
    assert_eq!(told(&mut state, PACE, 3, &[Clear; 10]), []);
    assert_eq!(told(&mut state, PACE, 13, &[Clear]), [(13, AlertStep::Resolved)]);
    assert_eq!((state.phase, state.incidents), (AlertPhase::Ok, 1));
    for flap in [Over, Between] {
        let mut state = firing();
        for round in 0..20 {
            let sights = [Clear, Clear, Clear, Clear, Clear, flap];
            assert_eq!(told(&mut state, PACE, 3 + round * 6, &sights), [], "{flap:?}");
        }
        assert_eq!((state.phase, state.incidents), (AlertPhase::Firing, 1));
    }
    let mut state = firing();
    assert_eq!(told(&mut state, PACE, 3, &[TooLittle; 60]), []);
    assert_eq!(state.phase, AlertPhase::Firing, "nothing was seen, so nothing is over");
    let mut next = firing();
    told(&mut next, PACE, 3, &[Clear; 11]);
    assert_eq!(told(&mut next, PACE, 20, &[Over; 3]), [(22, AlertStep::Fired)]);
    assert_eq!(next.incidents, 2);
}

#[test]
fn h4_it_is_told_again_after_hours_if_it_grew_and_after_a_day_in_any_case() {
    let after = |state: &AlertState, hours: i64, measure| {
        let at = NOW.plus_ms(2 * MINUTE + hours * HOUR_MS);
        state.step(&reading(Sight::Over, measure), PACE, at).1
    };
    let state = firing();
    assert_eq!(after(&state, 3, 99), None);
    assert_eq!(after(&state, 4, 7), None, "it did not grow");
    assert_eq!(after(&state, 4, 8), Some(AlertStep::Repeated));
    assert_eq!(after(&state, 24, 1), Some(AlertStep::Repeated));
    let doubled = AlertPace { repeats_when_doubled: true, ..PACE };
    let soon = NOW.plus_ms(3 * MINUTE);
    assert_eq!(state.step(&reading(Sight::Over, 13), doubled, soon).1, None);
    assert_eq!(state.step(&reading(Sight::Over, 14), doubled, soon).1, Some(AlertStep::Repeated));
}

fn silenced(mut state: AlertState, minutes: i64) -> AlertState {
    let until = NOW.plus_ms(minutes * MINUTE);
    state.silence = Some(AlertSilence { until, by: "tomo".into(), reason: "planned".into() });
    state
}

#[test]
fn h4_what_still_fires_when_its_silence_ends_is_told_then() {
    use Sight::{Clear, Over};
    let mut state = silenced(AlertState::default(), 10);
    assert_eq!(told(&mut state, PACE, 0, &[Over; 10]), []);
    assert_eq!(state.phase, AlertPhase::Firing);
    assert_eq!(told(&mut state, PACE, 10, &[Over]), [(10, AlertStep::Fired)]);
    assert_eq!(state.silence, None);
    // The same when nothing can be said at that moment.
    let mut state = silenced(AlertState::default(), 10);
    told(&mut state, PACE, 0, &[Over; 10]);
    assert_eq!(told(&mut state, PACE, 10, &[Sight::TooLittle]), [(10, AlertStep::Fired)]);
    // What came and went meanwhile is nobody's news.
    let mut state = silenced(AlertState::default(), 60);
    told(&mut state, PACE, 0, &[Over; 3]);
    assert_eq!(told(&mut state, PACE, 3, &[Clear; 20]), []);
    assert_eq!(state.phase, AlertPhase::Ok);
    // What was told before is told to be over.
    let mut state = silenced(firing(), 600);
    assert_eq!(told(&mut state, PACE, 3, &[Clear; 11]), [(13, AlertStep::Resolved)]);
}

#[test]
fn h4_a_state_of_a_newer_version_keeps_what_it_says_and_one_that_cannot_be_read_is_refused() {
    let newer = r#"{"phase":"firing","incidents":3,"since":"2026-05-28T09:00:00.000Z","team":"night"}"#;
    let state: AlertState = serde_json::from_str(newer).unwrap();
    assert_eq!((state.phase, state.incidents), (AlertPhase::Firing, 3));
    assert_eq!(serde_json::to_value(&state).unwrap()["team"], "night");
    assert!(serde_json::from_str::<AlertState>(r#"{"phase":"escalated"}"#).is_err());
}

#[test]
fn h4_an_id_names_alert_and_subject() {
    let id = alert_id(AlertName::Unusual, "stripe/charge.failed");
    assert_eq!(parse_alert_id(&id), Some((AlertName::Unusual, "stripe/charge.failed")));
    assert_eq!(parse_alert_id("publish_failures"), Some((AlertName::PublishFailures, "")));
    assert_eq!(parse_alert_id("nonsense/x"), None);
}

fn known(alert: AlertName, subject: &str, state: AlertState) -> ((AlertName, String), AlertState) {
    ((alert, subject.into()), state)
}

#[test]
fn h4_what_is_no_longer_there_is_over_and_what_could_not_be_read_stays() {
    let letters = AlertState { phase: AlertPhase::Firing, told_at: Some(NOW), ..AlertState::default() };
    let states = BTreeMap::from([
        known(AlertName::DeadLetters, "to:app", letters.clone()),
        known(AlertName::Unusual, "stripe/x", letters.clone()),
    ]);
    let policy = AlertPolicy::default();
    let all = evaluate(&states, Vec::new(), &[AlertName::Unusual], &policy, 0, NOW);
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!((one.alert, one.step), (AlertName::DeadLetters, Some(AlertStep::Resolved)));
    let off = AlertPolicy { off: vec![crate::pattern::Pattern::new("worker_errors/to:a*")], ..policy };
    let over = AlertReading { alert: AlertName::DeadLetters, ..reading(Sight::Over, 3) };
    let readings = vec![reading(Sight::Over, 1), over];
    let all = evaluate(&BTreeMap::new(), readings, &[], &off, 0, NOW);
    assert_eq!(all.iter().map(|one| one.alert).collect::<Vec<_>>(), [AlertName::DeadLetters]);
}

#[test]
fn h4_a_silence_of_an_alert_is_one_of_all_its_subjects() {
    let general = silenced(AlertState::default(), 10);
    let states = BTreeMap::from([known(AlertName::DeadLetters, "", general)]);
    let readings = || vec![AlertReading { alert: AlertName::DeadLetters, ..reading(Sight::Over, 1) }];
    let policy = AlertPolicy::default();
    let steps = |states: &_, minutes: i64| {
        let now = NOW.plus_ms(minutes * MINUTE);
        let all = evaluate(states, readings(), &[], &policy, 0, now);
        let told = all.iter().find(|one| one.subject == "to:app").and_then(|one| one.step);
        (told, all.into_iter().map(|one| known(one.alert, &one.subject, one.state)))
    };
    let (told, after) = steps(&states, 0);
    assert_eq!(told, None);
    let mut later = states.clone();
    later.extend(after);
    assert_eq!(steps(&later, 10).0, Some(AlertStep::Fired));
}
