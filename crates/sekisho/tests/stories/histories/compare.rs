//! Holds what was seen from outside against the truth. Payments are matched by the providers' ids that they show, orders by the id
//! that posting them was answered with, announcements by the object that their id names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::billing::Billing;
use super::truth::{End, Payment};
use super::world::{Purchase, World};

/// What the API says at the end.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub payments: Vec<Value>,
    pub billings: Vec<Value>,
    /// Bodies of the events that Sekisho made.
    pub announcements: Vec<Value>,
    pub balances: BTreeMap<String, i64>,
    /// What each order is by now, by our id; nothing where posting it was refused.
    pub orders: Vec<Option<String>>,
    /// What went wrong on the way.
    pub problems: Vec<String>,
}

/// Everything that is not as it should be, in words.
pub fn differences(world: &World, end: &End, seen: &Seen) -> Vec<String> {
    let mut found = seen.problems.clone();
    let view = View { world, seen };
    let mut left: BTreeMap<BTreeSet<String>, &Value> =
        seen.payments.iter().map(|payment| (view.members(payment), payment)).collect();
    if left.len() < seen.payments.len() {
        found.push(format!("{} payments show the same members as another", seen.payments.len() - left.len()));
    }
    for wanted in &end.payments {
        match left.remove(&wanted.members) {
            Some(payment) => found.extend(payment_differs(wanted, payment)),
            None => found.push(format!("no payment is {:?}", wanted.members)),
        }
        found.extend(view.announcements_differ(wanted));
    }
    found.extend(
        left.iter().map(|(members, payment)| format!("a payment is {members:?} {}", payment["references"])),
    );
    found.extend(billings_differ(&end.billings, &seen.billings));
    for (customer, balance) in &end.balances {
        let has = seen.balances.get(customer).copied().unwrap_or(0);
        found.extend(unequal(&format!("balance of {customer}"), balance, &has));
    }
    let recorded = seen.announcements.iter().filter(|told| told["type"] == "billing.payment_succeeded");
    let mut recorded: Vec<_> = recorded.filter_map(|told| told["about"]["invoice"].as_str()).collect();
    recorded.sort_unstable();
    let wanted: Vec<_> = end.invoices.iter().map(String::as_str).collect();
    found.extend(unequal("recorded invoices", &wanted, &recorded));
    let mut ids = BTreeSet::new();
    for told in &seen.announcements {
        if !ids.insert(told["id"].as_str()) {
            found.push(format!("told twice: {}", told["id"]));
        }
    }
    found
}

/// The same end in the same words, so that two plays of one history can be held against each other.
pub fn standing(world: &World, seen: &Seen) -> Vec<String> {
    let view = View { world, seen };
    let payments = seen.payments.iter().map(|payment| {
        let fields = [
            "tenant",
            "livemode",
            "status",
            "currency",
            "amount",
            "amount_received",
            "amount_refunded",
            "amount_refund_pending",
            "fee",
            "net",
            "disputed",
            "dispute_status",
            "net_of_dispute",
            "reference",
            "customer",
            "attention",
            "linked",
        ];
        let said: Vec<_> = fields.iter().map(|field| format!("{field} {}", payment[*field])).collect();
        // Our own ids are made up anew in every play.
        let said = said.join(", ").replace(payment["id"].as_str().unwrap_or_default(), "own id");
        format!("{:?}: {said}", view.members(payment))
    });
    let billings = seen.billings.iter().map(|billing| {
        let fields = [
            "tenant",
            "livemode",
            "status",
            "access",
            "entitled_until",
            "paid_invoices",
            "amount_paid_total",
        ];
        let said: Vec<_> = fields.iter().map(|field| format!("{field} {}", billing[*field])).collect();
        format!("{:?}: {}", subscriptions(billing), said.join(", "))
    });
    let mut all: Vec<_> = payments.chain(billings).collect();
    all.extend(seen.balances.iter().map(|(customer, balance)| format!("{customer}: {balance}")));
    all.sort();
    all
}

fn payment_differs(wanted: &Payment, payment: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |field: &str, wanted: Value| {
        if payment[field] != wanted {
            found.push(format!("{field}: {} instead of {wanted}", payment[field]));
        }
    };
    check("amount_received", wanted.received.into());
    check("amount_refunded", wanted.refunded.into());
    check("amount_refund_pending", wanted.refund_pending.into());
    for (field, value) in [
        ("tenant", wanted.tenant.clone().value()),
        ("livemode", wanted.live.map(Value::from)),
        ("status", wanted.status.map(Value::from)),
        ("fee", wanted.fee.value()),
        ("net", wanted.net.value()),
        ("dispute_status", wanted.dispute.value()),
        ("net_of_dispute", wanted.left_after_dispute.map(Value::from)),
    ] {
        if let Some(value) = value {
            check(field, value);
        }
    }
    found.into_iter().map(|what| format!("{:?} {what}", wanted.members)).collect()
}

