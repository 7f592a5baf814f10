//! `[[source]]`: where one provider's webhooks come in, and how they are judged.

mod api;
mod keys;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use ipnet::IpNet;
use sekisho_core::event::Trust;
use sekisho_core::provider::{self, Certificate, Provider, Scheme, Setup};
use sekisho_core::settlement;
use url::Url;

use super::given::Given;
use super::load::unknown_key;
use super::secret::{resolve, resolve_all};
use super::table::{SettingKey, Table};
pub use api::Api;
use api::WrittenApi;
use keys::KEYS;

/// A source, checked and ready: its keys are open.
pub struct Source {
    pub name: Arc<str>,
    pub provider: &'static dyn Provider,
    pub scheme: Box<dyn Scheme>,
    /// What the scheme was opened with, for `verify`.
    pub setup: Setup,
    pub path: String,
    pub reject_status: StatusCode,
    pub ack_status: StatusCode,
    pub unusable: UnusableBody,
    pub allow_ips: Vec<IpNet>,
    /// Requests a second; `None` is no limit.
    pub rate: Option<u32>,
    /// Of those, from one network; `None` is no limit.
    pub network_rate: Option<u32>,
    pub livemode: Option<bool>,
    /// Events that name another account are held back.
    pub account: Option<String>,
    /// The provider's own API, where what events leave out is read.
    pub api: Option<Api>,
    /// Used instead of fetching, for tests and machines without a way out.
    pub certificate: Option<Arc<Certificate>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source {} ({}) at {}", self.name, self.provider.about().name, self.path)
    }
}

/// Hints a second, when the operator says nothing else; and into how many shares they go, one for each network.
const HINT_RATE: u32 = 20;
const HINT_SHARES: u32 = 4;

/// What a genuine request without a usable event is answered. It is stored as evidence either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableBody {
    Acknowledge,
    Refuse,
}

/// A source as written, before it is checked.
#[derive(Default)]
pub struct SourceDraft {
    name: Option<String>,
    provider: Option<String>,
    secrets: Vec<String>,
    path: Option<String>,
    public_url: Option<String>,
    tolerance_s: Option<i64>,
    reject_status: Option<StatusCode>,
    ack_status: Option<StatusCode>,
    unusable: Option<UnusableBody>,
    allow_ips: Vec<IpNet>,
    rate: Option<u32>,
    network_rate: Option<u32>,
    livemode: Option<bool>,
    account: Option<String>,
    api_key: Option<String>,
    client_id: Option<String>,
    api_url: Option<Url>,
    refunds: Option<bool>,
    reconcile: Option<bool>,
    certificate: Option<String>,
    /// Keys of the provider alone.
    own: BTreeMap<String, String>,
}

impl Table for SourceDraft {
    const NAME: &'static str = "source";
    const ABOUT: &'static str = "One block per endpoint that a provider calls.";
    const KEYS: &'static [SettingKey<Self>] = KEYS;
    const WRITTEN: usize = 3;
    type Ready = Source;

    /// Perhaps the provider's own, which takes a text or a number; known once the provider is.
    fn set_other(&mut self, key: &str, given: &Given) -> Result<(), String> {
        let text = match given {
            Given::Integer(number) => number.to_string(),
            Given::List(list) => list.join(","),
            other => other.text()?,
        };
        self.own.insert(key.to_owned(), text);
        Ok(())
    }

