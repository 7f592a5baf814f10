//! Reading from providers what their events leave out. The answer is put in as an event and settled like any other.

use std::time::Duration;

use sekisho_core::change::{ChangeSet, End, Job, Outcome};
use sekisho_core::queue::Failure;
use sekisho_core::settlement::{Fetch, Provider, reading};

use super::Worker;
use crate::config::{self, Config};
use crate::effects::stripe;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(20);

/// How an account says that an object is not its own.
const NOT_FOUND: &str = "stripe_not_found";

/// Every provider's API that the configuration has a key to.
pub struct Fetchers(Vec<Fetcher>);

struct Fetcher {
    provider: Provider,
    /// `None` shows both modes, as far as we know.
    livemode: Option<bool>,
    client: stripe::Client,
}

impl Fetchers {
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let mut fetchers = Vec::new();
        for source in &config.sources {
            let (Some(api), Some(provider)) = (&source.api, Provider::parse(source.provider.about().name))
            else {
                continue;
            };
            let config::Api { key, url, livemode } = api;
            let client = stripe::Client::new(url.as_str(), key.clone(), WITHIN)?;
            fetchers.push(Fetcher { provider, livemode: livemode.or(source.livemode), client });
        }
        Ok(Self(fetchers))
    }

    /// Can objects of this realm be read?
    pub fn can_fetch(&self, realm: &str) -> bool {
        self.0.iter().any(|fetcher| {
            let of_provider = realm.split('/').next() == Some(fetcher.provider.name());
            let of_mode = fetcher.livemode.is_none_or(|mode| realm.ends_with(reading::mode(Some(mode))));
            of_provider && of_mode
        })
    }

    /// Everybody who may know it: with several accounts of one provider, only one of them does.
    fn find(&self, fetch: &Fetch) -> impl Iterator<Item = &Fetcher> {
        let fits = |mode: Option<bool>| mode.is_none() || mode == fetch.livemode;
        self.0.iter().filter(move |fetcher| fetcher.provider == fetch.provider && fits(fetcher.livemode))
    }
}

impl Worker {
    pub(super) async fn fetch(&self, job: &Job) -> Result<ChangeSet, Failure> {
        let unknown =
            || Failure::terminal("unknown_fetch", format!("nobody knows how to read {}", job.payload));
        let fetch = Fetch::parse(&job.payload).ok_or_else(unknown)?;
        let no_key = || Failure::terminal("no_api_key", "no source has an api_key for it any more");
        let mut called = None;
        for fetcher in self.fetchers.find(&fetch) {
            let client = match &fetch.account {
                Some(account) => fetcher.client.for_account(account),
                None => fetcher.client.clone(),
            };
            let call = match &*fetch.object {
                "balance_transaction" => client.balance_transaction(&fetch.id, self.node.now()).await,
                _ => return Err(unknown()),
            };
            let is_anothers = call.result.as_ref().is_err_and(|failure| failure.reason == NOT_FOUND);
            called = Some(call);
            if !is_anothers {
                break;
            }
        }
        let called = called.ok_or_else(no_key)?;
        let at = self.node.now();
        let set = match called.result {
            Ok(answer) => ChangeSet {
                events: vec![fetch.arrival(self.node.next_seq(at), at, &answer)],
                ..ChangeSet::end(job.lease, End::Done(Outcome::SUCCESS), at)
            },
            Err(failure) => ChangeSet::end(job.lease, self.after(job, &failure), at),
        };
        Ok(set.with_attempt(called.attempt))
    }
}
