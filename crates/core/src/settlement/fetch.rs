//! Something to be read from a provider. The answer comes in as an event, and is one more fact like any other.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Realm;
use super::reading::{UnreadableEvent, unreadable};
use crate::announcement::JSON_HEADERS;
use crate::change::Arrival;
use crate::event::{DedupeKey, Stored, Trust};
use crate::id::Seq;
use crate::job::fetch::{ApiProvider, Fetch};
use crate::job::{End, Lane, NewJob, Outcome, Task, effect_prefix};
use crate::provider::{encode_hex, sha256};
use crate::source_name::{FETCHED, Origin};
use crate::time::{DAY_MS, Time};

/// As much of an answer's digest as tells it from another of the same object.
const DIGEST_CHARACTERS: usize = 12;

/// The first pause before something unknown is asked for again.
const UNKNOWN_PAUSE_MS: i64 = 60_000;
/// The next ones, in parts of how long it has been unknown: four questions in twenty minutes for what was made up.
const UNKNOWN_FACTOR: i64 = 4;

impl Fetch {
    /// An object of a realm, if somebody can be asked for it.
    pub fn of(realm: &str, object: &str, id: &str) -> Option<Self> {
        let (provider, account, livemode) = Realm::parse(realm)?;
        Some(Self {
            provider: ApiProvider::parse(provider).filter(|one| one.objects().contains(&object))?,
            account,
            livemode,
            object: object.to_owned(),
            id: id.to_owned(),
            after_days: 0,
            moment: None,
            trace: None,
        })
    }

    pub fn realm(&self) -> Realm {
        Realm { provider: self.provider.name(), account: self.account.clone(), livemode: self.livemode }
    }

    /// The job that reads it: one, whatever asks for it.
    pub fn job(&self, id: Seq, at: Time) -> NewJob {
        let again = match (self.moment, self.after_days) {
            (Some(moment), _) => format!("@{moment}"),
            (None, 0) => String::new(),
            (None, days) => format!("@{days}d"),
        };
        NewJob {
            id,
            key: Some(format!("fetch/{}{again}", self.realm().name(&self.id))),
            lane: Lane::fetch(self.provider.name()),
            fifo: None,
            due_at: at.plus_ms(DAY_MS * i64::from(self.after_days)),
            event: None,
            task: Task::Fetch(self.clone()),
            owner: None,
        }
    }

    /// The answer as an event. The same answer twice is a duplicate, another one is news.
    pub fn arrival(&self, seq: Seq, at: Time, answer: &RawValue) -> Arrival {
        let digest = encode_hex(sha256(answer.get().as_bytes()));
        let event_id = format!("{}#{}", self.realm().name(&self.id), &digest[..DIGEST_CHARACTERS]);
        let event_type = format!("{}.{}", self.provider.name(), self.object);
        let body = json!({
            "id": event_id,
            "type": event_type,
            "created": at.seconds(),
            "account": self.account,
            "livemode": self.livemode,
            "data": { "object": answer },
        });
        Arrival {
            key: DedupeKey::new(FETCHED, &event_id, None),
            first_body: None,
            seq,
            received_at: at,
            source: FETCHED.into(),
            event_id,
            event_type,
            created_at: Some(at),
            object: Some((self.object.clone(), self.id.clone())),
            account: self.account.clone(),
            livemode: self.livemode,
            trust: Trust::Signed,
            headers: JSON_HEADERS.into(),
            body: body.to_string().into(),
            held: None,
        }
    }

    /// What a hint asks for: it proves nothing, but the provider can be asked about what it names.
    pub fn hinted(origin: Origin, event: &Stored) -> Option<Self> {
        if event.trust != Trust::Hint {
            return None;
        }
        let (object, id) = event.object.as_ref()?;
        let realm = Realm { provider: origin.provider, account: None, livemode: origin.livemode };
        Self::of(&realm.to_string(), object, id)
    }

    /// The job that asks about what a hint names. Every hint asks: what it names may have changed since the one before.
    pub fn job_for(&self, hint: Seq, id: Seq, at: Time) -> NewJob {
        let key = Some(format!("{}fetch", effect_prefix(hint)));
        NewJob { key, event: Some(hint), ..self.job(id, at) }
    }

