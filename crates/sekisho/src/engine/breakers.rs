//! Breakers in the store: ours as they change, and what other nodes and operators did to theirs.

use sekisho_core::change::ChangeSet;
use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use sekisho_core::state::{self, Index, Key, Write};
use sekisho_store::{FIND_MAX, StateFilter};

use super::Engine;

impl Engine {
    pub async fn write_breaker(&self, lane: &Lane, breaker: &Breaker) {
        let key = Key::new(state::Kind::Breaker, &*lane.0);
        let known = self.store.load(Vec::new(), vec![key.clone()]).await.unwrap_or_default();
        let version = known.states.get(&key).map_or(0, |state| state.version);
        let facts = serde_json::to_string(breaker).expect("a breaker is plain data");
        let write = Write { key, version, facts, index: Index::default() };
        // If another node was faster, its word is read in a moment.
        let set = ChangeSet { writes: vec![write], ..ChangeSet::nothing(self.node.now()) };
        let _ = self.store.commit(vec![set]).await;
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
