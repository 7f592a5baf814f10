//! The one way in for commands: the API. Over HTTP, of the server that `--server` names or whose server file lies beside the
//! store; where no server runs, the same endpoints in this process ([`open_api`]).
//!
//! No proxy of the environment is asked, and the key of a server file goes to no other address.

mod query;
mod whole;

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use tower::ServiceExt;
use tracing::level_filters::LevelFilter;

use super::Context;
use super::output::hint;
use super::server_file::ServerFile;
use super::style::style;
use crate::acts::{FieldError, Refusal};
use crate::api;
use crate::app::open_api;
use crate::config::{Log, LogFormat};
use crate::effects::http::{self as net, callable};
use crate::telemetry;

pub use crate::app::Needs;
pub use query::{Query, path};
pub use whole::Whole;

#[derive(Clone, Default, clap::Args)]
pub struct Connection {
    /// The server to use: http://host:8787. Without it, the one that runs on the store, or else the store itself
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection")]
    server: Option<String>,
    /// The key for --server: of a [[key]] block or from `sekisho keys create`, with the scope that the command needs
    #[arg(
        long,
        global = true,
        value_name = "KEY",
        env = "SEKISHO_API_KEY",
        hide_env_values = true,
        help_heading = "Connection"
    )]
    key: Option<String>,
}

/// How long a server may take to say that it is there, and to answer a request.
const ALIVE_WITHIN: Duration = Duration::from_secs(2);
const ANSWER_WITHIN: Duration = Duration::from_mins(10);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 << 20;

pub struct Client {
    transport: Transport,
    key: String,
    /// Who acts, for the audit log.
    actor: String,
}

enum Transport {
    Server { http: Box<net::Client>, url: String },
    Local(Router),
}

/// A page of a list.
#[derive(Deserialize)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// Where the next page begins; some lists have only one.
    #[serde(default)]
    pub next: Option<Value>,
}

impl Client {
    /// `needs` says what is opened where no server runs.
    pub async fn open(context: &Context, needs: Needs) -> anyhow::Result<Self> {
        if let Some(server) = Self::server(context).await? {
            if let Some(url) = server.url().filter(|_| style().is_verbose) {
                hint(&format!("using the server at {url}"));
            }
            return Ok(server);
        }
        // Causes that an answer of the API keeps to the log.
        let level = if style().is_verbose { LevelFilter::INFO } else { LevelFilter::ERROR };
        telemetry::start(Log { level, format: LogFormat::Pretty, events: 0.0 }, None);
        if style().is_verbose {
            hint(&format!("no server runs: using the store {}", context.glance()?.store));
        }
        let load = || Ok(context.load()?.config);
        let (router, key) = open_api(context.glance()?, needs, load).await?;
        Ok(Self { transport: Transport::Local(router), key, actor: os_actor() })
    }

    async fn server(context: &Context) -> anyhow::Result<Option<Self>> {
        let found = ServerFile::find(&context.glance()?.store);
        let to = |url: String, key| {
            let uri = callable(&url)?.as_str().parse()?;
            let http = Box::new(net::Client::new(&uri, true)?);
            anyhow::Ok(Self { transport: Transport::Server { http, url }, key, actor: os_actor() })
        };
        if let Some(url) = &context.connection.server {
            let url = url.trim_end_matches('/').to_owned();
            let own = found.filter(|file| file.url == url.replace("localhost", "127.0.0.1"));
            let Some(key) = context.connection.key.clone().or(own.map(|file| file.key)) else {
                bail!("{url} wants a key: --key KEY, or the variable SEKISHO_API_KEY");
            };
            let unusable = format!("--server {url}");
            return Ok(Some(to(url, key).context(unusable)?));
        }
        let Some(ServerFile { url, key, .. }) = found else { return Ok(None) };
        let server = to(url, key)?;
        // A server that was killed leaves its file.
        let alive = server.exchange(Method::GET, "/health/live", Bytes::new(), None, ALIVE_WITHIN).await;
        Ok(alive.is_ok_and(|(status, _)| status.is_success()).then_some(server))
    }

    /// Whether a server works off what is queued.
    pub fn is_served(&self) -> bool {
        self.url().is_some()
    }

    /// Where the server is, if it is one.
    pub fn url(&self) -> Option<&str> {
        match &self.transport {
            Transport::Server { url, .. } => Some(url),
            Transport::Local(_) => None,
        }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &Query) -> anyhow::Result<T> {
        self.ask(Method::GET, &query.of(path), Bytes::new(), None).await
    }

