//! What hangs on payments, as it is while a batch is being decided: reservations and fulfilments, and the registers of the
//! slots whose places they take. Inputs are taken in one by one, so of two that want the last place the first has it.
//!
//! What is not loaded yet is written down as wanted; then the whole batch is decided again with it.

mod announce;
mod asking;
mod cases;
mod fault;
mod kept;
mod probe;
mod records;
mod renew;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use super::board::KnownThings;
use super::{OrderDeadline, Terms};
use crate::announcement::Announcement;
use crate::case;
use crate::compensation::Compensation;
use crate::fulfilment as ful;
use crate::reservation as rsv;
use crate::settlement::Fetch;
use crate::settlement::follow::{Hold, OrderMoney, Wants, follow_fulfilment, follow_reservation, member};
use crate::settlement::refund::Automatic;
use crate::slot::{Block, Claim, Full, Places, Slot, Untaken, block_key};
use crate::state::{Key, Kind, Wanted};
use crate::time::Time;
use kept::{Kept, load};

pub struct Orders<'l> {
    known: KnownThings<'l>,
    pub wanted: Wanted,
    slots: BTreeMap<Key, SlotRow>,
    reservations: BTreeMap<String, Kept<rsv::ReservationFacts>>,
    fulfilments: BTreeMap<String, Kept<ful::FulfilmentFacts>>,
    cases: BTreeMap<String, Kept<case::CaseFacts>>,
    /// What was done because something had gone wrong, by its id.
    compensations: BTreeMap<String, (usize, Compensation)>,
    automatic: Option<Kept<Automatic>>,
    /// The orders that must be looked at, by what locks them, each with the last input that touched it.
    pub anchors: BTreeMap<Key, usize>,
    /// Which inputs looked at what.
    users: BTreeMap<Key, BTreeSet<usize>>,
    pub announcements: Vec<(usize, Announcement)>,
    pub deadlines: Vec<(usize, OrderDeadline)>,
    /// What providers are asked for.
    pub fetches: Vec<(usize, Fetch)>,
}

#[derive(Default)]
struct SlotRow {
    head: Kept<Slot>,
    blocks: BTreeMap<u32, Block>,
    /// Versions and contents of the blocks as they are stored.
    stored: BTreeMap<u32, (i64, Block)>,
}

/// What following an order asks of its payment.
#[derive(Default)]
pub struct Followed {
    pub refunds: Vec<RefundWanted>,
    pub next: Option<Time>,
    /// Cases about the payment itself, which it must remember.
    pub cases: BTreeSet<String>,
}

pub struct RefundWanted {
    pub key: String,
    pub trigger: String,
    /// `None` is whatever is left.
    pub amount: Option<i64>,
    /// Who gets the money back, and why: of a cancellation, whoever cancelled.
    pub by: String,
    pub reason: String,
    pub is_automatic: bool,
}

impl<'l> Orders<'l> {
    pub fn new(known: KnownThings<'l>) -> Self {
        Self {
            known,
            wanted: Wanted::default(),
            slots: BTreeMap::new(),
            reservations: BTreeMap::new(),
            fulfilments: BTreeMap::new(),
            cases: BTreeMap::new(),
            compensations: BTreeMap::new(),
            automatic: None,
            anchors: BTreeMap::new(),
            users: BTreeMap::new(),
            announcements: Vec::new(),
            deadlines: Vec::new(),
            fetches: Vec::new(),
        }
    }

