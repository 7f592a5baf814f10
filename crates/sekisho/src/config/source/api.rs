//! How a source reaches its provider's own API.

use sekisho_core::provider::AboutProvider;
use sekisho_core::{Secret, settlement};
use url::Url;

use crate::config::Source;
use crate::config::secret::resolve_all;
use crate::effects::{komoju, line_pay, mollie, payjp, paypal, square, stripe};

/// How a provider's API is reached.
#[derive(Clone, Debug)]
pub struct Api {
    pub key: Secret,
    /// Who uses the key, where the key alone does not say so.
    pub client_id: Option<String>,
    pub url: Url,
    /// Which mode's objects it shows, if the key says so.
    pub livemode: Option<bool>,
    /// Whether money may be given back with it.
    pub refunds: bool,
    /// Whether what the provider lists is compared with what came.
    pub reconcile: bool,
}

impl Source {
    /// The provider's API, where its lists are compared with what came.
    pub fn compared(&self) -> Option<&Api> {
        let provider = settlement::ApiProvider::parse(self.provider.about().name)?;
        self.api.as_ref().filter(|api| api.reconcile && !provider.only_hints())
    }

    /// Which setting says that both read the lists of one account.
    pub fn shares_lists_with(&self, other: &Self) -> Option<&'static str> {
        if !self.may_share_lists_with(other) {
            return None;
        }
        let (own, others) = (self.compared()?, other.compared()?);
        if own.key == others.key && own.url == others.url {
            return Some("api_key");
        }
        (self.account.is_some() && self.account == other.account).then_some("account")
    }

    /// Whether both may read the lists of one account, as far as is written.
    pub fn may_share_lists_with(&self, other: &Self) -> bool {
        let differ = |one: Option<&str>, other: Option<&str>| one.zip(other).is_some_and(|(a, b)| a != b);
        let is_other_mode = self.livemode.zip(other.livemode).is_some_and(|(own, other)| own != other);
        let is_same_key = self.compared().map(|api| &api.key) == other.compared().map(|api| &api.key);
        self.provider.about().name == other.provider.about().name
            && self.compared().is_some()
            && other.compared().is_some()
            && !is_other_mode
            && (is_same_key || !differ(self.account.as_deref(), other.account.as_deref()))
    }
}

/// What was written about the provider's API.
pub struct WrittenApi<'d> {
    pub key: Option<String>,
    pub client_id: Option<String>,
    pub url: Option<Url>,
    pub livemode: Option<bool>,
    pub account: Option<&'d str>,
}

impl WrittenApi<'_> {
    pub fn check(
        self,
        name: &str,
        about: &AboutProvider,
        warnings: &mut Vec<String>,
        problems: &mut Vec<String>,
    ) -> Option<Api> {
        let mut problem = |text: &str| problems.push(format!("source {name}: {text}"));
        let Some(key) = self.key else {
            if self.client_id.is_some() {
                problem("client_id has no effect without api_key; write both, or leave client_id out");
            }
            return None;
        };
        let Some(provider) = settlement::ApiProvider::parse(about.name) else {
            problem(&format!("nothing is read from {} yet; leave api_key out", about.name));
            return None;
        };
        match (client_id_of(provider), &self.client_id) {
            (Some(what), None) => problem(&format!("api_key needs client_id beside it: {what}")),
            (None, Some(_)) => problem(&format!("{} has no client_id; leave it out", about.title)),
            (Some(_), Some(_)) | (None, None) => {}
        }
        if provider == settlement::ApiProvider::Square && self.account.is_none() {
            problem(
                "api_key needs account beside it, because Square's lists don't say whose they are: write the merchant's id, \
                 as merchant_id of its events says",
            );
        }
        let url = self.url.or_else(|| {
            let url = api_url(provider, self.livemode);
            if url.is_none() {
                problem(&format!(
                    "{} has two APIs, and api_key fits both: write livemode = true, or false for the sandbox",
                    about.title
                ));
            }
            Some(Url::parse(url?).expect("it is an address"))
        });
        let key =
            resolve_all(&format!("source {name}, api_key"), &[key], warnings, problems).into_iter().next()?;
        let livemode = mode_of(&key);
        Some(Api { key, client_id: self.client_id, url: url?, livemode, refunds: false, reconcile: true })
    }
}

/// What stands beside the key, at providers that want two things.
const fn client_id_of(provider: settlement::ApiProvider) -> Option<&'static str> {
    match provider {
        settlement::ApiProvider::Paypal => {
            Some("the app's client id (Developer Dashboard → Apps & Credentials)")
        }
        settlement::ApiProvider::LinePay => Some("the channel id; api_key is then the channel secret"),
        settlement::ApiProvider::Stripe
        | settlement::ApiProvider::Square
        | settlement::ApiProvider::Payjp
        | settlement::ApiProvider::Komoju
        | settlement::ApiProvider::MollieClassic => None,
    }
}

/// Where a provider's API is; `None` where that depends on the mode, and the mode is not said.
const fn api_url(provider: settlement::ApiProvider, livemode: Option<bool>) -> Option<&'static str> {
    let (live, sandbox) = match provider {
        settlement::ApiProvider::Stripe => return Some(stripe::BASE_URL),
        settlement::ApiProvider::Payjp => return Some(payjp::BASE_URL),
        settlement::ApiProvider::Komoju => return Some(komoju::BASE_URL),
        settlement::ApiProvider::MollieClassic => return Some(mollie::BASE_URL),
        settlement::ApiProvider::Paypal => (paypal::BASE_URL, paypal::SANDBOX_URL),
        settlement::ApiProvider::Square => (square::BASE_URL, square::SANDBOX_URL),
        settlement::ApiProvider::LinePay => (line_pay::BASE_URL, line_pay::SANDBOX_URL),
    };
    match livemode {
        Some(true) => Some(live),
        Some(false) => Some(sandbox),
        None => None,
    }
}

/// Which mode's key it is, if it says so: `sk_test_…` and `rk_live_…`, Mollie's `test_…`.
fn mode_of(key: &Secret) -> Option<bool> {
    let says = |mode: &str| {
        let key = key.expose();
        key.starts_with(mode) || key.get(3..).is_some_and(|rest| rest.starts_with(mode))
    };
    if says("live_") { Some(true) } else { says("test_").then_some(false) }
}

#[cfg(test)]
mod tests;
