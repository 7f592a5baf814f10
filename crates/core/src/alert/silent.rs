//! A source that says nothing: is it idle, or are we deaf? Idle is what chance explains: with Λ arrivals expected since the
//! last one, hearing none has the chance e^−Λ. Deaf is certain as soon as the provider lists what we never heard.
//!
//! One sale makes several events, so events are no independent arrivals. Only the type that comes most often is counted,
//! which comes about once for each sale. Hours that are usually empty add nothing, so nights and weekends stay quiet.

use super::policy::Silent;
use super::usual::{UsualHours, hour_number};
use crate::reconcile::SourceRegister;
use crate::time::{DAY_MS, HOUR_MS, Time, hour_of};

/// The chance of such a silence is e^−12.
const EXPECTED: f64 = 12.0;
const SILENT_MIN_MS: i64 = 10 * 60_000;
/// What the provider made so long ago should have come.
const DEAF_MS: i64 = 10 * 60_000;
/// Below this, what is usual is not known: then a silence is compared with the longest of a week.
const KNOWN_MS: i64 = 14 * DAY_MS;
const GAP_FACTOR: i64 = 3;
const GAP_MIN_MS: i64 = HOUR_MS;
const GAP_EVENTS: f64 = 50.0;
/// A silence of two weeks is long enough for anybody.
const SILENCE_MAX_MS: i64 = 14 * DAY_MS;

/// What is known of one source.
#[derive(Clone, Debug, Default)]
pub struct SourceHours {
    /// Of the type that comes most often.
    pub busiest: Option<UsualHours>,
    /// Of all types together.
    pub all: Option<UsualHours>,
}

/// Why a source is called silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SilentBecause {
    /// The provider lists what never came.
    Deaf,
    /// For so long.
    Quiet { ms: i64 },
}

/// Whether a source is silent now. `last` is when its last event came by itself, `listens_since` since when Sekisho has
/// listened without a break: what was missed before says nothing of the provider.
pub fn judge(
    hours: &SourceHours,
    last: Option<Time>,
    listens_since: Option<Time>,
    register: Option<&SourceRegister>,
    silent: Silent,
    now: Time,
) -> Option<SilentBecause> {
    if silent == Silent::Off {
        return None;
    }
    if register.is_some_and(|register| is_deaf(register, listens_since, now)) {
        return Some(SilentBecause::Deaf);
    }
    let since = Some(last?).max(listens_since)?;
    let ms = now.ms() - since.ms();
    let is_silent = match silent {
        Silent::Off => false,
        Silent::AfterMs(after_ms) => ms >= after_ms,
        Silent::Auto => is_unlikely(hours, since, now),
    };
    is_silent.then_some(SilentBecause::Quiet { ms })
}

/// The provider lists a newer event than all that came by themselves, for longer than it can be on its way.
fn is_deaf(register: &SourceRegister, listens_since: Option<Time>, now: Time) -> bool {
    let floor = register.heard.as_ref().map(|heard| heard.created).or(register.born);
    let floor = floor.max(register.resumed_at).max(listens_since);
    let old = now.plus_ms(-DEAF_MS);
    floor.is_some_and(|floor| register.unheard.is_some_and(|one| one > floor && one <= old))
}

fn is_unlikely(hours: &SourceHours, since: Time, now: Time) -> bool {
    let lasts_ms = now.ms() - since.ms();
    let is_known = |hours: &UsualHours| hour_number(now) - hours.first() >= KNOWN_MS / HOUR_MS;
    match &hours.busiest {
        Some(busiest) if is_known(busiest) => {
            lasts_ms >= SILENT_MIN_MS && expected(busiest, since, now) >= EXPECTED
        }
        _ => hours.all.as_ref().is_some_and(|all| {
            let gap = longest_gap_ms(all, now);
            all.all() >= GAP_EVENTS
                && lasts_ms >= GAP_MIN_MS
                && gap.is_some_and(|gap| lasts_ms > GAP_FACTOR * gap)
        }),
    }
}

