//! What a run does with what.

use crate::acts::{DeadLetterSelection, DeliverySelection, Replay};

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    Retry,
    Discard,
    Replay,
    Cancel,
}

/// What is to be done with what.
#[derive(Clone, Debug)]
pub enum BulkOrder {
    Retry(DeadLetterSelection),
    Discard(DeadLetterSelection),
    Replay(Replay),
    Cancel(DeliverySelection),
}

impl BulkOrder {
    pub const fn kind(&self) -> RunKind {
        match self {
            Self::Retry(_) => RunKind::Retry,
            Self::Discard(_) => RunKind::Discard,
            Self::Replay(_) => RunKind::Replay,
            Self::Cancel(_) => RunKind::Cancel,
        }
    }

    pub fn reason(&self) -> &str {
        match self {
            Self::Retry(redo) | Self::Discard(redo) => &redo.reason,
            Self::Replay(replay) => &replay.reason,
            Self::Cancel(cancel) => &cancel.reason,
        }
    }
}
