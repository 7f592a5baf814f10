//! What of the configuration the pages show and try: where webhooks come in, where events go, whom rules tell. Secrets
//! stay inside: a source can be signed for, not read.

use std::net::SocketAddr;

use anyhow::Context;
use sekisho_core::notification::NotifyRule;
use sekisho_core::provider::{AboutProvider, Scheme};

use crate::config::{self, Config};
use crate::now;
use crate::test_event::{self, TestAnswer, TestClient, reachable};

pub struct ConfigSummary {
    pub sources: Vec<SourceSummary>,
    pub routes: Vec<RouteSummary>,
    /// Whom `[[notify]]` tells of what.
    pub rules: Vec<NotifyRule>,
    /// Where this process listens.
    address: SocketAddr,
}

pub struct SourceSummary {
    pub name: String,
    pub about: &'static AboutProvider,
    pub path: String,
    /// The address that the provider calls, if it is written down.
    pub url: Option<String>,
    /// Types that a test event can have; none when it can't be signed here.
    pub types: Vec<&'static str>,
    scheme: Option<Box<dyn Scheme>>,
}

pub struct RouteSummary {
    pub name: String,
    /// Without its query, which may hold a token.
    pub url: String,
    pub signing: &'static str,
}

impl ConfigSummary {
    pub fn of(config: &Config) -> Self {
        let route = |route: &config::Route| RouteSummary {
            name: route.route.name.clone(),
            url: route.shown_url(),
            signing: route.signer.kind().name(),
        };
        Self {
            sources: config.sources.iter().map(SourceSummary::of).collect(),
            routes: config.routes.iter().map(route).collect(),
            rules: config.rules.clone(),
            address: reachable(config.server.listen),
        }
    }

    pub fn source(&self, name: &str) -> Option<&SourceSummary> {
        self.sources.iter().find(|source| source.name == name)
    }

    /// Sends a test event to a source by the front door, signed as its provider signs.
    pub async fn test(&self, source: &SourceSummary, kind: &str) -> anyhow::Result<TestAnswer> {
        let scheme = source.scheme.as_ref().context("this provider's requests can't be signed here")?;
        let signed = scheme.sign(test_event::sample(source.about, kind, None, 0)?, now())?;
        TestClient::to(format!("http://{}{}", self.address, source.path))?.deliver(signed).await
    }
}

impl SourceSummary {
    fn of(source: &config::Source) -> Self {
        let about = source.provider.about();
        let draft = || about.draft("evt_1", about.sample_type, now());
        let scheme = source.provider.open(&source.setup).ok();
        let scheme = scheme.filter(|scheme| scheme.sign(draft(), now()).is_ok());
        Self {
            name: source.name.to_string(),
            about,
            path: source.path.clone(),
            url: source.setup.public_url.clone(),
            types: if scheme.is_some() { test_event::types(about) } else { Vec::new() },
            scheme,
        }
    }
}
