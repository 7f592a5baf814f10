//! Reading from providers what their events leave out. The answer is put in as an event and settled like any other.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::{End, Lane, Outcome};
use sekisho_core::notification::Alert;
use sekisho_core::notification::alert::News;
use sekisho_core::queue::{Failure, breaker};
use sekisho_core::settlement::{Fetch, Provider, reading};

use super::{announce, plain};
use crate::config::{self, Config};
use crate::effects::stripe;
use crate::engine::lane::LanePolicy;
use crate::engine::{Engine, Ran, Work};

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(20);

/// How an account says that an object is not its own.
const NOT_FOUND: &str = "stripe_not_found";
/// How it says that a key is wrong, or has no right to read this.
const REFUSED: [&str; 2] = ["stripe_unauthorized", "stripe_forbidden"];
/// How long a key that was refused is left alone.
const LEFT_ALONE_MS: i64 = 5 * 60_000;
/// Calls to one provider's API at once, and in a second: Stripe takes 25 of one kind.
const AT_ONCE: usize = 4;
const RATE: u32 = 20;
/// So many failures of it in a row, and it is left alone for a while.
const FAILURES: u32 = 5;

/// Every provider's API that the configuration has a key to.
pub struct Fetcher(Vec<Account>);

/// One source's key to its provider's API.
struct Account {
    source: String,
    provider: Provider,
    /// `None` shows both modes, as far as we know.
    livemode: Option<bool>,
    client: stripe::Client,
    /// Set while its key is refused.
    refused_until: Mutex<Option<Time>>,
}

impl Fetcher {
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let mut accounts = Vec::new();
        for source in &config.sources {
            let (Some(api), Some(provider)) = (&source.api, Provider::parse(source.provider.about().name))
            else {
                continue;
            };
            let config::Api { key, url, livemode } = api;
            let client = stripe::Client::new(url.as_str(), key.clone(), WITHIN)?;
            accounts.push(Account {
                source: source.name.to_string(),
                provider,
                livemode: livemode.or(source.livemode),
                client,
                refused_until: Mutex::default(),
            });
        }
        Ok(Self(accounts))
    }

    /// Can objects of this realm be read?
    pub fn can_fetch(&self, realm: &str) -> bool {
        self.0.iter().any(|known| {
            let of_provider = realm.split('/').next() == Some(known.provider.name());
            let of_mode = known.livemode.is_none_or(|mode| realm.ends_with(reading::mode(Some(mode))));
            of_provider && of_mode
        })
    }

    /// Everybody who may know it: with several accounts of one provider, only one of them does.
    fn find(&self, fetch: &Fetch) -> impl Iterator<Item = &Account> {
        let fits = |mode: Option<bool>| mode.is_none() || mode == fetch.livemode;
        self.0.iter().filter(move |known| known.provider == fetch.provider && fits(known.livemode))
    }

    /// Asks every account that may know it. One whose key is refused is left alone, and keeps nobody from asking the
    /// others; what only it can know waits for it.
    pub async fn run(&self, engine: &Arc<Engine>, work: &Work, fetch: &Fetch) -> Result<Ran, Failure> {
        let job = &work.job;
        let unknown =
            || Failure::terminal("unknown_fetch", format!("unknown kind of fetch: {}", job.task.payload()));
        let (mut called, mut wait_until, mut is_known) = (None, None::<Time>, false);
        for known in self.find(fetch) {
            is_known = true;
            let now = engine.node.now();
            if let Some(until) = known.left_until(now) {
                wait_until = Some(wait_until.map_or(until, |other| other.min(until)));
                continue;
            }
            let call = known.call(fetch, now).await.ok_or_else(unknown)?;
            let reason = call.result.as_ref().err().map(|failure| failure.reason);
            let is_refused = reason.is_some_and(|reason| REFUSED.contains(&reason));
            if let Some(failure) = call.result.as_ref().err().filter(|_| is_refused) {
                let until = engine.node.now().plus_ms(LEFT_ALONE_MS);
                refused(engine, known, failure, until).await;
                wait_until = Some(wait_until.map_or(until, |other| other.min(until)));
            } else if reason.is_none_or(|reason| reason == NOT_FOUND) {
                accepted(engine, known).await;
            }
            called = Some(call);
            if !is_refused && reason != Some(NOT_FOUND) {
                wait_until = None;
                break;
            }
        }
        if !is_known {
            return Err(Failure::terminal("no_api_key", "no source has an api_key for it any more"));
        }
        judge_provider(engine, fetch, called.as_ref());
        let at = engine.node.now();
        let set = match (called.as_ref().map(|call| &call.result), wait_until) {
            (Some(Ok(answer)), _) => ChangeSet {
                events: vec![fetch.arrival(engine.node.next_seq(at), at, answer)],
                ..ChangeSet::end(job.lease, End::Done(Outcome::SUCCESS), at)
            },
            (_, Some(due_at)) => ChangeSet::end(job.lease, End::Retry { due_at }, at),
            (Some(Err(failure)), None) => ChangeSet::end(job.lease, engine.after(job, failure), at),
            (None, None) => unreachable!("whoever was not asked is waited for"),
        };
        Ok(Ran::Ended(match called {
            Some(call) => set.with_attempt(call.attempt),
            None => set,
        }))
    }
}

