//! Where events come from besides the configured sources, and what is known of a source.

use crate::event::Stored;

/// What is known of the source an event came by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub provider: &'static str,
    /// The one mode it takes, if it takes only one.
    pub livemode: Option<bool>,
}

/// Where our own announcements come from, as far as routes and lists are concerned.
pub const OWN: &str = "sekisho";

/// Where answers come from that were read from a provider.
pub const FETCHED: &str = "fetched";

/// Where the events of schedules come from: the operator wrote them.
pub const SCHEDULE: &str = "schedule";

/// An announcement of ours, and no provider's event.
pub fn is_own(event: &Stored) -> bool {
    &*event.source == OWN
}

/// Made here and sent by nobody: announced, or by a schedule that the operator wrote.
pub fn is_of_the_house(event: &Stored) -> bool {
    matches!(&*event.source, OWN | SCHEDULE)
}
