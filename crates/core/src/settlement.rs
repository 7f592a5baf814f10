//! What an event means. Each provider's file [`read`]s its events into facts; [`decide`] joins them with what is known and
//! says what is written, announced and asked for. Every other event is kept, marked `skipped`, can be delivered by
//! routes, and replayed once a rule for it exists (D6).

pub mod billing;
pub mod decide;
mod fetch;
mod komoju;
pub mod order;
mod payjp;
pub mod payment;
mod paypal;
pub mod reading;
#[cfg(test)]
mod spoiled;
mod square;
mod stripe;
#[cfg(test)]
mod world;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::change::{About, Arrival, Death, Lane, Outcome};
use crate::delivery::Route;
use crate::event::{DedupeKey, Stored, Trust};
use crate::id::Seq;
use crate::rule::Facts;
use crate::state::Kind;
use crate::time::Time;

pub use decide::{Cause, Change, Input, Wanted, decide, names};
pub use fetch::{Fetch, Provider};
pub use reading::{Part, Reading, Realm, References, Unreadable};

/// What is known of the source an event came by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub provider: &'static str,
    /// The one mode it takes, if it takes only one.
    pub livemode: Option<bool>,
}

/// The type under which a genuine request without a usable event is kept.
pub const UNUSABLE: &str = "unusable";

/// Why an event must not be acted upon, however it comes to be settled: neither a retry nor a replay lets it in.
pub fn held_back(origin: Origin, event: &Stored) -> Option<Death> {
    if event.event_type == UNUSABLE {
        return Some(Death::terminal("unusable_body", "the request holds no usable event"));
    }
    Death::of_mode(origin.livemode, event.livemode)
}

/// A delivery to be made.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery {
    pub lane: Lane,
    /// Deliveries with the same text are made one after the other.
    pub fifo: Option<String>,
    pub route: String,
}

/// Where an event is sent. A filter that can't be answered for this event does not match; a key that can't be read keeps
/// no order. Both are told.
pub fn deliveries<'r>(
    event: &Stored,
    routes: impl Iterator<Item = &'r Route>,
) -> (Vec<Delivery>, Vec<String>) {
    let facts = Facts::of(event);
    let (mut deliveries, mut unanswered) = (Vec::new(), Vec::new());
    for route in routes {
        let mut tell = |error| unanswered.push(format!("route {}: {error}", route.name));
        match route.matches(event, &facts) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                tell(error);
                continue;
            }
        }
        let key = route.fifo_key(&facts).unwrap_or_else(|error| {
            tell(error);
            None
        });
        let lane = Lane::to_route(&route.name);
        let fifo = key.map(|key| format!("{}/{key}", lane.0));
        deliveries.push(Delivery { lane, fifo, route: route.name.clone() });
    }
    (deliveries, unanswered)
}

/// What an event adds to the books; `None` when there is no rule for it. A hint adds nothing: nobody has proven it.
pub fn read(origin: Origin, event: &Stored, references: &References) -> Result<Option<Reading>, Unreadable> {
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
    match origin.provider {
        "stripe" => stripe::read(event, references),
        "paypal" => paypal::read(event, references),
        "komoju" => komoju::read(event, references),
        "payjp" => payjp::read(event, references),
        "square" => square::read(event, references),
        _ => Ok(None),
    }
}

/// Whose events are settled.
pub const PROVIDERS: [&str; 5] = ["stripe", "paypal", "komoju", "payjp", "square"];

/// Whose charges come with a link to a receipt.
pub const WITH_RECEIPTS: [&str; 2] = ["stripe", "square"];

/// How the settling of an event ends that could be read.
pub fn outcome(event: &Stored, is_known: bool) -> Outcome {
    if is_known || is_own(event) {
        return Outcome::SUCCESS;
    }
    Outcome::Skipped { note: format!("no rule for events of type {}", event.event_type) }
}

/// Where our own announcements come from, as far as routes and lists are concerned.
pub const SOURCE: &str = "sekisho";
/// Where answers come from that were read from a provider.
pub const FETCHED: &str = "fetched";

/// An announcement of ours, and no provider's event.
pub fn is_own(event: &Stored) -> bool {
    &*event.source == SOURCE
}

/// What an announcement of ours is about. It names its thing and whose it is; what providers write into their own events
/// names nothing of ours.
pub fn about_own(source: &str, object: Option<&(String, String)>, body: &[u8]) -> About {
    if source != SOURCE {
        return About::default();
    }
    #[derive(Deserialize)]
    struct Body {
        tenant: Option<String>,
    }
    let of = |kind: Kind| object.filter(|(own, _)| own == kind.name()).map(|(_, id)| id.clone());
    let tenant = serde_json::from_slice::<Body>(body).ok().and_then(|body| body.tenant);
    About { payment: of(Kind::Payment), billing: of(Kind::Billing), tenant }
}

