//! Providers are asked about payments that somebody holds places for, when their webhooks are late.

use std::collections::BTreeSet;

use super::{Followed, Orders, is};
use crate::compensation::{CompensationRule, RuleAction};
use crate::reservation::ReservationStatus;
use crate::settlement::follow::{OrderMoney, conditions, questions};
use crate::settlement::payment::Facts;
use crate::settlement::{Fetch, Terms};
use crate::state::Kind;

impl Orders<'_> {
    /// Asks for what is due, each question once, and says when the next one is.
    pub fn ask_providers(
        &mut self,
        n: usize,
        members: &BTreeSet<String>,
        money: &OrderMoney<'_>,
        terms: &Terms<'_>,
        followed: &mut Followed,
    ) {
        let (at, policy) = (terms.at, terms.orders);
        let own = |rule: &&CompensationRule| rule.is_enabled && rule.action == RuleAction::Fetch;
        let rules: Vec<_> = policy.rules.iter().filter(own).collect();
        let asked = askable(money.facts);
        if rules.is_empty() || asked.is_empty() {
            return;
        }
        for id in members.iter().filter(|id| is(id, Kind::Reservation)) {
            let Some(row) = self.reservations.get_mut(id) else { continue };
            if row.now.status(at, policy.grace_ms) != ReservationStatus::Hold {
                continue;
            }
            let variables = conditions(Some(money), Some(&row.now), None, at, policy);
            for rule in &rules {
                if !rule.when.holds_for(&variables).unwrap_or_default() {
                    continue;
                }
                let questions = questions(&row.now, rule, at);
                followed.next = followed.next.into_iter().chain(questions.next).min();
                let Some((number, moment)) = questions.due else { continue };
                let can = |fetch: &&Fetch| (terms.can_fetch)(&fetch.realm().to_string());
                let now: Vec<&Fetch> = asked.iter().filter(can).collect();
                let mark = format!("fetch/{}/{number}", rule.name);
                if !now.is_empty() && row.now.emitted.insert(mark) {
                    row.by = n;
                    let fetches =
                        now.into_iter().map(|fetch| Fetch { moment: Some(moment), ..fetch.clone() });
                    self.fetches.extend(fetches.map(|fetch| (n, fetch)));
                }
            }
        }
    }
}

/// What of a payment can be read from its provider: intents and checkout sessions.
fn askable(facts: &Facts) -> Vec<Fetch> {
    let intents = facts.intents.keys().map(|id| (id, ["payment_intent", "payment"]));
    let sessions = facts.sessions.keys().map(|id| (id, ["checkout.session", "payment"]));
    let fetch = |(id, kinds): (&String, [&str; 2])| {
        let realm = facts.realm_of(id)?;
        kinds.into_iter().find_map(|kind| Fetch::of(realm, kind, id))
    };
    intents.chain(sessions).filter_map(fetch).collect()
}
