//! A wave of dead letters that are tried again by themselves, and how far it has come: the payload of the timer that goes on
//! with it. Which letters, and when it ends: [`crate::queue::retry_dead`].

use serde::{Deserialize, Serialize};

use crate::id::Seq;
use crate::time::Time;

/// Why a wave begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaveCause {
    /// Its time has come.
    Hour,
    /// The destination answers again.
    Answered,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wave {
    pub cause: WaveCause,
    pub began: Time,
    /// Batches so far.
    pub batches: usize,
    /// The last batch: the number of each letter, with its attempts when it was taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    batch: Vec<(i64, i32)>,
    /// When that was.
    pub since: Time,
}

impl Wave {
    pub const fn new(cause: WaveCause, began: Time) -> Self {
        Self { cause, began, batches: 0, batch: Vec::new(), since: began }
    }

    pub fn batch(&self) -> impl Iterator<Item = (Seq, i32)> {
        self.batch.iter().map(|(job, attempts)| (Seq::from_i64(*job), *attempts))
    }

    /// The same wave, after a batch was taken out of the dead letters.
    #[must_use]
    pub fn with_batch(&self, batch: impl IntoIterator<Item = (Seq, i32)>, now: Time) -> Self {
        let batch = batch.into_iter().map(|(job, attempts)| (job.as_i64(), attempts)).collect();
        Self { batches: self.batches + 1, batch, since: now, ..self.clone() }
    }
}
