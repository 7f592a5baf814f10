//! A notice that a person sends once more, to its old address or another.

use serde_json::json;

use super::suppression::{Suppression, SuppressionCause};
use super::{Notice, NoticeStatus, Step, post};
use crate::actor::Actor;
use crate::change::ChangeSet;
use crate::id::Seq;
use crate::mail_address::MailAddress;
use crate::state::Versioned;

const SWITCH_ON: &str = "switch them on, or say where with `--to`";

/// Why it is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResendRefusal {
    #[error("there is no notice {0}")]
    Unknown(String),
    #[error("the notice {0} is {status}: it is on its way", status = .1.name())]
    UnderWay(String, NoticeStatus),
    #[error("notifications are switched off for this person: {SWITCH_ON}")]
    Off,
    #[error("this key belongs to a tenant: it can resend a notice, but not to another address")]
    OtherAddress,
    #[error(
        "{0} is on the suppression list ({cause}): release it first, with `sekisho suppressions release`",
        cause = .1.name()
    )]
    Suppressed(MailAddress, SuppressionCause),
}

/// Which notice, and where to.
pub struct ResendOrder<'a> {
    pub id: &'a str,
    pub to: Option<&'a MailAddress>,
}

/// What a resend leaves: the notice as it now is, and the job that it waited for before.
#[derive(Debug, PartialEq, Eq)]
pub struct Resent {
    pub notice: Notice,
    pub old_job: Option<Seq>,
}

