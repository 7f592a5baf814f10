//! `[reservations]` and `[fulfilment]`: how long places are kept, and how often what was paid for is tried.

use std::time::Duration;

use sekisho_core::settlement::follow::LatePayment;

use super::super::given::Given;
use super::{Setting, at_least};

const RESERVATIONS: &str = "reservations";
const FULFILMENT: &str = "fulfilment";

pub const HOLD: Setting = Setting {
    section: RESERVATIONS,
    key: "hold",
    default: "\"30m\"",
    help: "How long places are kept for a customer who pays; a request may ask for another time.",
    set: |config, given| {
        config.reservations.hold_ms = ms(given, Duration::from_secs(1))?;
        Ok(())
    },
};

pub const GRACE: Setting = Setting {
    section: RESERVATIONS,
    key: "grace",
    default: "\"2m\"",
    help: "How long a hold still keeps its places when it is over: for clocks, and for webhooks under way.",
    set: |config, given| {
        config.orders.grace_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

pub const DELAYED_MAX: Setting = Setting {
    section: RESERVATIONS,
    key: "delayed_max",
    default: "\"7d\"",
    help: "The longest hold, for customers who pay at the konbini or by bank transfer.",
    set: |config, given| {
        config.orders.delayed_max_ms = ms(given, Duration::from_mins(1))?;
        Ok(())
    },
};

pub const CANCEL_UNTIL: Setting = Setting {
    section: RESERVATIONS,
    key: "cancel_until",
    default: "\"48h\"",
    help: "How long before it starts a customer may still cancel, and gets the money back.",
    set: |config, given| {
        config.orders.cancel_until_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

pub const LATE_PAYMENT: Setting = Setting {
    section: RESERVATIONS,
    key: "late_payment",
    default: "\"refund\"",
    help: "What happens to money that was paid after the hold was over: refund, or reassign while places are free.",
    set: |config, given| {
        config.orders.late_payment = match given.text()?.as_str() {
            "refund" => LatePayment::Refund,
            "reassign" => LatePayment::Reassign,
            _ => return Err("expected \"refund\" or \"reassign\"".into()),
        };
        Ok(())
    },
};

pub const QUANTITY_MAX: Setting = Setting {
    section: RESERVATIONS,
    key: "quantity_max",
    default: "20",
    help: "The most places that one reservation may have.",
    set: |config, given| {
        config.reservations.quantity_max = given.count(1, 10_000)? as u32;
        Ok(())
    },
};

pub const PROBE: Setting = Setting {
    section: RESERVATIONS,
    key: "probe",
    default: "true",
    help: "Takes a place of a slot that nobody sees and gives it back, again and again, once there are slots: operators hear when that fails.",
    set: |config, given| {
        config.reservations.probe = given.boolean()?;
        Ok(())
    },
};

pub const PROBE_EVERY: Setting = Setting {
    section: RESERVATIONS,
    key: "probe_every",
    default: "\"1m\"",
    help: "How often. Three failures in a row open a case, ten successes close it.",
    set: |config, given| {
        config.reservations.probe_every = at_least(given.duration()?, Duration::from_millis(100))?;
        Ok(())
    },
};

pub const ATTEMPTS: Setting = Setting {
    section: FULFILMENT,
    key: "attempts",
    default: "3",
    help: "Runs that may fail before a fulfilment has failed.",
    set: |config, given| {
        config.orders.attempts = given.count(1, 100)? as u32;
        Ok(())
    },
};

pub const TIMEOUT: Setting = Setting {
    section: FULFILMENT,
    key: "timeout",
    default: "\"30m\"",
    help: "A run without a result by then has failed.",
    set: |config, given| {
        config.orders.timeout_ms = ms(given, Duration::from_secs(1))?;
        Ok(())
    },
};

pub const RETRY_WAIT: Setting = Setting {
    section: FULFILMENT,
    key: "retry_wait",
    default: "\"0s\"",
    help: "The pause before the next run; doubles with each.",
    set: |config, given| {
        config.orders.retry_wait_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

pub const KEEP_AFTER_REFUND: Setting = Setting {
    section: FULFILMENT,
    key: "keep_after_refund",
    default: "\"7d\"",
    help: "How long what was made stays available once its money went back (expires_at).",
    set: |config, given| {
        config.orders.keep_after_refund_ms = ms(given, Duration::ZERO)?;
        Ok(())
    },
};

const ESCALATION: &str = "escalation";

pub const CHAT: Setting = Setting {
    section: ESCALATION,
    key: "chat",
    default: "\"alerts\"",
    help: "The [[channel]] by which a case is told to chat, where there is one of this name.",
    set: |config, given| {
        config.escalation.chat = given.text()?;
        Ok(())
    },
};

pub const MAIL: Setting = Setting {
    section: ESCALATION,
    key: "mail",
    default: "\"mail\"",
    help: "The [[channel]] by which a case is told to operators by mail, where there is one of this name.",
    set: |config, given| {
        config.escalation.mail = given.text()?;
        Ok(())
    },
};

pub const PAGER: Setting = Setting {
    section: ESCALATION,
    key: "pager",
    default: "\"pager\"",
    help: "The [[channel]] by which whoever is on call is woken, where there is one of this name.",
    set: |config, given| {
        config.escalation.pager = given.text()?;
        Ok(())
    },
};

/// No longer than ten years: sums of times stay times.
fn ms(given: &Given, least: Duration) -> Result<i64, String> {
    let longest = Duration::from_hours(10 * 365 * 24);
    let duration = at_least(given.duration()?, least)?;
    if duration > longest {
        return Err("this is too long".to_owned());
    }
    i64::try_from(duration.as_millis()).map_err(|_| "this is too long".to_owned())
}
