//! What was done because something had gone wrong, recorded once for good.

use std::collections::BTreeSet;

use super::{Orders, is};
use crate::compensation::{self, CompensatedBy, Compensation};
use crate::settlement::Terms;
use crate::settlement::follow::OrderMoney;
use crate::settlement::payment::{Facts, RefundOrder, RefundOrderStatus};
use crate::state::{Key, Kind};

impl Orders<'_> {
    /// Records the refunds that are on their way for certain and were not recorded yet; says under which marks.
    pub fn record_refunds(
        &mut self,
        n: usize,
        money: &OrderMoney<'_>,
        terms: &Terms<'_>,
    ) -> BTreeSet<String> {
        let facts = money.facts;
        // What failed and was then made by another order is that order's: one refund is one record.
        let is_made_anew = |key: &str| {
            let others = facts.refund_orders.iter().filter(|(other, _)| *other != key);
            let is_done = |(other, order): (&String, &RefundOrder)| {
                facts.refund_order_status(other, order) == RefundOrderStatus::Done
            };
            facts.refunds_by(key).next().is_some() && others.into_iter().any(is_done)
        };
        let is_over = |key: &str, order: &RefundOrder| match facts.refund_order_status(key, order) {
            RefundOrderStatus::Done => true,
            RefundOrderStatus::MetElsewhere => !is_made_anew(key),
            RefundOrderStatus::Ordered
            | RefundOrderStatus::Pending
            | RefundOrderStatus::Failed
            | RefundOrderStatus::HeldBack => false,
        };
        let member = |kind: Kind| facts.members.iter().find(|id| is(id, kind)).cloned();
        let mut marks = BTreeSet::new();
        for (key, order) in &facts.refund_orders {
            let mark = mark_of(key);
            if facts.emitted.contains(&mark) || !is_over(key, order) {
                continue;
            }
            let record = Compensation {
                kind: compensation::CompensationKind::Refund,
                trigger: order.wish.trigger.clone(),
                reservation: member(Kind::Reservation),
                payment: Some(money.id.to_owned()),
                fulfilment: member(Kind::Fulfilment),
                amount: Some(order.amount(order.wish.currency)),
                currency: order.wish.currency,
                resolved_by: order.wish.by.clone(),
                notes: order.wish.notes.clone(),
                at: terms.at,
                order: Some(key.clone()),
                refunds: facts.refunds_by(key).map(|(id, _)| id.clone()).collect(),
                livemode: facts.livemode,
                tenant: money.derived.tenant.clone(),
            };
            self.record(n, CompensatedBy::Order { payment: money.id, key }, record);
            marks.insert(mark);
        }
        marks.extend(self.record_foreign_refund(n, facts, money, terms));
        marks
    }

    /// All the money of an order went back, and nobody here had asked for it.
    fn record_foreign_refund(
        &mut self,
        n: usize,
        facts: &Facts,
        money: &OrderMoney<'_>,
        terms: &Terms<'_>,
    ) -> Option<String> {
        let mark = mark_of("provider");
        let is_ours = !facts.refund_orders.is_empty() || facts.members.is_empty();
        if is_ours || !money.is_refunded() || facts.emitted.contains(&mark) {
            return None;
        }
        let member = |kind: Kind| facts.members.iter().find(|id| is(id, kind)).cloned();
        let record = Compensation {
            kind: compensation::CompensationKind::Refund,
            trigger: "PROVIDER".to_owned(),
            reservation: member(Kind::Reservation),
            payment: Some(money.id.to_owned()),
            fulfilment: member(Kind::Fulfilment),
            amount: Some(money.derived.refunded),
            currency: money.derived.currency,
            resolved_by: "PROVIDER".to_owned(),
            notes: None,
            at: terms.at,
            order: None,
            refunds: facts.refunds.keys().cloned().collect(),
            livemode: facts.livemode,
            tenant: money.derived.tenant.clone(),
        };
        self.record(n, CompensatedBy::Provider { payment: money.id }, record);
        Some(mark)
    }

    /// Under an id that names what was done: the same is recorded once.
    pub(super) fn record(&mut self, n: usize, by: CompensatedBy<'_>, record: Compensation) {
        let id = by.id();
        self.use_by(n, &Key::new(Kind::Compensation, &*id));
        self.compensations.entry(id).or_insert((n, record));
    }
}

fn mark_of(name: &str) -> String {
    format!("compensation/{name}")
}
