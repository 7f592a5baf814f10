//! What an event means. No provider's events have a meaning yet, so every one of them is kept, marked
//! `skipped`, and can be replayed once a rule for its type exists (D6).

use crate::change::{End, Outcome};

/// Decides how the settling of an event ends.
pub fn decide(event_type: &str) -> End {
    End::Done(Outcome::Skipped { note: format!("no rule for events of type {event_type}") })
}
