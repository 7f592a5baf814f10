//! What the Checkout Sessions of an order ask for: calls to the provider, the address for the app, and what became of a payment
//! that is made elsewhere.

use serde_json::json;

use super::{DuePart, PaymentDue, announce};
use crate::settlement::Fetch;
use crate::settlement::checkout::calls;
use crate::settlement::payment::{CheckoutSession, Facts, SessionStatus};

/// Nothing, where no order hangs on the payment.
pub fn sessions(facts: &Facts, can_fetch: &impl Fn(&str) -> bool) -> Vec<PaymentDue> {
    if facts.members.is_empty() {
        return Vec::new();
    }
    let mut due: Vec<PaymentDue> = Vec::new();
    for (number, one) in &facts.session_tries {
        due.extend(
            calls(facts, *number, one).map(|(key, call)| PaymentDue { key, what: DuePart::Checkout(call) }),
        );
    }
    if let Some((number, place)) = facts.open_session() {
        let about = json!({ "try": number, "url": place.url, "expires_at": place.expires_at });
        due.push(announce(format!("payment.checkout_ready/{number}"), "payment.checkout_ready", about));
    }
    due.extend(facts.sessions.values().filter_map(|session| intent(facts, session, can_fetch)));
    due
}

/// The intent of a session that is complete: whether there is money, or until when it can be paid elsewhere.
fn intent(facts: &Facts, session: &CheckoutSession, can_fetch: &impl Fn(&str) -> bool) -> Option<PaymentDue> {
    let intent = session.intent.as_ref().filter(|_| session.status == SessionStatus::Complete)?;
    let is_known = facts.intents.contains_key(intent);
    let realm = facts.realm_of(intent).filter(|realm| !is_known && can_fetch(realm))?;
    let fetch = Fetch::of(realm, "payment_intent", intent)?;
    Some(PaymentDue { key: format!("fetch/{intent}"), what: DuePart::Fetch(fetch) })
}