/// Something to be told: a fact of business that has just become true.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// Names the fact by the provider's objects: the same for ever, whatever announces it.
    pub id: String,
    pub event_type: String,
    pub livemode: Option<bool>,
    /// (kind, id).
    pub object: (&'static str, String),
    pub tenant: Option<String>,
    /// What exactly changed: the refund, the dispute, the amount.
    pub about: Value,
    /// The thing as it is now.
    pub data: Value,
    pub at: Time,
}

impl Announcement {
    /// As an event that is stored, found, replayed and delivered like any other.
    pub fn arrival(self, seq: Seq) -> Arrival {
        let body = json!({
            "id": self.id,
            "type": self.event_type,
            "created_at": self.at,
            "livemode": self.livemode,
            "tenant": self.tenant,
            "about": self.about,
            "data": self.data,
        });
        Arrival {
            key: DedupeKey::new(SOURCE, &self.id, None),
            seq,
            received_at: self.at,
            source: SOURCE.into(),
            event_id: self.id,
            event_type: self.event_type,
            created_at: Some(self.at),
            object: Some((self.object.0.to_owned(), self.object.1)),
            account: None,
            livemode: self.livemode,
            trust: Trust::Signed,
            headers: JSON_HEADERS.into(),
            body: body.to_string().into(),
            held: None,
        }
    }
}

const JSON_HEADERS: &str = r#"[["content-type","application/json"]]"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::route::Pattern;
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
        let (deliveries, unanswered) = deliveries(&event, [route(), rich, odd].iter());
        let lanes: Vec<_> = deliveries.iter().map(|one| (&*one.lane.0, one.fifo.as_deref())).collect();
        assert_eq!(lanes, [("to:app", None), ("to:rich", Some("to:rich/cus_1"))]);
        assert!(unanswered.concat().contains("route odd"), "{unanswered:?}");
    }

    #[test]
    fn c4_an_event_whose_key_cannot_be_read_arrives_without_order_and_is_told() {
        let event = stored(r#"{"customer":{"id":"cus_1"},"order":null}"#);
        for rule in ["body.customer", "body.order.id", "body.order > 1"] {
            let ordered = Route { fifo: Some(Rule::compile(rule).unwrap()), ..route() };
            let (deliveries, unanswered) = deliveries(&event, [ordered].iter());
            let keys: Vec<_> = deliveries.iter().map(|one| (&*one.route, one.fifo.as_deref())).collect();
            assert_eq!(keys, [("app", None)], "{rule}");
            let told = unanswered.concat();
            assert!(told.starts_with("route app: sent without order, as fifo has no answer: "), "{told}");
        }
    }

    #[test]
    fn a3_what_was_held_back_at_the_door_is_held_back_again() {
        let event = stored("{}");
        let test_only = Origin { provider: "stripe", livemode: Some(false) };
        assert_eq!(held_back(test_only, &event).unwrap().reason, "livemode_mismatch");
        let unusable = Stored { event_type: UNUSABLE.into(), ..event };
        assert_eq!(held_back(Origin::default(), &unusable).unwrap().reason, "unusable_body");
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

    #[test]
    fn c1_announcements_go_only_where_they_are_asked_for() {
        let own = Stored { source: SOURCE.into(), event_type: "payment.paid".into(), ..stored("{}") };
        let fetched = Stored { source: FETCHED.into(), ..stored("{}") };
        let settled =
            Route { name: "settled".into(), send: crate::delivery::route::Send::Settled, ..route() };
        let named = Route { name: "named".into(), events: vec![Pattern::new("payment.paid")], ..route() };
        let wide = Route { name: "wide".into(), events: vec![Pattern::new("payment.*")], ..route() };
        let routes = [route(), settled, named, wide];
        let lanes = |event: &Stored| -> Vec<String> {
            deliveries(event, routes.iter()).0.into_iter().map(|one| one.route).collect()
        };
        assert_eq!(lanes(&own), ["settled", "named"]);
        let alert = Stored { event_type: "channel.paused".into(), ..own.clone() };
        assert_eq!(lanes(&alert), [""; 0], "operators hear of it, not the app");
        assert_eq!(lanes(&stored("{}")), ["app"]);
        assert_eq!(lanes(&fetched), [""; 0]);
    }
}
