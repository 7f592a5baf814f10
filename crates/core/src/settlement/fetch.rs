//! Something to be read from a provider. The answer comes in as an event, and is one more fact like any other.

use serde_json::json;
use serde_json::value::RawValue;

use super::Realm;
use crate::announcement::JSON_HEADERS;
use crate::change::Arrival;
use crate::event::{DedupeKey, Stored, Trust};
use crate::id::Seq;
use crate::job::fetch::{Fetch, Provider};
use crate::job::{Lane, NewJob, Task};
use crate::provider::{encode_hex, sha256};
use crate::source_name::{FETCHED, Origin};
use crate::time::{DAY_MS, Time};

/// As much of an answer's digest as tells it from another of the same object.
const DIGEST_CHARACTERS: usize = 12;

impl Fetch {
    /// An object of a realm, if somebody can be asked for it.
    pub fn of(realm: &str, object: &str, id: &str) -> Option<Self> {
        let (provider, account, livemode) = Realm::parse(realm)?;
        Some(Self {
            provider: Provider::parse(provider)?,
            account,
            livemode,
            object: object.to_owned(),
            id: id.to_owned(),
            after_days: 0,
        })
    }

    pub fn realm(&self) -> Realm {
        Realm { provider: self.provider.name(), account: self.account.clone(), livemode: self.livemode }
    }

    /// The job that reads it: one, whatever asks for it.
    pub fn job(&self, id: Seq, at: Time) -> NewJob {
        let again = if self.after_days == 0 { String::new() } else { format!("@{}d", self.after_days) };
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

    /// Where an answer comes from.
    pub fn origin(event: &Stored) -> Origin {
        let provider = event.event_type.split_once('.').and_then(|(name, _)| Provider::parse(name));
        Origin { provider: provider.map(Provider::name).unwrap_or_default(), livemode: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d2_an_answer_comes_in_as_an_event_of_its_provider() {
        let fetch = Fetch {
            provider: Provider::Stripe,
            account: Some("acct_1".into()),
            livemode: Some(false),
            object: "balance_transaction".into(),
            id: "txn_1".into(),
            after_days: 0,
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
