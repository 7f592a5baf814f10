//! How often a page is shown and acted on, on this node: by link, and by the address that asks.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Links and addresses that are counted at once; beyond that, those whose time is over are forgotten first.
const COUNTED_MAX: usize = 20_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitedUse {
    Get,
    Post,
    /// Asking for another session.
    Retry,
    Contact,
    ContactDaily,
    Address,
    WrongLink,
}

impl LimitedUse {
    /// How many in how long.
    const fn allowance(self) -> (u32, Duration) {
        match self {
            Self::Get => (30, Duration::from_mins(1)),
            Self::Post => (10, Duration::from_mins(1)),
            Self::Retry => (5, Duration::from_hours(1)),
            Self::Contact => (3, Duration::from_hours(1)),
            Self::ContactDaily => (10, Duration::from_hours(24)),
            Self::Address => (120, Duration::from_mins(1)),
            Self::WrongLink => (20, Duration::from_mins(1)),
        }
    }
}

#[derive(Default)]
pub struct VisitLimits(Mutex<HashMap<(LimitedUse, String), Count>>);

struct Count {
    since: Instant,
    number: u32,
}

impl VisitLimits {
    /// Counts one more; false when it is too many.
    pub fn allow(&self, purpose: LimitedUse, of: &str) -> bool {
        let (most, within) = purpose.allowance();
        let now = Instant::now();
        let mut counts = self.0.lock().expect("no code panics here");
        if counts.len() >= COUNTED_MAX {
            counts.retain(|(purpose, _), count| now - count.since < purpose.allowance().1);
        }
        if counts.len() >= COUNTED_MAX {
            // Who comes with so many addresses is not told apart from others: what is left is what each may do at most.
            counts.clear();
        }
        let count = counts.entry((purpose, of.to_owned())).or_insert(Count { since: now, number: 0 });
        if now - count.since >= within {
            *count = Count { since: now, number: 0 };
        }
        count.number = count.number.saturating_add(1);
        count.number <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn f8_a_link_is_used_so_often_and_then_again_after_its_time() {
        let limits = VisitLimits::default();
        let used = |of: &str| (0..40).filter(|_| limits.allow(LimitedUse::Get, of)).count();
        assert_eq!(used("one"), 30);
        assert_eq!(used("another"), 30);
        assert_eq!(used("one"), 0);
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(used("one"), 30);
    }

    #[test]
    fn f8_what_is_counted_is_bounded() {
        let limits = VisitLimits::default();
        for n in 0..COUNTED_MAX * 2 {
            limits.allow(LimitedUse::WrongLink, &n.to_string());
        }
        assert!(limits.0.lock().unwrap().len() <= COUNTED_MAX);
    }
}
