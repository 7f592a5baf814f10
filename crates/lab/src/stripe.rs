//! Stripe's API as Sekisho's caller sees it, on loopback, with a memory and a will to fail.
//!
//! Objects are put in by tests, sold by a shop ([`Stripe::sell`]) or created by callers; idempotency keys are real;
//! parameters Stripe does not know are refused. Faults are ordered ahead ([`StripeFault`]), one per request, and every request
//! stands in a ledger ([`CallLedger`]), so that a checker can count what was really done. Events are listed and never sent: a
//! test takes and delivers them ([`Stripe::take_unsent`]). It expands nothing, and what Stripe or a buyer would do later
//! happens when the test says so. Runs on a thread of its own until dropped.

mod access;
mod books;
mod fault;
mod keys;
mod ledger;
mod list;
mod params;
mod refund;
mod refusal;
mod sale;
mod session;
mod visit;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub use fault::StripeFault;
pub use ledger::{CallLedger, StripeCall};
pub use sale::Sold;
pub use session::VOUCHER_S;

use crate::app::Reply;
use crate::server::{ServedRequest, StubServer, locked};
use crate::sink::REQUEST_MAX;
use access::KeyAccess;
use books::StripeBooks;
use keys::IdempotencyKeys;
use visit::StripeVisit;

/// The secret key that is right unless the settings say otherwise.
pub const KEY: &str = "sk_test_lab4242";

/// How the fake starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Port 0 is any free one.
    pub listen: SocketAddr,
    pub key: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { listen: (Ipv4Addr::LOCALHOST, 0).into(), key: KEY.to_owned() }
    }
}

#[derive(Debug)]
pub struct Stripe {
    server: StubServer,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    key: String,
    access: KeyAccess,
    /// Seconds since 1970, instead of the machine's clock.
    clock: Option<i64>,
    /// By id; the platform's own account is the empty text.
    accounts: HashMap<String, StripeBooks>,
    keys: IdempotencyKeys,
    /// With the endpoint they wait for, as `POST /v1/refunds`; empty is any.
    faults: VecDeque<(String, StripeFault)>,
    calls: Vec<StripeCall>,
    requests: u64,
    ticks: u64,
}

impl State {
    fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.clock.unwrap_or(since.as_secs() as i64)
    }

    /// Moments in which requests come and go, in order.
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }
}

impl Stripe {
    pub fn start() -> io::Result<Self> {
        Self::start_with(Settings::default())
    }

    pub fn start_with(settings: Settings) -> io::Result<Self> {
        let accounts = HashMap::from([(String::new(), StripeBooks::default())]);
        let state = State { key: settings.key, accounts, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state) });
        let serving = Arc::clone(&shared);
        let server = StubServer::start(settings.listen, move |stream| serve(stream, Arc::clone(&serving)))?;
        Ok(Self { server, shared })
    }

    /// Answers a request that comes by no connection; `None` where the answer is cut off. The work goes on though nobody waits
    /// for it any longer.
    pub async fn answer(&self, request: ServedRequest) -> Option<Reply> {
        let shared = Arc::clone(&self.shared);
        let visit = tokio::spawn(async move { visit(&shared, &request).await });
        let (reply, fault) = visit.await.ok()?;
        (!matches!(fault, Some(StripeFault::Cut { .. }))).then_some(reply)
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Adds an object, or replaces the one with its id. An object names its kind in `object`.
    pub fn put(&self, object: Value) {
        self.put_for("", object);
    }

    /// [`Stripe::put`] for a connected account, which exists from then on.
    pub fn put_for(&self, account: &str, object: Value) {
        locked(&self.shared.state).accounts.entry(account.to_owned()).or_default().put(object);
    }

    /// [`Stripe::put`] for a text. Of an event, the object in it is put too.
    pub fn put_text(&self, text: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let inner = &value["data"]["object"];
        for object in [inner, &value] {
            match (object["id"].as_str(), object["object"].as_str()) {
                (Some(_), Some(_)) => self.put(object.clone()),
                _ if object.is_null() => {}
                _ => return Err("an object has an id and a kind".to_owned()),
            }
        }
        Ok(())
    }

    /// An object of the platform's own account.
    pub fn object(&self, id: &str) -> Option<Value> {
        self.with_books(|books, _| books.get(id).cloned())
    }

    /// Takes an object away, as Stripe does with events after 30 days.
    pub fn forget(&self, id: &str) {
        locked(&self.shared.state).accounts.values_mut().for_each(|books| drop(books.forget(id)));
    }

    /// Prunes all idempotency keys, as Stripe may after 24 hours.
    pub fn forget_keys(&self) {
        locked(&self.shared.state).keys.forget();
    }

    /// Orders a fault for the next request. Several wait in order, one per request.
    pub fn order(&self, fault: StripeFault) {
        self.order_for("", fault);
    }

    /// Orders a fault for the next request to an endpoint, named as `POST /v1/refunds` or `GET /v1/charges/{id}`.
    pub fn order_for(&self, endpoint: &str, fault: StripeFault) {
        locked(&self.shared.state).faults.push_back((endpoint.to_owned(), fault));
    }

    /// What time it is from now on, in seconds since 1970; otherwise it is the machine's.
    pub fn set_clock(&self, seconds: i64) {
        locked(&self.shared.state).clock = Some(seconds);
    }

    /// What a test does with the platform's own account, and when.
    fn with_books<T>(&self, act: impl FnOnce(&mut StripeBooks, i64) -> T) -> T {
        let mut state = locked(&self.shared.state);
        let now = state.now();
        act(state.accounts.get_mut("").expect("it is there from the start"), now)
    }
}

/// Answers one request, by whatever way it came; and what else goes wrong with the answer.
async fn visit(shared: &Shared, request: &ServedRequest) -> (Reply, Option<StripeFault>) {
    let mut visit = StripeVisit::new(shared, request);
    let fault = visit.fault();
    let reply = visit.answer(fault.as_ref()).await;
    let reply = visit.note(reply, fault.as_ref());
    if let Some(StripeFault::LateAnswer(delay)) = &fault {
        tokio::time::sleep(*delay).await;
    }
    (reply, fault)
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
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
        let (reply, fault) = visit(&shared, &request).await;
        let encoded = reply.encode();
        if let Some(StripeFault::Cut { after_bytes }) = fault {
            return stream.write_all(&encoded[..after_bytes.min(encoded.len())]).await;
        }
        stream.write_all(&encoded).await?;
    }
}

#[cfg(test)]
mod tests;
