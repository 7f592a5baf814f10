//! An order is decided as a whole: once everything was taken in, its payment and what hangs on it are looked at together,
//! until nothing more follows.

use super::Batch;
use super::board::Taken;
use super::orders::RefundWanted;
use super::{OrderDeadline, Terms};
use crate::settlement::follow::{OrderMoney, OrderPart, follow_tries};
use crate::settlement::payment::{Facts, RefundStatus, RefundWish};
use crate::settlement::refund::{self, Rights, Wish};
use crate::state::{Key, Kind};

/// A refund that is ordered changes what follows; no second round of that changes it again.
const ROUNDS_MAX: usize = 4;

impl Batch<'_, '_> {
    /// Notes which orders a payment's change may concern.
    pub(super) fn touch_orders(&mut self, n: usize, taken: &Taken) {
        for id in &taken.touched {
            let has_members = |row: &super::row::Row<Facts>| {
                row.clusters.iter().any(|one| {
                    !one.members.is_empty() || !one.refund_orders.is_empty() || is_unpaid_back(one)
                })
            };
            if self.payments.rows.get(id).is_some_and(has_members) {
                self.orders.touch(Key::new(Kind::Payment, id), n);
            }
        }
    }

    pub(super) fn take_parts(
        &mut self,
        n: usize,
        parts: &[OrderPart],
        terms: &Terms<'_>,
    ) -> Result<(), String> {
        for part in parts {
            match part {
                // Decided before the rest.
                OrderPart::Hold(_) | OrderPart::Renewal(_) | OrderPart::Probe(_) => {}
                OrderPart::Reservation { id, facts } => self.orders.join_reservation(n, id, facts)?,
                OrderPart::NewFulfilment { id, facts } => self.orders.new_fulfilment(n, id, facts),
                OrderPart::Fulfilment { id, facts } => self.orders.join_fulfilment(n, id, facts)?,
                OrderPart::Case { id, word } => self.orders.hear_of_case(n, id, word, terms)?,
                OrderPart::Fault(report) => self.orders.hear_of_fault(n, report, terms)?,
                OrderPart::Deadline(anchor) => self.orders.touch(anchor.clone(), n),
            }
        }
        Ok(())
    }

    /// Looks at every order that was touched.
    pub(super) fn follow(&mut self, terms: &Terms<'_>) {
        for (anchor, n) in self.orders.anchors.clone() {
            let followed = match anchor.kind {
                Kind::Payment => self.follow_payment(n, &anchor.id, terms),
                _ => self.follow_unpaid(n, &anchor, terms),
            };
            if let Err(refused) = followed {
                self.steps.refuse(n, refused);
            }
        }
    }

    /// An order with a payment, which locks it.
    fn follow_payment(&mut self, n: usize, id: &str, terms: &Terms<'_>) -> Result<(), String> {
        let Some(id) = self.payments.standing(id)? else { return Ok(()) };
        for _ in 0..ROUNDS_MAX {
            let facts = self.payments.rows[&id].facts().into_owned();
            let can_ask = facts.realms.iter().any(|realm| (terms.can_fetch)(realm));
            let money = OrderMoney { can_ask, ..OrderMoney::of(&id, &facts) };
            let mut followed = self.orders.follow(n, &facts.members, Some(&money), terms)?;
            if !self.orders.wanted.is_empty() {
                return Ok(());
            }
            // What the order itself asks for comes first: a rule must not act on what is being put right.
            if self.order_refunds(n, &id, &mut followed.refunds, terms)? {
                continue;
            }
            self.orders.follow_cases(n, &facts.members, Some(&money), terms, &mut followed)?;
            if !self.orders.wanted.is_empty() {
                return Ok(());
            }
            let cases = followed.cases.difference(&facts.members).cloned().collect();
            let marks = self.orders.record_refunds(n, &money, terms);
            let reservation = self.orders.reservation_of(&facts.members);
            let tries = follow_tries(&money, reservation, terms.at, terms.orders);
            let news = Facts { members: cases, emitted: marks, session_tries: tries, ..Facts::default() };
            let is_news = self.remember(n, &facts, news, terms)?;
            if self.order_refunds(n, &id, &mut followed.refunds, terms)? || is_news {
                continue;
            }
            self.orders.announce(n, &facts.members, Some(&money), terms);
            let anchor = Key::new(Kind::Payment, id);
            if let Some(at) = followed.next {
                self.orders.deadlines.push((n, OrderDeadline { anchor: anchor.clone(), at }));
            }
            if self.orders.is_any_changed(&facts.members) {
                self.steps.force(n, anchor);
            }
            return Ok(());
        }
        Err(format!("the order of {id} does not come to rest"))
    }