    /// `None` if nothing is there.
    pub async fn find<T: DeserializeOwned>(&self, path: &str, query: &Query) -> anyhow::Result<Option<T>> {
        match self.get(path, query).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_refused_with(&error, StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same with mail addresses as they are, unless the key may only see them masked.
    pub async fn find_unmasked<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &Query,
    ) -> anyhow::Result<Option<T>> {
        let full = query.clone().with("addresses", Some("full"));
        match self.find(path, &full).await {
            Err(error) if is_refused_with(&error, StatusCode::FORBIDDEN) => self.find(path, query).await,
            answered => answered,
        }
    }

    /// All of a list that has one page.
    pub async fn items<T: DeserializeOwned>(&self, path: &str, query: &Query) -> anyhow::Result<Vec<T>> {
        Ok(self.get::<ListPage<T>>(path, query).await?.items)
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, order: &impl Serialize) -> anyhow::Result<T> {
        self.post_once(path, order, None).await
    }

    /// `idempotency_key`: the same request under the same key is carried out once.
    pub async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        order: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<T> {
        self.ask(Method::POST, path, serde_json::to_vec(order)?.into(), idempotency_key).await
    }

    pub async fn delete<T: DeserializeOwned>(&self, path: &str, query: &Query) -> anyhow::Result<T> {
        self.ask(Method::DELETE, &query.of(path), Bytes::new(), None).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<T> {
        let (status, body) = self.exchange(method, path, body, idempotency_key, ANSWER_WITHIN).await?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        let whose = self.url().unwrap_or("this command");
        serde_json::from_slice(&body)
            .with_context(|| format!("{whose} answered what this version does not understand"))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        idempotency_key: Option<&str>,
        within: Duration,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url().unwrap_or_default()))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.key))
            .header(api::ACTOR, &self.actor);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Full::new(body)).context("the request can't be written")?;
        match &self.transport {
            Transport::Server { http, url } => {
                let answer = http.exchange(request, ANSWER_BYTES_MAX, Instant::now() + within).await;
                let answer = answer.map_err(|fault| {
                    let why = sekisho_core::delivery::judge(&Err(fault), crate::now()).err();
                    let why = why.map(|failure| failure.error).unwrap_or_default();
                    anyhow::anyhow!("{why}").context(format!("no server answers at {url}"))
                })?;
                anyhow::ensure!(!answer.truncated, "{url} broke off its answer");
                Ok((StatusCode::from_u16(answer.status)?, answer.body))
            }
            Transport::Local(router) => {
                let answered = router.clone().oneshot(request.map(axum::body::Body::new)).await;
                let Ok(answer) = answered;
                let (head, body) = answer.into_parts();
                Ok((head.status, body.collect().await?.to_bytes()))
            }
        }
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> anyhow::Error {
        let Problem { title, detail, errors } = serde_json::from_slice(body).unwrap_or_default();
        let said = detail.or(title).unwrap_or_else(|| "no explanation".to_owned());
        let message = match (status.as_u16(), self.url()) {
            (422, _) => {
                let errors: Vec<_> =
                    errors.iter().map(|one| FieldError::new(&one.field, one.detail.as_str())).collect();
                let errors = if errors.is_empty() { vec![FieldError::new("order", said)] } else { errors };
                return Refusal::Fields(errors).into();
            }
            (400 | 404 | 409, _) | (_, None) => said,
            (401, Some(url)) => format!("the server at {url} does not know this key: {said}"),
            (_, Some(url)) => format!("the server at {url} answered {status}: {said}"),
        };
        Refused { status, message }.into()
    }
}

/// What the API says of a request that it refuses.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
    errors: Vec<WrongField>,
}

#[derive(Deserialize)]
struct WrongField {
    field: String,
    detail: String,
}

#[derive(Debug)]
struct Refused {
    status: StatusCode,
    message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

pub fn is_refused_with(error: &anyhow::Error, status: StatusCode) -> bool {
    error.downcast_ref::<Refused>().is_some_and(|refused| refused.status == status)
}

/// Who acts, for the audit log: the user of the operating system.
fn os_actor() -> String {
    use std::os::unix::fs::MetadataExt;
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let user: String = user.chars().filter(char::is_ascii_graphic).take(64).collect();
    if !user.is_empty() {
        return format!("cli:{user}");
    }
    let Ok(own) = std::fs::metadata("/proc/self") else { return "cli".into() };
    let uid = own.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let named =
        named.filter(|fields| fields.get(2) == Some(&&*uid)).find_map(|fields| fields.first().copied());
    named.map_or_else(|| format!("cli:uid-{uid}"), |name| format!("cli:{name}"))
}
