//! Which events a destination gets, in which order, and in which form. Names, patterns and rules only: where the
//! destination is and how patient one is with it belongs to whoever calls it.

use ring::digest;

use crate::announcement::{is_alert, is_announced};
use crate::event::{Stored, Trust};
use crate::pattern::Pattern;
use crate::provider::encode_hex;
use crate::rule::{Rule, RuleError, Variables};
use crate::secret::Secret;
use crate::source_name::{FETCHED, OWN, Origin, is_of_the_house};

#[derive(Clone, Debug)]
pub struct Route {
    pub name: String,
    /// Empty is all.
    pub sources: Vec<Pattern>,
    /// Of the events' types; empty is all.
    pub events: Vec<Pattern>,
    pub filter: Option<Rule>,
    /// Events with the same key arrive in order.
    pub fifo: Option<Rule>,
    pub send: Send,
    /// The provider whose word its signature is taken for, if it is one's: no other's events are sent.
    pub speaks_for: Option<&'static str>,
    /// Sent along with every request; the values may be keys.
    pub headers: Vec<(String, Secret)>,
}

/// What of an event is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Send {
    /// The provider's request, byte for byte.
    Raw,
    /// Sekisho's envelope around it.
    Event,
    /// What it came to: our own announcements, and nothing of a provider's.
    Settled,
}

impl Send {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Event => "event",
            Self::Settled => "settled",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Raw, Self::Event, Self::Settled].into_iter().find(|send| send.name() == name)
    }
}

/// Longer keys are stored as their hash.
const FIFO_KEY_BYTES_MAX: usize = 255;

impl Route {
    /// Does the event of this origin go here? A filter that can't be evaluated is an error: the event does not go here, and the caller
    /// tells.
    pub fn matches(
        &self,
        origin: Origin,
        event: &Stored,
        variables: &Variables<'_>,
    ) -> Result<bool, RuleError> {
        let any = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        if self.bars(origin, event).is_some()
            || !self.is_meant_for(event)
            || !any(&self.sources, &event.source)
            || !any(&self.events, &event.event_type)
        {
            return Ok(false);
        }
        self.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(variables))
    }

    /// Why the event must not be sent here, whoever asks for it, if it must not. Asked again before each attempt: a delivery
    /// may have been queued when the route was another.
    pub fn bars(&self, origin: Origin, event: &Stored) -> Option<&'static str> {
        let is_other = |provider: &str| provider != origin.provider && !is_of_the_house(event);
        if self.speaks_for.is_some_and(is_other) {
            return Some("the route signs as another provider would, and the event is not that provider's");
        }
        let is_named = self.sources.iter().any(|pattern| pattern.is(&event.source));
        if event.trust == Trust::Hint && !is_named {
            return Some("nothing proves the event, and the route's sources don't name its source");
        }
        None
    }

    /// An app that knows its provider's events must not be surprised by ours: they go only where they are asked for, by
    /// what is sent, by their source, or by their own name. Answers that we read ourselves go nowhere.
    fn is_meant_for(&self, event: &Stored) -> bool {
        let says = |patterns: &[Pattern], text: &str| patterns.iter().any(|pattern| pattern.is(text));
        match &*event.source {
            FETCHED => false,
            OWN => {
                // What is for operators is no business of the app's, unless it names it.
                let is_business = !is_alert(&event.event_type) || !self.events.is_empty();
                (self.send == Send::Settled && is_business)
                    || says(&self.sources, OWN)
                    || says(&self.events, &event.event_type)
            }
            _ => {
                // Asked for by its name, an announcement is ours; whoever means another's event names the source.
                let is_namesake = is_announced(&event.event_type) && says(&self.events, &event.event_type);
                self.send != Send::Settled && !(is_namesake && self.sources.is_empty())
            }
        }
    }

    /// What the event must keep its order with; `None` when it may overtake others. A key that can't be read is an error:
    /// the event goes without order, because it was asked for, and the caller tells.
    pub fn fifo_key(&self, variables: &Variables<'_>) -> Result<Option<String>, RuleError> {
        let Some(rule) = &self.fifo else { return Ok(None) };
        let unread =
            |RuleError(error)| RuleError(format!("sent without order, as fifo has no answer: {error}"));
        let key = rule.text(variables).map_err(unread)?.filter(|key| !key.is_empty());
        Ok(key.map(|key| {
            if key.len() <= FIFO_KEY_BYTES_MAX {
                return key;
            }
            format!("sha256:{}", encode_hex(digest::digest(&digest::SHA256, key.as_bytes())))
        }))
    }
}

