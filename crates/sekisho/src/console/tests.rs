mod dead;
mod event;
mod events;
mod guard;
mod house;
mod money;
mod notifications;
mod orders;
mod overview;
mod people;
mod safety;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::response::Parts;
use http::{HeaderName, Request, header};
use sekisho_core::user::Rank;
use sekisho_store::Store;
use sekisho_store::memory::MemoryStore;
use tower::ServiceExt;

use super::session::Cookies;
use crate::acts::{self, Visitor};
use crate::attempts::Attempts;
use crate::checkpoint::rejection::Recorder;
use crate::config::Config;
use crate::engine::{self, Base};
use crate::env::Env;
use crate::http::RemotePeer;
use crate::jobs;
use crate::node::{Health, Node};
use crate::queries;
use crate::telemetry::{Metrics, Tracer};
use crate::{config, now};

const PASSWORD: &str = "a gate in the hills";

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A console on a store in memory.
struct Room {
    router: Router,
    store: Arc<dyn Store>,
    health: Arc<Health>,
}

impl Room {
    async fn open() -> Self {
        Self::with(Config::default(), Arc::new(MemoryStore::default())).await
    }

    /// Believes the headers `remote-user` and `remote-rank`, from this machine.
    async fn with(config: Config, store: Arc<dyn Store>) -> Self {
        let header = |name| Some(HeaderName::from_static(name));
        let console = config::Console {
            user_header: header("remote-user"),
            rank_header: header("remote-rank"),
            ..config.console.clone()
        };
        let config = Config { console, ..config };
        let health = Arc::new(Health::default());
        let node =
            Arc::new(Node::join(Arc::clone(&store), Arc::clone(&health), Env::system()).await.unwrap());
        let parts = engine::Parts { works: false, schedules: false };
        let metrics = Arc::new(Metrics::default());
        let base = Base {
            store: Arc::clone(&store),
            node,
            health: Arc::clone(&health),
            metrics: Arc::clone(&metrics),
            tracer: Arc::new(Tracer::off()),
        };
        let (engine, jobs) = jobs::open(&config, parts, base).unwrap();
        let attempts = Arc::new(Attempts::new(Env::system(), Arc::clone(&metrics), Recorder::default()));
        let router = super::router(
            &config,
            Arc::clone(&store),
            engine,
            Arc::clone(&health),
            metrics,
            attempts,
            jobs.reconciler(),
        );
        Self { router, store, health }
    }

    /// Somebody of a rank looks, in English, vouched for by the proxy.
    async fn look(&self, rank: Rank, path: &str) -> Seen {
        self.ask("GET", path, &by_proxy(rank), "").await
    }

    /// The same in Japanese.
    async fn look_ja(&self, rank: Rank, path: &str) -> Seen {
        let headers = [by_proxy(rank), vec![("accept-language", "ja".into())]].concat();
        self.ask("GET", path, &headers, "").await
    }

    /// Somebody of a rank sends a form of ours.
    async fn act(&self, rank: Rank, path: &str, form: &str) -> Seen {
        let seed = "5".repeat(64);
        let cookie = format!("sekisho_seed={seed}");
        let headers = [by_proxy(rank), vec![("cookie", cookie.clone())]].concat();
        self.ask("POST", path, &headers, &format!("{form}&csrf={}", csrf(&cookie))).await
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, String)], form: &str) -> Seen {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut request = request.body(Body::from(form.to_owned())).unwrap();
        request.extensions_mut().insert(RemotePeer { socket: LOCAL, named: LOCAL });
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let body = axum::body::to_bytes(body, 8 << 20).await.unwrap();
        Seen { head, text: String::from_utf8_lossy(&body).into_owned() }
    }

    /// Somebody new, by an invitation; answers the session's cookie.
    async fn settle_in(&self, name: &str, rank: Rank) -> String {
        let by = acts::Actor { name: "test", role: Rank::Admin.role(), tenant: None, at: now() };
        let (token, _) = acts::invite(&*self.store, rank, &by).await.unwrap();
        let from = Visitor { agent: "test", peer: "127.0.0.1", device: None, at: now() };
        let session = acts::join(&*self.store, &token, name, PASSWORD, from).await.unwrap();
        format!("sekisho_session={}", session.token)
    }

    /// Waits until so many wrong passwords were noted behind their answers.
    async fn noted(&self, name: &str, misses: u32) {
        for _ in 0..1_000 {
            let users = queries::users(&*self.store).await.unwrap();
            let user = &users.iter().find(|(known, _)| known == name).unwrap().1;
            if user.misses.iter().map(|misses| misses.failures).sum::<u32>() == misses {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{misses} wrong passwords of {name} were never noted");
    }
}

/// What came back.
struct Seen {
    head: Parts,
    text: String,
}

impl Seen {
    fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    fn location(&self) -> &str {
        self.head.headers.get(header::LOCATION).map_or("", |to| to.to_str().unwrap())
    }

    /// Insists on a page that says all this.
    fn says(self, words: &[&str]) -> Self {
        assert_eq!(self.status(), 200, "{}", self.text);
        for word in words {
            assert!(self.text.contains(word), "nothing about {word:?} in\n{}", self.text);
        }
        self
    }

    /// What a later page would say of an act, from the cookie that carries it there.
    fn told(&self) -> String {
        let lines = self.head.headers.get_all(header::SET_COOKIE).iter();
        let line = lines.map(|line| line.to_str().unwrap()).find(|line| line.starts_with("sekisho_flash="));
        let cookie = line.and_then(|line| line.split(';').next()).unwrap_or_default();
        cookies(cookie).flash().map(|flash| flash.text).unwrap_or_default()
    }
}

fn by_proxy(rank: Rank) -> Vec<(&'static str, String)> {
    vec![("remote-user", rank.name().to_owned()), ("remote-rank", rank.name().to_owned())]
}

fn cookies(line: &str) -> Cookies {
    Cookies::of(&[(header::COOKIE, line.parse().unwrap())].into_iter().collect(), false)
}

/// What a form of ours carries for a browser with this cookie.
fn csrf(cookie: &str) -> String {
    cookies(cookie).csrf()
}