    /// Takes the places that somebody asks for, or says that too few are free.
    pub fn hold(&mut self, n: usize, hold: &Hold, terms: &Terms<'_>) -> Result<Result<(), Full>, String> {
        let slot = Key::new(Kind::Slot, &*hold.reservation.ours.slot);
        if !self.open_slot(n, &slot)? {
            return Ok(Ok(()));
        }
        let row = self.slots.get_mut(&slot).expect("it was opened");
        if row.head.now.capacity == 0 {
            row.head.now = hold.slot.clone();
            row.head.by = n;
        }
        let starts_at = row.head.now.starts_at;
        let (quantity, until) = (hold.reservation.ours.quantity, hold.reservation.until);
        let claim = Claim { number: 1, quantity, until, sold: false };
        let parts = match self.in_places(n, &slot, terms, |places| places.take(&hold.id, &claim)) {
            Ok(parts) => parts,
            Err(Untaken::Full(full)) => return Ok(Err(full)),
            Err(Untaken::Unknown(blocks)) => {
                self.want_blocks(&slot, &blocks);
                return Ok(Ok(()));
            }
        };
        let mut facts = hold.reservation.clone();
        facts.ours.starts_at = facts.ours.starts_at.or(starts_at);
        facts.claims.insert(1, parts);
        let row = Kept { now: facts, by: n, ..Kept::default() };
        self.use_by(n, &Key::new(Kind::Reservation, &*hold.id));
        self.reservations.insert(hold.id.clone(), row);
        if let Some((id, facts)) = &hold.fulfilment {
            self.use_by(n, &Key::new(Kind::Fulfilment, &**id));
            self.fulfilments.insert(id.clone(), Kept { now: facts.clone(), by: n, ..Kept::default() });
        }
        self.touch(anchor_of(&hold.id, &hold.reservation.ours), n);
        Ok(Ok(()))
    }

    /// Adds what somebody says of a reservation.
    pub fn join_reservation(
        &mut self,
        n: usize,
        id: &str,
        said: &rsv::ReservationFacts,
    ) -> Result<(), String> {
        let Some(row) = self.reservation(n, id)? else { return Ok(()) };
        row.now.join(said);
        row.by = n;
        let anchor = anchor_of(id, &row.now.ours);
        self.touch(anchor, n);
        Ok(())
    }

    /// Adds what somebody says of a fulfilment.
    pub fn join_fulfilment(&mut self, n: usize, id: &str, said: &ful::FulfilmentFacts) -> Result<(), String> {
        let Some(row) = self.fulfilment(n, id)? else { return Ok(()) };
        row.now.join(said);
        row.by = n;
        let anchor = anchor_of_fulfilment(id, &row.now.ours);
        self.touch(anchor, n);
        Ok(())
    }

    /// Adds a fulfilment of its own, without a reservation.
    pub fn new_fulfilment(&mut self, n: usize, id: &str, facts: &ful::FulfilmentFacts) {
        self.use_by(n, &Key::new(Kind::Fulfilment, id));
        self.fulfilments.insert(id.to_owned(), Kept { now: facts.clone(), by: n, ..Kept::default() });
        self.touch(anchor_of_fulfilment(id, &facts.ours), n);
    }

    pub fn touch(&mut self, anchor: Key, n: usize) {
        self.use_by(n, &anchor);
        self.anchors.insert(anchor, n);
    }

    /// The members of an order that has no payment.
    pub fn members_of(&mut self, n: usize, anchor: &Key) -> Result<BTreeSet<String>, String> {
        let mut members = BTreeSet::from([anchor.id.clone()]);
        if anchor.kind == Kind::Reservation
            && let Some(row) = self.reservation(n, &anchor.id)?
        {
            members.extend(row.now.ours.fulfilment.clone());
        }
        Ok(members)
    }