    /// An order for which nothing is to be paid.
    fn follow_unpaid(&mut self, n: usize, anchor: &Key, terms: &Terms<'_>) -> Result<(), String> {
        let members = self.orders.members_of(n, anchor)?;
        let mut followed = self.orders.follow(n, &members, None, terms)?;
        if !self.orders.wanted.is_empty() {
            return Ok(());
        }
        self.orders.follow_cases(n, &members, None, terms, &mut followed)?;
        if anchor.kind == Kind::Case {
            self.orders.follow_fault(n, &anchor.id, terms, &mut followed)?;
        }
        if !self.orders.wanted.is_empty() {
            return Ok(());
        }
        self.orders.announce(n, &members, None, terms);
        if let Some(at) = followed.next {
            self.orders.deadlines.push((n, OrderDeadline { anchor: anchor.clone(), at }));
        }
        if self.orders.is_any_changed(&members) {
            self.orders.force(anchor, n);
        }
        Ok(())
    }

    /// Has a payment remember cases about it, what was recorded of it and what becomes of its tries; says whether it did not
    /// know yet.
    fn remember(&mut self, n: usize, facts: &Facts, news: Facts, terms: &Terms<'_>) -> Result<bool, String> {
        if news == Facts::default() {
            return Ok(false);
        }
        let names = facts.names.iter().take(1).cloned().collect();
        let part = Facts { livemode: facts.livemode, names, ..news };
        let taken = self.payments.take_in(&part, self.steps.input(n).seq)?;
        self.steps.note(n, &mut self.payments, &taken, terms.at);
        Ok(true)
    }

    /// Orders refunds one after the other, each of what the one before has left; says whether there was one.
    fn order_refunds(
        &mut self,
        n: usize,
        id: &str,
        wanted: &mut Vec<RefundWanted>,
        terms: &Terms<'_>,
    ) -> Result<bool, String> {
        let mut is_news = false;
        for wanted in wanted.drain(..) {
            let facts = self.payments.rows[id].facts().into_owned();
            is_news |= self.order_refund(n, &facts, wanted, terms)?;
        }
        Ok(is_news)
    }

    /// Orders a refund, if it was not ordered before and something is left; says whether it was.
    fn order_refund(
        &mut self,
        n: usize,
        facts: &Facts,
        wanted: RefundWanted,
        terms: &Terms<'_>,
    ) -> Result<bool, String> {
        if facts.refund_orders.contains_key(&wanted.key)
            || facts.refundables().iter().all(|one| one.left == 0)
        {
            return Ok(false);
        }
        let wish = RefundWish {
            at: terms.at,
            by: wanted.by,
            trigger: wanted.trigger,
            amount: wanted.amount,
            currency: None,
            reason: wanted.reason,
            notes: None,
            by_hand: None,
        };
        // What may not be refunded by command is refunded by a person, who is told.
        let rights = |realm: &str| match terms.orders.refunds.rights(realm) {
            Rights::NotAllowed => Rights::ByHand,
            rights => rights,
        };
        let wish = Wish { key: wanted.key.clone(), wish, held_back: false };
        let Ok(mut order) = refund::order(facts, wish, rights) else { return Ok(false) };
        if wanted.is_automatic && order.wish.by_hand.is_none() {
            let Some(is_free) = self.orders.count_automatic(n, terms)? else { return Ok(false) };
            order.held_back = !is_free;
        }
        let input = &self.steps.input(n);
        let inputs = refund::inputs(facts, &wanted.key, &order, || input.seq, &input.cause);
        for part in inputs.iter().filter_map(|input| input.reading.payment.as_ref()) {
            let taken = self.payments.take_in(part, input.seq)?;
            self.steps.note(n, &mut self.payments, &taken, terms.at);
        }
        Ok(true)
    }
}

/// A refund of it failed, whoever had ordered it: somebody must see to that.
fn is_unpaid_back(facts: &Facts) -> bool {
    facts.refunds.values().any(|refund| refund.status == RefundStatus::Failed)
}