impl ResendOrder<'_> {
    /// The address it would go to, if the notice can be sent again.
    pub fn address(
        &self,
        notice: Option<&Notice>,
        actor: &Actor<'_>,
    ) -> Result<Option<MailAddress>, ResendRefusal> {
        let notice = notice.filter(|notice| actor.may_touch(notice.tenant.as_deref()));
        let notice = notice.ok_or_else(|| ResendRefusal::Unknown(self.id.to_owned()))?;
        let status = notice.status();
        if !status.is_over() {
            return Err(ResendRefusal::UnderWay(self.id.to_owned(), status));
        }
        if status == NoticeStatus::Off && self.to.is_none() {
            return Err(ResendRefusal::Off);
        }
        if actor.tenant.is_some() && self.to.is_some() && self.to != notice.to.as_ref() {
            return Err(ResendRefusal::OtherAddress);
        }
        Ok(self.to.or(notice.to.as_ref()).cloned())
    }

    /// Queues it again as `job`. What would only be suppressed again is not queued; but which addresses are suppressed is
    /// not for a tenant to find out: the record of the notice says it.
    pub fn resend(
        &self,
        known: Option<Versioned<Notice>>,
        suppression: Option<&Suppression>,
        job: Seq,
        actor: &Actor<'_>,
    ) -> Result<(ChangeSet, Resent), ResendRefusal> {
        let address = self.address(known.as_ref().map(|known| &known.value), actor)?;
        let known = known.ok_or_else(|| ResendRefusal::Unknown(self.id.to_owned()))?;
        let cause = suppression.and_then(Suppression::cause).filter(|_| actor.tenant.is_none());
        if let (Some(address), Some(turn)) = (&address, cause) {
            return Err(ResendRefusal::Suppressed(address.clone(), turn.cause));
        }
        let mut notice = known.value;
        let before = json!({ "status": notice.status(), "to": notice.to.as_ref().map(MailAddress::masked) });
        let details = json!({ "before": before, "to": self.to.map(MailAddress::masked) });
        notice.to = address;
        notice.again += 1;
        let old_job = notice.message.replace(job.as_message().to_string());
        let step = Step::new(actor.at, NoticeStatus::Queued).noting(format!("resent by {}", actor.name));
        let notice = notice.with(step);
        let set = ChangeSet {
            writes: vec![post::write(self.id, known.version, &notice)],
            jobs: vec![post::send_job(self.id, &notice, job, actor.at)],
            audit: vec![actor.entry(
                notice.tenant.as_deref(),
                "notice.resent",
                ("notice", self.id),
                &details,
            )],
            ..ChangeSet::nothing(actor.at)
        };
        Ok((set, Resent { notice, old_job: old_job.and_then(|old| old.parse().ok()) }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::audit::Role;
    use crate::language::Language;
    use crate::notification::Audience;
    use crate::notification::suppression::Turn;
    use crate::state::{Key, Kind};
    use crate::time::Time;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const ACTOR: Actor<'_> = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };
    const OF_A: Actor<'_> = Actor { tenant: Some("a"), ..ACTOR };
    const OF_B: Actor<'_> = Actor { tenant: Some("b"), ..ACTOR };

    fn address(text: &str) -> MailAddress {
        text.parse().unwrap()
    }

    fn notice(status: NoticeStatus) -> Versioned<Notice> {
        let notice = Notice {
            key: "evt_1/receipt/taro".into(),
            channel: "mail".into(),
            audience: Audience::Customer,
            to: Some(address("taro@example.jp")),
            name: None,
            language: Language::Ja,
            template: "payment-received".into(),
            data: Value::Null,
            details: Value::Null,
            tenant: Some("a".into()),
            payment: None,
            event: None,
            batch: None,
            message: Some(Seq::from_i64(7).as_message().to_string()),
            again: 0,
            trace: None,
            steps: vec![Step::new(NOW, status)],
        };
        Versioned { key: Key::new(Kind::Notice, "ntc_1"), version: 4, value: notice }
    }

    fn resend(
        known: Option<Versioned<Notice>>,
        to: Option<&MailAddress>,
        actor: &Actor<'_>,
    ) -> Result<(ChangeSet, Resent), ResendRefusal> {
        ResendOrder { id: "ntc_1", to }.resend(known, None, Seq::from_i64(9), actor)
    }

    #[test]
    fn g3_what_is_over_is_sent_again_under_a_new_job() {
        let (set, resent) = resend(Some(notice(NoticeStatus::Failed)), None, &OF_A).unwrap();
        assert_eq!(resent.old_job, Some(Seq::from_i64(7)));
        assert_eq!((resent.notice.again, resent.notice.status()), (1, NoticeStatus::Queued));
        assert_eq!((set.writes[0].version, set.jobs[0].id), (4, Seq::from_i64(9)));
        assert!(!set.audit[0].details.contains("taro"), "{}", set.audit[0].details);
    }

    #[test]
    fn g3_what_may_not_be_sent_again_says_why() {
        let refused = |known, to, actor| resend(known, to, actor).unwrap_err();
        let unknown = ResendRefusal::Unknown("ntc_1".into());
        assert_eq!(refused(None, None, &ACTOR), unknown);
        assert_eq!(refused(Some(notice(NoticeStatus::Sent)), None, &OF_B), unknown, "another tenant's");
        let under_way = ResendRefusal::UnderWay("ntc_1".into(), NoticeStatus::Sending);
        assert_eq!(refused(Some(notice(NoticeStatus::Sending)), None, &ACTOR), under_way);
        assert_eq!(refused(Some(notice(NoticeStatus::Off)), None, &ACTOR), ResendRefusal::Off);
        let jiro = address("jiro@example.jp");
        assert!(resend(Some(notice(NoticeStatus::Off)), Some(&jiro), &ACTOR).is_ok());
        assert_eq!(
            refused(Some(notice(NoticeStatus::Sent)), Some(&jiro), &OF_A),
            ResendRefusal::OtherAddress
        );
    }

    #[test]
    fn g3_a_suppressed_address_is_told_to_operators_only() {
        let taro = address("taro@example.jp");
        let mut suppression = Suppression::new(taro.clone());
        suppression.turn(Turn { at: NOW, cause: SuppressionCause::Bounce, note: None, by: None });
        let resend = |actor| {
            let resend = ResendOrder { id: "ntc_1", to: None };
            resend.resend(Some(notice(NoticeStatus::Sent)), Some(&suppression), Seq::from_i64(9), actor)
        };
        assert_eq!(resend(&ACTOR), Err(ResendRefusal::Suppressed(taro, SuppressionCause::Bounce)));
        assert!(resend(&OF_A).is_ok());
    }
}