    /// Works out where the members of an order stand.
    pub fn follow(
        &mut self,
        n: usize,
        members: &BTreeSet<String>,
        money: Option<&OrderMoney<'_>>,
        terms: &Terms<'_>,
    ) -> Result<Followed, String> {
        let mut followed = Followed::default();
        for id in members.iter().filter(|id| is(id, Kind::Reservation)) {
            let wants = self.follow_reservation(n, id, money, terms)?;
            followed.next = followed.next.into_iter().chain(wants.next).min();
            if let Some((key, trigger)) = wants.refund {
                let cancelled = self.reservations[id].now.cancelled.clone();
                let by_hand = cancelled.filter(|_| key.starts_with("cancel/"));
                followed.refunds.push(RefundWanted {
                    trigger: trigger.to_owned(),
                    amount: None,
                    is_automatic: by_hand.is_none(),
                    by: by_hand.as_ref().map_or_else(|| "SYSTEM".to_owned(), |one| one.by.clone()),
                    reason: by_hand.map_or_else(|| trigger.to_owned(), |one| one.why),
                    key,
                });
            }
        }
        for id in members.iter().filter(|id| is(id, Kind::Fulfilment)) {
            let Some(row) = self.fulfilment(n, id)? else { continue };
            let mut facts = row.now.clone();
            let reservation = match facts.ours.reservation.clone() {
                Some(id) => match self.reservation(n, &id)? {
                    Some(row) => Some(row.now.clone()),
                    None => continue,
                },
                None => None,
            };
            let next = follow_fulfilment(&mut facts, reservation.as_ref(), money, terms.at, terms.orders);
            followed.next = followed.next.into_iter().chain(next).min();
            self.fulfilments.get_mut(id).expect("it was opened").set(facts, n);
        }
        Ok(followed)
    }

    fn follow_reservation(
        &mut self,
        n: usize,
        id: &str,
        money: Option<&OrderMoney<'_>>,
        terms: &Terms<'_>,
    ) -> Result<Wants, String> {
        let Some(row) = self.reservation(n, id)? else { return Ok(Wants::default()) };
        let mut facts = row.now.clone();
        let slot = Key::new(Kind::Slot, &*facts.ours.slot);
        let blocks: Vec<u32> = facts.parts().into_iter().flatten().map(|(n, _)| *n).collect();
        if !self.open_slot(n, &slot)? || !self.open_blocks(n, &slot, &blocks)? {
            return Ok(Wants::default());
        }
        let orders = terms.orders;
        let (wants, facts) = self.in_places(n, &slot, terms, |places| {
            let wants = follow_reservation(id, &mut facts, places, money, orders);
            (wants, facts)
        });
        if !wants.blocks.is_empty() {
            self.want_blocks(&slot, &wants.blocks);
            return Ok(Wants::default());
        }
        if let Some(trigger) = wants.reassigned {
            self.note_reassigned(n, id, &facts, trigger, terms);
        }
        self.reservations.get_mut(id).expect("it was opened").set(facts, n);
        Ok(wants)
    }

    /// Counts an automatic refund; `None` while it is not known how many there were.
    pub fn count_automatic(&mut self, n: usize, terms: &Terms<'_>) -> Result<Option<bool>, String> {
        let key = Automatic::key();
        if self.automatic.is_none() {
            let Some(register) = load::<Automatic>(self.known, &mut self.wanted, &key)? else {
                return Ok(None);
            };
            self.automatic = Some(register);
        }
        self.use_by(n, &key);
        let register = self.automatic.as_mut().expect("it was opened");
        register.by = n;
        Ok(Some(register.now.take(terms.orders.refunds.automatic_per_hour, terms.at)))
    }

