//! Who an event or job is: a number that rises with time, unique across nodes.
//!
//! A [`Seq`] is 41 bits of milliseconds since 2025, 10 bits of node and 12 bits of counter, so that new rows
//! land at the right edge of every index. People see it as `evt_`, `msg_` or `rej_` and 13 letters.

use std::fmt;
use std::str::FromStr;

use crate::time::Time;

/// 2025-01-01T00:00:00Z. 41 bits from here last until 2094.
const ORIGIN_MS: i64 = 1_735_689_600_000;
const NODE_BITS: u32 = 10;
const COUNTER_BITS: u32 = 12;
const COUNTER_MAX: i64 = (1 << COUNTER_BITS) - 1;
/// How many nodes ids can tell apart. No two that live at once, or may still write, have the same [`Epoch::number`].
pub const NODES_MAX: i64 = 1 << NODE_BITS;
const MS_MAX: i64 = (1 << 41) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(i64);

impl Seq {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_i64(value: i64) -> Self {
        Self(value)
    }

    pub const fn as_i64(self) -> i64 {
        self.0
    }

    /// The smallest number that an id made at `time` can have: a bound for range reads and partitions.
    pub fn floor_of(time: Time) -> Self {
        Self((time.ms() - ORIGIN_MS).clamp(0, MS_MAX) << (NODE_BITS + COUNTER_BITS))
    }

    pub const fn made_at(self) -> Time {
        Time::from_ms((self.0 >> (NODE_BITS + COUNTER_BITS)) + ORIGIN_MS)
    }

    /// The public form of what got its id from this number.
    pub fn tagged(self, tag: &'static str) -> String {
        Tagged(tag, self).to_string()
    }

    /// The number that an id with this tag was made from.
    pub fn of_tagged(text: &str, tag: &str) -> Option<Self> {
        let letters = text.strip_prefix(tag).filter(|letters| letters.len() == LETTERS)?;
        let mut value: u64 = 0;
        for letter in letters.bytes() {
            let digit = ALPHABET.iter().position(|&known| known == letter)?;
            if value >> 59 != 0 {
                return None;
            }
            value = (value << 5) | digit as u64;
        }
        i64::try_from(value).ok().map(Self)
    }

    pub fn as_event(self) -> Tagged {
        Tagged("evt_", self)
    }

    pub fn as_message(self) -> Tagged {
        Tagged("msg_", self)
    }

    pub fn as_rejection(self) -> Tagged {
        Tagged("rej_", self)
    }

    pub fn as_request(self) -> Tagged {
        Tagged("req_", self)
    }
}

/// The public form: a tag that says what it names, then 13 letters of base 32 (Crockford's, lower case).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged(&'static str, Seq);