fn billings_differ(wanted: &[Billing], seen: &[Value]) -> Vec<String> {
    // A tenant whose customer is known and has bought nothing may have a record that says so.
    let is_empty = |billing: &&Value| {
        ["subscriptions", "invoices"].iter().all(|field| billing[*field].as_array().is_none_or(Vec::is_empty))
    };
    let seen: Vec<_> = seen.iter().filter(|billing| !is_empty(billing)).collect();
    let mut left: BTreeMap<_, _> = seen.iter().map(|billing| (subscriptions(billing), *billing)).collect();
    let mut found = Vec::new();
    if left.len() < seen.len() {
        found.push("two billing records show the same subscriptions".to_owned());
    }
    for one in wanted {
        let Some(billing) = left.remove(&one.subscriptions) else {
            found.push(format!("no billing record is {:?}", one.subscriptions));
            continue;
        };
        let name = |field: &str| format!("{:?} {field}", one.subscriptions);
        found.extend(unequal(&name("tenant"), &Value::from(one.tenant.clone()), &billing["tenant"]));
        found.extend(unequal(&name("livemode"), &Value::from(one.live), &billing["livemode"]));
        found.extend(unequal(&name("access"), &Value::from(one.access), &billing["access"]));
        found.extend(unequal(
            &name("paid_invoices"),
            &Value::from(one.paid_invoices),
            &billing["paid_invoices"],
        ));
        let (paid, total) = (Value::from(one.amount_paid), &billing["amount_paid_total"]);
        found.extend(unequal(&name("amount_paid_total"), &paid, total));
        if let Some(status) = one.status {
            found.extend(unequal(&name("status"), &Value::from(status), &billing["status"]));
        }
    }
    found.extend(left.keys().map(|subscriptions| format!("a billing record is {subscriptions:?}")));
    found
}

fn unequal<T: PartialEq + std::fmt::Debug>(what: &str, wanted: &T, seen: &T) -> Option<String> {
    (wanted != seen).then(|| format!("{what}: {seen:?} instead of {wanted:?}"))
}

fn subscriptions(billing: &Value) -> BTreeSet<String> {
    let listed = billing["subscriptions"].as_array().into_iter().flatten();
    listed.filter_map(|one| one["id"].as_str().map(str::to_owned)).collect()
}

struct View<'w> {
    world: &'w World,
    seen: &'w Seen,
}

impl View<'_> {
    /// Which of the history's orders and purchases a payment shows.
    fn members(&self, payment: &Value) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for listed in payment["references"].as_object().into_iter().flat_map(|map| map.values()) {
            ids.extend(
                listed.as_array().into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned)),
            );
        }
        let shown = self.world.purchases.iter().filter(|one| ids.iter().any(|id| one.owns(id)));
        let mut members: BTreeSet<_> = shown.map(Purchase::anchor).collect();
        for subscription in &self.world.subscriptions {
            let intents =
                subscription.invoices(self.world.now).into_iter().map(|one| format!("pi_{}", one.name));
            members.extend(intents.filter(|id| ids.contains(id)));
        }
        let own = payment["id"].as_str();
        let orders =
            self.seen.orders.iter().enumerate().filter(|(_, id)| id.is_some() && id.as_deref() == own);
        members.extend(orders.map(|(n, _)| format!("order#{n}")));
        if members.is_empty() {
            members.extend(own.map(str::to_owned));
        }
        members
    }

    /// What was told of a payment: by the object that the announcement's id names.
    fn told<'s>(&'s self, payment: &'s Payment) -> impl Iterator<Item = &'s Value> {
        let owned: Vec<_> =
            self.world.purchases.iter().filter(|one| payment.members.contains(&one.anchor())).collect();
        self.seen.announcements.iter().filter(move |told| {
            let id = told["id"].as_str().unwrap_or_default();
            id.split('/').any(|part| payment.members.contains(part) || owned.iter().any(|one| one.owns(part)))
        })
    }

    fn announcements_differ(&self, payment: &Payment) -> Vec<String> {
        let mut found = Vec::new();
        let members = &payment.members;
        let count = |kind: &str| self.told(payment).filter(|told| told["type"] == kind).count();
        let paid = count("payment.paid");
        let (least, most) = payment.told.paid;
        if !(least..=most).contains(&paid) {
            found.push(format!("{members:?}: {paid} payment.paid instead of {least} to {most}"));
        }
        let sums: Vec<_> = self
            .told(payment)
            .filter(|told| told["type"] == "payment.refunded" || told["type"] == "payment.partially_refunded")
            .map(|told| {
                (
                    told["type"].as_str().unwrap_or_default(),
                    told["about"]["amount_refunded"].as_i64().unwrap_or(-1),
                )
            })
            .collect();
        if let Some((_, sum)) = payment.told.refunds {
            let final_sums: Vec<_> = sums.iter().filter(|(_, told)| *told == sum).collect();
            if final_sums.len() != 1 || Some(*final_sums[0]) != payment.told.refunds {
                found.push(format!(
                    "{members:?}: of refunds was told {sums:?} instead of {:?}",
                    payment.told.refunds
                ));
            }
        }
        if sums.iter().any(|(_, sum)| *sum > payment.told.refunds_max) {
            let most = payment.told.refunds_max;
            found.push(format!("{members:?}: of refunds was told {sums:?}, more than {most}"));
        }
        for (kind, is_due) in [
            ("payment.underpaid", payment.told.underpaid),
            ("payment.currency_mismatch", payment.told.currency_mismatch),
        ] {
            if is_due && count(kind) == 0 {
                found.push(format!("{members:?}: no {kind}"));
            }
        }
        found
    }
}
