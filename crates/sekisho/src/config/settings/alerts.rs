//! `[alerts]` and `[targets]`: when operators are called, and what is to be reached.

use std::time::Duration;

use sekisho_core::alert::policy::Silent;
use sekisho_core::pattern::Pattern;

use super::super::given::Given;
use super::{Setting, at_least};

const SECTION: &str = "alerts";
const TARGETS: &str = "targets";

pub const EVERY: Setting = Setting {
    section: SECTION,
    key: "every",
    default: "\"1m\"",
    help: "How often the figures of all nodes are looked at.",
    set: |config, given| {
        config.alerts.every_ms = ms(given, Duration::from_secs(1))?;
        Ok(())
    },
};

pub const OFF: Setting = Setting {
    section: SECTION,
    key: "off",
    default: "[]",
    help: "Alerts that are never looked at: \"NAME\" or \"NAME/SUBJECT\", with * for anything, such as \"silent/test-*\".",
    set: |config, given| {
        config.alerts.off =
            given.list()?.into_iter().filter(|one| !one.is_empty()).map(Pattern::new).collect();
        Ok(())
    },
};

pub const DIVISOR: Setting = Setting {
    section: SECTION,
    key: "divisor",
    default: "1",
    help: "Divides every window, hold and recovery time, to try alerts out; leave it at 1 in production.",
    set: |config, given| {
        config.alerts.divisor = given.count(1, 1_000)?;
        Ok(())
    },
};

pub const PUBLISH_FAILURES: Setting = Setting {
    section: SECTION,
    key: "publish_failures",
    default: "\"1%\"",
    help: "Fires when more of the events that came could not be stored.",
    set: |config, given| {
        config.alerts.publish_failures = share(given)?;
        Ok(())
    },
};

pub const WORKER_ERRORS: Setting = Setting {
    section: SECTION,
    key: "worker_errors",
    default: "\"0.5%\"",
    help: "Fires when more runs fail, inside or at one route.",
    set: |config, given| {
        config.alerts.worker_errors = share(given)?;
        Ok(())
    },
};

pub const DEAD_LETTERS: Setting = Setting {
    section: SECTION,
    key: "dead_letters",
    default: "0",
    help: "Fires when more dead letters of one lane wait.",
    set: |config, given| {
        config.alerts.dead_letters = count(given)?;
        Ok(())
    },
};

