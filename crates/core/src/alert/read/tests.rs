use super::*;
use crate::meter::{LaneMeter, SourceMeter};
use crate::reconcile::RunFigures;
use crate::time::HOUR_MS;

const NOW: Time = Time::from_ms(1_780_272_000_000);
const MINUTE: i64 = 60_000;

/// One period that began so many minutes ago.
fn log(minutes_ago: i64, meter: Meter) -> MeterLog {
    MeterLog { periods: vec![(NOW.plus_ms(-minutes_ago * MINUTE), meter)], ..MeterLog::default() }
}

fn sighting(meters: &MeterLog) -> Sighting<'_> {
    Sighting {
        now: NOW,
        meters,
        work: Vec::new(),
        dead: BTreeMap::new(),
        open: BTreeSet::new(),
        sources: Vec::new(),
        types: None,
        routes: vec!["to:app".into()],
        mail: vec!["mail".into()],
        reconcile_every_ms: 5 * MINUTE,
    }
}

fn source(name: &str) -> SourceSight {
    SourceSight { name: name.into(), silent: None, is_heard: true, register: None }
}

/// What is read of one alert and subject, if anything.
fn seen(sighting: &Sighting<'_>, alert: AlertName, subject: &str) -> Option<Sight> {
    let all = read(sighting, &AlertPolicy::default());
    all.into_iter().find(|one| one.alert == alert && one.subject == subject).map(|one| one.sight)
}

#[test]
fn h4_publish_failures() {
    let published = |minutes, good, bad| {
        log(minutes, Meter { published: MeterTally { good, bad, bad_in_a_row: 0 }, ..Meter::default() })
    };
    for (minutes, good, bad, expected) in [
        (1, 99, 0, Sight::Clear),
        (1, 19, 0, Sight::TooLittle),
        (1, 990, 10, Sight::Between),
        (1, 989, 11, Sight::Over),
        (1, 996, 4, Sight::Clear),
        (1, 995, 5, Sight::Between),
        (1, 18, 1, Sight::TooLittle),
        (1, 19, 1, Sight::Over),
        (30, 19, 1, Sight::Over),
        (61, 19, 1, Sight::TooLittle),
    ] {
        let log = published(minutes, good, bad);
        let found = seen(&sighting(&log), AlertName::PublishFailures, "");
        assert_eq!(found, Some(expected), "{good} {bad} {minutes} minutes ago");
    }
}

fn lane(name: &str, good: u64, failed: u64) -> Meter {
    let lane = LaneMeter { good, failed, retries: 0, dead: 0 };
    Meter { lanes: BTreeMap::from([(name.to_owned(), lane)]), ..Meter::default() }
}

#[test]
fn h4_worker_errors() {
    for (name, subject, good, failed, expected) in [
        ("to:app", "to:app", 995, 5, Sight::Between),
        ("to:app", "to:app", 994, 6, Sight::Over),
        ("to:app", "to:app", 998, 2, Sight::Clear),
        ("to:app", "to:app", 48, 1, Sight::TooLittle),
        ("to:app", "to:app", 49, 1, Sight::Over),
        ("settle", "inside", 994, 6, Sight::Over),
        ("fetch:stripe", "inside", 994, 6, Sight::Over),
        ("timer", "inside", 0, 999, Sight::TooLittle),
    ] {
        let log = log(1, lane(name, good, failed));
        let found = seen(&sighting(&log), AlertName::WorkerErrors, subject);
        assert_eq!(found, Some(expected), "{name} {good} {failed}");
    }
}

#[test]
fn h4_dead_letters_and_old_ones() {
    let none = MeterLog::default();
    let with = |age_ms: i64| {
        let dead = DeadCount { count: 1, oldest: NOW.plus_ms(-age_ms) };
        Sighting { dead: BTreeMap::from([("to:app".to_owned(), dead)]), ..sighting(&none) }
    };
    assert_eq!(seen(&sighting(&none), AlertName::DeadLetters, "to:app"), None);
    assert_eq!(seen(&with(0), AlertName::DeadLetters, "to:app"), Some(Sight::Over));
    assert_eq!(seen(&sighting(&none), AlertName::DeadLettersOld, ""), Some(Sight::Clear));
    assert_eq!(seen(&with(DAY_MS), AlertName::DeadLettersOld, ""), Some(Sight::Clear));
    assert_eq!(seen(&with(DAY_MS + 1), AlertName::DeadLettersOld, ""), Some(Sight::Over));
}

