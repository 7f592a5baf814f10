//! One message to one recipient, from the moment it was decided until it is known what became of it. The record that
//! answers "I did not get the mail".
//!
//! Steps are only added. Where it stands is the last step's word; a bounce comes after `sent`, and does not unsend it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::recipient::RATE_LIMITED;
use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::state::Index;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Names the fact it tells and whom: the same for ever.
    pub key: String,
    pub channel: String,
    pub audience: Audience,
    /// For mail; chat, webhook and pager have their place by configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<MailAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub language: Language,
    pub template: String,
    /// What the template is filled with.
    pub data: Value,
    /// What the record keeps beside it, to be read by people and programs: counts, thresholds, names.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    /// The event that caused it, by its public id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The run it belongs to: `reminders/2026-11-16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// The job that sends it, by its public id: what failed stands under it among the dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How often a person asked for it to be sent once more.
    #[serde(default)]
    pub again: u32,
    /// The trace of what made it, while traces are kept: a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    pub steps: Vec<Step>,
}

/// Whose mail it is: what happens when nobody knows whether it went out depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    Customer,
    Staff,
    Operator,
}

impl Audience {
    pub const ALL: [Self; 3] = [Self::Customer, Self::Staff, Self::Operator];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Staff => "staff",
            Self::Operator => "operator",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|audience| audience.name() == text)
    }
}

/// Something that happened to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub at: Time,
    pub status: NoticeStatus,
    /// Stable word: why it failed, was held or suppressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the other side said, or what went wrong, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeStatus {
    /// Decided; its job waits.
    Queued,
    /// About to be handed over, or being handed over. Written before the first byte goes out.
    Sending,
    /// Not taken this time, for certain; tried again shortly.
    Retrying,
    /// The other side has it.
    Sent,
    /// Given up; the reason says what helps.
    Failed,
    /// Nobody knows whether the other side has it: a person decides.
    Uncertain,
    /// The address is suppressed: it bounced or complained before.
    Suppressed,
    /// The address had as many mails as one gets within an hour; nothing was sent.
    RateLimited,
    /// The recipient has notifications switched off; nothing was sent.
    Off,
    /// Came back after it was sent.
    Bounced,
    /// The recipient called it spam.
    Complained,
}

impl NoticeStatus {
    pub const ALL: [Self; 11] = [
        Self::Queued,
        Self::Sending,
        Self::Retrying,
        Self::Sent,
        Self::Failed,
        Self::Uncertain,
        Self::Suppressed,
        Self::RateLimited,
        Self::Off,
        Self::Bounced,
        Self::Complained,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Retrying => "retrying",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Uncertain => "uncertain",
            Self::Suppressed => "suppressed",
            Self::RateLimited => RATE_LIMITED,
            Self::Off => "off",
            Self::Bounced => "bounced",
            Self::Complained => "complained",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }

    /// Nothing more happens to it by itself.
    pub const fn is_over(self) -> bool {
        match self {
            Self::Queued | Self::Sending | Self::Retrying => false,
            Self::Sent
            | Self::Failed
            | Self::Uncertain
            | Self::Suppressed
            | Self::RateLimited
            | Self::Off
            | Self::Bounced
            | Self::Complained => true,
        }
    }

    /// A person should look at it.
    pub const fn needs_a_person(self) -> bool {
        match self {
            Self::Failed | Self::Uncertain | Self::Bounced | Self::Complained => true,
            Self::Queued
            | Self::Sending
            | Self::Retrying
            | Self::Sent
            | Self::Suppressed
            | Self::RateLimited
            | Self::Off => false,
        }
    }
}

/// The tries of a notice since it was last decided that it be sent, by us or by a person: what was used up of its tries and
/// of its time stays so after a restart. Time in which nobody had it in hand is not its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    pub tries: u32,
    /// From its first try to the last that is known of it.
    pub spent_ms: i64,
}

/// Why a notice is queued again whose try was written down and then not begun.
pub const HANDED_BACK: &str = "handed_back";