/// Whether this may be an id of ours with that tag.
pub fn is_tagged(text: &str, tag: &str) -> bool {
    let letters = text.strip_prefix(tag).unwrap_or_default();
    letters.len() == LETTERS && letters.bytes().all(|letter| ALPHABET.contains(&letter))
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LETTERS: usize = 13;

impl fmt::Display for Tagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; LETTERS];
        let mut rest = self.1.0 as u64;
        for letter in text.iter_mut().rev() {
            *letter = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        f.write_str(self.0)?;
        f.write_str(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

/// Reads `evt_…`, `msg_…` or `rej_…` back. A provider's own `evt_…` has another length or alphabet and is refused.
impl FromStr for Seq {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let tags = ["evt_", "msg_", "rej_"];
        tags.into_iter().find_map(|tag| Self::of_tagged(text, tag)).ok_or(NotAnId)
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an id of ours: expected evt_ or msg_ and 13 characters")]
pub struct NotAnId;

/// One life of one process. Given by the store when a node joins, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

impl Epoch {
    /// What of it stands in every id that its node makes. Two epochs that are [`NODES_MAX`] apart have the same.
    pub const fn number(self) -> i64 {
        self.0.rem_euclid(NODES_MAX)
    }

    /// The next epoch whose number is free; none when all are taken.
    pub fn next_free(self, is_taken: impl Fn(i64) -> bool) -> Option<Self> {
        (1..=NODES_MAX).map(|step| Self(self.0 + step)).find(|epoch| !is_taken(epoch.number()))
    }
}

/// Hands out rising ids for one node. The clock may stand still or jump back: ids go on rising.
#[derive(Debug)]
pub struct Sequence {
    node: i64,
    ms: i64,
    counter: i64,
}

impl Sequence {
    /// `floor` is the largest id already stored: a clock that was set back can't give a number twice.
    pub fn new(epoch: Epoch, floor: Seq) -> Self {
        let ms = floor.0 >> (NODE_BITS + COUNTER_BITS);
        Self { node: epoch.number(), ms, counter: COUNTER_MAX }
    }

    pub fn next(&mut self, now: Time) -> Seq {
        let clock = (now.ms() - ORIGIN_MS).clamp(0, MS_MAX);
        if clock > self.ms {
            self.ms = clock;
            self.counter = 0;
        } else if self.counter < COUNTER_MAX {
            self.counter += 1;
        } else {
            // Milliseconds and counter advance apart, so a frozen clock never carries into the node bits.
            // At the end of the numbers, in 2094, they repeat, and the store refuses them one by one.
            self.ms = (self.ms + 1).min(MS_MAX);
            self.counter = 0;
        }
        Seq((self.ms << (NODE_BITS + COUNTER_BITS)) | (self.node << COUNTER_BITS) | self.counter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_rise_whatever_the_clock_does(clock in prop::collection::vec(0i64..4_000_000_000_000, 1..200), floor in 0i64..i64::MAX - (1 << 40)) {
            let mut sequence = Sequence::new(Epoch(3), Seq(floor));
            let mut last = Seq(floor);
            for ms in clock {
                let next = sequence.next(Time::from_ms(ms));
                prop_assert!(next > last);
                prop_assert_eq!((next.0 >> COUNTER_BITS) % NODES_MAX, 3);
                last = next;
            }
        }

        /// Ids are apart exactly as long as the numbers are: this is why a store gives no number twice.
        #[test]
        fn b2_epochs_of_different_numbers_share_no_id_and_those_1024_apart_share_all(
            one in 0i64..5_000, other in 0i64..5_000, clock in prop::collection::vec(0i64..50, 1..60)
        ) {
            let ids = |epoch| {
                let mut sequence = Sequence::new(Epoch(epoch), Seq::ZERO);
                let next = |ms: &i64| sequence.next(Time::from_ms(ORIGIN_MS + ms));
                clock.iter().map(next).collect::<std::collections::BTreeSet<_>>()
            };
            let is_apart = one % 1_024 != other % 1_024;
            prop_assert_eq!(ids(one).is_disjoint(&ids(other)), is_apart);
            prop_assert_eq!(ids(one), ids(one + 1_024));
        }

        #[test]
        fn b2_the_next_epoch_is_the_nearest_whose_number_nobody_has(
            last in 0i64..10_000, taken in prop::collection::btree_set(0i64..1_024, 0..1_024)
        ) {
            let next = Epoch(last).next_free(|number| taken.contains(&number)).expect("one is free");
            prop_assert!(next.0 > last && !taken.contains(&(next.0 % 1_024)));
            prop_assert!((last + 1..next.0).all(|passed| taken.contains(&(passed % 1_024))));
        }

        #[test]
        fn public_ids_read_back(value in 0i64..i64::MAX) {
            let seq = Seq(value);
            prop_assert_eq!(seq.as_event().to_string().parse(), Ok(seq));
            prop_assert_eq!(seq.as_message().to_string().parse(), Ok(seq));
            prop_assert_eq!(seq.as_rejection().to_string().parse(), Ok(seq));
        }
    }

    #[test]
    fn a_frozen_clock_never_reaches_into_another_node() {
        let now = Time::from_ms(ORIGIN_MS + 5);
        let mut one = Sequence::new(Epoch(1), Seq::ZERO);
        let mut two = Sequence::new(Epoch(2), Seq::ZERO);
        let ones: std::collections::BTreeSet<_> = (0..10_000).map(|_| one.next(now)).collect();
        assert!((0..10_000).all(|_| !ones.contains(&two.next(now))));
        assert_eq!(ones.len(), 10_000);
    }

    #[test]
    fn b2_when_all_numbers_are_taken_there_is_no_next_epoch() {
        assert_eq!(Epoch(7).next_free(|_| true), None);
        assert_eq!(
            Epoch(7).next_free(|number| number != 7),
            Some(Epoch(7 + 1_024)),
            "its own, a round later"
        );
    }

    #[test]
    fn a_providers_id_is_not_taken_for_ours() {
        for text in ["evt_1N2b3cFAKE", "evt_", "", "msg_uuuuuuuuuuuuu", "evt_zzzzzzzzzzzzz"] {
            assert_eq!(text.parse::<Seq>(), Err(NotAnId), "{text}");
        }
    }
}
