//! When a provider is asked what became of a payment that somebody holds places for: once its webhook is late, then ever more
//! seldom, as long as the hold lasts.

use crate::compensation::CompensationRule;
use crate::reservation::ReservationFacts;
use crate::time::Time;

/// However short a rule's time is.
const PAUSE_MIN_MS: i64 = 1_000;
/// Questions of one hold: the pause doubles, so this is beyond every hold.
const QUESTIONS_MAX: u32 = 40;

/// Which question is due, and when the next one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    /// The last whose moment has come, with that moment.
    pub due: Option<(u32, Time)>,
    pub next: Option<Time>,
}

/// The questions of a rule about a hold: `after`, twice that, four times, … from when it was made, until it ends.
pub fn questions(facts: &ReservationFacts, rule: &CompensationRule, at: Time) -> Questions {
    let first = rule.after_ms.max(PAUSE_MIN_MS);
    let moment = |n: u32| facts.ours.at.plus_ms(first.saturating_mul(1_i64 << n));
    let mut questions = Questions { due: None, next: None };
    for n in 0..QUESTIONS_MAX {
        let moment = moment(n);
        if moment > facts.until {
            break;
        }
        if moment > at {
            questions.next = Some(moment);
            break;
        }
        questions.due = Some((n, moment));
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compensation::shipped;
    use crate::reservation::ReservationRequest;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const MINUTE: i64 = 60_000;

    #[test]
    fn f4_a_late_payment_is_asked_for_at_10_20_and_40_minutes_while_its_hold_lasts() {
        let rules = shipped();
        let rule = rules.iter().find(|rule| rule.name == "WEBHOOK_DELAY").unwrap();
        let held = |minutes: i64| ReservationFacts {
            ours: ReservationRequest { at: NOW, ..ReservationRequest::default() },
            until: NOW.plus_ms(minutes * MINUTE),
            ..ReservationFacts::default()
        };
        let of = |minutes: i64, at: i64| {
            let all = questions(&held(minutes), rule, NOW.plus_ms(at * MINUTE));
            let minutes = |time: Time| (time.ms() - NOW.ms()) / MINUTE;
            (all.due.map(|(n, at)| (n, minutes(at))), all.next.map(minutes))
        };
        assert_eq!(of(30, 0), (None, Some(10)));
        assert_eq!(of(30, 9), (None, Some(10)));
        assert_eq!(of(30, 10), (Some((0, 10)), Some(20)));
        assert_eq!(of(30, 25), (Some((1, 20)), None), "the hold ends before the next");
        assert_eq!(of(60, 25), (Some((1, 20)), Some(40)));
        assert_eq!(of(5, 10), (None, None), "a short hold is over by then");
    }
}
