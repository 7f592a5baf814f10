//! Faults on purpose. A test names them in the environment before it starts the program; otherwise they cost one
//! comparison.

use std::sync::LazyLock;

static CRASH_ON: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SEKISHO_FAULT_CRASH_ON").ok());

/// Dies at once, as by a stack that overflowed, when an event of the named type is settled.
pub fn crash_on(event_type: &str) {
    if CRASH_ON.as_deref() == Some(event_type) {
        #[allow(clippy::disallowed_methods, reason = "that is the fault")]
        std::process::abort();
    }
}
