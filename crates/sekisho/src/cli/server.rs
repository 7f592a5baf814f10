//! The way in for commands that write: through the running server, found by its note or named with `--server`; with no
//! server running they do the same themselves.

mod notifications;
mod payments;
mod way;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use sekisho_core::audit::Role;
use sekisho_core::directory::Register;
use sekisho_core::user::{Act, Rank, check_name};
use sekisho_store::{Access, OpenError, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::server_file::ServerFile;
use super::{Context, require_store};
use crate::acts::{
    self, Actor, DeadLetterSelection, DeadReport, FieldError, Import, Imported, Known, NewKey, Refusal,
    Replay, ReplayReport, Request, Reset,
};
use crate::config::Scope;
use crate::{api, now, view};

pub use notifications::Turn;
use way::Way;

#[derive(Default, clap::Args)]
pub struct Through {
    /// Act through this server: http://host:8787. Without it, through the one that runs on the store, if there is one
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The key for --server: of a [[key]] block or from `sekisho keys create`, with the scope operate, or admin for `keys`
    #[arg(long, value_name = "KEY", env = "SEKISHO_API_KEY", hide_env_values = true)]
    key: Option<String>,
}

/// How long a server may take to say that it is there, and to carry out an order.
const ALIVE_WITHIN: Duration = Duration::from_secs(2);
const ACT_WITHIN: Duration = Duration::from_mins(10);

pub enum Door<'c> {
    Server(Server),
    /// No server runs: the command acts itself.
    Own(Arc<dyn Store>, &'c Context),
}

pub struct Server {
    client: reqwest::Client,
    url: String,
    key: String,
}

/// What is to be done with dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Retry,
    Discard,
}

/// What can be made by an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum New {
    Payment,
    Member(Register),
}

impl New {
    fn path(self) -> String {
        match self {
            Self::Payment => "/v1/payments".to_owned(),
            Self::Member(register) => format!("/v1/{}", register.name()),
        }
    }
}

/// What can be deleted. Of the directory, whose it is; of billing, the mode that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Old {
    Member { register: Register, tenant: Option<String> },
    Billing(Option<bool>),
}

impl Old {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Member { register, .. } => register.noun(),
            Self::Billing(_) => "billing of",
        }
    }
}