#[test]
fn h4_slow() {
    let took = |ms: &[(i64, u64)]| {
        let mut times = LatencyCounts::default();
        ms.iter().for_each(|(ms, n)| times.count(LatencyCounts::bucket(*ms), *n));
        log(1, Meter { delivered: times, ..Meter::default() })
    };
    for (times, expected) in [
        (&[(5, 18), (60_000, 1)][..], Sight::TooLittle),
        (&[(5, 19), (60_000, 1)], Sight::Clear),
        (&[(5, 18), (60_000, 2)], Sight::Over),
        (&[(5, 18), (10_000, 2)], Sight::Between),
        (&[(5, 18), (10_001, 2)], Sight::Over),
        (&[(5, 18), (8_000, 2)], Sight::Clear),
        (&[(5, 18), (8_001, 2)], Sight::Between),
    ] {
        let log = took(times);
        assert_eq!(seen(&sighting(&log), AlertName::Slow, "delivered"), Some(expected), "{times:?}");
        assert_eq!(seen(&sighting(&log), AlertName::Slow, "settled"), Some(Sight::TooLittle));
    }
}

fn requests(accepted: u64, refused: u64, wrong_signature: u64) -> Meter {
    let meter = SourceMeter { accepted, refused, wrong_signature };
    Meter { sources: BTreeMap::from([("stripe".to_owned(), meter)]), ..Meter::default() }
}

#[test]
fn h4_rejections() {
    for (refused, before, expected) in [
        (19, 0, Sight::Between),
        (20, 0, Sight::Over),
        (9, 0, Sight::Clear),
        (10, 0, Sight::Between),
        // A mean of 10 in five minutes, with those of now: 5 × (10 + 1) are needed.
        (50, 288 * 10 - 50, Sight::Between),
        (56, 288 * 10 - 56, Sight::Over),
    ] {
        let mut log = log(1, requests(0, refused, 0));
        log.hours.insert(NOW.plus_ms(-5 * HOUR_MS), requests(0, before, 0));
        let sighting = Sighting { sources: vec![source("stripe")], ..sighting(&log) };
        assert_eq!(seen(&sighting, AlertName::Rejections, "stripe"), Some(expected), "{refused} {before}");
    }
}

#[test]
fn h4_wrong_secret() {
    for (minutes, accepted, wrong, expected) in [
        (1, 0, 4, Sight::Between),
        (1, 0, 5, Sight::Over),
        (14, 0, 5, Sight::Over),
        (16, 0, 5, Sight::Between),
        (1, 1, 500, Sight::Clear),
    ] {
        let log = log(minutes, requests(accepted, wrong, wrong));
        let sighting = Sighting { sources: vec![source("stripe")], ..sighting(&log) };
        assert_eq!(seen(&sighting, AlertName::WrongSecret, "stripe"), Some(expected), "{accepted} {wrong}");
    }
}

#[test]
fn h4_mail_failures() {
    for (good, bad, in_a_row, expected) in [
        (0, 0, 0, Sight::TooLittle),
        (14, 5, 4, Sight::Between),
        (14, 5, 0, Sight::Clear),
        (0, 5, 5, Sight::Over),
        (98, 2, 0, Sight::Between),
        (97, 3, 0, Sight::Over),
        (995, 5, 0, Sight::Clear),
        (995, 5, 1, Sight::Between),
    ] {
        let tally = MeterTally { good, bad, bad_in_a_row: in_a_row };
        let log = log(1, Meter { mail: BTreeMap::from([("mail".into(), tally)]), ..Meter::default() });
        let found = seen(&sighting(&log), AlertName::MailFailures, "mail");
        assert_eq!(found, Some(expected), "{good} {bad} {in_a_row}");
    }
}

