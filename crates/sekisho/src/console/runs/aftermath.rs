//! What became of what a run queued again. Looked up when somebody looks at the run, a few at a time: those whose end is known
//! are only counted.

use std::collections::VecDeque;

use sekisho_core::Seq;
use sekisho_store::{Result, Standing, Store};

/// Messages that are looked up for one page.
const LOOKED_UP_MAX: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// Not over yet when it was last looked.
    unknown: VecDeque<Seq>,
    pub succeeded: usize,
    pub failed: usize,
    pub cancelled: usize,
}

impl Aftermath {
    pub fn expect(&mut self, messages: &[Seq]) {
        self.unknown.extend(messages);
    }

    pub fn waiting(&self) -> usize {
        self.unknown.len()
    }

    pub fn is_known(&self) -> bool {
        self.unknown.is_empty()
    }

    pub fn total(&self) -> usize {
        self.unknown.len() + self.succeeded + self.failed + self.cancelled
    }

    /// The same, after another look.
    pub async fn looked_up(mut self, store: &dyn Store) -> Result<Self> {
        for _ in 0..self.unknown.len().min(LOOKED_UP_MAX) {
            let Some(job) = self.unknown.pop_front() else { break };
            match store.find_message(job).await?.map(|message| message.standing) {
                Some(Standing::Waiting(_) | Standing::Running) => self.unknown.push_back(job),
                Some(Standing::Dead(..)) => self.failed += 1,
                Some(Standing::Done(outcome, _)) if outcome.name() == "success" => self.succeeded += 1,
                // Somebody put it aside, or it is no longer kept.
                Some(Standing::Done(..)) | None => self.cancelled += 1,
            }
        }
        Ok(self)
    }
}
