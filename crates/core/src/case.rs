//! A case: something went wrong with an order, and it is either put right by a rule, or a person sees to it. Rules of one
//! trigger and subject share a case; each time their conditions begin to hold anew is an episode of it.
//!
//! Acknowledging stops the clock for an answer and nothing else; resolving stops everything that was not ordered yet.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::compensation::CompensationRule;
use crate::provider::{encode_hex, sha256};
use crate::time::Time;

pub const TAG: &str = "case_";
/// So often somebody is reminded of a case that nobody has answered.
pub const REMINDERS_MAX: u32 = 5;
/// Characters of what tells one case from another.
const ID_CHARACTERS: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaseFacts {
    pub trigger: String,
    /// What it is about: the id of a fulfilment, a reservation or a payment.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub livemode: Option<bool>,
    pub episodes: BTreeMap<u32, Episode>,
    /// Of a fault of the system: the nodes that report it, each by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reports: BTreeMap<String, FaultStanding>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub emitted: BTreeSet<String>,
}

/// What one node said of a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultStanding {
    pub since: Time,
    /// When it was last said.
    pub at: Time,
}

/// A node finds that something of the system does not work, or works again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// What does not work: `holds`.
    pub subject: String,
    /// The node.
    pub by: String,
    /// Since when; `None` says that it works.
    pub since: Option<Time>,
    /// A node that has not repeated its report for so long is gone, and its report with it, once another says that all is well.
    pub lasts_ms: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Episode {
    /// Since when each condition has held that holds now.
    pub since: BTreeMap<String, Time>,
    /// The rules that have done what they do.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub fired: BTreeSet<String>,
    /// When each level was reached.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<u8, Time>,
    /// How often somebody was reminded, by level.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reminded: BTreeMap<u8, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Word>,
    /// When its conditions ceased to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<Time>,
}

/// What somebody said of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    pub at: Time,
    pub by: String,
    /// `cleared`, `fixed`, `by_hand` or `no_action`; empty of an acknowledgement.
    #[serde(default)]
    pub how: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseStatus {
    Open,
    Acknowledged,
    Resolved,
}

impl CaseStatus {
    pub const ALL: [Self; 3] = [Self::Open, Self::Acknowledged, Self::Resolved];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Acknowledged => "acknowledged",
            Self::Resolved => "resolved",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

/// The id of the case of a trigger and a subject: the same, whoever opens it.
pub fn id_of(trigger: &str, subject: &str) -> String {
    let hash = encode_hex(sha256(format!("{trigger}/{subject}").as_bytes()));
    format!("{TAG}{}", &hash[..ID_CHARACTERS])
}

impl CaseFacts {
    pub fn newest(&self) -> Option<(u32, &Episode)> {
        self.episodes.last_key_value().map(|(n, episode)| (*n, episode))
    }

    pub fn status(&self) -> CaseStatus {
        match self.newest() {
            None => CaseStatus::Resolved,
            Some((_, episode)) if episode.resolved.is_some() => CaseStatus::Resolved,
            Some((_, episode)) if episode.acknowledged.is_some() => CaseStatus::Acknowledged,
            Some(_) => CaseStatus::Open,
        }
    }

    /// Takes in what a node says.
    pub fn hear(&mut self, report: &FaultReport, at: Time) {
        if let Some(since) = report.since {
            let known = self.reports.entry(report.by.clone()).or_insert(FaultStanding { since, at });
            *known = FaultStanding { since: known.since.min(since), at: known.at.max(at) };
        } else {
            self.reports.remove(&report.by);
            self.reports.retain(|_, known| at.ms() - known.at.ms() < report.lasts_ms);
        }
    }

    /// The highest level that was reached.
    pub fn level(&self) -> u8 {
        self.newest().and_then(|(_, episode)| episode.levels.keys().next_back().copied()).unwrap_or_default()
    }
}

/// What a rule does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    pub rule: usize,
    pub episode: u32,
}

/// Brings a case up to date with which of its rules hold (by place in `rules`); says which act now, and when the clock may
/// change something.
pub fn follow(
    facts: &mut CaseFacts,
    rules: &[&CompensationRule],
    holds: &[bool],
    at: Time,
) -> (Vec<Fired>, Option<Time>) {
    follow_since(facts, rules, holds, at, at)
}