    /// How a job ends whose object the provider does not know, where only hints speak of it: anybody may have made it up, so
    /// that is nobody's trouble. Asked again, ever more seldom, while it may still become known.
    pub fn when_unknown(&self, job: Seq, at: Time) -> Option<End> {
        if !self.provider.only_hints() {
            return None;
        }
        let (made_at, within_ms) = (job.made_at(), self.provider.unknown_within_ms());
        let unknown_ms = at.ms() - made_at.ms();
        if unknown_ms < within_ms {
            let pause_ms = (unknown_ms * UNKNOWN_FACTOR).max(UNKNOWN_PAUSE_MS);
            return Some(End::Wait { due_at: at.plus_ms(pause_ms).min(made_at.plus_ms(within_ms)) });
        }
        self.when_impossible()
    }

    /// The same where it can't become known: what a hint named is no id of the provider's.
    pub fn when_impossible(&self) -> Option<End> {
        let note = || format!("the provider knows no {} {}", self.object, self.id);
        self.provider.only_hints().then(|| End::Done(Outcome::Skipped { note: note() }))
    }

    /// Where an answer comes from.
    pub fn origin(event: &Stored) -> Origin {
        let provider = event.event_type.split_once('.').and_then(|(name, _)| ApiProvider::parse(name));
        Origin { provider: provider.map(ApiProvider::name).unwrap_or_default(), livemode: None }
    }
}

/// What was read from this provider, by the provider's name for such an object: `payment` of `square.payment`.
pub(super) fn answered(
    provider: ApiProvider,
    event: &Stored,
) -> Result<Option<(&str, &RawValue)>, UnreadableEvent> {
    #[derive(Deserialize)]
    struct Envelope<'e> {
        #[serde(borrow)]
        data: Data<'e>,
    }

    #[derive(Deserialize)]
    struct Data<'e> {
        #[serde(borrow)]
        object: &'e RawValue,
    }

    let kind = event.event_type.strip_prefix(provider.name()).and_then(|rest| rest.strip_prefix('.'));
    let Some(kind) = kind.filter(|_| &*event.source == FETCHED) else { return Ok(None) };
    let envelope: Envelope<'_> = serde_json::from_slice(&event.body).map_err(unreadable)?;
    Ok(Some((kind, envelope.data.object)))
}

#[cfg(test)]
pub(super) mod listed {
    //! What a provider lists, as it comes in.

    use std::collections::BTreeMap;

    use http::{HeaderMap, Method};
    use serde_json::Value;

    use super::*;
    use crate::provider::{self, Request, RequestReading, Setup};

    /// An object of a list as the event that it becomes.
    pub fn object(
        provider: ApiProvider,
        account: Option<&str>,
        livemode: Option<bool>,
        kind: &str,
        listed: &Value,
    ) -> Stored {
        let fetch = Fetch {
            provider,
            account: account.map(str::to_owned),
            livemode,
            object: kind.to_owned(),
            id: listed["id"].as_str().unwrap().to_owned(),
            after_days: 0,
            moment: None,
            trace: None,
        };
        let answer = RawValue::from_string(listed.to_string()).unwrap();
        fetch.arrival(Seq::from_i64(8), Time::from_seconds(1_772_326_800), &answer).stored()
    }

