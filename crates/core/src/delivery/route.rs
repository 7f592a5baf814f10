//! Which events a destination gets, in which order, and in which form. Names, patterns and rules only: where the
//! destination is and how patient one is with it belongs to whoever calls it.

use ring::digest;

use crate::event::Stored;
use crate::notification::alert::is_alert;
use crate::provider::encode_hex;
use crate::rule::{Facts, Rule, RuleError};
use crate::secret::Secret;
use crate::settlement::{FETCHED, SOURCE};

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
    /// Does the event go here? A filter that can't be evaluated is an error: the event does not go here, and the caller
    /// tells.
    pub fn matches(&self, event: &Stored, facts: &Facts<'_>) -> Result<bool, RuleError> {
        let any = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        if !self.is_meant_for(event)
            || !any(&self.sources, &event.source)
            || !any(&self.events, &event.event_type)
        {
            return Ok(false);
        }
        self.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(facts))
    }

    /// An app that knows its provider's events must not be surprised by ours: they go only where they are asked for, by
    /// what is sent, by their source, or by their own name. Answers that we read ourselves go nowhere.
    fn is_meant_for(&self, event: &Stored) -> bool {
        let says = |patterns: &[Pattern], text: &str| patterns.iter().any(|pattern| pattern.0 == text);
        match &*event.source {
            FETCHED => false,
            SOURCE => {
                // What is for operators is no business of the app's, unless it names it.
                let is_business = !is_alert(&event.event_type) || !self.events.is_empty();
                (self.send == Send::Settled && is_business)
                    || says(&self.sources, SOURCE)
                    || says(&self.events, &event.event_type)
            }
            _ => self.send != Send::Settled,
        }
    }

    /// What the event must keep its order with; `None` when it may overtake others. A key that can't be read is an error:
    /// the event goes without order, because it was asked for, and the caller tells.
    pub fn fifo_key(&self, facts: &Facts<'_>) -> Result<Option<String>, RuleError> {
        let Some(rule) = &self.fifo else { return Ok(None) };
        let unread =
            |RuleError(error)| RuleError(format!("sent without order, as fifo has no answer: {error}"));
        let key = rule.text(facts).map_err(unread)?.filter(|key| !key.is_empty());
        Ok(key.map(|key| {
            if key.len() <= FIFO_KEY_BYTES_MAX {
                return key;
            }
            format!("sha256:{}", encode_hex(digest::digest(&digest::SHA256, key.as_bytes())))
        }))
    }
}

/// A text, or one with `*` for any letters: `payment_intent.*`, `*.succeeded`, `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Of the whole text. One pass from the left is enough: `*` may as well take as little as it can.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let Some(mut text) = text.strip_prefix(first) else { return false };
        let mut parts: Vec<_> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let Some(found) = text.find(part) else { return false };
            text = &text[found + part.len()..];
        }
        text.ends_with(last)
    }
}

#[cfg(test)]
pub mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::event::Trust;
    use crate::id::Seq;
    use crate::time::Time;

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
            route.matches(&event, &Facts::of(&event)).unwrap()
        };
        assert!(check(|_| {}));
        assert!(check(|route| route.sources = vec![Pattern::new("paypal"), Pattern::new("str*")]));
        assert!(!check(|route| route.sources = vec![Pattern::new("paypal")]));
        assert!(!check(|route| route.events = vec![Pattern::new("charge.*")]));
        assert!(check(|route| route.filter = Rule::compile("body.data.amount > 1000").ok()));
        assert!(!check(|route| route.filter = Rule::compile("body.data.amount > 2000").ok()));
        let mut unclear = route();
        unclear.filter = Rule::compile("body.data.nothing > 1000").ok();
        assert!(unclear.matches(&event, &Facts::of(&event)).is_err());
        // A route for other types is not asked about its filter.
        unclear.events = vec![Pattern::new("charge.*")];
        assert_eq!(unclear.matches(&event, &Facts::of(&event)), Ok(false));
    }

    #[test]
    fn c4_a_fifo_key_is_a_short_text() {
        let key = |rule: &str, body: &str| {
            let event = stored(body);
            let route = Route { fifo: Some(Rule::compile(rule).unwrap()), ..route() };
            route.fifo_key(&Facts::of(&event))
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
        assert_eq!(route().fifo_key(&Facts::of(&stored("{}"))), Ok(None));
    }
}
