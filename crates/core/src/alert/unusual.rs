//! Whether an hour's count of one type is far from its usual. The logarithm of the ratio is compared with how much it
//! usually strays: counting noise, and what this type showed over two weeks.

use super::usual::{UsualHours, median};

/// Added to both counts, so that small ones say little.
const FLOOR: f64 = 3.0;
/// The variance of a logarithm of a count, times the count.
const COUNTING: f64 = 1.35;
/// The median of a squared standard normal.
const MEDIAN_OF_SQUARES: f64 = 0.455;
/// Hours from which it is learnt how much a type strays, those of them that say something, and how many are needed.
const LEARNT_HOURS: i64 = 336;
const LEARNT_EXPECTED: f64 = 10.0;
const LEARNT_MIN: usize = 48;
/// The least spread that is believed, and the one while too little is known.
const SPREAD_MIN: f64 = 0.02;
const SPREAD_UNKNOWN: f64 = 0.1;
/// Two hours running on the same side need only be so far.
const TWICE: f64 = 3.0;

/// How an hour looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HourScore {
    pub count: f64,
    pub expected: f64,
    /// In standard deviations: above 0 is more than usual.
    pub z: f64,
    /// Far enough for anybody to care.
    pub is_far: bool,
}

/// Of one type, in one hour; `None` where too few weeks are known.
pub fn score(hours: &UsualHours, hour: i64) -> Option<HourScore> {
    let (count, expected) = (hours.count(hour)?, hours.expected(hour)?);
    let learnt = (hour - LEARNT_HOURS..hour).filter_map(|one| {
        let (count, expected) = (hours.count(one)?, hours.expected(one)?);
        let strays = || stray(count, expected).powi(2) - COUNTING / (expected + FLOOR);
        (expected >= LEARNT_EXPECTED).then(strays)
    });
    let mut learnt: Vec<_> = learnt.collect();
    let spread = if learnt.len() < LEARNT_MIN {
        SPREAD_UNKNOWN
    } else {
        (median(&mut learnt) / MEDIAN_OF_SQUARES).max(SPREAD_MIN)
    };
    let z = stray(count, expected) / (spread + COUNTING / (expected + FLOOR)).sqrt();
    let is_more = count >= 2.0 * expected && count - expected >= 20.0;
    let is_less = count <= expected / 2.0 && expected >= 10.0;
    Some(HourScore { count, expected, z, is_far: is_more || is_less })
}

fn stray(count: f64, expected: f64) -> f64 {
    ((count + FLOOR) / (expected + FLOOR)).ln()
}

