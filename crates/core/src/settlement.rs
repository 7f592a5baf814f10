//! What an event means. Types that move money are known; what each of them changes is decided in the books. Every
//! other event is kept, marked `skipped`, can be delivered by routes, and replayed once a rule for it exists (D6).

use crate::change::{Death, Lane, Next, Outcome};
use crate::delivery::Route;
use crate::event::Stored;
use crate::rule::Facts;

/// What is known of the source an event came by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub provider: &'static str,
    /// The one mode it takes, if it takes only one.
    pub livemode: Option<bool>,
}

/// The type under which a genuine request without a usable event is kept.
pub const UNUSABLE: &str = "unusable";

/// Why an event must not be acted upon, however it comes to be settled: what was held back at the door is not let in by a
/// replay.
pub fn held_back(origin: Origin, event: &Stored) -> Option<Death> {
    if event.event_type == UNUSABLE {
        return Some(Death::terminal("unusable_body", "the request holds no usable event"));
    }
    match Next::of_mode(origin.livemode, event.livemode) {
        Next::Settle => None,
        Next::Dead(death) => Some(death),
    }
}

/// What an event leads to.
#[derive(Debug, PartialEq, Eq)]
pub struct Settled {
    pub outcome: Outcome,
    pub deliveries: Vec<Delivery>,
}

/// A delivery to be made.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery {
    pub lane: Lane,
    /// Deliveries with the same text are made one after the other.
    pub fifo: Option<String>,
    pub route: String,
}

/// Decides what becomes of an event: how its settling ends, and where it is sent. A rule that can't be answered for
/// this event does not match, and the outcome says so.
pub fn settle<'r>(
    origin: Origin,
    event: &Stored,
    routes: impl Iterator<Item = &'r Route>,
) -> Result<Settled, Death> {
    if let Some(death) = held_back(origin, event) {
        return Err(death);
    }
    let facts = Facts::of(event);
    let mut deliveries = Vec::new();
    let mut unanswered = Vec::new();
    for route in routes {
        let lane = Lane::to_route(&route.name);
        let found = route.matches(event, &facts).and_then(|matches| {
            if !matches {
                return Ok(None);
            }
            let fifo = route.fifo_key(&facts)?.map(|key| format!("{}/{key}", lane.0));
            Ok(Some(Delivery { lane, fifo, route: route.name.clone() }))
        });
        match found {
            Ok(delivery) => deliveries.extend(delivery),
            Err(error) => unanswered.push(format!("route {}: {error}", route.name)),
        }
    }
    let mut outcome = decide(origin.provider, &event.event_type);
    if !unanswered.is_empty() {
        outcome = outcome.with_note(&unanswered.join("; "));
    }
    Ok(Settled { outcome, deliveries })
}

/// Decides how the settling of an event ends.
pub fn decide(provider: &str, event_type: &str) -> Outcome {
    if provider == "stripe" && STRIPE.iter().any(|known| event_type.starts_with(known)) {
        return Outcome::SUCCESS;
    }
    Outcome::Skipped { note: format!("no rule for events of type {event_type}") }
}

/// Families of Stripe's events that speak of payments and billing.
const STRIPE: &[&str] = &[
    "charge.",
    "checkout.session.",
    "customer.subscription.",
    "invoice.",
    "invoice_payment.",
    "payment_intent.",
    "refund.",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::route::tests::{route, stored};
    use crate::rule::Rule;

    #[test]
    fn c1_every_matching_route_gets_the_event_and_an_unanswered_rule_is_told() {
        let event = stored(r#"{"amount":5000,"customer":"cus_1"}"#);
        let rich = Route {
            name: "rich".into(),
            filter: Some(Rule::compile("body.amount > 1000").unwrap()),
            fifo: Some(Rule::compile("body.customer").unwrap()),
            ..route()
        };
        let odd = Route {
            name: "odd".into(),
            filter: Some(Rule::compile("body.nothing.here == 1").unwrap()),
            ..route()
        };
        let stripe = Origin { provider: "stripe", livemode: None };
        let settled = settle(stripe, &event, [route(), rich, odd].iter()).unwrap();
        let lanes: Vec<_> =
            settled.deliveries.iter().map(|one| (&*one.lane.0, one.fifo.as_deref())).collect();
        assert_eq!(lanes, [("to:app", None), ("to:rich", Some("to:rich/cus_1"))]);
        let Outcome::Success { note: Some(note) } = settled.outcome else { panic!("{settled:?}") };
        assert!(note.contains("route odd"), "{note}");
    }

    #[test]
    fn a3_what_was_held_back_at_the_door_is_held_back_again() {
        let event = stored("{}");
        let test_only = Origin { provider: "stripe", livemode: Some(false) };
        let held = settle(test_only, &event, std::iter::empty()).unwrap_err();
        assert_eq!(held.reason, "livemode_mismatch");
        let unusable = Stored { event_type: UNUSABLE.into(), ..event };
        assert_eq!(held_back(Origin::default(), &unusable).unwrap().reason, "unusable_body");
    }

    #[test]
    fn d6_an_unknown_type_is_skipped_and_a_known_one_is_not() {
        assert_eq!(decide("stripe", "payment_intent.succeeded"), Outcome::SUCCESS);
        for (provider, kind) in
            [("stripe", "product.created"), ("github", "payment_intent.succeeded"), ("", "")]
        {
            assert!(matches!(decide(provider, kind), Outcome::Skipped { .. }), "{provider} {kind}");
        }
    }
}