impl Account {
    async fn call(&self, fetch: &Fetch, now: Time) -> Option<stripe::Call<stripe::Object>> {
        let client = match &fetch.account {
            Some(account) => self.client.for_account(account),
            None => self.client.clone(),
        };
        match &*fetch.object {
            "balance_transaction" => Some(client.balance_transaction(&fetch.id, now).await),
            _ => None,
        }
    }

    /// Until when it is left alone, if its key is refused.
    fn left_until(&self, now: Time) -> Option<Time> {
        self.refused_until.lock().expect("no code panics here").filter(|until| *until > now)
    }

    /// Its key was refused, and it is left alone for a while; says whether that is news.
    fn is_refused_now(&self, until: Time) -> bool {
        self.refused_until.lock().expect("no code panics here").replace(until).is_none()
    }

    /// Its key was taken; says whether that is news.
    fn is_accepted_now(&self) -> bool {
        self.refused_until.lock().expect("no code panics here").take().is_some()
    }
}

/// One lane for each provider that can be asked.
pub fn lanes() -> impl Iterator<Item = (Lane, LanePolicy)> {
    let breaker = breaker::Policy { failures: FAILURES, ..breaker::Policy::default() };
    let policy = LanePolicy { rate: Some(RATE), breaker, ..plain(AT_ONCE) };
    Provider::ALL.into_iter().map(move |provider| (Lane::fetch(provider.name()), policy.clone()))
}

async fn refused(engine: &Engine, known: &Account, failure: &Failure, until: Time) {
    if !known.is_refused_now(until) {
        return;
    }
    let (source, error) = (&*known.source, &failure.error);
    tracing::error!(source, error_type = failure.reason, error, until = %until,
        "the provider's API refuses the key of a source; fetches that need it wait");
    let detail = format!("{error}. Correct `api_key` of the source {source}, then restart");
    let alert = Alert::of_key(source, News::KeyRefused, failure.reason, &detail, engine.node.now());
    announce(engine, alert).await;
}

async fn accepted(engine: &Engine, known: &Account) {
    if known.is_accepted_now() {
        tracing::info!(source = &*known.source, "the provider's API accepts the key of a source again");
        let detail = "waiting fetches run now";
        let alert = Alert::of_key(&known.source, News::KeyAccepted, "accepted", detail, engine.node.now());
        announce(engine, alert).await;
    }
}

/// Tells the provider's breaker how it went: whether the provider can be reached, not whether it liked the question.
fn judge_provider(engine: &Arc<Engine>, fetch: &Fetch, called: Option<&stripe::Call<stripe::Object>>) {
    let (lane, now) = (Lane::fetch(fetch.provider.name()), engine.node.now());
    let Some(called) = called else { return engine.lanes.breaker(&lane).unjudged(now) };
    let well = called.result.as_ref().err().is_none_or(|failure| !failure.blames_destination);
    if let Some(breaker) = engine.lanes.breaker(&lane).judge(well, now) {
        let (provider, state) = (fetch.provider.name(), breaker.state());
        tracing::warn!(provider, state, "the breaker of a provider's API changed");
        let own = Arc::clone(engine);
        engine.spawn(async move { own.write_breaker(&lane, &breaker).await });
    }
}