/// The same, where what holds now has held since an earlier moment.
pub fn follow_since(
    facts: &mut CaseFacts,
    rules: &[&CompensationRule],
    holds: &[bool],
    since: Time,
    at: Time,
) -> (Vec<Fired>, Option<Time>) {
    let any = holds.iter().any(|holds| *holds);
    let is_over = facts.newest().is_none_or(|(_, episode)| episode.cleared.is_some());
    if is_over {
        if !any {
            return (Vec::new(), None);
        }
        let next = facts.newest().map_or(1, |(n, _)| n + 1);
        facts.episodes.insert(next, Episode::default());
    }
    let Some(mut entry) = facts.episodes.last_entry() else { return (Vec::new(), None) };
    let (number, episode) = (*entry.key(), entry.get_mut());
    for (rule, holds) in rules.iter().zip(holds) {
        if *holds {
            episode.since.entry(rule.name.clone()).or_insert(since);
        } else {
            episode.since.remove(&rule.name);
        }
    }
    if !any {
        episode.cleared = Some(at);
        let cleared = || Word { at, by: "SYSTEM".into(), how: "cleared".into(), note: String::new() };
        episode.resolved = episode.resolved.take().or_else(|| Some(cleared()));
        return (Vec::new(), None);
    }
    if episode.resolved.is_some() {
        return (Vec::new(), None);
    }
    let (mut fired, mut next) = (Vec::new(), None::<Time>);
    let mut wait = |moment: Time| next = Some(next.map_or(moment, |next: Time| next.min(moment)));
    for (n, rule) in rules.iter().enumerate() {
        let Some(since) = episode.since.get(&rule.name) else { continue };
        let due = since.plus_ms(rule.after_ms);
        if due > at {
            wait(due);
        } else if episode.fired.insert(rule.name.clone()) {
            if rule.level > 0 {
                episode.levels.entry(rule.level).or_insert(at);
            }
            fired.push(Fired { rule: n, episode: number });
        }
    }
    if episode.acknowledged.is_none() {
        for (level, reached) in episode.levels.clone() {
            let Some(within) = response_of(rules, level) else { continue };
            let count = at.ms().saturating_sub(reached.ms()).max(0) / within;
            let count = u32::try_from(count).unwrap_or(u32::MAX).min(REMINDERS_MAX);
            if count > 0 {
                let reminded = episode.reminded.entry(level).or_default();
                *reminded = (*reminded).max(count);
            }
            if count < REMINDERS_MAX {
                wait(reached.plus_ms(within.saturating_mul(i64::from(count) + 1)));
            }
        }
    }
    (fired, next)
}

