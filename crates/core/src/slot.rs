//! Places that can be sold once: a seat, an appointment, a showing with many seats. A slot has a capacity; reservations claim
//! places of it, first for a while and then for good.
//!
//! Exclusion can't be joined, so a slot is a register: its claims are kept in blocks of at most [`BLOCK_PLACES`] places, each
//! written under its version. Two who want the last place meet there, and one of them decides again.

mod places;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::state::{Key, Kind};
use crate::time::Time;

pub use places::{Full, Places, Untaken};

/// Places of one block. A slot with more has several, so that many can be held at once.
pub const BLOCK_PLACES: u32 = 256;
/// More places than this are several slots.
pub const CAPACITY_MAX: u32 = 1_000_000;
pub const ID_MAX: usize = 100;

/// Which slot: what the app calls it, inside its tenant and mode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotName {
    pub livemode: bool,
    pub tenant: Option<String>,
    pub id: String,
}

impl SlotName {
    pub fn key(&self) -> Key {
        let mode = if self.livemode { "live" } else { "test" };
        Key::new(Kind::Slot, format!("{mode}/{}/{}", self.tenant.as_deref().unwrap_or("-"), self.id))
    }

    /// Reads back what a key says. Neither a tenant nor a slot has a slash in its id.
    pub fn parse(key: &str) -> Option<Self> {
        let mut parts = key.splitn(3, '/');
        let (mode, tenant, id) = (parts.next()?, parts.next()?, parts.next()?);
        let tenant = (tenant != "-").then(|| tenant.to_owned());
        Some(Self { livemode: mode == "live", tenant, id: id.to_owned() })
    }
}

/// Whether an app may call a slot so.
pub fn is_slot_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=ID_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// What is known of a slot itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slot {
    pub capacity: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Slot {
    pub fn blocks(&self) -> u32 {
        self.capacity.div_ceil(BLOCK_PLACES).max(1)
    }

    /// Places of one of its blocks. Only the last may have fewer than the others.
    pub fn places_of(&self, block: u32) -> u32 {
        self.capacity.saturating_sub(block.saturating_mul(BLOCK_PLACES)).min(BLOCK_PLACES)
    }

    /// The block in which places are looked for first: reservations of one slot spread over its blocks.
    pub fn first_block(&self, reservation: &str) -> u32 {
        crc32fast::hash(reservation.as_bytes()) % self.blocks()
    }
}

pub fn block_key(slot: &Key, block: u32) -> Key {
    Key::new(Kind::SlotBlock, format!("{}#{block}", slot.id))
}

/// The claims of one block, by reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Block(pub BTreeMap<String, Claim>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Which of the reservation's claims: one that lapsed and was renewed has another number.
    #[serde(rename = "n")]
    pub number: u32,
    #[serde(rename = "q")]
    pub quantity: u32,
    pub until: Time,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sold: bool,
}

impl Claim {
    /// Whether its places are taken at that moment. Once the grace is over they are not, whether or not anybody has looked.
    pub fn holds(&self, at: Time, grace_ms: i64) -> bool {
        self.sold || at < self.until.plus_ms(grace_ms)
    }
}

/// How many places are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenPlaces {
    pub held: u32,
    pub sold: u32,
}

impl TakenPlaces {
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self { held: self.held.saturating_add(more.held), sold: self.sold.saturating_add(more.sold) }
    }

    pub fn all(self) -> u32 {
        self.held.saturating_add(self.sold)
    }
}

impl Block {
    pub fn taken(&self, at: Time, grace_ms: i64) -> TakenPlaces {
        let mut taken = TakenPlaces::default();
        for claim in self.0.values().filter(|claim| claim.holds(at, grace_ms)) {
            let sum = if claim.sold { &mut taken.sold } else { &mut taken.held };
            *sum = sum.saturating_add(claim.quantity);
        }
        taken
    }

    /// When the first of its holds is over, if nobody pays.
    fn next_free(&self, at: Time, grace_ms: i64) -> Option<Time> {
        let held = self.0.values().filter(|claim| !claim.sold && claim.holds(at, grace_ms));
        held.map(|claim| claim.until.plus_ms(grace_ms)).min()
    }
}
