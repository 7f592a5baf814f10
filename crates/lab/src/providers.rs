//! Providers' APIs other than Stripe's, as Sekisho's caller sees them, on loopback: one file each, of one shape.
//!
//! A fake lets in its own key, lists what tests put in, page by page and narrowed by time, and refuses what the real one
//! would. A test may order another answer ahead, and every request is kept. Runs on a thread of its own until dropped.

pub mod komoju;
pub mod line_pay;
pub mod mollie;
pub mod payjp;
pub mod paypal;
pub mod square;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app::Reply;
use crate::server::{ServedRequest, StubServer, locked};
use crate::sink::REQUEST_MAX;

/// One provider, on loopback.
#[derive(Debug)]
pub struct Fake {
    server: StubServer,
    state: Arc<Mutex<ProviderState>>,
}

/// What it knows and was asked.
#[derive(Debug, Default)]
pub struct ProviderState {
    /// By their kind, newest first.
    listed: BTreeMap<&'static str, Vec<Value>>,
    ordered: VecDeque<Reply>,
    calls: Vec<ServedRequest>,
    /// Tokens that were given out; only the last is good.
    tokens: usize,
}

type Answer = fn(&mut ProviderState, &Asked<'_>) -> Reply;

impl Fake {
    fn start(answer: Answer) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(ProviderState::default()));
        let serving = Arc::clone(&state);
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        let server = StubServer::start(listen, move |stream| serve(stream, Arc::clone(&serving), answer))?;
        Ok(Self { server, state })
    }

    /// Without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Adds an event or an object, newer than all of its kind.
    pub fn put(&self, kind: &'static str, object: Value) {
        locked(&self.state).listed.entry(kind).or_default().insert(0, object);
    }

    /// Answers the next request so, whatever it asks. Several wait in order.
    pub fn order(&self, reply: Reply) {
        locked(&self.state).ordered.push_back(reply);
    }

    /// Takes back the tokens that were given out.
    pub fn revoke(&self) {
        locked(&self.state).tokens += 1;
    }

    pub fn calls(&self) -> Vec<ServedRequest> {
        locked(&self.state).calls.clone()
    }
}

/// A request, taken apart.
struct Asked<'r> {
    request: &'r ServedRequest,
    path: &'r str,
    query: BTreeMap<String, String>,
}

impl<'r> Asked<'r> {
    fn new(request: &'r ServedRequest) -> Self {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        Self { request, path, query: form_urlencoded::parse(query.as_bytes()).into_owned().collect() }
    }

    fn endpoint(&self) -> (&str, &str) {
        (&self.request.method, self.path)
    }

    fn param(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.param(name).parse().unwrap_or(default)
    }

    fn bears(&self, token: &str) -> bool {
        self.request.header("authorization") == Some(&*format!("Bearer {token}"))
    }

    fn is_by(&self, user: &str, password: &str) -> bool {
        let both = STANDARD.encode(format!("{user}:{password}"));
        self.request.header("authorization") == Some(&*format!("Basic {both}"))
    }
}

impl ProviderState {
    fn of(&self, kind: &str, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let all = self.listed.get(kind).map_or(&[][..], Vec::as_slice);
        all.iter().filter(|one| is_wanted(one)).cloned().collect()
    }
}

/// Those of a list that are on a page, and whether there are more.
fn page(all: Vec<Value>, offset: usize, limit: usize) -> (Vec<Value>, bool) {
    let has_more = all.len() > offset + limit;
    (all.into_iter().skip(offset).take(limit).collect(), has_more)
}

/// Times as RFC 3339 writes them, all in UTC and to the second or finer, sort as they passed.
fn is_between(time: &Value, since: &str, until: &str) -> bool {
    let time = time.as_str().unwrap_or_default();
    time >= since && (until.is_empty() || time <= until)
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply::status(status).with_header("content-type", "application/json").with_body(&body.to_string())
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<ProviderState>>, answer: Answer) -> io::Result<()> {
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
        let encoded = {
            let mut state = locked(&state);
            state.calls.push(request.clone());
            let ordered = state.ordered.pop_front();
            ordered.unwrap_or_else(|| answer(&mut state, &Asked::new(&request))).encode()
        };
        stream.write_all(&encoded).await?;
    }
}
