//! Sending a signed request to a running server, and hearing what became of it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use sekisho_core::provider::Signed;

use crate::config::{Config, Source};

const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server is given to start listening.
const STARTING: Duration = Duration::from_secs(2);

/// Where test traffic goes.
#[derive(clap::Args)]
pub struct Target {
    /// The server, when it does not listen where the configuration says: http://127.0.0.1:8787
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The source to send to; needed only when there are several
    #[arg(long)]
    pub source: Option<String>,
}

pub struct Client {
    client: reqwest::Client,
    url: String,
}

/// What the server said.
pub struct Answer {
    pub status: u16,
    /// `accepted` or `duplicate`; empty for refusals.
    pub outcome: String,
    pub event_id: String,
    pub message_id: String,
    pub request_id: String,
    pub body: String,
}

impl Target {
    pub fn client(&self, config: &Config, source: &Source) -> anyhow::Result<Client> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base = match &self.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", reachable(config.server.listen)),
        };
        Client::to(format!("{base}{}", source.path))
    }
}

/// A server that listens everywhere is reached at this machine.
pub fn reachable(mut address: std::net::SocketAddr) -> std::net::SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address
}

impl Client {
    pub fn to(url: String) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { client, url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub async fn deliver(&self, signed: Signed) -> anyhow::Result<Answer> {
        let url = match &signed.query {
            Some(query) => format!("{}?{query}", self.url),
            None => self.url.clone(),
        };
        let mut request = self.client.request(signed.method, &url);
        for (name, value) in &signed.headers {
            request = request.header(name.as_ref(), value);
        }
        let request = request.body(signed.body);
        let started = Instant::now();
        let response = loop {
            let attempt = request.try_clone().expect("the body is in memory");
            match attempt.send().await {
                // It may have been started a moment ago.
                Err(error) if error.is_connect() && started.elapsed() < STARTING => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                other => break other,
            }
        };
        let response = response.with_context(|| {
            format!("no server answers at {}: is `sekisho serve` running? Another address can be named with --url", self.url)
        })?;
        let header = |name: &str| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Ok(Answer {
            status: response.status().as_u16(),
            outcome: header("sekisho-outcome"),
            event_id: header("sekisho-event-id"),
            message_id: header("sekisho-message-id"),
            request_id: header("sekisho-request-id"),
            body: response.text().await.unwrap_or_default(),
        })
    }
}

impl Answer {
    /// One line for a person.
    pub fn sentence(&self) -> String {
        match self.status {
            200..=299 if self.outcome.is_empty() => format!("{} (a handshake, no event)", self.status),
            200..=299 => format!("{} {} {}", self.status, self.outcome, self.event_id),
            _ => {
                let problem: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
                let title = problem["title"].as_str().unwrap_or("no explanation").to_owned();
                format!("{} {title} ({})", self.status, self.request_id)
            }
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "status": self.status,
            "outcome": self.outcome,
            "event_id": self.event_id,
            "message_id": self.message_id,
            "request_id": self.request_id,
        })
    }
}
