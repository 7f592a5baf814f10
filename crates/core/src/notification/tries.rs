//! What follows a try (G2): another one after a wait, or the end. One message has so many tries and so much time, from
//! its first try on; what a server does can make neither longer.

use super::{Audience, Sent};
use crate::job::Class;
use crate::queue::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    pub most: u32,
    /// The wait after the first; it doubles.
    pub first_wait_ms: i64,
    pub wait_max_ms: i64,
    /// For all of them together.
    pub within_ms: i64,
    /// For one of them.
    pub each_ms: i64,
}

impl Default for Tries {
    fn default() -> Self {
        Self { most: 3, first_wait_ms: 2_000, wait_max_ms: 10_000, within_ms: 30_000, each_ms: 8_000 }
    }
}

/// However long the other side asks to be left alone, after so long it is asked again.
const ASKED_MAX_MS: i64 = 3_600_000;

/// What is done with a message of which nobody knows whether it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// A person decides: nobody gets it twice, somebody may get it late.
    Hold,
    /// It is sent once more: nobody misses it, somebody may get it twice.
    Resend,
}

impl Doubt {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Resend => "resend",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Hold, Self::Resend].into_iter().find(|doubt| doubt.name() == text)
    }

    /// Where the channel does not say: operators rather hear twice than never.
    pub const fn of(audience: Audience) -> Self {
        match audience {
            Audience::Customer | Audience::Staff => Self::Hold,
            Audience::Operator => Self::Resend,
        }
    }
}

/// Why a dead letter waits for a person who decides whether it is sent again.
pub const UNCERTAIN: &str = "uncertain";

/// What follows a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    Done(super::Receipt),
    Again {
        after_ms: i64,
        failure: Failure,
    },
    Failed(Failure),
    Hold(Failure),
    /// The channel is shut; the message waits for it.
    Wait {
        failure: Failure,
        for_ms: Option<i64>,
    },
}

impl Tries {
    /// `n` counts tries from 1; `spent_ms` since the first began.
    pub fn after(&self, sent: Sent, doubt: Doubt, n: u32, spent_ms: i64) -> Then {
        match (sent, doubt) {
            (Sent::Accepted(receipt), _) => Then::Done(receipt),
            (Sent::Closed { failure, for_ms }, _) => Then::Wait { failure, for_ms },
            (Sent::Failed(failure), _) => match failure.class {
                Class::Transient => self.again(failure, n, spent_ms, Then::Failed),
                Class::Terminal => Then::Failed(failure),
            },
            (Sent::Uncertain(failure), Doubt::Hold) => Then::Hold(failure),
            (Sent::Uncertain(failure), Doubt::Resend) => self.again(failure, n, spent_ms, Then::Hold),
        }
    }

    fn again(&self, failure: Failure, n: u32, spent_ms: i64, otherwise: fn(Failure) -> Then) -> Then {
        let asked_ms = failure.retry_after_ms.map(|asked| asked.clamp(0, ASKED_MAX_MS));
        if let Some(asked_ms) = asked_ms.filter(|asked| spent_ms + asked >= self.within_ms) {
            // It asks for more patience than one message has: then the whole channel waits.
            return Then::Wait { failure, for_ms: Some(asked_ms) };
        }
        let after_ms = self.wait_ms(n).max(asked_ms.unwrap_or(0));
        if n >= self.most || spent_ms + after_ms >= self.within_ms {
            return otherwise(failure);
        }
        Then::Again { after_ms, failure }
    }

    fn wait_ms(&self, n: u32) -> i64 {
        let doubled = 2_i64.saturating_pow(n.saturating_sub(1));
        self.first_wait_ms.saturating_mul(doubled).min(self.wait_max_ms)
    }

    /// How long the next try may take.
    pub fn time_left_ms(&self, spent_ms: i64) -> i64 {
        self.each_ms.min(self.within_ms - spent_ms).max(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::notification::Receipt;

    fn busy() -> Failure {
        Failure::transient("throttled", "454 try later")
    }

    #[test]
    fn g2_three_tries_with_waits_of_two_and_four_seconds() {
        let tries = Tries::default();
        let failed = |n, spent| tries.after(Sent::Failed(busy()), Doubt::Hold, n, spent);
        assert!(matches!(failed(1, 100), Then::Again { after_ms: 2_000, .. }));
        assert!(matches!(failed(2, 2_200), Then::Again { after_ms: 4_000, .. }));
        assert!(matches!(failed(3, 6_300), Then::Failed(_)));
        let more = Tries { most: 6, within_ms: 600_000, ..tries };
        let waits = (1..6).map(|n| match more.after(Sent::Failed(busy()), Doubt::Hold, n, 0) {
            Then::Again { after_ms, .. } => after_ms,
            other => panic!("{other:?}"),
        });
        assert_eq!(waits.collect::<Vec<_>>(), [2_000, 4_000, 8_000, 10_000, 10_000]);
    }

    #[test]
    fn g2_terminal_failures_end_at_once_and_shut_channels_wait() {
        let tries = Tries::default();
        let refused = Failure::terminal("bad_recipient", "550 no such user");
        assert_eq!(
            tries.after(Sent::Failed(refused.clone()), Doubt::Hold, 1, 0),
            Then::Failed(refused.clone())
        );
        let shut = Sent::Closed { failure: refused.clone(), for_ms: None };
        assert_eq!(tries.after(shut, Doubt::Hold, 1, 0), Then::Wait { failure: refused, for_ms: None });
        let receipt = Receipt { answer: "250 Ok".into(), reference: None };
        assert_eq!(tries.after(Sent::Accepted(receipt.clone()), Doubt::Hold, 3, 29_000), Then::Done(receipt));
        let patient = Sent::Failed(busy().after_ms(Some(60_000)));
        assert!(matches!(tries.after(patient, Doubt::Hold, 1, 0), Then::Wait { for_ms: Some(60_000), .. }));
        let absurd = Sent::Failed(busy().after_ms(Some(i64::MAX)));
        assert!(matches!(
            tries.after(absurd, Doubt::Hold, 1, 0),
            Then::Wait { for_ms: Some(ASKED_MAX_MS), .. }
        ));
    }

    #[test]
    fn g2_doubt_is_held_for_customers_and_staff_and_sent_again_for_operators() {
        let tries = Tries::default();
        let doubt = |audience, n| tries.after(Sent::Uncertain(busy()), Doubt::of(audience), n, 100);
        assert!(matches!(doubt(Audience::Customer, 1), Then::Hold(_)));
        assert!(matches!(doubt(Audience::Staff, 1), Then::Hold(_)));
        assert!(matches!(doubt(Audience::Operator, 1), Then::Again { .. }));
        assert!(matches!(doubt(Audience::Operator, 3), Then::Hold(_)), "it still may have arrived");
    }

    proptest! {
        #[test]
        fn g2_no_message_takes_longer_than_its_time(took in prop::collection::vec(0i64..60_000, 10)) {
            let tries = Tries { most: 10, ..Tries::default() };
            let mut spent = 0;
            for (n, took) in took.into_iter().enumerate() {
                spent += took.min(tries.time_left_ms(spent));
                prop_assert!(spent <= tries.within_ms);
                match tries.after(Sent::Failed(busy()), Doubt::Hold, n as u32 + 1, spent) {
                    Then::Again { after_ms, .. } => spent += after_ms,
                    _ => break,
                }
            }
            prop_assert!(spent <= tries.within_ms);
        }
    }
}
