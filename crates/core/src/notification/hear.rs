//! What news of a mail changes: the notice it was hears of it, and an address that does not work, or does not want us,
//! gets nothing more.

use std::collections::BTreeSet;

use serde_json::json;

use super::feedback::{Feedback, What};
use super::post::{self, notice_of, reference_name};
use super::suppression::{Suppression, SuppressionCause, Turn};
use super::{Alert, Notice, NoticeStatus, Step};
use crate::change::ChangeSet;
use crate::id::Seq;
use crate::mail_address::MailAddress;
use crate::state::{self, Key, Loaded, State, Wanted};
use crate::time::Time;

impl Feedback {
    /// What must be known before anything can be said of it.
    pub fn asks_for(&self) -> Wanted {
        let addresses = self.addresses.iter().map(|(address, _)| Suppression::key(address));
        let keys = self.own_key().into_iter().chain(addresses).collect();
        Wanted { keys, ..Wanted::names([reference_name(&self.ses_id)]) }
    }

    /// The notice it speaks of, by our own Message-ID.
    fn own_key(&self) -> Option<Key> {
        self.message_id.as_deref().and_then(notice_of).map(|id| Key::new(state::Kind::Notice, id))
    }

    fn notice<'l>(&self, known: &'l Loaded) -> Option<(&'l State, Notice)> {
        let key = known.names.get(&reference_name(&self.ses_id)).cloned().or_else(|| self.own_key())?;
        let state = known.states.get(&key)?;
        Some((state, serde_json::from_str(&state.facts).ok()?))
    }

    /// Whether the notice it speaks of is known. One that was sent just now may not be yet.
    pub fn is_known(&self, known: &Loaded) -> bool {
        self.notice(known).is_some()
    }

    /// What becomes of its notice, and why; `None` for what changes nothing.
    fn turn(&self) -> Option<(NoticeStatus, SuppressionCause, &'static str)> {
        match &self.kind {
            What::Bounced { permanent: true, .. } => {
                Some((NoticeStatus::Bounced, SuppressionCause::Bounce, "bounced"))
            }
            What::Bounced { permanent: false, .. } => {
                Some((NoticeStatus::Bounced, SuppressionCause::Bounce, "bounced_for_now"))
            }
            What::Rejected => Some((NoticeStatus::Bounced, SuppressionCause::Bounce, "rejected")),
            // Somebody took the complaint back.
            What::Complained { .. } if !self.suppresses() => None,
            What::Complained { .. } => {
                Some((NoticeStatus::Complained, SuppressionCause::Complaint, "complained"))
            }
            What::Delivered => None,
        }
    }

    /// Whether it can change anything.
    pub fn is_news(&self) -> bool {
        self.turn().is_some()
    }

    /// The same, received then. By a clock ahead of ours it would be newer than a release that came after it.
    #[must_use]
    pub fn received(mut self, then: Time) -> Self {
        self.at = self.at.map(|at| at.min(then));
        self
    }

    /// What changes because of it; nothing if it is old news, or another AWS account's. `mailed` are those of its addresses
    /// that a notice is known to: nobody else is suppressed, whatever is said of them.
    pub fn heard(
        &self,
        event: Seq,
        known: &Loaded,
        mailed: &BTreeSet<MailAddress>,
        at: Time,
        mut next_id: impl FnMut() -> Seq,
    ) -> ChangeSet {
        let mut set = ChangeSet::nothing(at);
        let Some((status, cause, reason)) = self.turn().filter(|_| self.is_own) else { return set };
        let is_ours = self.is_known(known);
        if let Some((state, notice)) = self.notice(known).filter(|(_, notice)| notice.is_meant_by(self)) {
            let note = self.addresses.first().and_then(|(_, note)| note.clone());
            let notice = notice.with(Step { reason: Some(reason.to_owned()), note, ..Step::new(at, status) });
            let id = &state.key.id;
            set.audit.push(post::entry(id, &notice, at));
            set.writes.push(post::write(id, state.version, &notice));
            let alert = Alert::of_notice(id, &notice);
            set.events.extend(alert.map(|alert| alert.announcement(at).arrival(next_id())));
        }
        let suppressed = self.addresses.iter().filter(|_| self.suppresses());
        // A notice may have been sent again to another address since: then its own mail is what tells whom we mailed.
        for (address, note) in suppressed.filter(|(address, _)| is_ours || mailed.contains(address)) {
            let key = Suppression::key(address);
            let state = known.states.get(&key);
            let mut suppression =
                state.and_then(Suppression::read).unwrap_or_else(|| Suppression::new(address.clone()));
            // Whoever was released since is not suppressed again by what happened before.
            let is_old =
                suppression.history.last().is_some_and(|turn| self.at.is_none_or(|at| at <= turn.at));
            let is_done = suppression.cause().is_some() || set.writes.iter().any(|write| write.key == key);
            if is_old || is_done {
                continue;
            }
            suppression.turn(Turn { at, cause, note: note.clone(), by: None });
            set.writes.push(suppression.write(state.map_or(0, |state| state.version)));
            let details = json!({ "cause": cause });
            set.audit.push(suppression.entry("address.suppressed", Some(event), at, details));
        }
        set
    }
}

