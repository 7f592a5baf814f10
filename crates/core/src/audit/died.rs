//! What the log says of work that failed for good: which event it was about, whose, and why.
//!
//! A failure is noted once. Who replays an event gets the same dead letter again, and no second entry; only a person who
//! retried it in between, or another reason, makes a failure a new one.

use serde_json::{Value, json};

use super::{Entry, Role};
use crate::event::About;
use crate::id::Seq;
use crate::job::{DeadReason, Lane, Lease};
use crate::time::Time;

/// What a dead letter is called in the log, and what all that is said of dead letters begins with.
pub const DIED: &str = "dead_letter.created";
pub const OF_DEAD_LETTERS: &str = "dead_letter.*";

/// What is known of a job that fails, and of the event it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    pub lane: Option<Lane>,
    pub event: Option<Seq>,
    pub event_id: Option<String>,
    pub event_type: Option<String>,
    pub source: Option<String>,
    pub about: About,
}

impl Case {
    pub fn entry(&self, lease: Lease, death: &DeadReason, at: Time) -> Entry {
        let details = json!({
            "event_id": self.event_id,
            "event_type": self.event_type,
            "source": self.source,
            "payment": self.about.payment,
            "billing": self.about.billing,
            "lane": self.lane,
            "reason": death.reason,
            "error": death.error,
            "attempts": lease.attempt,
        });
        Entry {
            at,
            actor: None,
            role: Role::System.of_entry(),
            action: DIED.into(),
            target: ("message".into(), lease.job.as_message().to_string()),
            tenant: self.about.tenant.clone(),
            event: self.event,
            details: details.to_string(),
        }
    }
}

/// Does the log say this already? `newest` is its newest word about the dead letter.
pub fn is_noted(newest: Option<&Entry>, death: &DeadReason) -> bool {
    newest.is_some_and(|entry| {
        let details: Value = serde_json::from_str(&entry.details).unwrap_or_default();
        entry.action == DIED && details["reason"] == *death.reason
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Epoch;

    #[test]
    fn d8_a_failure_is_noted_once_until_a_person_or_another_reason_makes_it_new() {
        let lease = Lease::born(Seq::from_i64(7), Epoch(1));
        let (timeout, refused) =
            (DeadReason::terminal("timeout", "late"), DeadReason::terminal("refused", "no"));
        let noted = Case::default().entry(lease, &timeout, Time::from_ms(1));
        assert!(!is_noted(None, &timeout));
        assert!(is_noted(Some(&noted), &timeout), "a replay fails the same way");
        assert!(!is_noted(Some(&noted), &refused));
        let retried = Entry { action: "dead_letter.retried".into(), ..noted };
        assert!(!is_noted(Some(&retried), &timeout), "a person tried again, and it failed again");
    }

    #[test]
    fn d8_an_entry_says_which_event_failed_and_whose() {
        let about = About { payment: Some("pay_1".into()), tenant: Some("office".into()), billing: None };
        let case = Case {
            lane: Some(Lane::to_route("app")),
            event: Some(Seq::from_i64(3)),
            event_id: Some("evt_1".into()),
            event_type: Some("payment.paid".into()),
            source: Some("sekisho".into()),
            about,
        };
        let lease = Lease::born(Seq::from_i64(7), Epoch(1));
        let entry = case.entry(lease, &DeadReason::terminal("timeout", "late"), Time::from_ms(1));
        let details: Value = serde_json::from_str(&entry.details).unwrap();
        let said = ["event_id", "event_type", "source", "payment", "lane", "reason"];
        let said = said.map(|name| details[name].as_str().unwrap().to_owned());
        assert_eq!(said, ["evt_1", "payment.paid", "sekisho", "pay_1", "to:app", "timeout"]);
        assert_eq!((entry.actor, entry.role.as_deref()), (None, Some("system")));
        assert_eq!((entry.tenant.as_deref(), entry.event), (Some("office"), Some(Seq::from_i64(3))));
    }
}
