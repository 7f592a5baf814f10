//! Which events are told to whom: the operator's rules, and what is to be worked out for an event because of them.

use super::{feedback, post};
use crate::announcement::is_like_announced;
use crate::event::{Stored, Trust};
use crate::job::Notify;
use crate::pattern::Pattern;
use crate::rule::{self, RuleError, Variables};
use crate::source_name::{FETCHED, OWN, Origin, is_of_the_house};

#[derive(Clone, Debug)]
pub struct NotifyRule {
    pub name: String,
    /// Of the events' types.
    pub events: Vec<Pattern>,
    /// Where they come from; empty is anywhere, but see [`NotifyRule::matches`].
    pub sources: Vec<Pattern>,
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

impl NotifyRule {
    pub fn matches(&self, event: &Stored, variables: &Variables<'_>) -> Result<bool, RuleError> {
        if !self.is_heard_from(event) || !self.events.iter().any(|pattern| pattern.matches(&event.event_type))
        {
            return Ok(false);
        }
        self.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(variables))
    }

    /// The names of the notices by which a place was told of a case that is over now.
    pub fn raised_before(&self, event: &Stored) -> Vec<String> {
        let Some(target) = self.name.strip_prefix("sekisho-closed-").filter(|_| self.to == To::Place) else {
            return Vec::new();
        };
        let body: serde_json::Value = serde_json::from_slice(&event.body).unwrap_or_default();
        let levels = body["about"]["told"][target].as_array().cloned().unwrap_or_default();
        let raised = event.event_id.replace("case.resolved/", "case.raised/");
        let name = |level: &serde_json::Value| {
            post::named(&format!("{OWN}/{raised}/{level}/sekisho-cases-{target}/channel"))
        };
        levels.iter().map(name).collect()
    }

    /// Types are believed only from where they come: what is called as our announcements are is ours, unless the rule names
    /// its source. A hint, which anybody may have sent, must be named letter for letter. Answers that we read ourselves are
    /// nobody's news.
    fn is_heard_from(&self, event: &Stored) -> bool {
        let is_named = self.sources.iter().any(|pattern| pattern.is(&event.source));
        let is_meant = is_named || self.sources.iter().any(|pattern| pattern.matches(&event.source));
        &*event.source != FETCHED
            && (is_meant || self.sources.is_empty())
            && (is_meant || is_of_the_house(event) || !is_like_announced(&event.event_type))
            && (is_named || event.trust != Trust::Hint)
    }
}

/// What is to be worked out because of an event. A rule that can't be answered for it tells nobody, and is told.
pub fn tasks<'r>(
    origin: Origin,
    event: &Stored,
    rules: impl Iterator<Item = &'r NotifyRule>,
) -> (Vec<Notify>, Vec<String>) {
    let (mut tasks, mut unanswered) = (Vec::new(), Vec::new());
    if origin.provider == "sns" && feedback::read(&event.body).is_some() {
        tasks.push(Notify::Feedback);
    }
    let variables = Variables::of(event);
    for rule in rules {
        match rule.matches(event, &variables) {
            Ok(true) => tasks.push(Notify::Tell(rule.name.clone())),
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
    use crate::id::Seq;
    use crate::job::Task;

    pub fn rule(name: &str, events: &str, to: To) -> NotifyRule {
        NotifyRule {
            name: name.into(),
            events: vec![Pattern::new(events)],
            sources: vec![],
            filter: None,
            to,
            channel: "mail".into(),
            template: "payment-received".into(),
            every_ms: None,
        }
    }

    #[test]
    fn g5_a_rule_is_asked_once_for_each_event_it_names() {
        let paid = Stored { source: OWN.into(), event_type: "payment.paid".into(), ..stored("{}") };
        let rules = [
            rule("receipt", "payment.paid", To::Customer),
            rule("all", "payment.*", To::Place),
            rule("other", "billing.*", To::Staff),
            NotifyRule {
                filter: Some(rule::Rule::compile("body.nothing.here == 1").unwrap()),
                ..rule("odd", "*", To::Place)
            },
        ];
        let (tasks, unanswered) = tasks(Origin::default(), &paid, rules.iter());
        assert_eq!(tasks, [Notify::Tell("receipt".into()), Notify::Tell("all".into())]);
        assert!(unanswered.concat().contains("notify odd"), "{unanswered:?}");
        let job = tasks[0].job(Seq::from_i64(2), Some(paid.seq), paid.received_at);
        assert_eq!(job.key, Some(format!("{}/tell/receipt", paid.seq.as_event())));
        assert_eq!(job.task, Task::Notify(tasks[0].clone()));
        let fetched = Stored { source: FETCHED.into(), ..paid };
        assert_eq!(super::tasks(Origin::default(), &fetched, rules.iter()).0, []);
    }

    #[test]
    fn g5_a_strangers_event_runs_no_rule_for_announcements_unless_its_source_is_named() {
        let told = |event: &Stored| -> Vec<String> {
            let of = |name: &str, events: &str, sources: &[&str]| NotifyRule {
                sources: sources.iter().copied().map(Pattern::new).collect(),
                ..rule(name, events, To::Customer)
            };
            let rules = [
                of("paid", "payment.paid", &[]),
                of("wide", "payment.*", &[]),
                of("all", "*", &[]),
                of("hooks", "payment.*", &["git*"]),
                of("both", "payment.paid", &["sekisho", "github"]),
            ];
            let variables = Variables::of(event);
            rules
                .iter()
                .filter(|rule| rule.matches(event, &variables).unwrap())
                .map(|rule| rule.name.clone())
                .collect()
        };
        let ours = Stored { source: OWN.into(), event_type: "payment.paid".into(), ..stored("{}") };
        assert_eq!(told(&ours), ["paid", "wide", "all", "both"]);
        let theirs = Stored { source: "github".into(), ..ours.clone() };
        assert_eq!(told(&theirs), ["hooks", "both"]);
        assert_eq!(told(&Stored { source: "gitlab".into(), ..ours.clone() }), ["hooks"]);
        let made = Stored { source: "schedule".into(), ..ours.clone() };
        assert_eq!(told(&made), ["paid", "wide", "all"], "the operator wrote it");
        let push = Stored { event_type: "push".into(), ..theirs.clone() };
        assert_eq!(told(&push), ["all"]);
        assert_eq!(told(&Stored { trust: Trust::Hint, ..push }), [""; 0], "anybody may have sent it");
        assert_eq!(told(&Stored { trust: Trust::Hint, ..theirs }), ["both"]);
    }
}
