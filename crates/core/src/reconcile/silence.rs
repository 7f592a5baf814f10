//! A source that says nothing: is it idle, or are we deaf? Idle is what chance explains: with λ arrivals expected since the last
//! one, hearing none has the chance e^−λ. Deaf is certain as soon as the provider lists what we never heard.
//!
//! One sale makes several events, so events are no independent arrivals. Only the type that comes most often is counted,
//! which comes about once for each sale; and where weekdays differ, the quieter expectation counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Silent, SourceRegister};
use crate::time::{DAY_MS, HOUR_MS, Time, hour_of};

/// Days that λ is the mean of: each hour of the week is in it twice.
pub const DAYS: i64 = 14;
const WEEKS: f64 = 2.0;
const HOURS_OF_WEEK: usize = 7 * 24;
/// The chance of such a silence is e^−10.
const EXPECTED: f64 = 10.0;
/// A shop with fewer arrivals a day has silences that mean nothing.
const EXPECTED_A_DAY: f64 = 10.0;
const SILENT_MIN_MS: i64 = 30 * 60_000;
/// What the provider made so long ago should have come.
const DEAF_MS: i64 = 10 * 60_000;

/// The last event that came by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    pub event: String,
    /// By the provider's clock.
    pub created: Time,
    pub received: Time,
}

/// A silence that operators were told of, named by the last event before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    pub after: String,
    pub since: Time,
    pub is_deaf: bool,
}

/// What is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SilenceVerdict {
    /// No event came for so long, by chance or not.
    Silent(Silence),
    Recovered(Silence),
}

/// How many arrivals are expected in each hour of the week.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates([f64; HOURS_OF_WEEK]);

impl Rates {
    /// Of the events of a source by hour and type, over the [`DAYS`] before the current hour.
    pub fn of<'c>(counts: impl IntoIterator<Item = (Time, &'c str, i64)>, at: Time) -> Self {
        let (to, from) = (hour_of(at), hour_of(at).plus_ms(-DAYS * DAY_MS));
        let mut types: BTreeMap<&str, (i64, [f64; HOURS_OF_WEEK])> = BTreeMap::new();
        for (hour, kind, events) in counts.into_iter().filter(|(hour, ..)| (from..to).contains(hour)) {
            let (all, hours) = types.entry(kind).or_insert((0, [0.0; HOURS_OF_WEEK]));
            *all += events;
            hours[hour_of_week(hour)] += events as f64;
        }
        let most = types.into_values().max_by_key(|(all, _)| *all);
        let hours = most.map_or([0.0; HOURS_OF_WEEK], |(_, hours)| hours);
        let rate = |n: usize| {
            let of_day: f64 = (0..7).map(|day| hours[day * 24 + n % 24]).sum();
            (of_day / DAYS as f64).min(hours[n] / WEEKS)
        };
        Self(std::array::from_fn(rate))
    }

    /// How many arrivals are expected between two moments.
    pub fn expected(&self, from: Time, to: Time) -> f64 {
        let (mut sum, mut at) = (0.0, from);
        // A silence of two weeks is long enough for anybody.
        let end = to.min(from.plus_ms(DAYS * DAY_MS));
        while at < end {
            let next = hour_of(at).plus_ms(HOUR_MS).min(end);
            sum += self.0[hour_of_week(at)] * (next.ms() - at.ms()) as f64 / HOUR_MS as f64;
            at = next;
        }
        sum
    }
}

fn hour_of_week(at: Time) -> usize {
    at.ms().div_euclid(HOUR_MS).rem_euclid(HOURS_OF_WEEK as i64) as usize
}

