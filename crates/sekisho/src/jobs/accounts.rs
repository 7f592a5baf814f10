//! The keys to providers' APIs, one for each source that has one: who may know an object, what a key may be used for, and
//! which key is refused just now.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::notification::Alert;
use sekisho_core::notification::alert::News;
use sekisho_core::pattern::Pattern;
use sekisho_core::queue::Failure;
use sekisho_core::settlement::{self, ApiProvider, Fetch, reading};

use super::announce;
use crate::config::{self, Config};
use crate::effects::call::ApiCall;
use crate::effects::listing::Lister;
use crate::effects::provider_api::{ApiObject, FORBIDDEN, NOT_FOUND, UNAUTHORIZED};
use crate::effects::stripe::Collection;
use crate::effects::{komoju, line_pay, mollie, payjp, paypal, square, stripe};
use crate::engine::Base;
use crate::env::Env;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(20);

/// How long a key that was refused is left alone.
const LEFT_ALONE_MS: i64 = 5 * 60_000;

/// Every provider's API that the configuration has a key to.
pub struct ApiAccounts(Vec<ApiAccount>);

/// One source's key to its provider's API.
pub struct ApiAccount {
    pub source: String,
    pub provider: ApiProvider,
    /// `None` shows both modes, as far as we know.
    pub livemode: Option<bool>,
    /// Whether money may be given back with it.
    pub refunds: bool,
    /// Whether its lists are compared with what came.
    pub reconcile: bool,
    /// The account that events of its objects name, where they name one and its lists don't.
    pub names: Option<String>,
    client: Client,
    refusals: Mutex<Refusals>,
}

/// What a key is used for. It may have the right to one and not to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Reading one object by its id.
    Fetch,
    Refund,
    /// Making and expiring sessions.
    Checkout,
    /// A key without the right to it is told of by the run that needed it ([`ReconcileResult`](sekisho_core::reconcile::ReconcileResult)).
    List,
}

impl Use {
    const fn name(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Refund => "refund",
            Self::Checkout => "checkout",
            Self::List => "list",
        }
    }

    /// What a key must be allowed for it.
    const fn right(self) -> &'static str {
        match self {
            Self::Fetch => "read what events name: payments, refunds and balance transactions",
            Self::Refund => "read and create refunds",
            Self::Checkout => "read, create and expire Checkout Sessions, and read payments",
            Self::List => "read events and payments",
        }
    }
}

/// Until when a key is left alone, each set while the provider refuses it so.
#[derive(Default)]
struct Refusals {
    /// The key itself is wrong.
    key: Option<Time>,
    /// It has no right to do this.
    fetch: Option<Time>,
    refund: Option<Time>,
    checkout: Option<Time>,
}

impl Refusals {
    fn of_right(&mut self, purpose: Use) -> Option<&mut Option<Time>> {
        match purpose {
            Use::Fetch => Some(&mut self.fetch),
            Use::Refund => Some(&mut self.refund),
            Use::Checkout => Some(&mut self.checkout),
            Use::List => None,
        }
    }
}

/// By whom the provider is asked.
enum Client {
    Stripe(stripe::Client),
    Mollie(mollie::Client),
    LinePay(line_pay::Client),
    /// Shows lists alone.
    Lister(Arc<dyn Lister>),
}

impl ApiAccounts {
    pub fn new(config: &Config, env: &Env) -> anyhow::Result<Self> {
        let mut accounts = Vec::new();
        for source in &config.sources {
            let (Some(api), Some(provider)) = (&source.api, ApiProvider::parse(source.provider.about().name))
            else {
                continue;
            };
            accounts.push(ApiAccount {
                source: source.name.to_string(),
                provider,
                livemode: api.livemode.or(source.livemode),
                refunds: api.refunds,
                reconcile: api.reconcile && !provider.only_hints(),
                names: source.account.clone().filter(|_| provider == ApiProvider::Square),
                client: Client::new(provider, api, env)?,
                refusals: Mutex::default(),
            });
        }
        Ok(Self(accounts))
    }

    /// The account of a source whose lists are compared with what came.
    pub fn of_source(&self, source: &str) -> Option<&ApiAccount> {
        self.0.iter().find(|known| known.source == source && known.reconcile)
    }

    /// The account of a source by which sessions are made.
    pub fn named(&self, source: &str) -> Option<&ApiAccount> {
        self.0.iter().find(|known| known.source == source)
    }

    /// Can objects of this realm be read?
    pub fn can_fetch(&self, realm: &str) -> bool {
        self.0.iter().any(|known| {
            let of_provider = realm.split('/').next() == Some(known.provider.name());
            let of_mode = known.livemode.is_none_or(|mode| realm.ends_with(reading::mode(Some(mode))));
            of_provider && of_mode
        })
    }

    /// Everybody who may know an object: with several accounts of one provider, only one of them does.
    pub fn of(&self, provider: ApiProvider, livemode: Option<bool>) -> impl Iterator<Item = &ApiAccount> {
        let fits = move |mode: Option<bool>| mode.is_none() || mode == livemode;
        self.0.iter().filter(move |known| known.provider == provider && fits(known.livemode))
    }
}