/// The score of an hour, and whether it is unusual.
pub fn judge(hours: &UsualHours, hour: i64, limit: f64) -> Option<(HourScore, bool)> {
    let own = score(hours, hour)?;
    let is_far = |one: &HourScore, by: f64| one.is_far && one.z.abs() >= by;
    let is_unusual = is_far(&own, limit)
        || (is_far(&own, TWICE)
            && score(hours, hour - 1).is_some_and(|one| is_far(&one, TWICE) && one.z * own.z > 0.0));
    Some((own, is_unusual))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{HOUR_MS, Time};

    /// Numbers that only the seed decides.
    struct Dice(u64);

    impl Dice {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut x = self.0;
            x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let (one, two) = (self.uniform().max(1e-12), self.uniform());
            (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
        }

        /// Marsaglia and Tsang, for shapes of at least 1.
        fn gamma(&mut self, shape: f64) -> f64 {
            let d = shape - 1.0 / 3.0;
            let c = 1.0 / (9.0 * d).sqrt();
            loop {
                let x = self.normal();
                let v = (1.0 + c * x).powi(3);
                if v > 0.0 && self.uniform().max(1e-12).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                    return d * v;
                }
            }
        }

        fn poisson(&mut self, mean: f64) -> f64 {
            if mean > 60.0 {
                return (mean + mean.sqrt() * self.normal()).round().max(0.0);
            }
            let (limit, mut product, mut count) = ((-mean).exp(), self.uniform(), 0.0);
            while product > limit {
                product *= self.uniform();
                count += 1.0;
            }
            count
        }

        /// Negative binomial: a mean that strays by this share, then counted.
        fn count(&mut self, mean: f64, noise: f64) -> f64 {
            let shape = 1.0 / (noise * noise);
            let mean = mean * self.gamma(shape) / shape;
            self.poisson(mean)
        }
    }

    /// Busy in the evening, half as much at weekends, 2 % more each week.
    fn mean(level: f64, hour: i64) -> f64 {
        let (of_day, day) = (hour.rem_euclid(24), hour.div_euclid(24).rem_euclid(7));
        let daily = 1.0 + 0.9 * ((of_day - 20) as f64 / 24.0 * std::f64::consts::TAU).cos();
        let weekly = if day < 5 { 1.0 } else { 0.5 };
        level * daily * weekly * 1.02f64.powf(hour as f64 / 168.0)
    }

    fn traffic(level: f64, noise: f64, hours: i64, seed: u64) -> Vec<f64> {
        let mut dice = Dice(seed);
        (0..hours).map(|hour| dice.count(mean(level, hour), noise)).collect()
    }

    fn hours_of(counts: &[f64]) -> UsualHours {
        let each = counts.iter().enumerate();
        let each = each.map(|(hour, count)| (Time::from_ms(hour as i64 * HOUR_MS), *count as i64));
        UsualHours::of(each, Time::from_ms(counts.len() as i64 * HOUR_MS)).unwrap()
    }

    /// As the evaluation sees it: what came before, and the hour itself.
    fn is_unusual(counts: &[f64]) -> bool {
        let last = counts.len() as i64 - 1;
        let from = counts.len().saturating_sub(super::super::usual::HOURS_READ as usize);
        let hours = hours_of(&counts[from..]);
        judge(&hours, last - from as i64, 5.0).is_some_and(|(_, unusual)| unusual)
    }

    /// False alarms of one type in 90 days, after seven weeks that it learns from.
    fn false_alarms(level: f64, noise: f64, seed: u64) -> usize {
        let (learn, days) = (7 * 168, 90 * 24);
        let counts = traffic(level, noise, learn + days, seed);
        // One profile for all: each hour looks only at what came before it.
        let hours = hours_of(&counts);
        let first = counts.iter().position(|count| *count > 0.0).unwrap() as i64;
        let mut was = false;
        (learn..learn + days)
            .filter(|hour| {
                let is = judge(&hours, hour.max(&first).to_owned(), 5.0).is_some_and(|(_, unusual)| unusual);
                let begins = is && !was;
                was = is;
                begins
            })
            .count()
    }

    #[test]
    fn h4_usual_traffic_rarely_alarms() {
        for (noise, most) in [(0.18, 0.8), (0.35, 1.9)] {
            for level in [5.0, 30.0, 200.0] {
                let runs = 12;
                let alarms: usize = (0..runs).map(|seed| false_alarms(level, noise, 100 + seed)).sum();
                let each = alarms as f64 / runs as f64;
                assert!(each <= most, "{each} false alarms at level {level} and noise {noise}");
            }
        }
    }

    /// How often an hour in which `change` happened is found in it, and by the next at the latest.
    fn found(noise: f64, change: impl Fn(f64) -> f64, least: f64) -> (f64, f64) {
        let (mut at_once, mut in_two, mut all) = (0, 0, 0usize);
        for seed in 0..160u64 {
            let length = 7 * 168 + (seed * 37 % 168) as i64;
            let mut counts = traffic(60.0, noise, length + 2, 900 + seed);
            if mean(60.0, length) < least || mean(60.0, length + 1) < least {
                continue;
            }
            all += 1;
            for hour in [length, length + 1] {
                counts[hour as usize] = change(counts[hour as usize]);
            }
            let first = is_unusual(&counts[..=length as usize]);
            let second = first || is_unusual(&counts);
            at_once += usize::from(first);
            in_two += usize::from(second);
        }
        assert!(all >= 80, "{all}");
        (at_once as f64 / all as f64, in_two as f64 / all as f64)
    }

    #[test]
    fn h4_an_hour_without_events_is_found_in_that_hour_or_the_next() {
        for noise in [0.18, 0.35] {
            let (at_once, in_two) = found(noise, |_| 0.0, 20.0);
            assert!(at_once >= 0.94 && in_two >= 1.0, "{at_once} and {in_two} at noise {noise}");
        }
    }

    #[test]
    fn h4_five_times_as_many_are_found_within_two_hours() {
        let (_, quiet) = found(0.18, |count| count * 5.0, 20.0);
        assert!(quiet >= 0.99, "{quiet}");
        let (_, noisy) = found(0.35, |count| count * 5.0, 20.0);
        assert!(noisy >= 0.6, "{noisy}");
    }

    #[test]
    fn h4_what_is_new_or_small_is_not_judged() {
        let young = traffic(50.0, 0.18, 2 * 168 - 1, 5);
        assert!(!is_unusual(&young), "less than two weeks");
        let mut quiet = vec![1.0; 6 * 168];
        quiet.push(15.0);
        assert!(!is_unusual(&quiet), "fewer than 20 more");
        let mut nothing = vec![5.0; 6 * 168];
        nothing.push(0.0);
        assert!(!is_unusual(&nothing), "fewer than 10 were expected");
    }
}
