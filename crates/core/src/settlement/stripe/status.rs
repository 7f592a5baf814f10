//! Stripe's words for how its objects stand. A word that is not known counts as the least.

use super::said::{SaidAction, SaidKind};
use crate::settlement::payment::{ChargeStatus, DisputeStatus, IntentStatus, RefundStatus, SessionStatus};

pub fn intent_status(text: Option<&str>, next_action: Option<&SaidAction>) -> IntentStatus {
    match text {
        Some("requires_action") if is_voucher(next_action) => IntentStatus::RequiresAction,
        // Authorised: the customer has done everything, the money is not ours yet.
        Some("processing" | "requires_capture") => IntentStatus::Processing,
        Some("canceled") => IntentStatus::Cancelled,
        Some("succeeded") => IntentStatus::Succeeded,
        _ => IntentStatus::Waiting,
    }
}

/// What the customer takes along to pay with later. Everything else is a question to be answered at the till: 3-D Secure,
/// a bank's own page.
fn is_voucher(next_action: Option<&SaidAction>) -> bool {
    let vouchers = [
        "boleto_display_details",
        "display_bank_transfer_instructions",
        "konbini_display_details",
        "multibanco_display_details",
        "oxxo_display_details",
        "verify_with_microdeposits",
    ];
    next_action.and_then(|action| action.kind.as_deref()).is_some_and(|kind| vouchers.contains(&kind))
}

/// Money goes back to a card at once. By other ways a refund can wait for the customer, or come back.
pub fn refunds_wait(method: Option<&SaidKind>) -> bool {
    let kind = method.and_then(|method| method.kind.as_deref());
    !matches!(kind, None | Some("card" | "card_present" | "interac_present"))
}

pub fn charge_status(text: Option<&str>, paid: Option<bool>) -> ChargeStatus {
    match text {
        Some("succeeded" | "paid") => ChargeStatus::Succeeded,
        Some("failed") => ChargeStatus::Failed,
        None if paid == Some(true) => ChargeStatus::Succeeded,
        _ => ChargeStatus::Pending,
    }
}

pub fn session_status(text: Option<&str>) -> SessionStatus {
    match text {
        Some("complete") => SessionStatus::Complete,
        Some("expired") => SessionStatus::Expired,
        _ => SessionStatus::Open,
    }
}

pub fn refund_status(text: Option<&str>) -> RefundStatus {
    match text {
        Some("requires_action") => RefundStatus::RequiresAction,
        Some("succeeded") => RefundStatus::Succeeded,
        Some("canceled") => RefundStatus::Cancelled,
        Some("failed") => RefundStatus::Failed,
        _ => RefundStatus::Pending,
    }
}

pub fn dispute_status(text: Option<&str>) -> DisputeStatus {
    match text {
        Some("needs_response") => DisputeStatus::NeedsResponse,
        Some("under_review") => DisputeStatus::UnderReview,
        Some("warning_closed" | "prevented") => DisputeStatus::InquiryClosed,
        Some("won") => DisputeStatus::Won,
        Some("lost") => DisputeStatus::Lost,
        _ => DisputeStatus::Inquiry,
    }
}
