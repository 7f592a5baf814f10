//! Slack, Discord, PagerDuty, Twilio, Sentry, a collector of traces and a receiver of webhooks, on loopback, behind one
//! address.
//!
//! The path says who is asked ([`Service`]). Each answers as the real one does, refuses what the real one would
//! find too long or broken, and remembers what it got ([`Got`]), so that a checker can count what people would
//! have seen. How a path behaves is set by its [`Mood`], at run time. Runs on a thread of its own until dropped.

mod service;
mod telemetry;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub use service::Service;
pub use telemetry::CollectedSpan;

use crate::app::Reply;
use crate::server::{ServedRequest, StubServer, locked};
use crate::sink::REQUEST_MAX;

pub const SLACK_PATH: &str = "/services/T0LAB/B0LAB/slack-secret";
pub const DISCORD_PATH: &str = "/api/webhooks/4242/discord-secret";
pub const HOOK_PATH: &str = "/hook";
pub const PAGERDUTY_PATH: &str = "/v2/enqueue";
pub const TWILIO_SID: &str = "AClab4242";
pub const TWILIO_PATH: &str = "/2010-04-01/Accounts/AClab4242/Calls.json";
/// The only credentials that Twilio lets in.
pub const TWILIO_TOKEN: &str = "twilio-secret";
/// Where the collector takes traces.
pub const OTLP_PATH: &str = "/v1/traces";
pub const SENTRY_PATH: &str = "/api/42/envelope/";
/// The only key that Sentry lets in, to its project 42.
pub const SENTRY_PUBLIC_KEY: &str = "sentry-canary-key";
/// The only key that PagerDuty lets in.
pub const ROUTING_KEY: &str = "pagerduty-secret";

/// How requests to a path are treated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// Takes what is right, refuses what is wrong.
    #[default]
    Good,
    /// 429, asking for so long a pause.
    Busy { retry_after_ms: u32 },
    /// This status, in the service's own words.
    Status(u16),
    /// Exactly this answer.
    Answer(Reply),
    /// Takes it, then closes the connection without an answer: the caller can't know.
    Drop,
    /// Takes it, and never answers.
    Hang,
}

/// A request, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub service: Service,
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The service has it now: people see it, or will be called.
    pub taken: bool,
}

impl Got {
    /// `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// `Null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The value of a form's field.
    pub fn field(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(&self.body).find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
    }
}

#[derive(Debug)]
pub struct Chat {
    server: StubServer,
    shared: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// By path, without its query.
    moods: HashMap<String, Mood>,
    got: Vec<Got>,
}

impl Chat {
    pub fn start() -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Port 0 is any free one.
    pub fn start_at(listen: SocketAddr) -> io::Result<Self> {
        let shared: Arc<Mutex<State>> = Arc::default();
        let serving = Arc::clone(&shared);
        let server = StubServer::start(listen, move |stream| serve(stream, Arc::clone(&serving)))?;
        Ok(Self { server, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Sets how requests to a path are treated that come from now on.
    pub fn set(&self, path: &str, mood: Mood) {
        locked(&self.shared).moods.insert(path.to_owned(), mood);
    }

    /// Every request so far, in order.
    pub fn received(&self) -> Vec<Got> {
        locked(&self.shared).got.clone()
    }

    /// What PagerDuty still has open: the keys that were triggered, and not resolved since.
    pub fn open_incidents(&self) -> BTreeSet<String> {
        let mut open = BTreeSet::new();
        let state = locked(&self.shared);
        for got in state.got.iter().filter(|got| got.service == Service::PagerDuty && got.taken) {
            let event = got.json();
            let key = event["dedup_key"].as_str().unwrap_or_default().to_owned();
            if event["event_action"] == "resolve" {
                open.remove(&key);
            } else {
                open.insert(key);
            }
        }
        open
    }

    /// How many messages a service shows, or calls it makes: copies count once where the service knows them.
    pub fn seen(&self, service: Service) -> usize {
        let state = locked(&self.shared);
        let taken = || state.got.iter().filter(|got| got.service == service && got.taken);
        let distinct = |name: fn(&Got) -> String| taken().map(name).collect::<BTreeSet<_>>().len();
        match service {
            Service::Slack | Service::Discord | Service::Twilio | Service::Otlp => taken().count(),
            Service::Sentry => {
                distinct(|got| telemetry::envelope(&got.body).unwrap_or_default()["event_id"].to_string())
            }
            Service::PagerDuty => distinct(|got| got.json()["dedup_key"].to_string()),
            Service::Hook => distinct(|got| got.header("webhook-id").unwrap_or_default().to_owned()),
        }
    }
}

/// How a request ends.
enum Ending {
    Reply(Reply),
    Drop,
    Hang,
}

/// Writes the request down before anything is answered.
fn meet(state: &mut State, request: ServedRequest) -> Ending {
    let path = request.path.split('?').next().unwrap_or_default();
    let service = Service::at(path);
    let mood = state.moods.get(path).cloned().unwrap_or_default();
    let ServedRequest { method, path, headers, body } = request;
    let mut got = Got { service, method, path, headers, body, taken: false };
    let right = service.answer(&got, state.got.len());
    let would_take = (200..=299).contains(&right.status);
    let ending = match mood {
        Mood::Good => Ending::Reply(right),
        Mood::Busy { retry_after_ms } => Ending::Reply(service.busy(retry_after_ms)),
        Mood::Status(status) => Ending::Reply(service.refusal(status)),
        Mood::Answer(reply) => Ending::Reply(reply),
        Mood::Drop => Ending::Drop,
        Mood::Hang => Ending::Hang,
    };
    got.taken = match &ending {
        Ending::Reply(reply) => (200..=299).contains(&reply.status),
        Ending::Drop | Ending::Hang => would_take,
    };
    state.got.push(got);
    ending
}

async fn serve(mut stream: TcpStream, shared: Arc<Mutex<State>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(8 << 10);
    loop {
        let Some((request, end)) = ServedRequest::parse(&bytes)? else {
            if bytes.len() > REQUEST_MAX || stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        };
        bytes.drain(..end);
        let ending = meet(&mut locked(&shared), request);
        match ending {
            Ending::Reply(reply) => stream.write_all(&reply.encode()).await?,
            Ending::Drop => return Ok(()),
            // Until the caller leaves.
            Ending::Hang => while stream.read(&mut [0; 4096]).await? > 0 {},
        }
    }
}

#[cfg(test)]
mod tests;
