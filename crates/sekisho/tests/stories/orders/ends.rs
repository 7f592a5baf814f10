//! What must hold when all news has arrived and all clocks have run out.

use serde_json::Value;

use super::desk::Looked;
use super::ledger::{Ledger, text};
use super::till::{GivingState, Till};
use super::watched::Written;

impl Ledger {
    pub fn check_end(&self, seen: &Looked, written: &Written, till: &Till) -> Vec<String> {
        let mut faults = Vec::new();
        for one in &self.bookings {
            let status = text(&seen.bookings[&one.id], "status");
            let own: Vec<_> = till.takings.iter().filter(|(_, taking)| taking.number == one.number).collect();
            let came: i64 = own.iter().map(|(_, taking)| taking.amount).sum();
            let is_back = |giving: &&super::till::Giving| {
                giving.state == GivingState::Given && own.iter().any(|(id, _)| **id == giving.taking)
            };
            let back: i64 = till.givings.values().filter(is_back).map(|giving| giving.amount).sum();
            if back > came {
                faults.push(format!("{back} went back of {came}: {one:?}"));
            }
            // What a person kept on purpose: they called off what was sold, and said so.
            let is_kept = one.off == Some(false);
            let is_open = |case: &&Value| {
                case["status"] != "resolved" && (case["payment"] == seen.bookings[&one.id]["payment"])
            };
            let has_case = seen.cases.values().any(|case| is_open(&case));
            let payment = seen.payments.get(&one.id);
            // Who paid twice for what was theirs: whether the second goes back is for a person.
            let is_twice = own.len() > 1 && one.was_sold;
            if came > 0 && status != "confirmed" && back < came && !is_kept && !has_case && !is_twice {
                faults.push(format!(
                    "{came} came, {back} went back, and nobody sees to it: {one:?} {payment:?}"
                ));
            }
            if status == "hold" {
                faults.push(format!("a hold without end: {one:?}"));
            }
            let told = |kind: &str| {
                let of = |news: &&Value| news["type"] == kind && news["data"]["id"] == *one.id;
                written.told.iter().filter(of).count()
            };
            let wanted = format!("reservation.{status}");
            if told(&wanted) == 0 {
                faults.push(format!("nobody heard that it is {status}: {one:?}"));
            }
            if one.sold && self.is_overdue(one, seen) {
                faults.push(format!("what was paid for failed for good, and the money stayed: {one:?}"));
            }
        }
        Self::check_books(written, till, &mut faults);
        faults
    }

    /// It failed for good, long ago, and neither a person nor a refund has ended it.
    fn is_overdue(&self, one: &super::ledger::Booking, seen: &Looked) -> bool {
        let Some(work) = one.work.as_ref().and_then(|id| seen.works.get(id)) else { return false };
        let of = |case: &&Value| case["subject"] == work["id"] && case["trigger"] == "RENDER_FAILURE";
        let is_by_hand =
            |case: &Value| self.resolved.contains(&(text(case, "id"), case["episode"].as_u64().unwrap_or(0)));
        let payment = seen.payments.get(&one.id);
        let is_refunded = payment.is_none_or(|payment| {
            payment["refund_orders"].as_array().is_some_and(|orders| !orders.is_empty())
        });
        work["status"] == "failed"
            && one.price > 0
            && !is_refunded
            && !seen.cases.values().find(of).is_some_and(is_by_hand)
    }

    fn check_books(written: &Written, till: &Till, faults: &mut Vec<String>) {
        if written.uneven > 0 {
            faults.push(format!("{} changes of the books don't sum to zero", written.uneven));
        }
        let at_the_provider = |cause: &str| -> i64 {
            let own = written.postings.iter().filter(|line| line.cause == cause);
            own.filter(|line| line.account.starts_with("provider/")).map(|line| line.amount).sum()
        };
        let came: i64 = till.takings.values().map(|taking| taking.amount).sum();
        let given = till.givings.values().filter(|giving| giving.state == GivingState::Given);
        let went: i64 = given.map(|giving| giving.amount).sum();
        let booked = (at_the_provider("captured"), -at_the_provider("refunded"));
        if booked != (came, went) {
            faults.push(format!("the books say {booked:?} came and went, and it was {:?}", (came, went)));
        }
    }
}
