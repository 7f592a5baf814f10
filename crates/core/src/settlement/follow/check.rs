//! Which rules hold for an order now, and when they act: what a decision about it would find, without deciding anything.

use std::collections::{BTreeMap, BTreeSet};

use super::{OrderMoney, OrderPolicy, conditions, questions};
use crate::case::{self, CaseFacts};
use crate::compensation::{CompensatedBy, CompensationRule, RuleAction, RuleSubject};
use crate::fulfilment::FulfilmentFacts;
use crate::reservation::ReservationFacts;
use crate::rule::OrderVariables;
use crate::settlement::payment::Facts;
use crate::time::Time;

/// What is kept of an order, by ids.
#[derive(Clone, Debug, Default)]
pub struct OrderFacts {
    pub payment: Option<(String, Facts)>,
    pub reservations: BTreeMap<String, ReservationFacts>,
    pub fulfilments: BTreeMap<String, FulfilmentFacts>,
    pub cases: BTreeMap<String, CaseFacts>,
}

/// One rule, asked about one part of an order.
#[derive(Clone, Debug)]
pub struct CheckedRule<'r> {
    pub rule: &'r CompensationRule,
    /// What it was asked about.
    pub subject: String,
    /// The case of it, which need not be open yet.
    pub case: String,
    pub standing: RuleStanding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleStanding {
    /// It does not hold.
    Idle,
    /// It holds, and acts at a moment if that stays so.
    Waiting { since: Time, at: Time },
    /// It holds and has acted.
    Done { since: Time },
    /// It holds, but a person has resolved its case before it acted.
    Stopped { since: Time },
    /// It has no answer for this order, and so does not hold.
    Unanswered { why: String },
}

impl RuleStanding {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Waiting { .. } => "waiting",
            Self::Done { .. } => "done",
            Self::Stopped { .. } => "stopped",
            Self::Unanswered { .. } => "unanswered",
        }
    }
}

impl OrderFacts {
    /// Every id that rules are asked about, with its subject.
    fn subjects(&self) -> Vec<(&str, RuleSubject)> {
        let made = self.fulfilments.keys().map(|id| (id.as_str(), RuleSubject::Fulfilment));
        let reserved = self.reservations.keys().map(|id| (id.as_str(), RuleSubject::Reservation));
        let paid = self.payment.iter().map(|(id, _)| (id.as_str(), RuleSubject::Payment));
        made.chain(reserved).chain(paid).collect()
    }

    /// The cases that rules of this policy may have opened about it.
    pub fn case_ids(&self, policy: &OrderPolicy) -> BTreeSet<String> {
        let of = |(id, subject): (&str, RuleSubject)| {
            let own = policy.rules.iter().filter(move |rule| rule.subject == subject);
            own.map(|rule| case::id_of(&rule.trigger, id)).collect::<Vec<_>>()
        };
        self.subjects().into_iter().flat_map(of).collect()
    }

    /// The records of what may have been done for it; needs its cases.
    pub fn compensation_ids(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        if let Some((payment, facts)) = &self.payment {
            ids.insert(CompensatedBy::Provider { payment }.id());
            ids.extend(facts.refund_orders.keys().map(|key| CompensatedBy::Order { payment, key }.id()));
        }
        for (reservation, facts) in &self.reservations {
            let claims = facts.claims.keys();
            ids.extend(claims.map(|claim| CompensatedBy::Reassign { reservation, claim: *claim }.id()));
        }
        for (case, facts) in &self.cases {
            let episodes = facts.episodes.keys();
            ids.extend(episodes.map(|episode| CompensatedBy::Person { case, episode: *episode }.id()));
        }
        ids
    }

