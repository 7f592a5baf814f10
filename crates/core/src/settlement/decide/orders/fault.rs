//! Faults of the system that nodes report: a case without an order, which is its own lock.

use super::{Followed, Orders, load};
use crate::case::{self, CaseFacts, FaultReport};
use crate::compensation::{CompensationRule, RuleSubject, SYSTEM_FAULT};
use crate::settlement::Terms;
use crate::state::{Key, Kind};

impl Orders<'_> {
    /// Takes in what a node reports. That all is well opens no case.
    pub fn hear_of_fault(&mut self, n: usize, report: &FaultReport, terms: &Terms<'_>) -> Result<(), String> {
        let id = case::id_of(SYSTEM_FAULT, &report.subject);
        let key = Key::new(Kind::Case, &*id);
        self.use_by(n, &key);
        if !self.cases.contains_key(&id) {
            let Some(mut row) = load::<CaseFacts>(self.known, &mut self.wanted, &key)? else {
                return Ok(());
            };
            if row.before.is_none() {
                if report.since.is_none() {
                    return Ok(());
                }
                row.now = CaseFacts {
                    trigger: SYSTEM_FAULT.to_owned(),
                    subject: report.subject.clone(),
                    ..CaseFacts::default()
                };
                row.by = n;
            }
            self.cases.insert(id.clone(), row);
        }
        let row = self.cases.get_mut(&id).expect("it was opened");
        let mut facts = row.now.clone();
        facts.hear(report, terms.at);
        row.set(facts, n);
        self.touch(key, n);
        Ok(())
    }

    /// Works out where such a case stands.
    pub fn follow_fault(
        &mut self,
        n: usize,
        id: &str,
        terms: &Terms<'_>,
        followed: &mut Followed,
    ) -> Result<(), String> {
        let Some(row) = self.case(n, id)? else { return Ok(()) };
        let mut facts = row.now.clone();
        let own = |rule: &&CompensationRule| {
            rule.is_enabled && rule.subject == RuleSubject::System && rule.trigger == facts.trigger
        };
        let rules: Vec<&CompensationRule> = terms.orders.rules.iter().filter(own).collect();
        let holds = vec![!facts.reports.is_empty(); rules.len()];
        let since = facts.reports.values().map(|report| report.since).min().unwrap_or(terms.at);
        let (_, next) = case::follow_since(&mut facts, &rules, &holds, since, terms.at);
        row.set(facts, n);
        followed.next = followed.next.into_iter().chain(next).min();
        Ok(())
    }
}