impl<'c> Door<'c> {
    pub async fn open(through: &Through, context: &'c Context) -> anyhow::Result<Self> {
        if let Some(server) = Server::find(through, context).await? {
            return Ok(Self::Server(server));
        }
        let seen = context.glance()?;
        require_store(&seen)?;
        match sekisho_store::open(&seen.store, Access::Act).await {
            Ok(store) => Ok(Self::Own(store, context)),
            Err(OpenError::InUse { path }) => bail!(
                "a server runs on {path}, but it can't be reached: it does not answer, or serves without the role \
                 `console`. Name it with --server URL --key KEY (but no key decides about users), or stop it and try again"
            ),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether what was queued is worked off now.
    pub fn is_served(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    pub async fn redo(&self, verb: Verb, redo: &DeadLetterSelection) -> anyhow::Result<DeadReport> {
        let (store, actor) = match self {
            Self::Server(server) => {
                let path = match verb {
                    Verb::Retry => "/v1/dead-letters/retry",
                    Verb::Discard => "/v1/dead-letters/discard",
                };
                return server.post(path, redo).await;
            }
            Self::Own(store, _) => (&**store, os_actor()),
        };
        let actor = operator(&actor);
        Ok(match verb {
            Verb::Retry => acts::retry(store, redo, &actor).await?,
            Verb::Discard => acts::discard(store, redo, &actor).await?,
        })
    }

    pub async fn replay(&self, order: &Replay) -> anyhow::Result<ReplayReport> {
        match self {
            Self::Server(server) => server.post("/v1/events/replay", order).await,
            Self::Own(store, context) => {
                // Only a forecast needs the routes; without one, no secret need be at hand.
                let known = if order.dry_run {
                    Known::of(&context.load()?.config)
                } else {
                    Known { sources: context.glance()?.sources, ..Known::default() }
                };
                let actor = os_actor();
                let actor = operator(&actor);
                Ok(acts::replay(&**store, &known, order, &actor).await?)
            }
        }
    }

    pub async fn reset(&self, route: &str) -> anyhow::Result<Reset> {
        match self {
            Self::Server(server) => {
                // What is no name must not lead to another path.
                if !route.chars().all(|one| one.is_ascii_alphanumeric() || "-_".contains(one)) {
                    bail!("there is no route {route:?}");
                }
                server.post(&format!("/v1/routes/{route}/reset"), &()).await
            }
            Self::Own(store, context) => {
                let config = context.load()?.config;
                if !config.routes.iter().any(|known| known.route.name == route) {
                    let names: Vec<_> = config.routes.iter().map(|known| known.route.name.as_str()).collect();
                    bail!("there is no route {route}; configured are: {}", names.join(", "));
                }
                let actor = os_actor();
                let actor = operator(&actor);
                Ok(acts::reset(&**store, route, &actor).await?)
            }
        }
    }

    /// `idempotency_key`: the same order under the same key is carried out once.
    pub async fn create(
        &self,
        new: New,
        order: Map<String, Value>,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<Value> {
        let store = match self {
            Self::Server(server) => return server.post_once(&new.path(), &order, idempotency_key).await,
            Self::Own(store, _) => &**store,
        };
        let actor = os_actor();
        let actor = operator(&actor);
        let request = idempotency_key.map(|key| Request::new(actor.name, None, key, &new.path(), &order));
        let request = request.transpose()?;
        let request = request.as_ref();
        let answered = match new {
            New::Payment => acts::create_payment(store, order, request, &actor).await?,
            New::Member(register) => acts::create_member(store, register, order, request, &actor).await?,
        };
        Ok(answered.answer)
    }

    pub async fn delete(&self, old: &Old, id: &str) -> anyhow::Result<Value> {
        let store = match self {
            Self::Server(server) => return server.delete(old, id).await,
            Self::Own(store, _) => &**store,
        };
        let actor = os_actor();
        let actor = operator(&actor);
        Ok(match old {
            Old::Member { register, tenant } => {
                acts::delete_member(store, *register, tenant.as_deref(), id, &actor).await?
            }
            Old::Billing(livemode) => acts::delete_billing(store, id, *livemode, &actor).await?,
        })
    }

    pub async fn import(&self, order: Import) -> anyhow::Result<Imported> {
        match self {
            Self::Server(server) => server.post("/v1/import", &order).await,
            Self::Own(store, _) => {
                let actor = os_actor();
                Ok(acts::import(&**store, order, &operator(&actor)).await?)
            }
        }
    }

    /// The answer holds the key itself.
    pub async fn create_key(
        &self,
        name: Option<&str>,
        scopes: &[Scope],
        tenant: Option<&str>,
    ) -> anyhow::Result<Value> {
        match self {
            Self::Server(server) => {
                let order = json!({ "name": name, "scopes": scopes, "tenant": tenant });
                server.post("/v1/keys", &order).await
            }
            Self::Own(store, context) => {
                let actor = os_actor();
                let actor = operator(&actor);
                let (name, tenant) = (name.map(str::to_owned), tenant.map(str::to_owned));
                let order = NewKey { name, scopes: scopes.to_vec(), tenant };
                let configured = context.glance()?.keys;
                let made = acts::create_key(&**store, order, &configured, &actor).await?;
                let mut shown = json!(made.key);
                shown["key"] = made.secret.expose().into();
                Ok(shown)
            }
        }
    }

    pub async fn invite(&self, rank: Rank) -> anyhow::Result<Value> {
        match self {
            Self::Server(server) => server.post("/v1/users/invite", &json!({ "rank": rank })).await,
            Self::Own(store, _) => {
                let actor = os_actor();
                let (token, invite) = acts::invite(&**store, rank, &operator(&actor)).await?;
                Ok(view::invite(&token, &invite))
            }
        }
    }

    pub async fn change_user(&self, name: &str, act: Act) -> anyhow::Result<Value> {
        match self {
            Self::Server(server) => {
                // What is no name must not lead to another path.
                if check_name(name).is_err() {
                    bail!("there is no user {name:?}");
                }
                let path = |verb| format!("/v1/users/{name}/{verb}");
                match act {
                    Act::Rank(rank) => server.post(&path("rank"), &json!({ "rank": rank })).await,
                    Act::Disable => server.post(&path("disable"), &()).await,
                    Act::Enable => server.post(&path("enable"), &()).await,
                    Act::EndSessions => server.post(&path("end-sessions"), &()).await,
                }
            }
            Self::Own(store, _) => {
                let actor = os_actor();
                let user = acts::change_user(&**store, name, act, &operator(&actor)).await?;
                Ok(view::user(name, &user, now()))
            }
        }
    }

    /// Where the server is that it leads to.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Server(server) => Some(&server.url),
            Self::Own(..) => None,
        }
    }

    pub async fn revoke_key(&self, which: &str) -> anyhow::Result<Value> {
        match self {
            Self::Server(server) => server.post("/v1/keys/revoke", &json!({ "key": which })).await,
            Self::Own(store, _) => {
                let actor = os_actor();
                let actor = operator(&actor);
                Ok(json!(acts::revoke_key(&**store, which, &actor).await?))
            }
        }
    }
}

impl Server {
    /// The server named, or the one whose note lies beside the store and that answers.
    pub async fn find(through: &Through, context: &Context) -> anyhow::Result<Option<Self>> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let note = ServerFile::find(&context.glance()?.store);
        if let Some(url) = &through.server {
            let url = url.trim_end_matches('/').to_owned();
            // The note's key goes to no other address.
            let noted = note.filter(|note| note.url == url.replace("localhost", "127.0.0.1"));
            let way = if noted.is_some() { Way::Straight } else { Way::to(&url) };
            let Some(key) = through.key.clone().or(noted.map(|note| note.key)) else {
                bail!("{url} wants a key: --key KEY, or the variable SEKISHO_API_KEY");
            };
            return Ok(Some(Self { client: way.client()?, url, key }));
        }
        let Some(ServerFile { url, key, .. }) = note else { return Ok(None) };
        let server = Self { client: Way::Straight.client()?, url, key };
        Ok(if server.is_alive().await { Some(server) } else { None })
    }

    /// A note may be left over from a server that was killed.
    async fn is_alive(&self) -> bool {
        let asked = self.client.get(format!("{}/health/live", self.url)).timeout(ALIVE_WITHIN).send().await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    /// The items of a list.
    pub async fn items(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let mut list: Value = self.ask(self.client.get(format!("{}{path}", self.url))).await?;
        Ok(serde_json::from_value(list["items"].take())?)
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, order: &impl Serialize) -> anyhow::Result<T> {
        self.post_once(path, order, None).await
    }

    async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        order: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<T> {
        let mut request = self.client.post(format!("{}{path}", self.url));
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        self.ask(request.header("content-type", "application/json").body(serde_json::to_vec(order)?)).await
    }

    async fn delete(&self, old: &Old, id: &str) -> anyhow::Result<Value> {
        let (list, narrowed) = match old {
            Old::Member { register, tenant } => {
                (register.name(), tenant.clone().map(|tenant| ("tenant", tenant)))
            }
            Old::Billing(livemode) => {
                ("billing", livemode.map(|livemode| ("livemode", livemode.to_string())))
            }
        };
        let mut url = reqwest::Url::parse(&self.url)?;
        let mut path = url.path_segments_mut().map_err(|()| anyhow!("{} has no paths", self.url))?;
        path.pop_if_empty().extend(["v1", list, id]);
        drop(path);
        if let Some((name, value)) = narrowed {
            url.query_pairs_mut().append_pair(name, &value);
        }
        self.ask(self.client.delete(url)).await
    }

    async fn ask<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> anyhow::Result<T> {
        let request = request
            .timeout(ACT_WITHIN)
            .header("authorization", format!("Bearer {}", self.key))
            .header(api::ACTOR, os_actor());
        let answer = request.send().await.with_context(|| format!("no server answers at {}", self.url))?;
        let status = answer.status();
        let body = answer.bytes().await.with_context(|| format!("{} broke off its answer", self.url))?;
        if status.is_success() {
            return serde_json::from_slice(&body)
                .with_context(|| format!("{} answered what this version does not understand", self.url));
        }
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = problem["detail"].as_str().or(problem["title"].as_str()).unwrap_or("no explanation");
        match status.as_u16() {
            400 | 404 | 409 => bail!("{said}"),
            422 => Err(Refusal::Fields(fields(&problem, said)).into()),
            401 => bail!("the server at {} does not know this key: {said}", self.url),
            _ => bail!("the server at {} answered {status}: {said}", self.url),
        }
    }
}

/// What is wrong with each field, as the server says.
fn fields(problem: &Value, said: &str) -> Vec<FieldError> {
    let errors = problem["errors"].as_array().into_iter().flatten();
    let errors =
        errors.filter_map(|error| Some(FieldError::new(error["field"].as_str()?, error["detail"].as_str()?)));
    let errors: Vec<_> = errors.collect();
    if errors.is_empty() { vec![FieldError::new("order", said)] } else { errors }
}

pub fn operator(name: &str) -> Actor<'_> {
    Actor { name, role: Role::Operator, tenant: None, at: now() }
}

/// Who acts, for the audit log.
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
