//! What follows from a run: what the register says after it, what operators hear, and what the audit log keeps.

use serde_json::json;

use super::{Done, Found, Heard, ReconcilePolicy, SourceRegister, Window, register};
use crate::actor::Actor;
use crate::audit::{Entry, Role};
use crate::notification::Alert;
use crate::notification::alert::News;
use crate::queue::Failure;
use crate::time::Time;

/// Everything that a run found out.
pub struct ReconcileResult<'r> {
    pub source: &'r str,
    pub at: Time,
    pub window: Window,
    pub found: &'r Found,
    /// Why it broke off, if it did.
    pub failure: Option<&'r Failure>,
    /// Where a first run begins.
    pub born: Time,
    pub heard: Option<Heard>,
}

impl ReconcileResult<'_> {
    /// Writes down what was found; says what operators hear of it.
    pub fn conclude(&self, register: &mut SourceRegister, policy: &ReconcilePolicy) -> Vec<Alert> {
        let mut alerts = Vec::new();
        if policy.was_away(register, self.at) {
            register.resumed_at = Some(self.at);
        }
        register.born.get_or_insert(self.born);
        if let Some(heard) = self.heard.clone().filter(|one| {
            let is_newer = |known: &Heard| known.received > self.at || one.received > known.received;
            register.heard.as_ref().is_none_or(is_newer)
        }) {
            register.heard = Some(heard);
        }
        alerts.extend(self.differs(register));
        alerts.extend(self.gap_closed());
        alerts.extend(self.may_not(register));
        match self.failure {
            None => {
                let done =
                    Done { at: self.at, since: self.window.events_since, is_deep: self.window.is_deep };
                register.complete(self.found, done);
            }
            Some(failure) => register.fail(self.found, failure.reason, &failure.error, self.at),
        }
        if self.window.is_deep {
            register.deep_tried = Some(self.at);
        }
        register.remember_unheard(self.found);
        alerts
    }

    /// For the audit log, where something was found, or somebody asked for it.
    pub fn entry(&self, actor: Option<&Actor<'_>>) -> Option<Entry> {
        if actor.is_none() && !self.found.has_found() {
            return None;
        }
        let details = json!({
            "since": self.window.events_since,
            "figures": self.found.figures,
            "differences": self.found.differences.len(),
            "error": self.failure.map(|failure| &failure.error),
        });
        let system = Actor { name: "", role: Role::System, tenant: None, at: self.at };
        let entry =
            actor.unwrap_or(&system).entry(None, "source.reconciled", ("source", self.source), &details);
        Some(Entry { at: self.at, actor: entry.actor.filter(|name| !name.is_empty()), ..entry })
    }

    /// Of what we say and the provider denies, once for each object.
    fn differs(&self, register: &SourceRegister) -> impl Iterator<Item = Alert> {
        let ours = self.found.differences.iter().filter(|one| one.kind == register::OURS);
        let new = ours.filter(|one| !register.differs(&one.id, &one.kind));
        new.map(|one| {
            let detail = format!(
                "{}. Nothing was changed here: compare the payment with the provider's dashboard",
                one.detail
            );
            Alert::of_source(self.source, News::Differs, &one.id, &detail)
        })
    }

    fn gap_closed(&self) -> Option<Alert> {
        let events = self.found.figures.closed;
        let objects = self.found.differences.iter().filter(|one| one.kind == register::THEIRS).count();
        if events == 0 && objects == 0 {
            return None;
        }
        let detail = format!(
            "{events} events and {objects} objects that had not come were read from the provider, of {} events listed since {}",
            self.found.figures.listed, self.window.events_since
        );
        let mut alert = Alert::of_source(self.source, News::GapClosed, &self.at.to_string(), &detail);
        alert.fields.push(("events", events.to_string()));
        alert.fields.push(("objects", objects.to_string()));
        Some(alert)
    }

    /// A key without the right to read lists is told of once; what else it is used for goes on.
    fn may_not(&self, register: &SourceRegister) -> Option<Alert> {
        let failure = self.failure.filter(|failure| is_forbidden(failure))?;
        let is_known = register.error.as_ref().is_some_and(|(reason, _)| reason == failure.reason);
        let detail = format!(
            "{}. Give `api_key` of the source {} the right to read events and payments, or set reconcile = false",
            failure.error, self.source
        );
        (!is_known)
            .then(|| Alert::of_key(self.source, "list", News::KeyRefused, failure.reason, &detail, self.at))
    }
}

/// The key is right, but may not do this.
fn is_forbidden(failure: &Failure) -> bool {
    failure.reason.ends_with("_forbidden")
}

#[cfg(test)]
mod tests {
    use super::super::{Discrepancy, EventStanding};
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn run(found: &Found, failure: Option<&Failure>, register: &mut SourceRegister) -> Vec<&'static str> {
        let window = Window { events_since: NOW, objects_since: NOW, is_deep: false };
        let run =
            ReconcileResult { source: "stripe", at: NOW, window, found, failure, born: NOW, heard: None };
        run.conclude(register, &ReconcilePolicy::default())
            .into_iter()
            .map(|alert| alert.news.name())
            .collect()
    }

    #[test]
    fn e2_what_was_found_is_told_once() {
        let mut register = SourceRegister::default();
        assert_eq!(run(&Found::default(), None, &mut register), [""; 0]);
        let mut closed = Found::default();
        closed.note(Some(NOW.plus_ms(-300_000)), EventStanding::Closed, None);
        assert_eq!(run(&closed, None, &mut register), ["source.gap_closed"]);
        let ours = Discrepancy {
            object: "payment_intent".into(),
            id: "pi_1".into(),
            kind: register::OURS.into(),
            detail: "pi_1: 5 here, 0 there".into(),
            at: NOW,
        };
        let mut differs = Found::default();
        differs.differences.push(ours);
        assert_eq!(run(&differs, None, &mut register), ["source.differs"]);
        assert_eq!(run(&differs, None, &mut register), [""; 0]);
        let forbidden = Failure::terminal("stripe_forbidden", "no");
        assert_eq!(run(&Found::default(), Some(&forbidden), &mut register), ["source.key_refused"]);
        assert_eq!(run(&Found::default(), Some(&forbidden), &mut register), [""; 0]);
    }

    #[test]
    fn e2_a_run_that_found_nothing_leaves_no_entry_unless_somebody_asked_for_it() {
        let found = Found::default();
        let window = Window { events_since: NOW, objects_since: NOW, is_deep: false };
        let run = ReconcileResult {
            source: "stripe",
            at: NOW,
            window,
            found: &found,
            failure: None,
            born: NOW,
            heard: None,
        };
        assert_eq!(run.entry(None), None);
        let tomo = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };
        assert_eq!(run.entry(Some(&tomo)).unwrap().actor.as_deref(), Some("tomo"));
    }
}
