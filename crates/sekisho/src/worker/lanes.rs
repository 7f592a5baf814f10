//! What lanes need beside their work: breakers that other nodes and operators changed, and an end for the jobs of routes
//! and channels that nobody has any more.

use std::sync::Arc;

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::{DeadReason, Lane};
use sekisho_core::queue::Breaker;
use sekisho_core::state::{self, Index, Key, Write};
use sekisho_store::{CLAIM_MAX, FIND_MAX, StateFilter};

use super::Worker;
use super::desk::Work;

/// A lane that this node's configuration does not know is given this long: another node may be newer.
const STRANGE_LANE_MS: i64 = 24 * 3_600_000;

impl Worker {
    pub(super) async fn write_breaker(&self, lane: &Lane, breaker: &Breaker) {
        let key = Key::new(state::Kind::Breaker, &*lane.0);
        let known = self.store.load(Vec::new(), vec![key.clone()]).await.unwrap_or_default();
        let version = known.states.get(&key).map_or(0, |state| state.version);
        let facts = serde_json::to_string(breaker).expect("a breaker is plain data");
        let write = Write { key, version, facts, index: Index::default() };
        // If another node was faster, its word is read in a moment.
        let set = ChangeSet { writes: vec![write], ..ChangeSet::nothing(self.node.now()) };
        let _ = self.store.commit(vec![set]).await;
    }

    /// What other nodes and operators did to breakers.
    pub(super) async fn read_breakers(&self) -> sekisho_store::Result<()> {
        for state in self.store.find_states(StateFilter::all(state::Kind::Breaker, FIND_MAX)).await? {
            if let Ok(stored) = serde_json::from_str::<Breaker>(&state.facts) {
                self.desk.believe(&Lane(state.key.id.into()), stored);
            }
        }
        Ok(())
    }

    /// Jobs of a route or a channel that no longer exists would wait for ever and be seen by nobody.
    pub(super) async fn claim_strange_lanes(self: &Arc<Self>) -> sekisho_store::Result<()> {
        if !self.parts.works {
            return Ok(());
        }
        let since = self.node.now().plus_ms(-STRANGE_LANE_MS);
        let strange = |lane: &Lane, due_at: Time| {
            due_at < since
                && (lane.route().is_some() || lane.channel().is_some())
                && !self.targets.iter().any(|target| target.lane == *lane)
                && !self.outlets.iter().any(|outlet| outlet.lane == *lane)
        };
        let lanes = self.store.lanes().await?;
        let wants: Vec<_> = lanes
            .into_iter()
            .filter(|(lane, due_at)| strange(lane, *due_at))
            .map(|(lane, _)| (lane, CLAIM_MAX / 4))
            .collect();
        if wants.is_empty() {
            return Ok(());
        }
        let jobs = self.store.claim(self.node.epoch(), wants, since).await?;
        self.desk.hold(jobs.iter().map(|job| job.lease));
        for job in jobs {
            let (reason, what) = match (job.lane.channel(), job.lane.route()) {
                (Some(channel), _) => ("channel_removed", format!("channel {channel}")),
                (None, route) => ("route_removed", format!("route {}", route.unwrap_or(&job.payload))),
            };
            let death = DeadReason::terminal(reason, format!("no node knows the {what} any more"));
            let set = self.dead(&job, death).await;
            self.closer.push(&Work::claimed(job, None), set);
        }
        Ok(())
    }
}
