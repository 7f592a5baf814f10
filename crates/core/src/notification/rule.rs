//! Which events are told to whom: the operator's rules, and what is to be worked out for an event because of them.

use serde::{Deserialize, Serialize};

use super::feedback;
use crate::change::{Kind, Lane, NewJob, effect_prefix};
use crate::delivery::Pattern;
use crate::event::Stored;
use crate::id::Seq;
use crate::rule::{self, Facts, RuleError};
use crate::settlement::{FETCHED, Origin};
use crate::time::Time;

#[derive(Clone, Debug)]
pub struct Rule {
    pub name: String,
    /// Of the events' types.
    pub events: Vec<Pattern>,
    pub filter: Option<rule::Rule>,
    pub to: To,
    pub channel: String,
    pub template: String,
    /// Told once in so long, however many such events there are.
    pub every_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Whoever paid.
    Customer,
    /// Everybody who works for the tenant.
    Staff,
    /// By mail.
    Operators,
    /// Whoever reads the channel: a chat room, a program, a pager.
    Place,
}

impl To {
    pub const ALL: [Self; 4] = [Self::Customer, Self::Staff, Self::Operators, Self::Place];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Staff => "staff",
            Self::Operators => "operators",
            Self::Place => "channel",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|to| to.name() == text)
    }
}

impl Rule {
    pub fn matches(&self, event: &Stored, facts: &Facts<'_>) -> Result<bool, RuleError> {
        // Answers that we read ourselves are nobody's news.
        if &*event.source == FETCHED || !self.events.iter().any(|pattern| pattern.matches(&event.event_type))
        {
            return Ok(false);
        }
        self.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(facts))
    }
}

/// What there is to work out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Whom a rule tells of an event.
    Tell(String),
    /// What a bounce or a complaint changes.
    Feedback,
    /// Who of a tenant is reminded of what, on a date.
    Remind { tenant: String, date: String },
}

impl Task {
    pub fn parse(payload: &str) -> Option<Self> {
        serde_json::from_str(payload).ok()
    }

    /// What makes it single: it is worked out once for its event, or for its tenant and date.
    pub fn key(&self, event: Option<Seq>) -> String {
        let of_event = event.map(effect_prefix).unwrap_or_default();
        match self {
            Self::Tell(rule) => format!("{of_event}tell/{rule}"),
            Self::Feedback => format!("{of_event}feedback"),
            Self::Remind { tenant, date } => format!("remind/{date}/{tenant}"),
        }
    }

    /// The job that works it out.
    pub fn job(&self, id: Seq, event: Option<Seq>, due_at: Time) -> NewJob {
        NewJob {
            id,
            key: Some(self.key(event)),
            kind: Kind::Notify,
            lane: Lane::notify(),
            fifo: None,
            due_at,
            event,
            payload: serde_json::to_string(self).expect("texts serialise"),
            owner: None,
        }
    }
}

/// What is to be worked out because of an event. A rule that can't be answered for it tells nobody, and is told.
pub fn tasks<'r>(
    origin: Origin,
    event: &Stored,
    rules: impl Iterator<Item = &'r Rule>,
) -> (Vec<Task>, Vec<String>) {
    let (mut tasks, mut unanswered) = (Vec::new(), Vec::new());
    if origin.provider == "sns" && feedback::read(&event.body).is_some() {
        tasks.push(Task::Feedback);
    }
    let facts = Facts::of(event);
    for rule in rules {
        match rule.matches(event, &facts) {
            Ok(true) => tasks.push(Task::Tell(rule.name.clone())),
            Ok(false) => {}
            Err(error) => unanswered.push(format!("notify {}: {error}", rule.name)),
        }
    }
    (tasks, unanswered)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::delivery::route::tests::stored;
    use crate::settlement::SOURCE;

    pub fn rule(name: &str, events: &str, to: To) -> Rule {
        Rule {
            name: name.into(),
            events: vec![Pattern::new(events)],
            filter: None,
            to,
            channel: "mail".into(),
            template: "payment-received".into(),
            every_ms: None,
        }
    }

    #[test]
    fn g5_a_rule_is_asked_once_for_each_event_it_names() {
        let paid = Stored { source: SOURCE.into(), event_type: "payment.paid".into(), ..stored("{}") };
        let rules = [
            rule("receipt", "payment.paid", To::Customer),
            rule("all", "payment.*", To::Place),
            rule("other", "billing.*", To::Staff),
            Rule {
                filter: Some(rule::Rule::compile("body.nothing.here == 1").unwrap()),
                ..rule("odd", "*", To::Place)
            },
        ];
        let (tasks, unanswered) = tasks(Origin::default(), &paid, rules.iter());
        assert_eq!(tasks, [Task::Tell("receipt".into()), Task::Tell("all".into())]);
        assert!(unanswered.concat().contains("notify odd"), "{unanswered:?}");
        let job = tasks[0].job(Seq::from_i64(2), Some(paid.seq), paid.received_at);
        assert_eq!(job.key, Some(format!("{}/tell/receipt", paid.seq.as_event())));
        assert_eq!(Task::parse(&job.payload), Some(tasks[0].clone()));
        let fetched = Stored { source: FETCHED.into(), ..paid };
        assert_eq!(super::tasks(Origin::default(), &fetched, rules.iter()).0, []);
    }
}
