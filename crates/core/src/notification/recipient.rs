//! How many mails one customer's address gets within an hour, on all nodes together. What causes them may be a stranger who
//! typed somebody's address at the till again and again.

use serde::{Deserialize, Serialize};

use super::{Audience, Notice};
use crate::time::Time;

const HOUR_MS: i64 = 3_600_000;

/// Why a notice was held back: also its status.
pub const RATE_LIMITED: &str = "rate_limited";

/// What an address was sent within the last hour, by the notice and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    mails: Vec<(Time, String)>,
}

impl Recent {
    /// With this notice, which may be sent; `None` when there were `most` already. Asked again it is still the same one.
    pub fn with(&self, notice: &str, most: u32, now: Time) -> Option<Self> {
        let is_recent = |at: Time| (0..HOUR_MS).contains(&(now.ms() - at.ms()));
        let mut mails: Vec<_> = self.mails.iter().filter(|(at, _)| is_recent(*at)).cloned().collect();
        if !mails.iter().any(|(_, known)| known == notice) {
            if mails.len() >= most as usize {
                return None;
            }
            mails.push((now, notice.to_owned()));
        }
        Some(Self { mails })
    }
}

impl Notice {
    /// Whether it is counted: what strangers can cause, and nobody asked for by hand.
    pub fn is_counted(&self) -> bool {
        self.audience == Audience::Customer && self.again == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoticeStatus;
    use super::super::compose::tests::notice_to;
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    #[test]
    fn g2_an_address_gets_so_many_mails_an_hour_and_no_more() {
        let mut recent = Recent::default();
        for n in 0..3 {
            recent = recent.with(&n.to_string(), 3, NOW.plus_ms(n)).expect("there is room");
        }
        assert_eq!(recent.with("3", 3, NOW.plus_ms(3)), None);
        assert_eq!(recent.with("2", 3, NOW.plus_ms(3)), Some(recent.clone()), "it has its place already");
        let later = recent.with("3", 3, NOW.plus_ms(HOUR_MS)).expect("the first is an hour ago");
        assert_eq!(later.mails.len(), 3);
        assert!(
            recent.with("3", 3, NOW.plus_ms(-HOUR_MS)).is_some(),
            "a clock that was wrong holds nothing up"
        );
    }

    #[test]
    fn g2_what_a_person_asked_for_is_not_counted() {
        let first = notice_to("taro@example.jp", NoticeStatus::Queued);
        assert!(Notice { audience: Audience::Customer, ..first.clone() }.is_counted());
        assert!(!Notice { audience: Audience::Customer, again: 1, ..first.clone() }.is_counted());
        for audience in [Audience::Staff, Audience::Operator] {
            assert!(!Notice { audience, ..first.clone() }.is_counted());
        }
    }
}
