//! What a sale must lead to: the status of its payment, and what is announced of it.

use sekisho_demo::shop::{Course, Sale};

/// How a payment must end, by its sale.
pub fn status_of(sale: &Sale) -> &'static str {
    match sale.course {
        Course::Failed => "failed",
        Course::Cancelled => "cancelled",
        Course::Refunded => "refunded",
        Course::RefundedInPart | Course::RefundedTwice => "partially_refunded",
        Course::Paid
        | Course::PaidByVoucher
        | Course::FailedThenPaid
        | Course::DisputeLost
        | Course::DisputeWon => "paid",
    }
}

/// What must have been announced of a sale, whatever the order in which its events came. News that was outdated by the
/// time it was known is not: it may or may not be there.
pub fn due(sale: &Sale) -> Vec<String> {
    let of_intent = |key: &str| format!("{}/{key}", sale.intent);
    let mut due = Vec::new();
    if sale.charged > 0 {
        due.push(of_intent("payment.paid"));
    } else {
        // The first try that failed is also the last.
        let number = if sale.course == Course::Failed { "/1" } else { "" };
        due.push(of_intent(&format!("payment.{}{number}", status_of(sale))));
    }
    if sale.refunded > 0 {
        due.push(of_intent(&format!("payment.{}/{}", status_of(sale), sale.refunded)));
    }
    if let Some(dispute) = &sale.dispute {
        let end = if dispute.is_won { "won" } else { "lost" };
        due.push(format!("payment.dispute_{end}/{}", dispute.id));
    }
    due
}

/// `stripe/-/test/pi_1/payment.paid` is `pi_1/payment.paid`. What names a dispute of its own is that alone: it begins
/// with whatever object was known first.
pub fn fact_of(announced: &str) -> String {
    let Some(at) = announced.find("/payment.") else { return announced.to_owned() };
    let (object, key) = (&announced[..at], &announced[at + 1..]);
    if key.starts_with("payment.dispute") {
        return key.to_owned();
    }
    format!("{}/{key}", object.rsplit('/').next().unwrap_or_default())
}