/// Within which somebody must have answered what is of this level.
pub fn response_of(rules: &[&CompensationRule], level: u8) -> Option<i64> {
    let own = rules.iter().filter(|rule| rule.level == level && rule.respond_within_ms > 0);
    own.map(|rule| rule.respond_within_ms).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compensation::shipped;
    use crate::time::HOUR_MS;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    /// The rules of a failing render, and which hold after so many failures.
    fn rules() -> Vec<CompensationRule> {
        shipped().into_iter().filter(|rule| rule.trigger == "RENDER_FAILURE").collect()
    }

    fn step(facts: &mut CaseFacts, holds: [bool; 3], at: Time) -> (Vec<String>, Option<Time>) {
        let rules = rules();
        let rules: Vec<_> = rules.iter().collect();
        let (fired, next) = follow(facts, &rules, &holds, at);
        (fired.into_iter().map(|one| rules[one.rule].name.clone()).collect(), next)
    }

    #[test]
    fn f5_levels_rise_each_once_and_the_refund_comes_at_24_hours_and_not_before() {
        let mut case = CaseFacts::default();
        assert_eq!(step(&mut case, [true, false, false], NOW).0, ["RENDER_FAILURE_FIRST"]);
        assert_eq!(step(&mut case, [true, false, false], NOW).0, [""; 0]);
        let third = NOW.plus_ms(60_000);
        let (fired, next) = step(&mut case, [true, true, true], third);
        assert_eq!(
            (fired, next),
            (vec!["RENDER_FAILURE_THIRD".to_owned()], Some(third.plus_ms(4 * HOUR_MS)))
        );
        assert_eq!(step(&mut case, [true, true, true], third.plus_ms(24 * HOUR_MS - 1)).0, [""; 0]);
        let at = third.plus_ms(24 * HOUR_MS);
        assert_eq!(step(&mut case, [true, true, true], at).0, ["RENDER_FAILURE_TIMEOUT"]);
        assert_eq!((case.level(), case.status()), (3, CaseStatus::Open));
        // The money went back: it clears by itself, and begins anew another time.
        step(&mut case, [false; 3], at);
        assert_eq!(case.status(), CaseStatus::Resolved);
        assert_eq!(step(&mut case, [true, false, false], at).0, ["RENDER_FAILURE_FIRST"]);
        assert_eq!(case.newest().unwrap().0, 2);
    }

    #[test]
    fn f5_who_does_not_answer_is_reminded_and_who_resolves_stops_all() {
        let mut case = CaseFacts::default();
        step(&mut case, [true; 3], NOW);
        assert_eq!(step(&mut case, [true; 3], NOW.plus_ms(4 * HOUR_MS)).1, Some(NOW.plus_ms(8 * HOUR_MS)));
        assert_eq!(case.newest().unwrap().1.reminded, [(2, 1)].into());
        let word =
            |how: &str| Some(Word { at: NOW, by: "ADMIN:tomo".into(), how: how.into(), note: String::new() });
        case.episodes.get_mut(&1).unwrap().acknowledged = word("");
        assert_eq!(step(&mut case, [true; 3], NOW.plus_ms(12 * HOUR_MS)).1, Some(NOW.plus_ms(24 * HOUR_MS)));
        assert_eq!(case.newest().unwrap().1.reminded, [(2, 1)].into(), "it was answered");
        case.episodes.get_mut(&1).unwrap().resolved = word("fixed");
        assert_eq!(step(&mut case, [true; 3], NOW.plus_ms(48 * HOUR_MS)), (Vec::new(), None));
        assert_eq!(case.status(), CaseStatus::Resolved);
        // Whatever was resolved while it still held does not come up again by itself.
        step(&mut case, [false; 3], NOW.plus_ms(49 * HOUR_MS));
        assert_eq!(case.newest().unwrap().0, 1);
    }

    #[test]
    fn f5_nobody_is_reminded_more_than_five_times() {
        let mut case = CaseFacts::default();
        step(&mut case, [true, true, false], NOW);
        let (_, next) = step(&mut case, [true, true, false], NOW.plus_ms(400 * HOUR_MS));
        assert_eq!((next, case.newest().unwrap().1.reminded[&2]), (None, REMINDERS_MAX));
    }

    #[test]
    fn f4_a_fault_lasts_while_a_node_reports_it_and_a_node_that_is_gone_holds_nothing_open() {
        let mut case = CaseFacts::default();
        let say = |case: &mut CaseFacts, by: &str, since: Option<Time>, at: Time| {
            let report = FaultReport { subject: "holds".into(), by: by.into(), since, lasts_ms: 600_000 };
            case.hear(&report, at);
            case.reports.len()
        };
        assert_eq!(say(&mut case, "1", Some(NOW), NOW), 1);
        assert_eq!(say(&mut case, "2", Some(NOW), NOW), 2);
        assert_eq!(say(&mut case, "1", Some(NOW.plus_ms(60_000)), NOW.plus_ms(60_000)), 2);
        assert_eq!(case.reports["1"], FaultStanding { since: NOW, at: NOW.plus_ms(60_000) });
        assert_eq!(say(&mut case, "2", None, NOW.plus_ms(120_000)), 1, "the other still fails");
        assert_eq!(say(&mut case, "2", None, NOW.plus_ms(660_000)), 0, "it is gone");
    }

    #[test]
    fn f4_a_fault_is_told_at_once_and_to_the_pager_an_hour_after_it_began() {
        let rules = shipped();
        let rules: Vec<_> = rules.iter().filter(|rule| rule.trigger == "SYSTEM_FAULT").collect();
        let mut case = CaseFacts::default();
        let began = NOW.plus_ms(-5 * 60_000);
        let mut step = |holds: bool, at: Time| {
            let (fired, next) = follow_since(&mut case, &rules, &[holds; 2], began, at);
            (fired.into_iter().map(|one| rules[one.rule].level).collect::<Vec<_>>(), next)
        };
        let hour = began.plus_ms(HOUR_MS);
        assert_eq!(step(true, NOW), (vec![2], Some(hour)));
        assert_eq!(step(true, hour.plus_ms(-1)).0, Vec::<u8>::new());
        assert_eq!(step(true, hour).0, [3]);
        assert_eq!(step(false, hour), (Vec::new(), None));
        assert_eq!(case.status(), CaseStatus::Resolved);
    }
}