/// What is told about a source now, if anything. `unheard` is the oldest event that was only listed.
pub fn judge(
    register: &SourceRegister,
    rates: &Rates,
    silent: Silent,
    unheard: Option<Time>,
    at: Time,
) -> Option<SilenceVerdict> {
    let last = register.heard.as_ref();
    if let Some(silence) = &register.silence {
        let is_over =
            last.is_some_and(|heard| heard.event != silence.after && heard.received > silence.since);
        return is_over.then(|| SilenceVerdict::Recovered(silence.clone()));
    }
    let told = |since: Time, is_deaf| {
        let after = last.map(|heard| heard.event.clone()).unwrap_or_default();
        Some(SilenceVerdict::Silent(Silence { after, since, is_deaf }))
    };
    if silent == Silent::Off {
        return None;
    }
    // What was missed while Sekisho was away says nothing of the provider.
    let listens_since = register.resumed_at;
    let floor = last.map(|heard| heard.created).or(register.born).max(listens_since);
    let old = at.plus_ms(-DEAF_MS);
    if floor.is_some_and(|floor| unheard.is_some_and(|one| one > floor && one <= old)) {
        return told(at, true);
    }
    let since = Some(last?.received).max(listens_since)?;
    let lasts_ms = at.ms() - since.ms();
    let is_silent = match silent {
        Silent::Off => false,
        Silent::AfterMs(ms) => lasts_ms >= ms,
        Silent::Auto => {
            lasts_ms >= SILENT_MIN_MS
                && rates.expected(at.plus_ms(-DAY_MS), at) >= EXPECTED_A_DAY
                && rates.expected(since, at) >= EXPECTED
        }
    };
    if is_silent { told(at, false) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday, midnight.
    const START: Time = Time::from_ms(1_780_272_000_000);
    const RUN_MS: i64 = 5 * 60_000;

    /// A number from 0 to 1 that only its place decides.
    fn chance(n: u64) -> f64 {
        let mut x = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D;
        x ^= x >> 30;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 27;
        x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Sales of so many days, so many a day, most of them in the evening; each makes five events.
    fn sales(days: i64, a_day: f64, seed: u64) -> Vec<Time> {
        let minutes = days * 24 * 60;
        let busy = |minute: i64| if (minute / 60) % 24 >= 9 { 1.5 } else { 0.1 };
        (0..minutes)
            .filter(|minute| chance(seed << 32 | *minute as u64) < a_day / 1440.0 * busy(*minute))
            .map(|minute| START.plus_ms(minute * 60_000))
            .collect()
    }

    fn counts(sales: &[Time]) -> Vec<(Time, &'static str, i64)> {
        let types =
            ["charge.succeeded", "charge.updated", "payment_intent.created", "payment_intent.succeeded"];
        sales.iter().flat_map(|at| types.map(|kind| (hour_of(*at), kind, 1))).collect()
    }

    /// Runs every five minutes from the 15th day on; the alarms, with when.
    fn alarms(sales: &[Time], days: i64) -> Vec<(Time, SilenceVerdict)> {
        let (counts, mut register, mut alarms) = (counts(sales), SourceRegister::default(), Vec::new());
        for run in DAYS * 288..days * 288 {
            let at = START.plus_ms(run * RUN_MS);
            let last = sales.iter().rev().find(|sale| **sale <= at);
            register.heard = last.map(|at| Heard { event: at.to_string(), created: *at, received: *at });
            let rates = Rates::of(counts.iter().copied(), at);
            let verdict = judge(&register, &rates, Silent::Auto, None, at);
            match &verdict {
                Some(SilenceVerdict::Silent(silence)) => register.silence = Some(silence.clone()),
                Some(SilenceVerdict::Recovered(_)) => register.silence = None,
                None => {}
            }
            alarms.extend(verdict.map(|verdict| (at, verdict)));
        }
        alarms
    }

    #[test]
    fn e2_a_quiet_shop_never_alarms_in_thirty_days() {
        for (seed, a_day) in [(1, 1.0), (2, 4.0), (3, 12.0), (4, 30.0)] {
            assert_eq!(alarms(&sales(DAYS + 30, a_day, seed), DAYS + 30), [], "{a_day} sales a day");
        }
    }

    #[test]
    fn e2_a_busy_shop_that_falls_silent_is_told_of_within_ten_minutes_of_the_bound() {
        // At 1,000 sales a day the bound is half an hour at any time of the day.
        let days = DAYS + 2;
        let silent_from = START.plus_ms((DAYS + 1) * DAY_MS + 14 * HOUR_MS);
        let sales: Vec<_> = sales(days, 1_000.0, 5).into_iter().filter(|at| *at < silent_from).collect();
        let alarms = alarms(&sales, days);
        let [(at, SilenceVerdict::Silent(silence))] = &alarms[..] else { panic!("{alarms:?}") };
        let last = sales.last().unwrap();
        let late_ms = at.ms() - last.ms() - SILENT_MIN_MS;
        assert!((0..=10 * 60_000).contains(&late_ms), "{late_ms} ms after the bound");
        assert_eq!((&silence.after, silence.is_deaf), (&last.to_string(), false));
    }

    #[test]
    fn e2_a_quiet_weekend_is_no_silence() {
        let weekdays: Vec<_> = sales(DAYS + 7, 500.0, 6)
            .into_iter()
            .filter(|at| (at.ms() - START.ms()).div_euclid(DAY_MS) % 7 < 5)
            .collect();
        assert_eq!(alarms(&weekdays, DAYS + 7), []);
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
        let none = Rates::of([], START);
        let judge = |register: &SourceRegister, unheard_ms: i64| {
            judge(register, &none, Silent::Auto, Some(START.plus_ms(-unheard_ms)), START)
        };
        let deaf = |verdict: Option<SilenceVerdict>| matches!(verdict, Some(SilenceVerdict::Silent(one)) if one.is_deaf);
        assert!(deaf(judge(&heard(30 * 60_000), 20 * 60_000)));
        assert!(!deaf(judge(&heard(30 * 60_000), 5 * 60_000)), "it may still come");
        assert!(!deaf(judge(&heard(30 * 60_000), 40 * 60_000)), "newer ones came: one was lost, not all");
        let away = SourceRegister { resumed_at: Some(START.plus_ms(-60_000)), ..heard(30 * 60_000) };
        assert!(!deaf(judge(&away, 20 * 60_000)), "we were away");
        let new = SourceRegister { born: Some(START.plus_ms(-HOUR_MS)), ..SourceRegister::default() };
        assert!(deaf(judge(&new, 20 * 60_000)), "nothing ever came");
    }

    #[test]
    fn e2_a_silence_is_told_once_and_ends_with_the_next_event() {
        let none = Rates::of([], START);
        let after = Silent::AfterMs(HOUR_MS);
        assert_eq!(judge(&heard(HOUR_MS - 1), &none, after, None, START), None);
        assert_eq!(judge(&heard(2 * HOUR_MS), &none, Silent::Off, None, START), None);
        let mut register = heard(HOUR_MS);
        let Some(SilenceVerdict::Silent(silence)) = judge(&register, &none, after, None, START) else {
            panic!()
        };
        register.silence = Some(silence.clone());
        assert_eq!(judge(&register, &none, after, None, START.plus_ms(DAY_MS)), None);
        let again = START.plus_ms(DAY_MS);
        register.heard = Some(Heard { event: "evt_2".into(), created: again, received: again });
        assert_eq!(judge(&register, &none, after, None, again), Some(SilenceVerdict::Recovered(silence)));
    }
}
