//! When a dead letter is tried again by itself: hourly while it is young enough, and as soon as its destination answers
//! again. Only what was of the class `transient`: what the app refused for good stays with the operator.
//!
//! Letters go in waves. A wave begins with one letter and grows while all of them arrive; the first that fails ends it, so
//! that a destination that is still away, or barely back, is not called ten thousand times.

use crate::id::Seq;
use crate::job::{Class, Wave, WaveCause};
use crate::time::Time;

/// How long, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDead {
    /// Counted from when it was queued; 0 is never.
    pub within_ms: i64,
    pub every_ms: i64,
}

impl Default for RetryDead {
    fn default() -> Self {
        Self { within_ms: 72 * 3_600_000, every_ms: 3_600_000 }
    }
}

/// Letters of a wave's first batch, of its second, and of all that follow.
const SIZES: [usize; 3] = [1, 10, 100];
/// After its first round a letter waits this long before a destination that answers again makes it come back; four times as
/// long after each further round, up to the usual interval.
const REST_MS: i64 = 60_000;

/// What is known of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadDelivery {
    pub job: Seq,
    pub class: Class,
    pub died_at: Time,
    pub attempts: i32,
}

impl RetryDead {
    pub const fn is_off(&self) -> bool {
        self.within_ms <= 0
    }

    /// The next moment at which a wave begins, whatever happened. The same for every node.
    pub fn next_wave(&self, now: Time) -> Time {
        let every = self.every_ms.max(1);
        Time::from_ms((now.ms().div_euclid(every) + 1).saturating_mul(every))
    }

    /// When it is tried again by itself at the latest, if it is.
    pub fn next_try(&self, letter: &DeadDelivery, now: Time) -> Option<Time> {
        let next = self.next_wave(now.max(letter.died_at));
        (self.is_meant(letter) && next < self.end(letter)).then_some(next)
    }

    /// Which letters a batch takes, those with the fewest attempts first, then those that failed first: one that always fails
    /// does not stand in the way of the others. What failed since the wave began is not tried again in it.
    pub fn choose(&self, letters: &[DeadDelivery], wave: &Wave, tries: i32, now: Time) -> Vec<DeadDelivery> {
        let rested = |letter: &DeadDelivery| match wave.cause {
            WaveCause::Hour => true,
            WaveCause::Answered => now.ms() - letter.died_at.ms() >= self.rest_ms(letter, tries),
        };
        let mut meant: Vec<_> = letters
            .iter()
            .filter(|letter| self.is_meant(letter) && now < self.end(letter))
            .filter(|letter| letter.died_at < wave.began && rested(letter))
            .copied()
            .collect();
        meant.sort_by_key(|letter| (letter.attempts, letter.died_at, letter.job));
        meant.truncate(size(wave));
        meant
    }

    fn is_meant(&self, letter: &DeadDelivery) -> bool {
        !self.is_off() && letter.class == Class::Transient
    }

    fn end(&self, letter: &DeadDelivery) -> Time {
        letter.job.made_at().plus_ms(self.within_ms)
    }

    /// `tries` is how many one round has.
    fn rest_ms(&self, letter: &DeadDelivery, tries: i32) -> i64 {
        let rounds = (letter.attempts / tries.max(1)).max(1);
        if rounds == 1 {
            return 0;
        }
        let growth = 4i64.saturating_pow(u32::try_from(rounds - 2).unwrap_or(0));
        REST_MS.saturating_mul(growth).min(self.every_ms)
    }
}

/// What became of a letter of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    /// Not known yet.
    Pending,
    FailedAgain,
}

/// What a wave does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proceed {
    NextBatch,
    /// Look again in a moment.
    Wait,
    Stop,
}

/// A batch that is not through by then ends its wave.
const BATCH_MS_MAX: i64 = 10 * 60_000;

/// What follows a batch of which this became.
pub fn proceed(wave: &Wave, fates: &[Fate], now: Time) -> Proceed {
    if fates.contains(&Fate::FailedAgain) {
        return Proceed::Stop;
    }
    if !fates.contains(&Fate::Pending) {
        return Proceed::NextBatch;
    }
    let is_late = now.ms() - wave.since.ms() >= BATCH_MS_MAX || now < wave.since;
    if is_late { Proceed::Stop } else { Proceed::Wait }
}