    fn finish(self, warnings: &mut Vec<String>) -> Result<Source, Vec<String>> {
        let Some(name) = self.name else {
            return Err(vec!["a source needs a name: write name = \"stripe\"".into()]);
        };
        let Some(provider_name) = self.provider else {
            return Err(vec![format!("source {name} needs a provider: write provider = \"stripe\"")]);
        };
        let Some(provider) = provider::find(&provider_name) else {
            let names: Vec<_> = provider::ALL.iter().map(|one| one.about().name).collect();
            return Err(vec![format!(
                "there is no provider {provider_name}; known are {}",
                names.join(", ")
            )]);
        };
        let about = provider.about();
        let mut problems = Vec::new();
        for key in self.own.keys() {
            if !about.settings.iter().any(|setting| setting.name == key) {
                let known = KEYS.iter().map(|one| one.name).chain(about.settings.iter().map(|one| one.name));
                problems.push(unknown_key(key, &format!("a {} source", about.name), known));
            }
        }
        if self.tolerance_s.is_some() && about.tolerance_s.is_none() {
            warnings.push(format!(
                "source {name}: requests of {} carry no signed time, so tolerance has no effect (an event that is sent again \
                 is known by its id)",
                about.name
            ));
        }
        if self.certificate.is_some() && !about.has_certificate {
            let others = provider::ALL.iter().map(|one| one.about()).filter(|one| one.has_certificate);
            let others: Vec<_> = others.map(|one| one.name).collect();
            problems.push(format!(
                "source {name}: {} signs with no certificate; leave certificate out, it is for {}",
                about.name,
                others.join(" and ")
            ));
        }
        if self.account.is_some() && !about.names_account {
            problems
                .push(format!("source {name}: events of {} name no account; leave account out", about.name));
        }
        let secrets = resolve_all(&format!("source {name}"), &self.secrets, warnings, &mut problems);
        let certificate = self.certificate.filter(|_| about.has_certificate).map(|written| {
            let pem = resolve(&written)?.text;
            Certificate::from_pem(pem.as_bytes()).map_err(|what| format!("the certificate {what}"))
        });
        let certificate = match certificate.transpose() {
            Ok(certificate) => certificate.map(Arc::new),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let written = WrittenApi {
            key: self.api_key,
            client_id: self.client_id,
            url: self.api_url,
            livemode: self.livemode,
            account: self.account.as_deref(),
        };
        let api = written.check(&name, about, warnings, &mut problems);
        let can_refund =
            settlement::ApiProvider::parse(about.name).is_some_and(settlement::ApiProvider::can_refund);
        if self.refunds == Some(true) && api.is_some() && !can_refund {
            problems.push(format!(
                "source {name}: Sekisho makes no refunds at {}; leave refunds out, and refund at {}",
                about.title, about.title
            ));
        }
        if self.refunds == Some(true) && api.is_none() {
            problems.push(format!(
                "source {name}: refunds = true needs an api_key that may create refunds at {}",
                about.title
            ));
        }
        let (refunds, reconcile) = (self.refunds == Some(true), self.reconcile != Some(false));
        let api = api.map(|api| Api { refunds, reconcile, ..api });
        let by_key = api.as_ref().and_then(|api| api.livemode);
        if self.livemode.zip(by_key).is_some_and(|(written, by_key)| written != by_key) {
            problems.push(format!(
                "source {name}: livemode is {}, but api_key is of the other mode; give it the key of its own mode",
                self.livemode == Some(true)
            ));
        }
        let setup =
            Setup { secrets, public_url: self.public_url, tolerance_s: self.tolerance_s, settings: self.own };
        if !problems.is_empty() {
            return Err(problems);
        }
        // What proves nothing may not come in any number, or one caller would fill the disk and keep others out.
        let is_hint = about.trust == Trust::Hint;
        let rate = self.rate.or(is_hint.then_some(HINT_RATE));
        let share = || rate.filter(|_| is_hint).map(|rate| rate.div_ceil(HINT_SHARES));
        let scheme = provider.open(&setup).map_err(|error| vec![format!("source {name}: {error}")])?;
        warnings.extend(scheme.warnings().iter().map(|warning| format!("source {name}: {warning}")));
        Ok(Source {
            path: self.path.unwrap_or_else(|| format!("/webhooks/{name}")),
            name: name.into(),
            provider,
            scheme,
            setup,
            reject_status: self.reject_status.unwrap_or(StatusCode::BAD_REQUEST),
            ack_status: self.ack_status.unwrap_or(StatusCode::NO_CONTENT),
            unusable: self.unusable.unwrap_or(UnusableBody::Acknowledge),
            allow_ips: self.allow_ips,
            rate,
            network_rate: self.network_rate.or_else(share),
            livemode: self.livemode.or(by_key),
            account: self.account,
            api,
            certificate,
        })
    }
}