impl Notice {
    /// Whether it is what came back: as it was last sent, and to whom. News of an earlier try is old.
    fn is_meant_by(&self, feedback: &Feedback) -> bool {
        let is_last_try =
            feedback.message_id.as_deref().and_then(|id| id.split('@').next()).is_none_or(|local| {
                let again = local.split_once('.').map_or(Some(0), |(_, again)| again.parse().ok());
                again == Some(self.again)
            });
        let is_recipient = feedback.addresses.iter().any(|(address, _)| Some(address) == self.to.as_ref());
        // Sending: the answer to it is still on its way to the record.
        is_last_try && is_recipient && matches!(self.status(), NoticeStatus::Sent | NoticeStatus::Sending)
    }
}

#[cfg(test)]
mod tests {
    use super::super::compose::tests::notice_to;
    use super::*;

    const AT: Time = Time::from_ms(1_780_000_000_000);

    fn bounce(message_id: &str, at: Time) -> Feedback {
        Feedback {
            kind: What::Bounced { permanent: true, subtype: "General".into() },
            addresses: vec![("taro@example.jp".parse().unwrap(), Some("550".into()))],
            ses_id: "ses-1".into(),
            message_id: Some(format!("{message_id}@example.jp")),
            at: Some(at),
            is_own: true,
        }
    }

    /// The store with one notice, and an address with such a history.
    fn known(notice: &Notice, history: &[SuppressionCause]) -> Loaded {
        let mut suppression = Suppression::new("taro@example.jp".parse().unwrap());
        history
            .iter()
            .for_each(|cause| suppression.turn(Turn { at: AT, cause: *cause, note: None, by: None }));
        let writes = [post::write("ntc_1", 1, notice), suppression.write(1)];
        let states = writes.map(|write| {
            let (key, facts, index) = (write.key, write.facts, write.index);
            (key.clone(), State { key, version: 1, facts, index, created_at: AT, changed_at: AT })
        });
        Loaded { states: states.into(), ..Loaded::default() }
    }

    fn changes(feedback: &Feedback, notice: &Notice, history: &[SuppressionCause]) -> Vec<state::Kind> {
        written(feedback, &known(notice, history), &BTreeSet::new())
    }

    fn written(feedback: &Feedback, known: &Loaded, mailed: &BTreeSet<MailAddress>) -> Vec<state::Kind> {
        let set = feedback.heard(Seq::ZERO, known, mailed, AT.plus_ms(1), || Seq::ZERO);
        set.writes.iter().map(|write| write.key.kind).collect()
    }

    #[test]
    fn g2_nobody_is_suppressed_whom_we_never_mailed_or_by_a_strangers_word() {
        let (bounce, nothing) = (bounce("ntc_9", AT.plus_ms(1)), Loaded::default());
        let taro = BTreeSet::from(["taro@example.jp".parse().unwrap()]);
        assert_eq!(written(&bounce, &nothing, &BTreeSet::new()), []);
        assert_eq!(written(&bounce, &nothing, &taro), [state::Kind::Suppression], "we know another notice");
        let strangers = Feedback { is_own: false, ..bounce };
        assert_eq!(written(&strangers, &nothing, &taro), []);
        let notice = known(&notice_to("taro@example.jp", NoticeStatus::Sent), &[]);
        let of_notice = Feedback { message_id: Some("ntc_1@example.jp".into()), ..strangers };
        assert_eq!(written(&of_notice, &notice, &taro), [], "nor does the notice hear of it");
    }

    #[test]
    fn g2_a_bounce_marks_the_mail_it_speaks_of_and_suppresses_its_address() {
        use state::Kind::{Notice as N, Suppression as S};
        let (sent, later) = (notice_to("taro@example.jp", NoticeStatus::Sent), AT.plus_ms(1));
        assert_eq!(changes(&bounce("ntc_1", later), &sent, &[]), [N, S]);
        let resent = Notice { again: 1, ..notice_to("taro@example.jp", NoticeStatus::Queued) };
        assert_eq!(changes(&bounce("ntc_1", later), &resent, &[]), [S], "the second try is not the first");
        let other = notice_to("hanako@example.jp", NoticeStatus::Sent);
        assert_eq!(changes(&bounce("ntc_1", later), &other, &[]), [S], "it went to somebody else by then");
        let released = [SuppressionCause::Bounce, SuppressionCause::Released];
        assert_eq!(changes(&bounce("ntc_1", AT), &sent, &released), [N], "old news does not suppress again");
        assert_eq!(changes(&bounce("ntc_1", later), &sent, &released), [N, S]);
        let ahead = bounce("ntc_1", AT.plus_ms(20_000)).received(AT);
        assert_eq!(changes(&ahead, &sent, &released), [N], "its clock was ahead: it came before the release");
    }

    #[test]
    fn g2_a_complaint_that_was_taken_back_changes_nothing() {
        let kind = What::Complained { kind: Some("not-spam".into()) };
        let feedback = Feedback { kind, ..bounce("ntc_1", AT.plus_ms(1)) };
        assert_eq!(changes(&feedback, &notice_to("taro@example.jp", NoticeStatus::Sent), &[]), []);
        let delivered = Feedback { kind: What::Delivered, ..feedback.clone() };
        let meant = [feedback, delivered, bounce("ntc_1", AT)].map(|feedback| feedback.is_news());
        assert_eq!(meant, [false, false, true], "nobody waits for the mail they speak of");
    }
}
