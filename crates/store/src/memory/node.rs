//! Nodes: each has a number of its own.

use std::collections::BTreeSet;

use sekisho_core::id::NODES_MAX;
use sekisho_core::{Epoch, Seq, Time};

use super::Tables;
use crate::{Joined, NodeRecord, PeerNode, Pulse};

impl Tables {
    pub(super) fn beat(&mut self, epoch: Epoch, n: i64) -> Pulse {
        let Some(node) = self.nodes.get_mut(&epoch) else { return Pulse::Ended };
        node.beat = n;
        let peers = self.nodes.values().filter(|peer| peer.epoch != epoch);
        let peers = peers.map(|node| PeerNode { epoch: node.epoch, beat: node.beat }).collect();
        Pulse::Alive { peers, store_time: None }
    }

    /// False when its beat moved on.
    pub(super) fn give_up(&mut self, epoch: Epoch, n: i64) -> bool {
        let still = self.nodes.get(&epoch).is_some_and(|node| node.beat == n);
        if still {
            self.nodes.remove(&epoch);
            self.given_up.insert((self.last_epoch, epoch));
        }
        still
    }

    /// `None` when every number is taken.
    pub(super) fn join(&mut self, now: Time) -> Option<Joined> {
        let epoch = self.next_epoch()?;
        self.last_epoch = epoch.0;
        self.nodes.insert(epoch, NodeRecord { epoch, beat: 0, joined_at: now });
        let newest = [
            self.events.keys().max(),
            self.jobs.keys().max(),
            self.outcomes.keys().max(),
            self.dead.keys().max(),
        ];
        let floor = newest.into_iter().flatten().max().copied().unwrap_or(Seq::ZERO);
        Some(Joined { epoch, floor })
    }

    fn next_epoch(&mut self) -> Option<Epoch> {
        if (self.nodes.len() + self.given_up.len()) as i64 >= NODES_MAX {
            self.given_up.pop_first();
        }
        let given_up = self.given_up.iter().map(|(_, epoch)| epoch);
        let taken: BTreeSet<i64> = self.nodes.keys().chain(given_up).map(|epoch| epoch.number()).collect();
        Epoch(self.last_epoch).next_free(|number| taken.contains(&number))
    }
}