#[test]
fn h4_late_and_stalled_and_down() {
    let none = MeterLog::default();
    let work = |ago_ms: i64, running| LaneWork {
        lane: "to:app".into(),
        running,
        oldest_due: Some(NOW.plus_ms(-ago_ms)),
    };
    let with = |ago_ms, running| Sighting { work: vec![work(ago_ms, running)], ..sighting(&none) };
    for (ago_ms, expected) in [
        (-HOUR_MS, Sight::Clear),
        (59_999, Sight::Clear),
        (MINUTE, Sight::Between),
        (5 * MINUTE, Sight::Between),
        (5 * MINUTE + 1, Sight::Over),
    ] {
        assert_eq!(seen(&with(ago_ms, 0), AlertName::Late, "to:app"), Some(expected), "{ago_ms}");
    }
    let open = Sighting { open: BTreeSet::from(["to:app".to_owned()]), ..with(HOUR_MS, 0) };
    assert_eq!(seen(&open, AlertName::Late, "to:app"), Some(Sight::Clear));
    assert_eq!(seen(&open, AlertName::DestinationDown, "to:app"), Some(Sight::Over));
    assert_eq!(seen(&with(0, 1), AlertName::DestinationDown, "to:app"), None);
    for (ago_ms, running, expected) in [(0, 1, Sight::Over), (0, 0, Sight::Clear), (-1, 1, Sight::Clear)] {
        assert_eq!(seen(&with(ago_ms, running), AlertName::Stalled, "to:app"), Some(expected));
    }
    let ended = log(9, lane("to:app", 0, 1));
    let moving = Sighting { work: vec![work(0, 1)], ..sighting(&ended) };
    assert_eq!(seen(&moving, AlertName::Stalled, "to:app"), Some(Sight::Clear));
}

#[test]
fn h4_silent_and_reconciliation_and_unusual() {
    let none = MeterLog::default();
    let of = |source: SourceSight| Sighting { sources: vec![source], ..sighting(&none) };
    let quiet = SourceSight { silent: Some(SilentBecause::Quiet { ms: HOUR_MS }), ..source("stripe") };
    assert_eq!(seen(&of(quiet), AlertName::Silent, "stripe"), Some(Sight::Over));
    assert_eq!(seen(&of(source("stripe")), AlertName::Silent, "stripe"), Some(Sight::Clear));
    let unheard = SourceSight { is_heard: false, ..source("stripe") };
    assert_eq!(seen(&of(unheard), AlertName::Silent, "stripe"), Some(Sight::Between), "we were away");
    let compared = |ago_ms: i64, missing, closed| {
        let last = RunFigures { missing, closed, ..RunFigures::default() };
        let last_good = Some(NOW.plus_ms(-ago_ms));
        let register = Some(SourceRegister { last_good, last, ..SourceRegister::default() });
        seen(&of(SourceSight { register, ..source("stripe") }), AlertName::Reconciliation, "stripe")
    };
    assert_eq!(seen(&of(source("stripe")), AlertName::Reconciliation, "stripe"), None);
    for (ago_ms, missing, closed, expected) in [
        (5 * MINUTE, 0, 0, Sight::Clear),
        (5 * MINUTE + 1, 0, 0, Sight::Over),
        (0, 2, 2, Sight::Clear),
        (0, 2, 1, Sight::Over),
    ] {
        assert_eq!(compared(ago_ms, missing, closed), Some(expected), "{ago_ms} {missing} {closed}");
    }
    let score = HourScore { count: 0.0, expected: 40.0, z: -9.0, is_far: true };
    let types = [
        TypeScore { subject: "stripe/a".into(), score, is_unusual: true },
        TypeScore { subject: "stripe/b".into(), score, is_unusual: false },
    ];
    let with = Sighting { types: Some(&types), ..sighting(&none) };
    assert_eq!(seen(&with, AlertName::Unusual, "stripe/a"), Some(Sight::Over));
    assert_eq!(seen(&with, AlertName::Unusual, "stripe/b"), Some(Sight::Clear));
    assert_eq!((unread(&with), unread(&sighting(&none))), (vec![], vec![AlertName::Unusual]));
}
