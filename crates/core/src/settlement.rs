//! What an event means. Each provider's file [`read`]s its events into facts; [`decide`] joins them with what is known and
//! says what is written, announced and asked for. Every other event is kept, marked `skipped`, can be delivered by
//! routes, and replayed once a rule for it exists (D6).

pub mod billing;
pub mod checkout;
pub mod dashboard;
pub mod decide;
mod fetch;
pub mod follow;
mod komoju;
mod line_pay;
mod mollie;
pub mod order;
mod payjp;
pub mod payment;
mod paypal;
pub mod reading;
pub mod refund;
#[cfg(test)]
mod spoiled;
mod square;
mod stripe;
#[cfg(test)]
mod world;

use crate::event::{Stored, Trust};
use crate::job::{DeadReason, Outcome};
use crate::source_name::{Origin, is_own};

pub use crate::job::fetch::{ApiProvider, Fetch};
pub use crate::job::{CheckoutCall, RefundCall};
pub use crate::state::Wanted;
pub use decide::{Cause, Change, Input, Terms, decide, names};
pub use reading::{Reading, Realm, References, UnreadableEvent};

/// The type under which a genuine request without a usable event is kept.
pub const UNUSABLE: &str = "unusable";

/// Why an event must not be acted upon, however it comes to be settled: neither a retry nor a replay lets it in. `account` is
/// the one its source takes, if it takes only one.
pub fn held_back(origin: Origin, account: Option<&str>, event: &Stored) -> Option<DeadReason> {
    if event.event_type == UNUSABLE {
        return Some(DeadReason::terminal("unusable_body", "the request holds no usable event"));
    }
    DeadReason::of_mode(origin.livemode, event.livemode)
        .or_else(|| DeadReason::of_account(account, event.account.as_deref()))
}

/// What an event adds to the books; `None` when there is no rule for it. A hint adds nothing: nobody has proven it.
pub fn read(
    origin: Origin,
    event: &Stored,
    references: &References,
) -> Result<Option<Reading>, UnreadableEvent> {
    if event.trust == Trust::Hint {
        return Ok(None);
    }
    // Where the provider's events know no mode, the operator's word for the source is taken.
    let told;
    let event = if event.livemode.is_none() && origin.livemode.is_some() {
        told = Stored { livemode: origin.livemode, ..event.clone() };
        &told
    } else {
        event
    };
    let reading = match origin.provider {
        "stripe" => stripe::read(event, references),
        "paypal" => paypal::read(event, references),
        "komoju" => komoju::read(event, references),
        "payjp" => payjp::read(event, references),
        "square" => square::read(event, references),
        "mollie_classic" => mollie::read(event, references),
        "line_pay" => line_pay::read(event, references),
        _ => Ok(None),
    };
    reading.map(|reading| reading.map(|reading| timed(reading, event)))
}

/// When the money came that an event tells of: no later than the event.
fn timed(mut reading: Reading, event: &Stored) -> Reading {
    if let Some(payment) = reading.payment.as_mut().filter(|payment| payment.brings_money()) {
        payment.money_came(event.created_at.into_iter().chain([event.received_at]).min());
    }
    reading
}

/// What is said, without when the money came.
#[cfg(test)]
fn untimed(reading: Option<Reading>) -> Option<Reading> {
    reading.map(|mut reading| {
        reading.payment.iter_mut().for_each(|payment| payment.paid_at = None);
        reading
    })
}

/// Whether events of this type say something that is settled, so that one that is missing matters.
pub fn is_read(provider: &str, event_type: &str) -> bool {
    match provider {
        "stripe" => stripe::is_read(event_type),
        _ => PROVIDERS.contains(&provider),
    }
}

/// The types that a provider is asked to list, where it takes patterns; all of them otherwise.
pub fn listed_types(provider: &str) -> &'static [&'static str] {
    match provider {
        "stripe" => &stripe::LISTED,
        _ => &[],
    }
}

/// Whose events are settled.
pub const PROVIDERS: [&str; 7] =
    ["stripe", "paypal", "komoju", "payjp", "square", "mollie_classic", "line_pay"];

/// Whose charges come with a link to a receipt.
pub const WITH_RECEIPTS: [&str; 2] = ["stripe", "square"];

/// How the settling of an event ends that could be read.
pub fn outcome(event: &Stored, is_known: bool) -> Outcome {
    if is_known || is_own(event) {
        return Outcome::SUCCESS;
    }
    Outcome::Skipped { note: format!("no rule for events of type {}", event.event_type) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::route::tests::stored;

    #[test]
    fn a3_what_was_held_back_at_the_door_is_held_back_again() {
        let event = stored("{}");
        let test_only = Origin { provider: "stripe", livemode: Some(false) };
        assert_eq!(held_back(test_only, None, &event).unwrap().reason, "livemode_mismatch");
        for (account, reason) in
            [(None, None), (Some("acct_1"), None), (Some("acct_2"), Some("account_mismatch"))]
        {
            let event = Stored { account: account.map(str::to_owned), ..event.clone() };
            let held = held_back(Origin::default(), Some("acct_1"), &event);
            assert_eq!(held.map(|death| death.reason).as_deref(), reason);
        }
        let unusable = Stored { event_type: UNUSABLE.into(), ..event };
        assert_eq!(held_back(Origin::default(), None, &unusable).unwrap().reason, "unusable_body");
    }

    #[test]
    fn d6_an_unknown_type_is_skipped_and_a_known_one_is_not() {
        let read = |provider, body: &str| {
            let event = stored(body);
            let origin = Origin { provider, livemode: None };
            let reading = read(origin, &event, &References::default()).unwrap();
            outcome(&event, reading.is_some())
        };
        let intent =
            r#"{"data":{"object":{"object":"payment_intent","id":"pi_1","amount":100,"currency":"jpy"}}}"#;
        assert_eq!(read("stripe", intent), Outcome::SUCCESS);
        let product = r#"{"data":{"object":{"object":"product","id":"prod_1"}}}"#;
        for (provider, body) in [("stripe", product), ("github", intent), ("", "{}"), ("stripe", "{}")] {
            assert!(matches!(read(provider, body), Outcome::Skipped { .. }), "{provider} {body}");
        }
    }

    #[test]
    fn d6_a_hint_moves_no_money() {
        let intent =
            r#"{"data":{"object":{"object":"payment_intent","id":"pi_1","amount":100,"currency":"jpy"}}}"#;
        let event = Stored { trust: Trust::Hint, ..stored(intent) };
        let stripe = Origin { provider: "stripe", livemode: None };
        assert_eq!(read(stripe, &event, &References::default()), Ok(None));
    }
}
