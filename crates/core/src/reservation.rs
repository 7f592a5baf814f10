//! A reservation: places of a slot that are held while their customer pays, and theirs once they have.
//!
//! Facts that only grow. Its places are claims in the slot's blocks, by number: a claim that lapsed is never taken up again,
//! another is made. What a reservation is at a moment follows from its facts and the moment, so a sweep that comes late
//! changes no answer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::time::Time;

pub const TAG: &str = "rsv_";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationFacts {
    /// What the app asked for.
    pub ours: ReservationRequest,
    /// How long the places are kept for whoever pays.
    pub until: Time,
    /// Every claim that was made, by number: how many places in which block.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<u32, BTreeMap<u32, u32>>,
    /// The claim that was sold, and the last that lapsed.
    #[serde(skip_serializing_if = "is_zero")]
    pub confirmed: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub lapsed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cancelled>,
    /// An operator says that it is theirs, whatever was paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirmation>,
    /// When it was confirmed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Time>,
    /// How often it was kept longer for money that the provider calls paid and that was not here.
    #[serde(skip_serializing_if = "is_zero")]
    pub awaited: u32,
    /// Links to its page of a generation below this one are void.
    #[serde(skip_serializing_if = "is_zero")]
    pub links: u32,
    /// The cases that were opened about it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub cases: BTreeSet<String>,
    /// The keys of what was announced.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub emitted: BTreeSet<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands in a reference
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What the app asked for, once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationRequest {
    /// The key of its slot.
    pub slot: String,
    pub quantity: u32,
    pub at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Time>,
    pub livemode: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What must be paid; without it, it is confirmed at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fulfilment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<MailAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Where the customer is sent to pay once more, if the app makes its own sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_url: Option<String>,
    /// How long a hold lasts.
    pub hold_ms: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cancelled {
    pub at: Time,
    /// `SYSTEM`, `CUSTOMER`, `ADMIN:{who}`, `API:{key}`.
    pub by: String,
    pub why: String,
    /// Whether what was paid goes back.
    #[serde(default)]
    pub refund: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Confirmation {
    pub at: Time,
    pub by: String,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationStatus {
    Hold,
    Confirmed,
    Expired,
    Cancelled,
}

impl ReservationStatus {
    pub const ALL: [Self; 4] = [Self::Hold, Self::Confirmed, Self::Expired, Self::Cancelled];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Confirmed => "confirmed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

impl ReservationFacts {
    /// Adds what another knows.
    pub fn join(&mut self, other: &Self) {
        if self.ours == ReservationRequest::default() {
            self.ours.clone_from(&other.ours);
        }
        self.until = self.until.max(other.until);
        for (number, parts) in &other.claims {
            self.claims.entry(*number).or_insert_with(|| parts.clone());
        }
        self.confirmed = self.confirmed.max(other.confirmed);
        self.lapsed = self.lapsed.max(other.lapsed);
        self.links = self.links.max(other.links);
        self.awaited = self.awaited.max(other.awaited);
        // Of two at the same moment, the one that was written first counts: money may have moved because of it.
        if other
            .cancelled
            .as_ref()
            .is_some_and(|theirs| self.cancelled.as_ref().is_none_or(|mine| theirs.at < mine.at))
        {
            self.cancelled.clone_from(&other.cancelled);
        }
        self.confirm = least(self.confirm.take(), other.confirm.as_ref());
        self.confirmed_at = least(self.confirmed_at, other.confirmed_at.as_ref());
        self.cases.extend(other.cases.iter().cloned());
        self.emitted.extend(other.emitted.iter().cloned());
    }

    /// The number of its newest claim; 0 before the first.
    pub fn claimed(&self) -> u32 {
        self.claims.keys().next_back().copied().unwrap_or_default()
    }

    /// The places it has, by block; none once they lapsed.
    pub fn parts(&self) -> Option<&BTreeMap<u32, u32>> {
        self.claims.get(&self.claimed()).filter(|_| self.claimed() > self.lapsed)
    }

    /// What it is at a moment: the first that holds.
    pub fn status(&self, at: Time, grace_ms: i64) -> ReservationStatus {
        if self.cancelled.is_some() {
            return ReservationStatus::Cancelled;
        }
        if self.confirmed > self.lapsed {
            return ReservationStatus::Confirmed;
        }
        let is_over = self.lapsed >= self.claimed() || at >= self.until.plus_ms(grace_ms);
        if is_over { ReservationStatus::Expired } else { ReservationStatus::Hold }
    }

    /// Whether its customer may cancel it now: a hold at any time, what is theirs until then. Of what has no date nobody said
    /// until when, so that is for a person.
    pub fn may_customer_cancel(&self, at: Time, grace_ms: i64, before_ms: i64) -> bool {
        match self.status(at, grace_ms) {
            ReservationStatus::Hold => true,
            ReservationStatus::Confirmed => self.cancel_until(before_ms).is_some_and(|until| at <= until),
            ReservationStatus::Expired | ReservationStatus::Cancelled => false,
        }
    }

    /// Until when its customer may cancel it, if that depends on when it starts.
    pub fn cancel_until(&self, before_ms: i64) -> Option<Time> {
        self.ours.starts_at.map(|starts_at| starts_at.plus_ms(-before_ms))
    }
}

fn least<T: Ord + Clone>(mine: Option<T>, other: Option<&T>) -> Option<T> {
    match (mine, other) {
        (Some(mine), Some(other)) => Some(if *other < mine { other.clone() } else { mine }),
        (mine, other) => mine.or_else(|| other.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn held() -> ReservationFacts {
        ReservationFacts {
            until: NOW.plus_ms(1_000),
            claims: [(1, [(0, 1)].into())].into(),
            ..ReservationFacts::default()
        }
    }

    #[test]
    fn f1_a_hold_ends_by_its_time_and_grace_with_no_sweep() {
        let facts = held();
        assert_eq!(facts.status(NOW.plus_ms(1_099), 100), ReservationStatus::Hold);
        assert_eq!(facts.status(NOW.plus_ms(1_100), 100), ReservationStatus::Expired);
        let swept = ReservationFacts { lapsed: 1, ..held() };
        assert_eq!(swept.status(NOW, 100), ReservationStatus::Expired);
        let again = ReservationFacts { claims: [(1, [(0, 1)].into()), (2, [(0, 1)].into())].into(), ..swept };
        assert_eq!(again.status(NOW, 100), ReservationStatus::Hold);
        let confirmed = ReservationFacts { confirmed: 2, ..again };
        assert_eq!(confirmed.status(NOW.plus_ms(i64::MAX / 2), 100), ReservationStatus::Confirmed);
    }

    #[test]
    fn f7_a_customer_cancels_until_48_hours_before_and_not_a_moment_later() {
        const HOUR: i64 = 3_600_000;
        let starts_at = NOW.plus_ms(48 * HOUR);
        let may = |starts_at: Option<Time>, confirmed: u32, at: Time| {
            let mut facts = ReservationFacts { confirmed, ..held() };
            facts.ours.starts_at = starts_at;
            facts.may_customer_cancel(at, 100, 48 * HOUR)
        };
        assert!(may(Some(starts_at), 1, NOW), "at the very moment");
        assert!(!may(Some(starts_at), 1, NOW.plus_ms(1)));
        assert!(may(Some(starts_at), 0, NOW.plus_ms(1)), "a hold at any time");
        assert!(!may(None, 1, NOW), "without a date nobody said until when");
        assert!(!may(Some(starts_at), 0, NOW.plus_ms(1_100)), "an expired hold is over already");
    }

    #[test]
    fn f1_facts_join_in_any_order() {
        let cancel = |at: i64| Cancelled {
            at: NOW.plus_ms(at),
            by: "CUSTOMER".into(),
            why: String::new(),
            refund: true,
        };
        let parts = [
            held(),
            ReservationFacts { lapsed: 1, emitted: ["a".to_owned()].into(), ..ReservationFacts::default() },
            ReservationFacts {
                claims: [(2, [(0, 1)].into())].into(),
                confirmed: 2,
                ..ReservationFacts::default()
            },
            ReservationFacts {
                cancelled: Some(cancel(5)),
                until: NOW.plus_ms(9_000),
                ..ReservationFacts::default()
            },
            ReservationFacts { cancelled: Some(cancel(4)), links: 1, ..ReservationFacts::default() },
        ];
        let all = |order: &[usize]| {
            let mut facts = ReservationFacts::default();
            order.iter().for_each(|n| facts.join(&parts[*n]));
            facts
        };
        let one = all(&[0, 1, 2, 3, 4]);
        for order in [[4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [1, 4, 0, 3, 2]] {
            assert_eq!(all(&order), one);
            assert_eq!(all(&[order, order].concat()), one);
        }
        assert_eq!((one.claimed(), one.cancelled), (2, Some(cancel(4))));
    }
}
