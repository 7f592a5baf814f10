//! Breakers in the store: ours as they change, and what other nodes and operators did to theirs.

use sekisho_core::change::ChangeSet;
use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use sekisho_core::state::{self, Key, Wanted, Write};
use sekisho_store::{FIND_MAX, StateFilter};

use super::Engine;
use crate::transact::transact;

impl Engine {
    pub async fn write_breaker(&self, lane: &Lane, breaker: &Breaker) {
        let key = Key::new(state::Kind::Breaker, &*lane.0);
        let mut is_overtaken = false;
        let written = transact(&*self.store, Wanted::keys([key.clone()]), |loaded| -> Result<_, ()> {
            let mut set = ChangeSet::nothing(self.node.now());
            // If another node was faster, what it wrote is read in a moment.
            if !std::mem::replace(&mut is_overtaken, true) {
                set.writes.push(Write::of(&key, loaded.version(&key), breaker));
            }
            Ok((set, ()))
        });
        let _ = written.await;
    }

    pub(super) async fn read_breakers(&self) -> sekisho_store::Result<()> {
        for state in self.store.find_states(StateFilter::all(state::Kind::Breaker, FIND_MAX)).await? {
            if let Ok(stored) = serde_json::from_str::<Breaker>(&state.facts) {
                self.lanes.breaker(&Lane(state.key.id.into())).believe(stored);
            }
        }
        Ok(())
    }
}
