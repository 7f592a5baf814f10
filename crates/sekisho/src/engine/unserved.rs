//! An end for the jobs of lanes that nobody serves any more: they would wait for ever and be seen by nobody.

use std::collections::BTreeMap;

use sekisho_store::CLAIM_MAX;

use super::{Engine, Work};

/// A lane that this node's configuration does not know is given this long: another node may be newer.
const GRACE_MS: i64 = 24 * 3_600_000;

impl Engine {
    pub(super) async fn end_unserved(&self) -> sekisho_store::Result<()> {
        if !self.parts.works {
            return Ok(());
        }
        let since = self.node.now().plus_ms(-GRACE_MS);
        let old = self.store.lanes().await?.into_iter().filter(|(_, due_at)| *due_at < since);
        let reasons: BTreeMap<_, _> =
            old.filter_map(|(lane, _)| self.kinds.unserved(&lane).map(|reason| (lane, reason))).collect();
        if reasons.is_empty() {
            return Ok(());
        }
        let wants = reasons.keys().map(|lane| (lane.clone(), CLAIM_MAX / 4)).collect();
        let jobs = self.store.claim(self.node.epoch(), wants, since).await?;
        self.held.hold(jobs.iter().map(|job| job.lease));
        for job in jobs {
            let reason = reasons.get(&job.lane).expect("it was asked for").clone();
            let set = self.kinds.dead(self, &job, reason).await;
            self.completer.push(&Work::claimed(job, None), set);
        }
        Ok(())
    }
}