pub const DEAD_LETTERS_OLD: Setting = Setting {
    section: SECTION,
    key: "dead_letters_old",
    default: "\"24h\"",
    help: "Fires when a dead letter is older.",
    set: |config, given| {
        config.alerts.dead_letters_old_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

pub const SLOW: Setting = Setting {
    section: SECTION,
    key: "slow",
    default: "\"10s\"",
    help: "Fires when 5 of 100 events take longer from receipt to settling, or to delivery.",
    set: |config, given| {
        config.alerts.slow_ms = ms(given, Duration::from_millis(1))?;
        Ok(())
    },
};

pub const REJECTIONS: Setting = Setting {
    section: SECTION,
    key: "rejections",
    default: "20",
    help: "Fires when so many requests of a source are refused in 5 minutes, and five times the usual.",
    set: |config, given| {
        config.alerts.rejections = count(given)?;
        Ok(())
    },
};

pub const WRONG_SECRET: Setting = Setting {
    section: SECTION,
    key: "wrong_secret",
    default: "5",
    help: "Fires when so many signatures of a source are wrong in 15 minutes, and none is right.",
    set: |config, given| {
        config.alerts.wrong_secret = count(given)?.max(1);
        Ok(())
    },
};

pub const UNUSUAL: Setting = Setting {
    section: SECTION,
    key: "unusual",
    default: "5",
    help: "Fires when an hour's count of one type is so many standard deviations from its usual.",
    set: |config, given| {
        config.alerts.unusual = given.count(1, 100)? as u64;
        Ok(())
    },
};

pub const SILENT: Setting = Setting {
    section: SECTION,
    key: "silent",
    default: "\"auto\"",
    help: "Fires when no event of a source comes: auto (for longer than chance explains), after a time such as \"24h\", or off.",
    set: |config, given| {
        config.alerts.silent = match given.text().as_deref() {
            Ok("auto") => Silent::Auto,
            Ok("off") => Silent::Off,
            _ => {
                let wanted = "expected \"auto\", \"off\" or a time such as \"24h\"";
                Silent::AfterMs(ms(given, Duration::from_secs(1)).map_err(|_| wanted)?)
            }
        };
        Ok(())
    },
};

pub const RECONCILIATION: Setting = Setting {
    section: SECTION,
    key: "reconciliation",
    default: "2",
    help: "Fires when no run of a source's reconciliation ended well for so many intervals, or a gap stays open.",
    set: |config, given| {
        config.alerts.reconciliation = given.count(1, 1_000)?;
        Ok(())
    },
};

pub const MAIL_FAILURES: Setting = Setting {
    section: SECTION,
    key: "mail_failures",
    default: "\"2%\"",
    help: "Fires when more mails of a channel fail within an hour, or the last 5 all did.",
    set: |config, given| {
        config.alerts.mail_failures = share(given)?;
        Ok(())
    },
};

pub const LATE: Setting = Setting {
    section: SECTION,
    key: "late",
    default: "\"5m\"",
    help: "Fires when work has been due for longer and no node works on it.",
    set: |config, given| {
        config.alerts.late_ms = ms(given, Duration::from_millis(1))?;
        Ok(())
    },
};

pub const STALLED: Setting = Setting {
    section: SECTION,
    key: "stalled",
    default: "\"10m\"",
    help: "Fires when work runs and waits, and none has ended for so long.",
    set: |config, given| {
        config.alerts.stalled_ms = ms(given, Duration::from_millis(1))?;
        Ok(())
    },
};

pub const DESTINATION_DOWN: Setting = Setting {
    section: SECTION,
    key: "destination_down",
    default: "\"5m\"",
    help: "Fires when the breaker of a route or channel has been open for so long.",
    set: |config, given| {
        config.alerts.destination_down_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

pub const PUBLISH: Setting = Setting {
    section: TARGETS,
    key: "publish",
    default: "\"99.9%\"",
    help: "Of the events that come, so many are to be stored at once.",
    set: |config, given| {
        config.targets.publish = share(given)?;
        Ok(())
    },
};

pub const WORKER: Setting = Setting {
    section: TARGETS,
    key: "worker",
    default: "\"99.5%\"",
    help: "Of the runs of settling, fetching, notifying and delivering, so many are to end well.",
    set: |config, given| {
        config.targets.worker = share(given)?;
        Ok(())
    },
};

pub const RETRY: Setting = Setting {
    section: TARGETS,
    key: "retry",
    default: "\"1%\"",
    help: "Fewer runs are to be retries.",
    set: |config, given| {
        config.targets.retry = share(given)?;
        Ok(())
    },
};

pub const NEW_DEAD_LETTERS: Setting = Setting {
    section: TARGETS,
    key: "dead_letters",
    default: "0",
    help: "At most so many new dead letters.",
    set: |config, given| {
        config.targets.dead_letters = count(given)?;
        Ok(())
    },
};

pub const MAIL: Setting = Setting {
    section: TARGETS,
    key: "mail",
    default: "\"98%\"",
    help: "Of the mails, so many are to be taken by the mail server.",
    set: |config, given| {
        config.targets.mail = share(given)?;
        Ok(())
    },
};

fn ms(given: &Given, least: Duration) -> Result<i64, String> {
    let duration = at_least(given.duration()?, least)?;
    i64::try_from(duration.as_millis()).map_err(|_| "this is too long".to_owned())
}

fn count(given: &Given) -> Result<u64, String> {
    Ok(given.count(0, 1_000_000)? as u64)
}

/// `"0.5%"`, in millionths.
fn share(given: &Given) -> Result<u64, String> {
    let wanted = || "expected a share such as \"1%\" or \"0.5%\"".to_owned();
    let text = given.text().map_err(|_| wanted())?;
    let number = text.strip_suffix('%').ok_or_else(wanted)?.trim();
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.chars().all(|letter| letter.is_ascii_digit());
    if whole.is_empty() || whole.len() > 3 || part.len() > 4 || !is_number(whole) || !is_number(part) {
        return Err(wanted());
    }
    let part: u64 = format!("{part:0<4}").parse().map_err(|_| wanted())?;
    let millionths = whole.parse::<u64>().map_err(|_| wanted())? * 10_000 + part;
    if millionths > 1_000_000 { Err(wanted()) } else { Ok(millionths) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h4_a_share_is_read_as_people_write_it() {
        let share = |text: &str| share(&Given::Text(text.into())).ok();
        for (text, millionths) in [
            ("1%", Some(10_000)),
            ("0.5%", Some(5_000)),
            ("99.9 %", Some(999_000)),
            ("100%", Some(1_000_000)),
        ] {
            assert_eq!(share(text), millionths, "{text}");
        }
        for text in ["1", "-1%", "101%", "0,5%", ".5%", "%", "1.00001%", "1e2%"] {
            assert_eq!(share(text), None, "{text}");
        }
    }
}
