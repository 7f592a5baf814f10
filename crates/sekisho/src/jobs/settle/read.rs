//! What an event says, before anything is loaded: what it means, where it is delivered, who may have to be told of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sekisho_core::Seq;
use sekisho_core::change::ChangeSet;
use sekisho_core::delivery::{Delivery, deliveries};
use sekisho_core::event::Stored;
use sekisho_core::job::{DeadReason, End, Lane, Notify, Outcome, Settle, Task};
use sekisho_core::notification;
use sekisho_core::queue::Failure;
use sekisho_core::settlement::{self, Cause, Fetch, Input, Reading};

use super::{Batch, Settler, panicked};
use crate::engine::Work;
use crate::failpoint;
use crate::jobs::{unavailable, unreadable};

/// An event as it was read.
pub struct ReadEvent {
    pub work: Work,
    pub event: Arc<Stored>,
    pub reading: Option<Reading>,
    /// Under the numbers they will have, which rise from event to event: by these, deliveries of one key are in order.
    pub deliveries: Vec<(Seq, Delivery)>,
    /// Who may have to be told of it.
    pub tasks: Vec<Notify>,
    /// What a hint speaks of, to be asked for.
    pub asks: Option<Fetch>,
    /// The lanes of deliveries that were made before, if they are to be made again.
    pub before: Vec<Lane>,
    pub outcome: Outcome,
}

impl Settler {
    /// Reads an event. What can't be settled at all ends here.
    pub(super) async fn read_event(&self, batch: Batch<'_>, work: &Work) -> Result<ReadEvent, ChangeSet> {
        let node = &batch.engine.node;
        let dead = |death| ChangeSet::end(work.job.lease, End::Dead(death), node.now());
        let failed = |failure: Failure| batch.failed(work, &failure);
        let Some(event) = &work.event else {
            return Err(failed(Failure::terminal("event_missing", "it has no event")));
        };
        failpoint::crash_on(&event.event_type);
        let repeats = match &work.job.task {
            Task::Settle(Settle::Once) => false,
            Task::Settle(Settle::Again) => true,
            Task::Settle(Settle::Held { reason, error }) => {
                return Err(dead(DeadReason::terminal(reason, error)));
            }
            other => return Err(failed(unreadable(other.kind(), &other.payload()))),
        };
        let origin = self.sources.origin(event);
        if let Some(death) = settlement::held_back(origin, self.sources.account(event), event) {
            return Err(dead(death));
        }
        let seen = catch_unwind(AssertUnwindSafe(|| {
            (
                settlement::read(origin, event, &self.references),
                deliveries(origin, event, self.routes.iter()),
                notification::tasks(origin, event, self.rules.iter()),
            )
        }));
        let (read, (deliveries, mut unanswered), (tasks, untold)) = seen.map_err(|_| failed(panicked()))?;
        unanswered.extend(untold);
        let reading =
            read.map_err(|error| dead(DeadReason::terminal("unreadable_event", error.to_string())))?;
        let mut outcome = settlement::outcome(event, reading.is_some());
        if !unanswered.is_empty() {
            outcome = outcome.with_note(&unanswered.join("; "));
        }
        let before = if repeats { made_before(batch, event.seq).await.map_err(failed)? } else { Vec::new() };
        let asks = Fetch::hinted(origin, event);
        let asks = asks.filter(|fetch| self.accounts.can_fetch(&fetch.realm().to_string()));
        let at = node.now();
        let deliveries = deliveries.into_iter().map(|delivery| (node.next_seq(at), delivery)).collect();
        let (work, event) = (work.clone(), Arc::clone(event));
        Ok(ReadEvent { work, event, reading, deliveries, tasks, asks, before, outcome })
    }
}

/// The lanes of deliveries this event already caused.
async fn made_before(batch: Batch<'_>, event: Seq) -> Result<Vec<Lane>, Failure> {
    let messages = batch.engine.store.find_messages(event).await.map_err(unavailable)?;
    Ok(messages.into_iter().map(|message| message.lane).collect())
}

/// Those of the events that say something, in their order.
pub fn inputs(events: &[ReadEvent]) -> Vec<Input> {
    let read = events.iter().filter_map(|read| {
        let reading = read.reading.clone()?;
        Some(Input { seq: read.event.seq, reading, cause: Cause::of(&read.event) })
    });
    read.collect()
}