impl Notice {
    pub fn round(&self) -> Round {
        let (mut tries, mut began, mut last) = (0, None, None);
        for step in &self.steps {
            match step.status {
                NoticeStatus::Queued if step.reason.as_deref() == Some(HANDED_BACK) => {
                    tries = u32::saturating_sub(tries, 1);
                    if tries == 0 {
                        began = None;
                    }
                }
                NoticeStatus::Sending => {
                    tries += 1;
                    began.get_or_insert(step.at);
                    last = Some(step.at);
                }
                NoticeStatus::Retrying => last = Some(step.at),
                NoticeStatus::Queued
                | NoticeStatus::Sent
                | NoticeStatus::Failed
                | NoticeStatus::Uncertain
                | NoticeStatus::Suppressed
                | NoticeStatus::RateLimited
                | NoticeStatus::Off
                | NoticeStatus::Bounced
                | NoticeStatus::Complained => (tries, began, last) = (0, None, None),
            }
        }
        let spent = began.zip(last).map_or(0, |(began, last): (Time, Time)| last.ms() - began.ms());
        Round { tries, spent_ms: spent.max(0) }
    }

    pub fn status(&self) -> NoticeStatus {
        self.steps.last().map_or(NoticeStatus::Queued, |step| step.status)
    }

    #[must_use]
    pub fn with(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// What lists find it by. Whom it is for stands where a customer stands.
    pub fn index(&self) -> Index {
        let status = self.status();
        Index {
            status: Some(status.name().into()),
            tenant: self.tenant.clone(),
            customer: self.to.as_ref().map(|to| to.whole().to_owned()),
            attention: status.needs_a_person().then(|| status.name().into()),
            ..Index::default()
        }
    }

    /// What a channel is told it is: the same for every try, so that a receiver can tell it saw it before.
    pub fn message_id(id: &str, again: u32) -> String {
        if again == 0 { id.to_owned() } else { format!("{id}.{again}") }
    }
}

impl Step {
    pub const fn new(at: Time, status: NoticeStatus) -> Self {
        Self { at, status, reason: None, note: None }
    }

    #[must_use]
    pub fn because(self, reason: &str, note: impl Into<String>) -> Self {
        Self { reason: Some(reason.to_owned()), note: Some(note.into()), ..self }
    }

    #[must_use]
    pub fn noting(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compose::tests::notice_to;
    use super::*;

    #[test]
    fn g2_tries_and_their_time_are_read_from_the_steps_and_a_new_decision_begins_anew() {
        let at = |ms: i64| Time::from_ms(1_780_000_000_000 + ms);
        let step = |ms, status| Step::new(at(ms), status);
        let first = Notice {
            steps: vec![step(0, NoticeStatus::Queued)],
            ..notice_to("t@example.jp", NoticeStatus::Queued)
        };
        let check = |notice: &Notice, tries, spent_ms| assert_eq!(notice.round(), Round { tries, spent_ms });
        check(&first, 0, 0);
        let once = first.with(step(10, NoticeStatus::Sending)).with(step(110, NoticeStatus::Retrying));
        check(&once, 1, 100);
        let cut_off = once.clone().with(step(2_110, NoticeStatus::Sending));
        check(&cut_off, 2, 2_100);
        let back = cut_off.clone().with(step(2_120, NoticeStatus::Queued).because(HANDED_BACK, "untried"));
        check(&back, 1, 2_100);
        for anew in [NoticeStatus::Queued, NoticeStatus::Failed, NoticeStatus::Uncertain] {
            check(&cut_off.clone().with(step(9_000, anew)), 0, 0);
        }
        let untried = once.with(step(3_000, NoticeStatus::Queued)).with(step(3_100, NoticeStatus::Sending));
        check(&untried.with(step(3_110, NoticeStatus::Queued).because(HANDED_BACK, "untried")), 0, 0);
    }

    #[test]
    fn g5_every_status_has_a_name_of_its_own() {
        for status in NoticeStatus::ALL {
            assert_eq!(NoticeStatus::parse(status.name()), Some(status));
            let written = serde_json::to_value(status).unwrap();
            assert_eq!(written, status.name(), "the same word everywhere");
        }
    }
}
