//! When failed work runs again, and when a destination is left alone for a while.
//!
//! [`failure`] is how a run failed, [`retry`] when it may run again, [`breaker`] whether a destination is asked at
//! all, [`retry_dead`] when a dead letter comes back by itself. All are plain values with the time as an argument; none of
//! them knows what the work is.

pub mod breaker;
pub mod failure;
pub mod retry;
pub mod retry_dead;

pub use breaker::Breaker;
pub use failure::Failure;
pub use retry::Retry;
pub use retry_dead::RetryDead;

use crate::job::{Class, DeadReason, End};
use crate::time::Time;

/// How a failed run ends: once more later, or before a person. `tries` counts runs from 1; `salt` spreads retries.
pub fn after(failure: &Failure, retry: &Retry, tries: i32, salt: u64, now: Time) -> End {
    let again = match failure.class {
        Class::Transient => retry.next(tries, salt, now, failure.retry_after_ms),
        Class::Terminal => None,
    };
    again.map_or_else(
        || {
            let (reason, error) = (failure.reason.to_owned(), failure.error.clone());
            End::Dead(DeadReason { class: failure.class, reason, error })
        },
        |due_at| End::Retry { due_at },
    )
}

/// How a failed probe of an open breaker ends: it waits for the next one, and has spent no try.
pub fn after_probe(failure: &Failure, breaker: &Breaker, now: Time) -> End {
    match failure.class {
        Class::Terminal => {
            let (reason, error) = (failure.reason.to_owned(), failure.error.clone());
            End::Dead(DeadReason { class: failure.class, reason, error })
        }
        Class::Transient => {
            let asked = now.plus_ms(failure.retry_after_ms.unwrap_or(0).clamp(0, retry::RETRY_AFTER_MAX_MS));
            End::Wait { due_at: breaker.next_probe().unwrap_or(now).max(asked) }
        }
    }
}

/// So many crashes of its node while a job was in hand make it suspect.
pub const SUSPECT_AFTER: i32 = 3;
/// So many more while it ran alone bury it.
const BURIED_AFTER: i32 = SUSPECT_AFTER + 3;

/// Why a job must not run again, if its runs keep killing the process.
pub fn crash_limit(crashes: i32) -> Option<DeadReason> {
    (crashes >= BURIED_AFTER).then(|| {
        DeadReason::terminal("crashed", format!("the process died {crashes} times while it worked on this"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    #[test]
    fn b3_transient_failures_run_again_until_they_are_used_up_and_terminal_ones_never() {
        let retry = Retry::default();
        let down = Failure::transient("connect", "nobody listens");
        for tries in 1..=3 {
            assert!(matches!(after(&down, &retry, tries, 1, NOW), End::Retry { due_at } if due_at > NOW));
        }
        let End::Dead(death) = after(&down, &retry, 4, 1, NOW) else { panic!("four runs are enough") };
        assert_eq!((death.class, death.reason.as_str()), (Class::Transient, "connect"));
        let hopeless = Failure::terminal("non_retryable", "the app said never");
        assert!(matches!(after(&hopeless, &retry, 1, 1, NOW), End::Dead(_)));
    }

    #[test]
    fn c2_a_probe_that_fails_waits_for_the_next_one_and_a_refusal_is_final() {
        let mut breaker = Breaker::default();
        breaker.failed(&breaker::Policy { failures: 1, ..breaker::Policy::default() }, NOW);
        let down = Failure::transient("connect", "nobody listens");
        assert_eq!(after_probe(&down, &breaker, NOW), End::Wait { due_at: NOW.plus_ms(5_000) });
        let later = Failure { retry_after_ms: Some(9_000), ..down.clone() };
        assert_eq!(after_probe(&later, &breaker, NOW), End::Wait { due_at: NOW.plus_ms(9_000) });
        assert_eq!(after_probe(&down, &Breaker::default(), NOW), End::Wait { due_at: NOW });
        let refused = Failure::terminal("non_retryable", "the app said never");
        assert!(matches!(after_probe(&refused, &breaker, NOW), End::Dead(_)));
    }

    #[test]
    fn b2_a_job_is_buried_only_after_crashes_of_its_own() {
        assert!((0..6).all(|crashes| crash_limit(crashes).is_none()));
        assert!(crash_limit(6).is_some());
    }
}