    /// Id, type, object and account of an event of a list, by the provider's own file.
    pub fn event(provider: &str, body: &str) -> (String, String, Option<(String, String)>, Option<String>) {
        let settings = BTreeMap::from([("webhook_id".to_owned(), "1JE4".to_owned())]);
        let setup = Setup {
            secrets: vec![crate::secret::Secret::new("secret")],
            public_url: Some("https://pay.example/webhooks".to_owned()),
            settings,
            ..Setup::default()
        };
        let scheme = provider::find(provider).unwrap().open(&setup).unwrap();
        let (headers, method) = (HeaderMap::new(), Method::POST);
        let request = Request {
            method: &method,
            headers: &headers,
            query: "",
            body: body.as_bytes(),
            certificate: None,
        };
        let RequestReading::Events(events) = provider::peek(&*scheme, request, Time::from_ms(0)).unwrap()
        else {
            panic!("no event");
        };
        let event = events.into_iter().next().unwrap();
        let object = event.object.map(|object| (object.kind.into_owned(), object.id.into_owned()));
        (
            event.id.into_owned(),
            event.kind.into_owned(),
            object,
            event.account.map(std::borrow::Cow::into_owned),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_only_a_hint_of_something_that_can_be_asked_for_asks() {
        let hint = |kind: &str, trust| Stored {
            trust,
            object: Some((kind.into(), "tr_1".into())),
            ..Stored::nothing()
        };
        let mollie = Origin { provider: "mollie_classic", livemode: Some(true) };
        let fetch = Fetch::hinted(mollie, &hint("payment", Trust::Hint)).unwrap();
        assert_eq!(
            (fetch.provider, &*fetch.id, fetch.livemode),
            (ApiProvider::MollieClassic, "tr_1", Some(true))
        );
        assert_eq!(Fetch::hinted(mollie, &hint("order", Trust::Hint)), None);
        assert_eq!(Fetch::hinted(mollie, &hint("payment", Trust::Signed)), None);
        assert_eq!(Fetch::hinted(Origin::default(), &hint("payment", Trust::Hint)), None);
        let at = Time::from_ms(1);
        let jobs = [1, 2].map(|n| fetch.job_for(Seq::from_i64(n), Seq::from_i64(9), at).key.unwrap());
        assert_ne!(jobs[0], jobs[1], "a second hint asks again");
    }

    #[test]
    fn e1_what_a_hint_made_up_is_nobodys_trouble() {
        let made_at = Time::from_ms(1_770_000_000_000);
        let job = Seq::floor_of(made_at);
        let unknown = |provider, after_ms| {
            let fetch = Fetch {
                provider,
                account: None,
                livemode: None,
                object: "payment".into(),
                id: "1".into(),
                after_days: 0,
                moment: None,
                trace: None,
            };
            fetch.when_unknown(job, made_at.plus_ms(after_ms))
        };
        let waits = |after_ms: i64, pause_ms: i64| {
            Some(End::Wait { due_at: made_at.plus_ms(after_ms).plus_ms(pause_ms) })
        };
        assert_eq!(unknown(ApiProvider::LinePay, 100), waits(100, 60_000));
        assert_eq!(unknown(ApiProvider::LinePay, 60_100), waits(60_100, 240_400));
        assert_eq!(
            unknown(ApiProvider::LinePay, 300_500),
            waits(300_500, 899_500),
            "not later than it can be known"
        );
        for (provider, after_ms) in [(ApiProvider::LinePay, 20 * 60_000), (ApiProvider::MollieClassic, 0)] {
            let Some(End::Done(Outcome::Skipped { note })) = unknown(provider, after_ms) else { panic!() };
            assert_eq!(note, "the provider knows no payment 1");
        }
        assert_eq!(unknown(ApiProvider::Stripe, 0), None, "what an event named is missed");
    }

    #[test]
    fn d2_an_answer_comes_in_as_an_event_of_its_provider() {
        let fetch = Fetch {
            provider: ApiProvider::Stripe,
            account: Some("acct_1".into()),
            livemode: Some(false),
            object: "balance_transaction".into(),
            id: "txn_1".into(),
            after_days: 0,
            moment: None,
            trace: None,
        };
        let job = fetch.job(Seq::from_i64(7), Time::from_ms(1));
        assert_eq!(job.key.as_deref(), Some("fetch/stripe/acct_1/test/txn_1"));
        let answer = RawValue::from_string(r#"{"object":"balance_transaction","fee":43}"#.into()).unwrap();
        let event = fetch.arrival(Seq::from_i64(8), Time::from_ms(1), &answer).stored();
        let later = fetch.arrival(Seq::from_i64(9), Time::from_ms(9_000), &answer);
        assert_eq!(later.key, fetch.arrival(Seq::from_i64(8), Time::from_ms(1), &answer).key);
        let other = RawValue::from_string(r#"{"object":"balance_transaction","fee":44}"#.into()).unwrap();
        assert_ne!(fetch.arrival(Seq::from_i64(9), Time::from_ms(1), &other).key, later.key);
        assert_eq!(Fetch::origin(&event).provider, "stripe");
        assert!(std::str::from_utf8(&event.body).unwrap().contains(r#""fee":43"#));
    }
}