impl Client {
    fn new(provider: ApiProvider, api: &config::Api, env: &Env) -> anyhow::Result<Self> {
        let (url, key, id) =
            (api.url.as_str(), api.key.clone(), api.client_id.as_deref().unwrap_or_default());
        let way = env.outside.exchange();
        Ok(match provider {
            ApiProvider::Stripe => Self::Stripe(stripe::Client::new(url, key, WITHIN)?.by(way)),
            ApiProvider::Paypal => Self::lister(paypal::Client::new(url, id, key, WITHIN)?.by(way)),
            ApiProvider::Square => Self::lister(square::Client::new(url, key, WITHIN)?.by(way)),
            ApiProvider::Payjp => Self::lister(payjp::Client::new(url, key, WITHIN)?.by(way)),
            ApiProvider::Komoju => Self::lister(komoju::Client::new(url, key, WITHIN)?.by(way)),
            ApiProvider::MollieClassic => Self::Mollie(mollie::Client::new(url, key, WITHIN)?.by(way)),
            ApiProvider::LinePay => Self::LinePay(line_pay::Client::new(url, id, key, WITHIN)?.by(way)),
        })
    }

    fn lister(client: impl Lister + 'static) -> Self {
        Self::Lister(Arc::new(client))
    }
}

impl ApiAccount {
    /// Stripe's own client, for the account itself or for one that is connected to it.
    pub fn stripe(&self, connected: Option<&str>) -> Option<stripe::Client> {
        let Client::Stripe(client) = &self.client else { return None };
        Some(connected.map_or_else(|| client.clone(), |account| client.for_account(account)))
    }

    /// Asks for an object by its id; `None` where the provider is not asked for such.
    pub async fn fetch(&self, fetch: &Fetch, now: Time) -> Option<ApiCall<ApiObject>> {
        let id = &*fetch.id;
        Some(match (&self.client, &*fetch.object) {
            (Client::Stripe(_), object) => {
                let client = self.stripe(fetch.account.as_deref())?;
                client.retrieve(Collection::of(object)?, id, now).await
            }
            (Client::Mollie(client), "payment") => client.payment(id, now).await,
            (Client::LinePay(client), "payment") => client.payment(id, now).await,
            (Client::Mollie(_) | Client::LinePay(_) | Client::Lister(_), _) => return None,
        })
    }

    /// What its provider lists, if it lists anything: events of `more` types besides those that are settled.
    pub fn lister(&self, more: &[Pattern]) -> Option<Arc<dyn Lister>> {
        match &self.client {
            Client::Stripe(client) => {
                let settled =
                    settlement::listed_types(self.provider.name()).iter().map(|one| (*one).to_owned());
                let more = more.iter().map(|one| one.as_str().to_owned());
                Some(Arc::new(stripe::StripeLister::new(client.clone(), settled.chain(more))))
            }
            Client::Lister(lister) => Some(Arc::clone(lister)),
            Client::Mollie(_) | Client::LinePay(_) => None,
        }
    }

    /// Until when it is left alone, if its key is refused for such a use.
    pub fn left_until(&self, purpose: Use, now: Time) -> Option<Time> {
        let mut refusals = self.refusals();
        let of_right = refusals.of_right(purpose).and_then(|until| *until);
        refusals.key.max(of_right).filter(|until| *until > now)
    }

    /// Takes down whether the key was accepted; until when it is left alone, if not. Operators hear of every change.
    pub async fn judge(&self, base: &Base, purpose: Use, failure: Option<&Failure>) -> Option<Time> {
        match failure {
            Some(failure) if failure.reason == UNAUTHORIZED => {
                let cure = format!("Correct `api_key` of the source {}, then restart", self.source);
                Some(self.refused(base, failure, "key", &cure, |refusals| Some(&mut refusals.key)).await)
            }
            Some(failure) if failure.reason == FORBIDDEN && purpose != Use::List => {
                let (name, right) = (purpose.name(), purpose.right());
                let cure = format!("Give `api_key` of the source {} the right to {right}", self.source);
                Some(self.refused(base, failure, name, &cure, |refusals| refusals.of_right(purpose)).await)
            }
            // Whoever could not be reached has said nothing of the key.
            Some(failure) if failure.reason != NOT_FOUND => None,
            Some(_) | None => {
                self.accepted(base, purpose).await;
                None
            }
        }
    }

    async fn refused(
        &self,
        base: &Base,
        failure: &Failure,
        right: &str,
        cure: &str,
        place: impl FnOnce(&mut Refusals) -> Option<&mut Option<Time>>,
    ) -> Time {
        let now = base.node.now();
        let until = now.plus_ms(LEFT_ALONE_MS);
        let before = place(&mut self.refusals()).and_then(|place| place.replace(until));
        if before.is_none() {
            let (source, error) = (&*self.source, &failure.error);
            tracing::error!(source, error_type = failure.reason, error, until = %until,
                "the provider's API refuses the key of a source; work that needs it waits");
            let detail = format!("{error}. {cure}");
            announce(base, Alert::of_key(source, right, News::KeyRefused, failure.reason, &detail, now))
                .await;
        }
        until
    }

    async fn accepted(&self, base: &Base, purpose: Use) {
        let was_refused = {
            let mut refusals = self.refusals();
            let of_right = refusals.of_right(purpose).and_then(Option::take);
            refusals.key.take().or(of_right).is_some()
        };
        if was_refused {
            tracing::info!(source = &*self.source, "the provider's API accepts the key of a source again");
            let (detail, now) = ("waiting work runs now", base.node.now());
            let (source, right) = (&*self.source, purpose.name());
            announce(base, Alert::of_key(source, right, News::KeyAccepted, "accepted", detail, now)).await;
        }
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().expect("no code panics here")
    }
}
