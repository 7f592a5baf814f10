//! Where an event is sent.

use super::Route;
use crate::event::Stored;
use crate::job::Lane;
use crate::rule::Variables;
use crate::source_name::Origin;

/// A delivery to be made.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery {
    pub lane: Lane,
    /// Deliveries with the same text are made one after the other.
    pub fifo: Option<String>,
    pub route: String,
}

/// Where an event of this origin is sent. A filter that can't be answered for this event does not match; a key that can't be read keeps
/// no order. Both are told.
pub fn deliveries<'r>(
    origin: Origin,
    event: &Stored,
    routes: impl Iterator<Item = &'r Route>,
) -> (Vec<Delivery>, Vec<String>) {
    let variables = Variables::of(event);
    let (mut deliveries, mut unanswered) = (Vec::new(), Vec::new());
    for route in routes {
        let mut tell = |error| unanswered.push(format!("route {}: {error}", route.name));
        match route.matches(origin, event, &variables) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                tell(error);
                continue;
            }
        }
        let key = route.fifo_key(&variables).unwrap_or_else(|error| {
            tell(error);
            None
        });
        let lane = Lane::to_route(&route.name);
        let fifo = key.map(|key| format!("{}/{key}", lane.0));
        deliveries.push(Delivery { lane, fifo, route: route.name.clone() });
    }
    (deliveries, unanswered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::route::Send;
    use crate::delivery::route::tests::{route, stored};
    use crate::pattern::Pattern;
    use crate::rule::Rule;
    use crate::source_name::{FETCHED, OWN};

    const STRIPE: Origin = Origin { provider: "stripe", livemode: None };

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
        let (deliveries, unanswered) = deliveries(STRIPE, &event, [route(), rich, odd].iter());
        let lanes: Vec<_> = deliveries.iter().map(|one| (&*one.lane.0, one.fifo.as_deref())).collect();
        assert_eq!(lanes, [("to:app", None), ("to:rich", Some("to:rich/cus_1"))]);
        assert!(unanswered.concat().contains("route odd"), "{unanswered:?}");
    }

    #[test]
    fn c4_an_event_whose_key_cannot_be_read_arrives_without_order_and_is_told() {
        let event = stored(r#"{"customer":{"id":"cus_1"},"order":null}"#);
        for rule in ["body.customer", "body.order.id", "body.order > 1"] {
            let ordered = Route { fifo: Some(Rule::compile(rule).unwrap()), ..route() };
            let (deliveries, unanswered) = deliveries(STRIPE, &event, [ordered].iter());
            let keys: Vec<_> = deliveries.iter().map(|one| (&*one.route, one.fifo.as_deref())).collect();
            assert_eq!(keys, [("app", None)], "{rule}");
            let told = unanswered.concat();
            assert!(told.starts_with("route app: sent without order, as fifo has no answer: "), "{told}");
        }
    }

    #[test]
    fn c1_announcements_go_only_where_they_are_asked_for() {
        let own = Stored { source: OWN.into(), event_type: "payment.paid".into(), ..stored("{}") };
        let fetched = Stored { source: FETCHED.into(), ..stored("{}") };
        let settled = Route { name: "settled".into(), send: Send::Settled, ..route() };
        let named = Route { name: "named".into(), events: vec![Pattern::new("payment.paid")], ..route() };
        let wide = Route { name: "wide".into(), events: vec![Pattern::new("payment.*")], ..route() };
        let routes = [route(), settled, named, wide];
        let lanes = |event: &Stored| -> Vec<String> {
            deliveries(STRIPE, event, routes.iter()).0.into_iter().map(|one| one.route).collect()
        };
        assert_eq!(lanes(&own), ["settled", "named"]);
        let alert = Stored { event_type: "channel.paused".into(), ..own.clone() };
        assert_eq!(lanes(&alert), [""; 0], "operators hear of it, not the app");
        assert_eq!(lanes(&stored("{}")), ["app"]);
        assert_eq!(lanes(&fetched), [""; 0]);
    }
}
