//! How the audit names what people do with work by hand.

use sekisho_core::Seq;
use sekisho_core::audit::Entry;
use sekisho_core::change::Act;

pub const RETRIED: &str = "dead_letter.retried";
pub const DISCARDED: &str = "dead_letter.discarded";
pub const CANCELLED: &str = "delivery.cancelled";
pub const REPLAYED: &str = "event.replayed";

/// What a message was about is not known before it is taken out of the dead letters.
pub fn of_message(act: &Act, action: &str, job: Seq) -> Entry {
    entry(act, action, ("message".into(), job.as_message().to_string()), None)
}

/// Why a delivery that was cancelled is over.
pub fn cancelled_note(act: &Act) -> String {
    format!("cancelled by {}: {}", act.actor, act.reason)
}

pub fn of_event(act: &Act, action: &str, event: Seq) -> Entry {
    entry(act, action, ("event".into(), event.as_event().to_string()), Some(event))
}

fn entry(act: &Act, action: &str, target: (String, String), event: Option<Seq>) -> Entry {
    Entry {
        at: act.at,
        actor: Some(act.actor.clone()),
        role: Some(act.role.name().into()),
        action: action.into(),
        target,
        tenant: None,
        event,
        details: serde_json::json!({ "reason": act.reason }).to_string(),
    }
}
