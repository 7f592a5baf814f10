//! A place that is taken and given back to see whether that works. It goes the way of every hold, up to what is written: of that
//! only the block of a slot which has no head, so nobody sees it, and which never grows.

use super::Orders;
use crate::settlement::Terms;
use crate::settlement::follow::HoldProbe;
use crate::slot::{Claim, Full, Slot, SlotName, Untaken};

/// The slot, in test mode and of a tenant of its own.
const SLOT: &str = "sekisho-probe";
/// Nodes that probe at once: one block.
const CAPACITY: u32 = 256;
/// A node that dies meanwhile leaves its place behind for so long.
const LASTS_MS: i64 = 60_000;

impl Orders<'_> {
    pub fn probe(
        &mut self,
        n: usize,
        probe: &HoldProbe,
        terms: &Terms<'_>,
    ) -> Result<Result<(), Full>, String> {
        let name = SlotName { livemode: false, tenant: Some(SLOT.to_owned()), id: SLOT.to_owned() };
        let slot = name.key();
        if !self.open_slot(n, &slot)? || !self.open_blocks(n, &slot, &[0])? {
            return Ok(Ok(()));
        }
        let row = self.slots.get_mut(&slot).expect("it was opened");
        // As if it were stored: so it is not.
        row.head.now = Slot { capacity: CAPACITY, ..Slot::default() };
        row.head.before = Some(row.head.now.clone());
        let claim = Claim { number: 1, quantity: 1, until: terms.at.plus_ms(LASTS_MS), sold: false };
        let taken = self.in_places(n, &slot, terms, |places| {
            if probe.takes {
                return places.take(&probe.by, &claim).map(drop);
            }
            places.free(&probe.by);
            Ok(())
        });
        match taken {
            Ok(()) => Ok(Ok(())),
            Err(Untaken::Full(full)) => Ok(Err(full)),
            Err(Untaken::Unknown(blocks)) => {
                self.want_blocks(&slot, &blocks);
                Ok(Ok(()))
            }
        }
    }
}