#[cfg(test)]
pub mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::Seq;
    use crate::time::Time;

    const STRIPE: Origin = Origin { provider: "stripe", livemode: None };

    pub fn stored(body: &str) -> Stored {
        Stored {
            seq: Seq::floor_of(Time::from_ms(1_770_000_000_000)),
            received_at: Time::from_ms(1_770_000_000_000),
            source: "stripe".into(),
            event_id: "evt_1".into(),
            event_type: "payment_intent.succeeded".into(),
            created_at: Some(Time::from_ms(1_769_999_999_000)),
            object: Some(("payment_intent".into(), "pi_1".into())),
            account: None,
            livemode: Some(true),
            trust: Trust::Signed,
            headers: r#"[["content-type","application/json"]]"#.into(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    pub fn route() -> Route {
        Route {
            name: "app".into(),
            sources: vec![],
            events: vec![],
            filter: None,
            fifo: None,
            send: Send::Raw,
            speaks_for: None,
            headers: vec![],
        }
    }

    #[test]
    fn c1_a_pattern_speaks_of_the_whole_text() {
        let cases = [
            ("payment_intent.succeeded", "payment_intent.succeeded", true),
            ("payment_intent.succeeded", "payment_intent.succeeded2", false),
            ("payment_intent.*", "payment_intent.succeeded", true),
            ("payment_intent.*", "payment_intent.", true),
            ("payment_intent.*", "payment_intents", false),
            ("*.succeeded", "charge.succeeded", true),
            ("*.succeeded", "charge.succeeded.late", false),
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "x", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("ab*ba", "aba", false),
            ("a*a", "a", false),
            ("**x**", "uxu", true),
            ("支払.*", "支払.完了", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
        let hard = "a*".repeat(500) + "b";
        assert!(!Pattern::new(hard).matches(&"a".repeat(10_000)));
    }

    #[test]
    fn c1_a_route_takes_what_its_sources_types_and_filter_all_take() {
        let event = stored(r#"{"data":{"amount":1200}}"#);
        let check = |change: fn(&mut Route)| {
            let mut route = route();
            change(&mut route);
            route.matches(STRIPE, &event, &Variables::of(&event)).unwrap()
        };
        assert!(check(|_| {}));
        assert!(check(|route| route.sources = vec![Pattern::new("paypal"), Pattern::new("str*")]));
        assert!(!check(|route| route.sources = vec![Pattern::new("paypal")]));
        assert!(!check(|route| route.events = vec![Pattern::new("charge.*")]));
        assert!(check(|route| route.filter = Rule::compile("body.data.amount > 1000").ok()));
        assert!(!check(|route| route.filter = Rule::compile("body.data.amount > 2000").ok()));
        let mut unclear = route();
        unclear.filter = Rule::compile("body.data.nothing > 1000").ok();
        assert!(unclear.matches(STRIPE, &event, &Variables::of(&event)).is_err());
        // A route for other types is not asked about its filter.
        unclear.events = vec![Pattern::new("charge.*")];
        assert_eq!(unclear.matches(STRIPE, &event, &Variables::of(&event)), Ok(false));
    }

    /// The routes of these that take the event, which came by this source.
    fn takes(routes: &[Route], provider: &'static str, event: &Stored) -> Vec<bool> {
        let origin = Origin { provider, livemode: None };
        routes.iter().map(|route| route.matches(origin, event, &Variables::of(event)).unwrap()).collect()
    }

    fn of_sources(patterns: &[&str]) -> Route {
        Route { sources: patterns.iter().copied().map(Pattern::new).collect(), ..route() }
    }

    #[test]
    fn c3_a_hint_goes_only_where_its_source_is_named() {
        let hint = Stored { source: "line-pay".into(), trust: Trust::Hint, ..stored("") };
        let routes =
            [route(), of_sources(&["*"]), of_sources(&["line-*"]), of_sources(&["stripe", "line-pay"])];
        assert_eq!(takes(&routes, "line_pay", &hint), [false, false, false, true]);
        let token = Stored { trust: Trust::Token, ..hint };
        assert_eq!(takes(&routes, "payjp", &token), [true, true, true, true], "a token is a proof");
    }

    #[test]
    fn c3_a_scheme_that_speaks_for_a_provider_signs_its_events_and_ours_alone() {
        let as_stripe = [
            Route { speaks_for: Some("stripe"), ..route() },
            Route { speaks_for: Some("stripe"), ..of_sources(&["github", "sekisho", "schedule", "shop"]) },
        ];
        let event = |source: &str| Stored { source: source.into(), ..stored("{}") };
        assert_eq!(takes(&as_stripe, "stripe", &event("shop")), [true, true]);
        for (source, provider) in [("github", "github"), ("shop", ""), ("line-pay", "line_pay")] {
            assert_eq!(takes(&as_stripe, provider, &event(source)), [false, false], "{source}");
        }
        assert_eq!(takes(&as_stripe, "", &event("schedule")), [true, true]);
        assert_eq!(takes(&as_stripe, "", &event("sekisho")), [false, true], "as it was asked for");
        assert_eq!(as_stripe[0].bars(Origin::default(), &event("sekisho")), None);
        assert!(as_stripe[0].bars(Origin::default(), &event("gone")).is_some(), "whose it was is not known");
    }

    #[test]
    fn c1_a_strangers_event_is_no_announcement_though_it_is_called_so() {
        let of = |events: &[&str], sources: &[&str]| Route {
            events: events.iter().copied().map(Pattern::new).collect(),
            ..of_sources(sources)
        };
        let routes = [
            of(&["payment.refunded"], &[]),
            of(&["payment.*", "payment.refunded"], &[]),
            of(&["payment.*"], &[]),
            of(&["payment.refunded"], &["komoju*"]),
            route(),
        ];
        let theirs =
            Stored { source: "komoju".into(), event_type: "payment.refunded".into(), ..stored("{}") };
        assert_eq!(takes(&routes, "komoju", &theirs), [false, false, true, true, true]);
        let ours = Stored { source: OWN.into(), ..theirs.clone() };
        assert_eq!(takes(&routes, "", &ours), [true, true, false, false, false]);
        let other = Stored { event_type: "payment.captured".into(), ..theirs };
        let captured = [of(&["payment.captured"], &[])];
        assert_eq!(takes(&captured, "komoju", &other), [true], "nothing of ours is called so");
    }

    #[test]
    fn c4_a_fifo_key_is_a_short_text() {
        let key = |rule: &str, body: &str| {
            let event = stored(body);
            let route = Route { fifo: Some(Rule::compile(rule).unwrap()), ..route() };
            route.fifo_key(&Variables::of(&event))
        };
        assert_eq!(key("event.object.id", "{}"), Ok(Some("pi_1".into())));
        assert_eq!(key("body.customer", r#"{"customer":7}"#), Ok(Some("7".into())));
        for none in [r#"{"customer":null}"#, "{}", r#"{"customer":""}"#] {
            assert_eq!(key("body.customer", none), Ok(None), "{none}");
        }
        let long =
            key("body.customer", &format!(r#"{{"customer":"{}"}}"#, "x".repeat(300))).unwrap().unwrap();
        assert!(long.starts_with("sha256:") && long.len() < 80, "{long}");
        for (rule, body) in [("body", "{}"), ("body.customer.id", r#"{"customer":null}"#)] {
            let RuleError(error) = key(rule, body).unwrap_err();
            assert!(error.starts_with("sent without order"), "{error}");
        }
        assert_eq!(route().fifo_key(&Variables::of(&stored("{}"))), Ok(None));
    }
}
