//! How requests about reservations were answered in the last five minutes, on this node: whether too many failed by our own
//! fault.

use std::collections::VecDeque;
use std::sync::Mutex;

use sekisho_core::Time;

const MINUTE_MS: i64 = 60_000;
const MINUTES: i64 = 5;
/// So many must have been answered before their share says anything, and such a share of failures is too much.
const ANSWERS_MIN: u32 = 20;
const FAILED_PERCENT: u32 = 5;

#[derive(Default)]
pub struct AnswerWindow(Mutex<VecDeque<AnswerMinute>>);

struct AnswerMinute {
    minute: i64,
    all: u32,
    failed: u32,
}

impl AnswerWindow {
    /// One was answered, with this status.
    pub fn note(&self, status: u16, at: Time) {
        let minute = at.ms().div_euclid(MINUTE_MS);
        let mut minutes = self.0.lock().expect("no code panics here");
        minutes.retain(|one| (0..MINUTES).contains(&(minute - one.minute)));
        if minutes.back().is_none_or(|last| last.minute != minute) {
            minutes.push_back(AnswerMinute { minute, all: 0, failed: 0 });
        }
        let last = minutes.back_mut().expect("it was added");
        last.all = last.all.saturating_add(1);
        last.failed = last.failed.saturating_add(u32::from(status >= 500));
    }

    /// Whether too many of them failed.
    pub fn is_failing(&self, at: Time) -> bool {
        let minute = at.ms().div_euclid(MINUTE_MS);
        let minutes = self.0.lock().expect("no code panics here");
        let recent = minutes.iter().filter(|one| (0..MINUTES).contains(&(minute - one.minute)));
        let sum = |(all, failed): (u32, u32), one: &AnswerMinute| {
            (all.saturating_add(one.all), failed.saturating_add(one.failed))
        };
        let (all, failed) = recent.fold((0, 0), sum);
        all >= ANSWERS_MIN && failed.saturating_mul(100) >= all.saturating_mul(FAILED_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    #[test]
    fn f4_one_of_twenty_requests_answered_500_within_five_minutes_is_too_much() {
        let window = AnswerWindow::default();
        for n in 0..18 {
            window.note(201, NOW.plus_ms(n * 1_000));
        }
        window.note(503, NOW.plus_ms(60_000));
        assert!(!window.is_failing(NOW.plus_ms(60_000)), "too few to say");
        window.note(409, NOW.plus_ms(61_000));
        assert!(window.is_failing(NOW.plus_ms(61_000)));
        for n in 0..20 {
            window.note(200, NOW.plus_ms(62_000 + n));
        }
        assert!(!window.is_failing(NOW.plus_ms(63_000)), "one of forty");
        let later = AnswerWindow::default();
        (0..20).for_each(|_| later.note(500, NOW));
        assert!(
            later.is_failing(NOW.plus_ms(4 * 60_000 - 60_000)) && !later.is_failing(NOW.plus_ms(5 * 60_000))
        );
    }
}
