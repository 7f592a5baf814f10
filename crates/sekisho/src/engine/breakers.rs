//! Breakers in the store: ours as they change, and what other nodes and operators did to theirs.

use sekisho_core::change::ChangeSet;
use sekisho_core::job::Lane;
use sekisho_core::notification::Alert;
use sekisho_core::queue::Breaker;
use sekisho_core::state::{self, Key, Wanted, Write};
use sekisho_store::{FIND_MAX, StateFilter};

use super::Engine;
use crate::transact::transact;

impl Engine {
    pub async fn write_breaker(&self, lane: &Lane, breaker: &Breaker) {
        self.write_breaker_and_tell(lane, breaker, |_| None).await;
    }

    /// With what operators are told if it was closed in the store and is open now, or the other way round; asked with the one
    /// that was there. Told with the write, so that of several nodes one tells.
    pub async fn write_breaker_and_tell(
        &self,
        lane: &Lane,
        breaker: &Breaker,
        tell: impl Fn(&Breaker) -> Option<Alert>,
    ) {
        let key = Key::new(state::Kind::Breaker, &*lane.0);
        let mut is_overtaken = false;
        let written = transact(&*self.store, Wanted::keys([key.clone()]), |loaded| -> Result<_, ()> {
            let at = self.node.now();
            let mut set = ChangeSet::nothing(at);
            // If another node was faster, what it wrote is read in a moment.
            if !std::mem::replace(&mut is_overtaken, true) {
                let before = loaded.read::<Breaker>(&key).ok().flatten().map(|kept| kept.value);
                let (before, mut after) = (before.unwrap_or_default(), breaker.clone());
                if let Some(since) = before.since() {
                    after.began(since);
                }
                set.writes.push(Write::of(&key, loaded.version(&key), &after));
                if before.is_open() != after.is_open()
                    && let Some(alert) = tell(&before)
                {
                    set.events.push(alert.announcement(at).arrival(self.node.next_seq(at)));
                }
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