/// How many arrivals are expected between two moments.
pub fn expected(hours: &UsualHours, from: Time, to: Time) -> f64 {
    let (mut sum, mut at) = (0.0, from);
    // A day that was busier than usual promises nothing.
    let level = hours.level(hour_number(from)).min(1.0);
    let end = to.min(from.plus_ms(SILENCE_MAX_MS));
    while at < end {
        let next = hour_of(at).plus_ms(HOUR_MS).min(end);
        let usual = hours.usual(hour_number(at)).unwrap_or_default();
        sum += usual * level * (next.ms() - at.ms()) as f64 / HOUR_MS as f64;
        at = next;
    }
    sum
}

/// The longest time between two events of the last week, as far as hours can tell: rather too long.
fn longest_gap_ms(hours: &UsualHours, now: Time) -> Option<i64> {
    let busy = (hour_number(now) - 7 * 24..hour_number(now))
        .filter(|hour| hours.count(*hour).is_some_and(|n| n > 0.0));
    let busy: Vec<_> = busy.collect();
    let gaps = busy.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().map(|hours| (hours + 1) * HOUR_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::Heard;

    /// A Monday, midnight.
    const START: Time = Time::from_ms(1_780_272_000_000);
    const RUN_MS: i64 = 5 * 60_000;
    const KNOWN_DAYS: i64 = 35;

    /// A number from 0 to 1 that only its place decides.
    fn chance(n: u64) -> f64 {
        let mut x = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D;
        x ^= x >> 30;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 27;
        x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Sales of so many days, so many a day, most of them in the daytime.
    fn sales(days: i64, a_day: f64, seed: u64) -> Vec<Time> {
        let minutes = days * 24 * 60;
        let busy = |minute: i64| if (minute / 60) % 24 >= 9 { 1.5 } else { 0.1 };
        (0..minutes)
            .filter(|minute| chance(seed << 32 | *minute as u64) < a_day / 1440.0 * busy(*minute))
            .map(|minute| START.plus_ms(minute * 60_000))
            .collect()
    }

    fn hours(sales: &[Time], now: Time) -> SourceHours {
        let counts = sales.iter().filter(|at| **at < hour_of(now)).map(|at| (hour_of(*at), 1));
        let busiest = UsualHours::of(counts, hour_of(now));
        SourceHours { all: busiest.clone(), busiest }
    }

    /// When it is silent, looked at every five minutes from a day on.
    fn silences(sales: &[Time], from_day: i64, days: i64) -> Vec<Time> {
        let (mut known, mut silences, mut was) =
            ((Time::from_ms(0), SourceHours::default()), Vec::new(), false);
        for run in from_day * 288..days * 288 {
            let now = START.plus_ms(run * RUN_MS);
            if known.0 != hour_of(now) {
                known = (hour_of(now), hours(sales, now));
            }
            let last = sales.iter().rev().find(|sale| **sale <= now).copied();
            let is = judge(&known.1, last, None, None, Silent::Auto, now).is_some();
            if is && !was {
                silences.push(now);
            }
            was = is;
        }
        silences
    }

    #[test]
    fn h4_a_quiet_shop_never_alarms_in_thirty_days() {
        for (seed, a_day) in [(1, 1.0), (2, 4.0), (3, 12.0), (4, 30.0)] {
            let days = KNOWN_DAYS + 30;
            assert_eq!(silences(&sales(days, a_day, seed), KNOWN_DAYS, days), [], "{a_day} sales a day");
        }
    }

    #[test]
    fn h4_a_busy_shop_that_falls_silent_is_told_of_within_half_an_hour() {
        let days = KNOWN_DAYS + 2;
        let silent_from = START.plus_ms((KNOWN_DAYS + 1) * DAY_MS + 14 * HOUR_MS);
        let sales: Vec<_> = sales(days, 1_000.0, 5).into_iter().filter(|at| *at < silent_from).collect();
        let silences = silences(&sales, KNOWN_DAYS, days);
        let [at] = &silences[..] else { panic!("{silences:?}") };
        let late_ms = at.ms() - sales.last().unwrap().ms();
        assert!((SILENT_MIN_MS..=30 * 60_000).contains(&late_ms), "after {late_ms} ms");
    }

    #[test]
    fn h4_quiet_nights_and_weekends_are_no_silence() {
        let days = KNOWN_DAYS + 14;
        let weekdays: Vec<_> = sales(days, 500.0, 6)
            .into_iter()
            .filter(|at| (at.ms() - START.ms()).div_euclid(DAY_MS) % 7 < 5)
            .collect();
        assert_eq!(silences(&weekdays, KNOWN_DAYS, days), []);
    }

    #[test]
    fn h4_while_little_is_known_a_silence_is_compared_with_the_longest_gap() {
        let hourly: Vec<_> = (0..100).map(|hour| START.plus_ms(hour * HOUR_MS)).collect();
        let now = |hours: i64| START.plus_ms(99 * HOUR_MS + hours * HOUR_MS);
        let is_silent = |hours_later: i64| {
            let at = now(hours_later);
            judge(&hours(&hourly, at), hourly.last().copied(), None, None, Silent::Auto, at).is_some()
        };
        assert!(!is_silent(6) && is_silent(7));
        let few = &hourly[..40];
        let at = now(200);
        assert_eq!(judge(&hours(few, at), few.last().copied(), None, None, Silent::Auto, at), None);
    }

    fn heard(ago_ms: i64) -> SourceRegister {
        let at = START.plus_ms(-ago_ms);
        SourceRegister {
            heard: Some(Heard { event: "evt_1".into(), created: at, received: at }),
            ..SourceRegister::default()
        }
    }

    #[test]
    fn e2_who_never_heard_what_is_listed_is_deaf_at_once() {
        let is_deaf = |register: SourceRegister, unheard_ms: i64| {
            let register = SourceRegister { unheard: Some(START.plus_ms(-unheard_ms)), ..register };
            let last = register.heard.as_ref().map(|heard| heard.received);
            judge(&SourceHours::default(), last, None, Some(&register), Silent::Auto, START)
                == Some(SilentBecause::Deaf)
        };
        assert!(is_deaf(heard(30 * 60_000), 20 * 60_000));
        assert!(!is_deaf(heard(30 * 60_000), 5 * 60_000), "it may still come");
        assert!(!is_deaf(heard(30 * 60_000), 40 * 60_000), "newer ones came: one was lost, not all");
        let away = SourceRegister { resumed_at: Some(START.plus_ms(-60_000)), ..heard(30 * 60_000) };
        assert!(!is_deaf(away, 20 * 60_000), "we were away");
        let new = SourceRegister { born: Some(START.plus_ms(-HOUR_MS)), ..SourceRegister::default() };
        assert!(is_deaf(new, 20 * 60_000), "nothing ever came");
    }

    #[test]
    fn h4_an_operator_may_say_how_long_is_too_long_or_that_nothing_is() {
        let last = Some(START.plus_ms(-HOUR_MS));
        let judge = |silent, now| judge(&SourceHours::default(), last, None, None, silent, now);
        assert_eq!(judge(Silent::AfterMs(HOUR_MS + 1), START), None);
        assert_eq!(judge(Silent::AfterMs(HOUR_MS), START), Some(SilentBecause::Quiet { ms: HOUR_MS }));
        assert_eq!(judge(Silent::Off, START.plus_ms(DAY_MS)), None);
        let away = super::judge(
            &SourceHours::default(),
            last,
            Some(START.plus_ms(-60_000)),
            None,
            Silent::AfterMs(HOUR_MS),
            START,
        );
        assert_eq!(away, None, "Sekisho itself was away");
    }
}
