//! What would be announced for the first time: an event that was not understood when it came may say something new today.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::event::Stored;
use sekisho_core::settlement::{Cause, Input, Reading};
use sekisho_core::state::{Key, State, Write};
use sekisho_core::{Seq, Time};
use sekisho_store::Store;

use crate::queries::decided::decided;
use crate::refusal::Result;

/// Ids of what was foretold already.
#[derive(Default)]
pub struct AnnouncedBefore(BTreeSet<String>);

impl AnnouncedBefore {
    /// As events, with the things they speak of as they would be then. Nothing is asked of a provider meanwhile, and what
    /// the events before these would change is not counted in.
    pub async fn by(
        &mut self,
        store: &dyn Store,
        readings: Vec<(Stored, Reading)>,
        at: Time,
    ) -> Result<(Vec<Stored>, BTreeMap<Key, State>)> {
        let input =
            |(event, reading): (Stored, Reading)| Input { seq: event.seq, reading, cause: Cause::of(&event) };
        let inputs: Vec<_> = readings.into_iter().map(input).collect();
        if inputs.is_empty() {
            return Ok(Default::default());
        }
        let changes = decided(store, &inputs, at).await?;
        let (mut news, mut drafts) = (Vec::new(), BTreeMap::new());
        for change in changes {
            drafts.extend(change.writes.into_iter().map(|write| draft(write, at)));
            let arrivals = change.announcements.into_iter().map(|told| told.arrival(Seq::ZERO));
            news.extend(arrivals.filter(|arrival| self.0.insert(arrival.event_id.clone())));
        }
        let keys: Vec<_> = news.iter().map(|arrival| arrival.key).collect();
        let known = store.known(&keys).await?;
        let new = news.iter().zip(known).filter(|(_, known)| known.is_none());
        Ok((new.map(|(arrival, _)| arrival.stored()).collect(), drafts))
    }
}

fn draft(write: Write, at: Time) -> (Key, State) {
    let Write { key, version, facts, index } = write;
    (key.clone(), State { key, version: version + 1, facts, index, created_at: at, changed_at: at })
}