    /// Works on the places of a slot that was opened.
    fn in_places<T>(
        &mut self,
        n: usize,
        slot: &Key,
        terms: &Terms<'_>,
        work: impl FnOnce(&mut Places<'_>) -> T,
    ) -> T {
        let (grace_ms, at) = (terms.orders.grace_ms, terms.at);
        let row = self.slots.get_mut(slot).expect("it was opened");
        let done = work(&mut Places { slot: &row.head.now, blocks: &mut row.blocks, at, grace_ms });
        // All that was looked at: whoever finds it full depends on whoever filled it.
        let blocks: Vec<u32> = row.blocks.keys().copied().collect();
        blocks.into_iter().for_each(|block| self.use_by(n, &block_key(slot, block)));
        done
    }

    fn reservation(
        &mut self,
        n: usize,
        id: &str,
    ) -> Result<Option<&mut Kept<rsv::ReservationFacts>>, String> {
        let key = Key::new(Kind::Reservation, id);
        self.use_by(n, &key);
        if !self.reservations.contains_key(id) {
            let Some(row) = load(self.known, &mut self.wanted, &key)? else { return Ok(None) };
            if row.before.is_none() {
                return Err(format!("there is no reservation {id}"));
            }
            self.reservations.insert(id.to_owned(), row);
        }
        Ok(self.reservations.get_mut(id))
    }

    fn fulfilment(&mut self, n: usize, id: &str) -> Result<Option<&mut Kept<ful::FulfilmentFacts>>, String> {
        let key = Key::new(Kind::Fulfilment, id);
        self.use_by(n, &key);
        if !self.fulfilments.contains_key(id) {
            let Some(row) = load(self.known, &mut self.wanted, &key)? else { return Ok(None) };
            if row.before.is_none() {
                return Err(format!("there is no fulfilment {id}"));
            }
            self.fulfilments.insert(id.to_owned(), row);
        }
        Ok(self.fulfilments.get_mut(id))
    }

    /// Lays out a slot and the blocks of it that are loaded; false while it is not known.
    fn open_slot(&mut self, n: usize, slot: &Key) -> Result<bool, String> {
        if !self.slots.contains_key(slot) {
            let Some(head) = load::<Slot>(self.known, &mut self.wanted, slot)? else { return Ok(false) };
            self.slots.insert(slot.clone(), SlotRow { head, ..SlotRow::default() });
        }
        self.use_by(n, slot);
        let first = block_key(slot, 0);
        let last = Key::new(Kind::SlotBlock, format!("{}$", slot.id));
        let known = self.known;
        let asked = known.asked.keys.range(first..last).filter(|key| key.kind == Kind::SlotBlock);
        for key in asked {
            let Some(n) = key.id.rsplit('#').next().and_then(|n| n.parse().ok()) else { continue };
            let row = self.slots.get_mut(slot).expect("it was opened");
            if !row.blocks.contains_key(&n)
                && let Some(block) = load::<Block>(known, &mut self.wanted, key)?
            {
                row.stored.insert(n, (block.version, block.now.clone()));
                row.blocks.insert(n, block.now);
            }
        }
        Ok(true)
    }

    /// Whether these blocks are known; asks for them otherwise.
    fn open_blocks(&mut self, n: usize, slot: &Key, blocks: &[u32]) -> Result<bool, String> {
        self.open_slot(n, slot)?;
        let row = &self.slots[slot];
        let unknown: Vec<u32> = blocks.iter().filter(|n| !row.blocks.contains_key(n)).copied().collect();
        self.want_blocks(slot, &unknown);
        Ok(unknown.is_empty())
    }

    fn want_blocks(&mut self, slot: &Key, blocks: &[u32]) {
        self.wanted.keys.extend(blocks.iter().map(|n| block_key(slot, *n)));
    }

    fn use_by(&mut self, n: usize, key: &Key) {
        match self.users.get_mut(key) {
            Some(users) => drop(users.insert(n)),
            None => drop(self.users.insert(key.clone(), [n].into())),
        }
    }
}

fn is(id: &str, kind: Kind) -> bool {
    member(id).is_some_and(|key| key.kind == kind)
}

/// What locks the order of a reservation.
fn anchor_of(id: &str, ours: &rsv::ReservationRequest) -> Key {
    let payment = ours.payment.as_ref().map(|id| Key::new(Kind::Payment, id));
    payment.unwrap_or_else(|| Key::new(Kind::Reservation, id))
}

fn anchor_of_fulfilment(id: &str, ours: &ful::FulfilmentRequest) -> Key {
    let payment = ours.payment.as_ref().map(|id| Key::new(Kind::Payment, id));
    let reservation = ours.reservation.as_ref().map(|id| Key::new(Kind::Reservation, id));
    payment.or(reservation).unwrap_or_else(|| Key::new(Kind::Fulfilment, id))
}
