//! Places of a reservation whose customer wants to pay once more: held longer, or others if they lapsed.

use std::collections::BTreeSet;

use super::super::Terms;
use super::{Orders, anchor_of};
use crate::reservation as rsv;
use crate::settlement::follow::Renewal;
use crate::slot::{Claim, Full, Untaken};
use crate::state::{Key, Kind};

impl Orders<'_> {
    /// Holds the places of a reservation longer, or takes others if they lapsed; or says that too few are free.
    pub fn renew(
        &mut self,
        n: usize,
        renewal: &Renewal,
        terms: &Terms<'_>,
    ) -> Result<Result<(), Full>, String> {
        let Some(row) = self.reservation(n, &renewal.id)? else { return Ok(Ok(())) };
        let mut facts = row.now.clone();
        let until = renewal.until.max(facts.until);
        if facts.status(terms.at, terms.orders.grace_ms) == rsv::ReservationStatus::Expired {
            let slot = Key::new(Kind::Slot, &*facts.ours.slot);
            if !self.open_slot(n, &slot)? {
                return Ok(Ok(()));
            }
            facts.lapsed = facts.claimed();
            let (number, quantity) = (facts.claimed() + 1, facts.ours.quantity);
            let claim = Claim { number, quantity, until, sold: false };
            match self.in_places(n, &slot, terms, |places| places.take(&renewal.id, &claim)) {
                Ok(parts) => drop(facts.claims.insert(number, parts)),
                Err(Untaken::Full(full)) => return Ok(Err(full)),
                Err(Untaken::Unknown(blocks)) => {
                    self.want_blocks(&slot, &blocks);
                    return Ok(Ok(()));
                }
            }
        }
        facts.until = until;
        let anchor = anchor_of(&renewal.id, &facts.ours);
        self.reservations.get_mut(&renewal.id).expect("it was opened").set(facts, n);
        self.touch(anchor, n);
        Ok(Ok(()))
    }

    /// The reservation among the members of an order, as it stands now.
    pub fn reservation_of(&self, members: &BTreeSet<String>) -> Option<&rsv::ReservationFacts> {
        members.iter().find_map(|id| self.reservations.get(id)).map(|row| &row.now)
    }
}
