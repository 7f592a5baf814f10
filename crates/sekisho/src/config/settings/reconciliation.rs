//! `[reconcile]`: how what providers list is compared with what came.

use std::time::Duration;

use sekisho_core::pattern::Pattern;

use super::super::given::Given;
use super::{Setting, at_least};

const SECTION: &str = "reconcile";

pub const EVERY: Setting = Setting {
    section: SECTION,
    key: "every",
    default: "\"5m\"",
    help: "How often the provider of each source with api_key is asked for events that never came.",
    set: |config, given| {
        config.reconcile.every_ms = ms(given, Duration::from_secs(1))?;
        Ok(())
    },
};

pub const OVERLAP: Setting = Setting {
    section: SECTION,
    key: "overlap",
    default: "\"1h\"",
    help: "How far each run looks back behind the newest event that was listed before.",
    set: |config, given| {
        config.reconcile.overlap_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

pub const GRACE: Setting = Setting {
    section: SECTION,
    key: "grace",
    default: "\"2m\"",
    help: "An event younger than this may still come by itself: it is taken in, but not counted as missing.",
    set: |config, given| {
        config.reconcile.grace_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

pub const EVENTS: Setting = Setting {
    section: SECTION,
    key: "events",
    default: "[]",
    help: "Types that are taken in besides those of payments and billing, such as \"payout.*\"; at most 11.",
    set: |config, given| {
        let types = given.list()?;
        if types.len() > 11 {
            return Err("expected at most 11 types".into());
        }
        config.reconcile.events = types.into_iter().filter(|one| !one.is_empty()).map(Pattern::new).collect();
        Ok(())
    },
};

fn ms(given: &Given, least: Duration) -> Result<i64, String> {
    let duration = at_least(given.duration()?, least)?;
    i64::try_from(duration.as_millis()).map_err(|_| "this is too long".to_owned())
}