    /// Asks every rule that is in force about every part.
    pub fn check<'r>(&self, policy: &'r OrderPolicy, at: Time) -> Vec<CheckedRule<'r>> {
        let money = self.payment.as_ref().map(|(id, facts)| OrderMoney::of(id, facts));
        let mut checked = Vec::new();
        for (id, subject) in self.subjects() {
            let variables = self.variables(id, subject, money.as_ref(), at, policy);
            let own = policy.rules.iter().filter(|rule| rule.is_enabled && rule.subject == subject);
            let (asking, own): (Vec<_>, Vec<&CompensationRule>) =
                own.partition(|rule| rule.action == RuleAction::Fetch);
            checked.extend(asking.into_iter().map(|rule| self.check_asking(id, rule, &variables, at)));
            let triggers: BTreeSet<&str> = own.iter().map(|rule| rule.trigger.as_str()).collect();
            for trigger in triggers {
                let rules: Vec<_> = own.iter().filter(|rule| rule.trigger == trigger).copied().collect();
                checked.extend(self.check_case(id, &rules, &variables, at));
            }
        }
        checked
    }

    fn variables(
        &self,
        id: &str,
        subject: RuleSubject,
        money: Option<&OrderMoney<'_>>,
        at: Time,
        policy: &OrderPolicy,
    ) -> OrderVariables {
        match subject {
            RuleSubject::Fulfilment => {
                let made = self.fulfilments.get(id);
                let of = made.and_then(|facts| facts.ours.reservation.as_ref());
                conditions(money, of.and_then(|id| self.reservations.get(id)), made, at, policy)
            }
            RuleSubject::Reservation => conditions(money, self.reservations.get(id), None, at, policy),
            RuleSubject::Payment | RuleSubject::System => conditions(money, None, None, at, policy),
        }
    }

    /// A rule that asks the provider, which has no case.
    fn check_asking<'r>(
        &self,
        subject: &str,
        rule: &'r CompensationRule,
        variables: &OrderVariables,
        at: Time,
    ) -> CheckedRule<'r> {
        let standing = match (rule.when.holds_for(variables), self.reservations.get(subject)) {
            (Err(error), _) => RuleStanding::Unanswered { why: error.to_string() },
            (Ok(true), Some(facts)) => match questions(facts, rule, at).next {
                Some(next) => RuleStanding::Waiting { since: facts.ours.at, at: next },
                None => RuleStanding::Done { since: facts.ours.at },
            },
            (Ok(_), _) => RuleStanding::Idle,
        };
        let case = case::id_of(&rule.trigger, subject);
        CheckedRule { rule, subject: subject.to_owned(), case, standing }
    }

    /// The rules of one case, followed on a copy of it.
    fn check_case<'r>(
        &self,
        subject: &str,
        rules: &[&'r CompensationRule],
        variables: &OrderVariables,
        at: Time,
    ) -> Vec<CheckedRule<'r>> {
        let answers: Vec<_> = rules.iter().map(|rule| rule.when.holds_for(variables)).collect();
        let holds: Vec<bool> =
            answers.iter().map(|answer| answer.as_ref().copied().unwrap_or_default()).collect();
        let case = case::id_of(&rules[0].trigger, subject);
        let before = self.cases.get(&case).cloned().unwrap_or_default();
        let mut after = before.clone();
        case::follow(&mut after, rules, &holds, at);
        let standing = |rule: &CompensationRule| {
            let Some((number, episode)) = after.newest() else { return RuleStanding::Idle };
            let Some(since) = episode.since.get(&rule.name).copied() else { return RuleStanding::Idle };
            let was_fired =
                before.episodes.get(&number).is_some_and(|known| known.fired.contains(&rule.name));
            if was_fired {
                RuleStanding::Done { since }
            } else if episode.resolved.is_some() {
                RuleStanding::Stopped { since }
            } else {
                RuleStanding::Waiting { since, at: since.plus_ms(rule.after_ms) }
            }
        };
        let each = rules.iter().zip(answers).map(|(rule, answer)| CheckedRule {
            rule,
            subject: subject.to_owned(),
            case: case.clone(),
            standing: match answer {
                Ok(_) => standing(rule),
                Err(error) => RuleStanding::Unanswered { why: error.to_string() },
            },
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Word;
    use crate::fulfilment::{FulfilmentRun, RunResult};
    use crate::time::HOUR_MS;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    /// Something that was made in vain so many times.
    fn order(failed: u32) -> OrderFacts {
        let run =
            FulfilmentRun { result: RunResult::Failed, ended_at: Some(NOW), ..FulfilmentRun::default() };
        let runs = (1..=failed).map(|n| (n, run.clone())).collect();
        let made = FulfilmentFacts { runs, ..FulfilmentFacts::default() };
        OrderFacts { fulfilments: [("ful_1".to_owned(), made)].into(), ..OrderFacts::default() }
    }

    fn standing(order: &OrderFacts, rule: &str, at: Time) -> RuleStanding {
        let policy = OrderPolicy::default();
        let checked = order.check(&policy, at);
        let found = checked.into_iter().find(|one| one.rule.name == rule);
        found.unwrap_or_else(|| panic!("{rule} was not asked")).standing
    }

    #[test]
    fn f4_a_rule_holds_from_now_on_where_no_case_is_open() {
        assert_eq!(standing(&order(0), "RENDER_FAILURE_FIRST", NOW), RuleStanding::Idle);
        let waiting = RuleStanding::Waiting { since: NOW, at: NOW };
        assert_eq!(standing(&order(1), "RENDER_FAILURE_FIRST", NOW), waiting);
        assert_eq!(standing(&order(1), "RENDER_FAILURE_THIRD", NOW), RuleStanding::Idle);
        let policy = OrderPolicy::default();
        let asked: BTreeSet<_> = order(3).check(&policy, NOW).iter().map(|one| &*one.rule.trigger).collect();
        assert_eq!(asked, ["RENDER_FAILURE"].into(), "what has no payment is asked nothing about one");
    }

    #[test]
    fn f4_an_open_case_says_since_when_what_was_done_and_what_a_person_stopped() {
        let mut order = order(3);
        let policy = OrderPolicy::default();
        let rules: Vec<_> = policy.rules.iter().filter(|rule| rule.trigger == "RENDER_FAILURE").collect();
        let mut facts = CaseFacts::default();
        case::follow(&mut facts, &rules, &[true; 3], NOW);
        let id = case::id_of("RENDER_FAILURE", "ful_1");
        assert!(order.case_ids(&policy).contains(&id));
        order.cases.insert(id.clone(), facts);
        let later = NOW.plus_ms(HOUR_MS);
        let done = RuleStanding::Done { since: NOW };
        assert_eq!(standing(&order, "RENDER_FAILURE_THIRD", later), done);
        // Nothing was paid for it: no refund waits.
        assert_eq!(standing(&order, "RENDER_FAILURE_TIMEOUT", later), RuleStanding::Idle);
        let episode = order.cases.get_mut(&id).unwrap().episodes.get_mut(&1).unwrap();
        episode.fired.remove("RENDER_FAILURE_THIRD");
        let word = Word { at: later, by: "ADMIN:tomo".into(), how: "fixed".into(), note: String::new() };
        episode.resolved = Some(word);
        let stopped = RuleStanding::Stopped { since: NOW };
        assert_eq!(standing(&order, "RENDER_FAILURE_THIRD", later), stopped);
    }

    #[test]
    fn f4_a_rule_without_an_answer_does_not_hold_and_says_why() {
        let mut policy = OrderPolicy::default();
        policy.set_rule(CompensationRule::new("ODD", "ODD", "fulfilment.retry_count > \"x\"").unwrap());
        let order = order(1);
        let checked = order.check(&policy, NOW);
        let odd = checked.iter().find(|one| one.rule.name == "ODD").unwrap();
        assert!(matches!(&odd.standing, RuleStanding::Unanswered { why } if !why.is_empty()), "{odd:?}");
    }
}