fn size(wave: &Wave) -> usize {
    SIZES.get(wave.batches).copied().unwrap_or(SIZES[SIZES.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const TRIES: i32 = 4;

    fn letter(n: i64, attempts: i32, died: i64) -> DeadDelivery {
        let job = Seq::from_i64(Seq::floor_of(NOW.plus_ms(-3_600_000)).as_i64() + n);
        DeadDelivery { job, class: Class::Transient, died_at: NOW.plus_ms(died), attempts }
    }

    fn chosen(letters: &[DeadDelivery], wave: &Wave) -> Vec<Seq> {
        let chosen = RetryDead::default().choose(letters, wave, TRIES, NOW);
        chosen.iter().map(|letter| letter.job).collect()
    }

    #[test]
    fn c2_a_wave_begins_with_one_and_grows_while_all_arrive() {
        let letters: Vec<_> = (0..1_000).map(|n| letter(n, 4, -1_000 - n)).collect();
        let mut wave = Wave::new(WaveCause::Hour, NOW);
        for size in [1, 10, 100, 100] {
            let batch = chosen(&letters, &wave);
            assert_eq!(batch.len(), size);
            wave = wave.with_batch(batch.into_iter().map(|job| (job, 4)), NOW);
        }
        assert_eq!(proceed(&wave, &[Fate::Delivered; 3], NOW), Proceed::NextBatch);
        assert_eq!(proceed(&wave, &[Fate::Delivered, Fate::Pending], NOW), Proceed::Wait);
        assert_eq!(proceed(&wave, &[Fate::Pending, Fate::FailedAgain], NOW), Proceed::Stop);
        assert_eq!(
            proceed(&wave, &[Fate::Pending], NOW.plus_ms(BATCH_MS_MAX)),
            Proceed::Stop,
            "it takes too long"
        );
        assert_eq!(proceed(&wave, &[], NOW), Proceed::NextBatch, "others took them");
    }

    #[test]
    fn c2_one_that_always_fails_does_not_stand_in_the_way() {
        let (poison, other) = (letter(1, 8, -9_000_000), letter(2, 4, -1_000));
        let wave = Wave::new(WaveCause::Hour, NOW);
        assert_eq!(chosen(&[poison, other], &wave), [other.job]);
        let since = DeadDelivery { died_at: NOW.plus_ms(5), ..other };
        assert_eq!(
            chosen(&[poison, since], &wave),
            [poison.job],
            "what failed in this wave waits for the next"
        );
    }

    #[test]
    fn c2_refusals_and_what_is_too_old_never_come_back() {
        let wave = Wave::new(WaveCause::Hour, NOW);
        let refused = DeadDelivery { class: Class::Terminal, ..letter(1, 1, -1_000) };
        let old =
            DeadDelivery { job: Seq::floor_of(NOW.plus_ms(-72 * 3_600_000 - 1)), ..letter(1, 4, -1_000) };
        assert_eq!(chosen(&[refused, old], &wave), []);
        let policy = RetryDead::default();
        assert_eq!(policy.next_try(&refused, NOW), None);
        assert_eq!(policy.next_try(&old, NOW), None);
        let next = policy.next_try(&letter(1, 4, -1_000), NOW).unwrap();
        assert!(next > NOW && next.ms() - NOW.ms() <= 3_600_000 && next.ms() % 3_600_000 == 0);
        let off = RetryDead { within_ms: 0, ..policy };
        assert_eq!(off.next_try(&letter(1, 4, -1_000), NOW), None);
        assert_eq!(off.choose(&[letter(1, 4, -1_000)], &wave, TRIES, NOW), []);
    }

    #[test]
    fn c2_an_answer_brings_a_letter_back_at_once_the_first_time_then_ever_later() {
        let wave = Wave::new(WaveCause::Answered, NOW);
        assert_eq!(chosen(&[letter(1, 4, -1)], &wave).len(), 1);
        for (attempts, rest) in [(8, 60_000), (12, 240_000), (16, 960_000), (20, 3_600_000), (400, 3_600_000)]
        {
            assert_eq!(chosen(&[letter(1, attempts, 1 - rest)], &wave).len(), 0, "{attempts} attempts");
            assert_eq!(chosen(&[letter(1, attempts, -rest)], &wave).len(), 1, "{attempts} attempts");
        }
    }

    #[test]
    fn c2_every_node_plans_the_same_wave() {
        let policy = RetryDead::default();
        let next = policy.next_wave(NOW);
        assert_eq!(policy.next_wave(next.plus_ms(-1)), next);
        assert_eq!(policy.next_wave(next), next.plus_ms(3_600_000));
    }
}
