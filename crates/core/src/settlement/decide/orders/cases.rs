//! The cases of an order: which rules hold, what they do, and what is recorded of it.

use std::collections::BTreeSet;

use super::{Followed, Kept, Orders, RefundWanted, is, load};
use crate::case::{self, Word};
use crate::compensation::{
    self, CompensatedBy, Compensation, CompensationRule, RuleAction, RuleSubject, SYSTEM_FAULT,
};
use crate::reservation as rsv;
use crate::rule::OrderVariables;
use crate::settlement::Terms;
use crate::settlement::follow::{CaseWord, OrderMoney, conditions};
use crate::settlement::payment::{Facts, RefundOrderStatus};
use crate::state::{Key, Kind};

/// Something that rules are asked about.
struct Asked {
    id: String,
    subject: RuleSubject,
    reservation: Option<String>,
    variables: OrderVariables,
    /// The cases that were opened about it.
    known: BTreeSet<String>,
}

impl Orders<'_> {
    /// Asks every rule about an order and all that belongs to it.
    pub fn follow_cases(
        &mut self,
        n: usize,
        members: &BTreeSet<String>,
        money: Option<&OrderMoney<'_>>,
        terms: &Terms<'_>,
        followed: &mut Followed,
    ) -> Result<(), String> {
        for asked in self.asked(members, money, terms) {
            let own = |rule: &&CompensationRule| {
                rule.is_enabled && rule.subject == asked.subject && rule.action != RuleAction::Fetch
            };
            let rules: Vec<&CompensationRule> = terms.orders.rules.iter().filter(own).collect();
            let triggers: BTreeSet<&str> = rules.iter().map(|rule| rule.trigger.as_str()).collect();
            for trigger in triggers {
                let rules: Vec<_> = rules.iter().filter(|rule| rule.trigger == trigger).copied().collect();
                self.follow_case(n, &asked, &rules, money, terms, followed)?;
            }
        }
        if let Some(money) = money {
            self.ask_providers(n, members, money, terms, followed);
        }
        Ok(())
    }

    fn asked(
        &self,
        members: &BTreeSet<String>,
        money: Option<&OrderMoney<'_>>,
        terms: &Terms<'_>,
    ) -> Vec<Asked> {
        let (at, policy) = (terms.at, terms.orders);
        let mut all = Vec::new();
        for id in members.iter().filter(|id| is(id, Kind::Fulfilment)) {
            let Some(row) = self.fulfilments.get(id) else { continue };
            let reservation = row.now.ours.reservation.clone();
            let of = reservation.as_ref().and_then(|id| self.reservations.get(id)).map(|row| &row.now);
            let variables = conditions(money, of, Some(&row.now), at, policy);
            let known = row.now.cases.clone();
            all.push(Asked {
                id: id.clone(),
                subject: RuleSubject::Fulfilment,
                reservation,
                variables,
                known,
            });
        }
        for id in members.iter().filter(|id| is(id, Kind::Reservation)) {
            let Some(row) = self.reservations.get(id) else { continue };
            all.push(Asked {
                id: id.clone(),
                subject: RuleSubject::Reservation,
                reservation: Some(id.clone()),
                variables: conditions(money, Some(&row.now), None, at, policy),
                known: row.now.cases.clone(),
            });
        }
        all.extend(money.map(|money| Asked {
            id: money.id.to_owned(),
            subject: RuleSubject::Payment,
            reservation: None,
            variables: conditions(Some(money), None, None, at, policy),
            known: members.iter().filter(|id| is(id, Kind::Case)).cloned().collect(),
        }));
        all
    }

    fn follow_case(
        &mut self,
        n: usize,
        asked: &Asked,
        rules: &[&CompensationRule],
        money: Option<&OrderMoney<'_>>,
        terms: &Terms<'_>,
        followed: &mut Followed,
    ) -> Result<(), String> {
        // What a rule can't answer does not hold.
        let holds: Vec<bool> =
            rules.iter().map(|rule| rule.when.holds_for(&asked.variables).unwrap_or_default()).collect();
        let trigger = &rules[0].trigger;
        let id = match self.opened_before(n, asked, trigger)? {
            Some(id) => id,
            None => case::id_of(trigger, &asked.id),
        };
        if !asked.known.contains(&id) {
            if !holds.contains(&true) {
                return Ok(());
            }
            self.open_case(n, &id, asked, trigger, money);
            followed.cases.extend((asked.subject == RuleSubject::Payment).then(|| id.clone()));
        }
        let Some(row) = self.case(n, &id)? else { return Ok(()) };
        let mut facts = row.now.clone();
        let (fired, next) = case::follow(&mut facts, rules, &holds, terms.at);
        row.set(facts, n);
        followed.next = followed.next.into_iter().chain(next).min();
        for fired in fired {
            let rule = rules[fired.rule];
            let amount = match rule.action {
                RuleAction::None | RuleAction::Fetch => continue,
                RuleAction::Refund => None,
                RuleAction::RefundSurplus => Some(money.map_or(0, OrderMoney::surplus)),
            };
            let order = format!("rule/{}/{}/", rule.name, asked.id);
            // Money that came back from the customer's bank would come back again: a person decides.
            if money.is_some_and(|money| has_failed(money.facts, &order)) {
                continue;
            }
            followed.refunds.push(RefundWanted {
                key: format!("{order}{}", fired.episode),
                trigger: rule.trigger.clone(),
                amount,
                by: "SYSTEM".to_owned(),
                reason: rule.name.clone(),
                is_automatic: true,
            });
        }
        Ok(())
    }

    /// The case of a payment that was opened while it had another id, before it turned out to be one with this.
    fn opened_before(&mut self, n: usize, asked: &Asked, trigger: &str) -> Result<Option<String>, String> {
        if asked.subject != RuleSubject::Payment {
            return Ok(None);
        }
        for id in &asked.known {
            if self.case(n, id)?.is_some_and(|row| row.now.trigger == trigger) {
                return Ok(Some(id.clone()));
            }
        }
        Ok(None)
    }

    fn open_case(
        &mut self,
        n: usize,
        id: &str,
        asked: &Asked,
        trigger: &str,
        money: Option<&OrderMoney<'_>>,
    ) {
        let of_reservation = asked.reservation.as_ref().and_then(|id| self.reservations.get(id));
        let of_fulfilment = self.fulfilments.get(&asked.id).map(|row| &row.now.ours);
        let tenant = of_reservation.and_then(|row| row.now.ours.tenant.clone());
        let tenant = tenant.or_else(|| of_fulfilment.and_then(|ours| ours.tenant.clone()));
        let mode = of_reservation.map(|row| row.now.ours.livemode);
        let facts = case::CaseFacts {
            trigger: trigger.to_owned(),
            subject: asked.id.clone(),
            payment: money.map(|money| money.id.to_owned()),
            reservation: asked.reservation.clone(),
            tenant: tenant.or_else(|| money.and_then(|money| money.derived.tenant.clone())),
            livemode: mode
                .or_else(|| of_fulfilment.map(|ours| ours.livemode))
                .or_else(|| money.and_then(|money| money.facts.livemode)),
            ..case::CaseFacts::default()
        };
        self.use_by(n, &Key::new(Kind::Case, id));
        self.cases.entry(id.to_owned()).or_insert_with(|| Kept { now: facts, by: n, ..Kept::default() });
        if let Some(row) = self.reservations.get_mut(&asked.id) {
            row.now.cases.insert(id.to_owned());
            row.by = n;
        }
        if let Some(row) = self.fulfilments.get_mut(&asked.id) {
            row.now.cases.insert(id.to_owned());
            row.by = n;
        }
    }

    pub(super) fn case(&mut self, n: usize, id: &str) -> Result<Option<&mut Kept<case::CaseFacts>>, String> {
        let key = Key::new(Kind::Case, id);
        self.use_by(n, &key);
        if !self.cases.contains_key(id) {
            let Some(row) = load::<case::CaseFacts>(self.known, &mut self.wanted, &key)? else {
                return Ok(None);
            };
            if row.before.is_none() {
                return Err(format!("there is no case {id}"));
            }
            self.cases.insert(id.to_owned(), row);
        }
        Ok(self.cases.get_mut(id))
    }

    /// Takes in what a person says of a case.
    pub fn hear_of_case(
        &mut self,
        n: usize,
        id: &str,
        word: &CaseWord,
        terms: &Terms<'_>,
    ) -> Result<(), String> {
        let Some(row) = self.case(n, id)? else { return Ok(()) };
        row.by = n;
        let Some(mut episode) = row.now.episodes.last_entry() else { return Ok(()) };
        let (number, episode) = (*episode.key(), episode.get_mut());
        let mut record = None;
        match word {
            CaseWord::Acknowledge(word) => {
                episode.acknowledged.get_or_insert_with(|| word.clone());
            }
            CaseWord::Resolve(word) if episode.resolved.is_none() => {
                episode.resolved = Some(word.clone());
                record = Some(word.clone());
            }
            CaseWord::Resolve(_) => {}
        }
        let facts = row.now.clone();
        if let Some(word) = record {
            self.note_resolved(n, id, number, &facts, word, terms);
        }
        let payment = facts.payment.as_ref().map(|id| Key::new(Kind::Payment, id));
        let reservation = facts.reservation.as_ref().map(|id| Key::new(Kind::Reservation, id));
        let of_subject = || match facts.trigger.as_str() {
            SYSTEM_FAULT => Key::new(Kind::Case, id),
            _ => Key::new(Kind::Fulfilment, &*facts.subject),
        };
        self.touch(payment.or(reservation).unwrap_or_else(of_subject), n);
        Ok(())
    }

    fn note_resolved(
        &mut self,
        n: usize,
        id: &str,
        episode: u32,
        facts: &case::CaseFacts,
        word: Word,
        terms: &Terms<'_>,
    ) {
        let is_made = |text: &str| text.starts_with(crate::fulfilment::TAG);
        let record = Compensation {
            kind: compensation::CompensationKind::ManualResolution,
            trigger: facts.trigger.clone(),
            reservation: facts.reservation.clone(),
            payment: facts.payment.clone(),
            fulfilment: Some(facts.subject.clone()).filter(|subject| is_made(subject)),
            amount: None,
            currency: None,
            resolved_by: word.by,
            notes: Some(word.note).filter(|note| !note.is_empty()),
            at: terms.at,
            order: None,
            refunds: Vec::new(),
            livemode: facts.livemode,
            tenant: facts.tenant.clone(),
        };
        self.record(n, CompensatedBy::Person { case: id, episode }, record);
    }

    pub(super) fn note_reassigned(
        &mut self,
        n: usize,
        id: &str,
        facts: &rsv::ReservationFacts,
        trigger: &str,
        terms: &Terms<'_>,
    ) {
        let record = Compensation {
            kind: compensation::CompensationKind::SlotReassign,
            trigger: trigger.to_owned(),
            reservation: Some(id.to_owned()),
            payment: facts.ours.payment.clone(),
            fulfilment: facts.ours.fulfilment.clone(),
            amount: None,
            currency: None,
            resolved_by: "SYSTEM".to_owned(),
            notes: None,
            at: terms.at,
            order: None,
            refunds: Vec::new(),
            livemode: Some(facts.ours.livemode),
            tenant: facts.ours.tenant.clone(),
        };
        let by = CompensatedBy::Reassign { reservation: id, claim: facts.claimed() };
        self.record(n, by, record);
    }
}

/// Whether a refund that was ordered under such a key was made, and failed.
fn has_failed(facts: &Facts, key_prefix: &str) -> bool {
    let orders = facts.refund_orders.iter().filter(|(key, _)| key.starts_with(key_prefix));
    orders.into_iter().any(|(key, order)| facts.refund_order_status(key, order) == RefundOrderStatus::Failed)
}
