//! Stripe's API as Sekisho's caller sees it, on loopback, with a memory and a will to fail.
//!
//! Objects are put in by tests or created by callers; idempotency keys are real; parameters Stripe does not know
//! are refused. Faults are ordered ahead ([`Fault`]), one per request, and every request stands in a ledger
//! ([`Call`]), so that a checker can count what was really done. It expands nothing, and a session stays open
//! until a test puts it back completed. Runs on a thread of its own until dropped.

mod books;
mod create;
mod fault;
mod keys;
mod ledger;
mod list;
mod params;
mod refusal;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub use fault::Fault;
pub use ledger::Call;

use crate::app::Reply;
use crate::server::{Request, Server, locked};
use crate::sink::REQUEST_MAX;
use books::Books;
use keys::Keys;
use refusal::{Refusal, json_reply};

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
    server: Server,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    key: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By id; the platform's own account is the empty text.
    accounts: HashMap<String, Books>,
    keys: Keys,
    /// With the endpoint they wait for, as `POST /v1/refunds`; empty is any.
    faults: VecDeque<(String, Fault)>,
    calls: Vec<Call>,
}

impl Stripe {
    pub fn start() -> io::Result<Self> {
        Self::start_with(Settings::default())
    }

    pub fn start_with(settings: Settings) -> io::Result<Self> {
        let shared = Arc::new(Shared { key: settings.key, state: Mutex::default() });
        locked(&shared.state).accounts.insert(String::new(), Books::default());
        let serving = Arc::clone(&shared);
        let server = Server::start(settings.listen, move |stream| serve(stream, Arc::clone(&serving)))?;
        Ok(Self { server, shared })
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
        locked(&self.shared.state).accounts[""].get(id).cloned()
    }

    /// Refunds of a payment intent or charge, oldest first.
    pub fn refunds_of(&self, payment: &str) -> Vec<Value> {
        locked(&self.shared.state).accounts[""].refunds_of(payment).cloned().collect()
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
    pub fn order(&self, fault: Fault) {
        self.order_for("", fault);
    }

    /// Orders a fault for the next request to an endpoint, named as `POST /v1/refunds` or `GET /v1/charges/{id}`.
    pub fn order_for(&self, endpoint: &str, fault: Fault) {
        locked(&self.shared.state).faults.push_back((endpoint.to_owned(), fault));
    }

    /// Every request so far, in the order of their answers.
    pub fn calls(&self) -> Vec<Call> {
        locked(&self.shared.state).calls.clone()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(8 << 10);
    loop {
        let Some((request, end)) = Request::parse(&bytes)? else {
            if bytes.len() > REQUEST_MAX || stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        };
        bytes.drain(..end);
        let mut visit = Visit::new(&shared, &request);
        let fault = visit.fault();
        let reply = visit.answer(fault.as_ref()).await;
        let encoded = visit.note(reply).encode();
        match fault {
            Some(Fault::Cut { after_bytes }) => {
                return stream.write_all(&encoded[..after_bytes.min(encoded.len())]).await;
            }
            Some(Fault::LateAnswer(delay)) => tokio::time::sleep(delay).await,
            _ => {}
        }
        stream.write_all(&encoded).await?;
    }
}

/// One request on its way through.
struct Visit<'a> {
    shared: &'a Shared,
    /// With `{id}` in the place of an id.
    endpoint: String,
    id: String,
    query: &'a str,
    body: &'a [u8],
    call: Call,
}

impl<'a> Visit<'a> {
    fn new(shared: &'a Shared, request: &'a Request) -> Self {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let header = |name: &str| request.header(name).map(str::to_owned);
        let call = Call {
            method: request.method.clone(),
            path: path.to_owned(),
            params: Value::Null,
            headers: request.headers.clone(),
            key: header("idempotency-key").filter(|_| request.method == "POST"),
            account: header("stripe-account"),
            status: 0,
            worked: false,
            replayed: false,
        };
        let (collection, last) = path.rsplit_once('/').unwrap_or_default();
        let (endpoint, id) = match format!("{} {path}", request.method) {
            whole if params::of(&whole).is_some() => (whole, ""),
            _ => (format!("{} {collection}/{{id}}", request.method), last),
        };
        Self { shared, endpoint, id: id.to_owned(), query, body: &request.body, call }
    }

    /// The first fault that waits for this request.
    fn fault(&self) -> Option<Fault> {
        let mut state = locked(&self.shared.state);
        let n = state.faults.iter().position(|(at, _)| at.is_empty() || *at == self.endpoint)?;
        state.faults.remove(n).map(|(_, fault)| fault)
    }

    async fn answer(&mut self, fault: Option<&Fault>) -> Reply {
        if let Err(reply) = self.enter(fault) {
            return reply;
        }
        if let Some(Fault::LateWork(delay)) = fault {
            tokio::time::sleep(*delay).await;
        }
        self.work(fault)
    }

    /// Everything before the work. What ends here leaves nothing behind; otherwise the key is in use from now on.
    fn enter(&mut self, fault: Option<&Fault>) -> Result<(), Reply> {
        let refused = |refusal: Refusal| refusal.reply();
        self.authorize().map_err(refused)?;
        if let Some(reply) = fault.and_then(Fault::at_the_door) {
            return Err(reply);
        }
        let table = params::of(&self.endpoint)
            .ok_or_else(|| Refusal::no_endpoint(&self.call.method, &self.call.path).reply())?;
        let given = if self.call.method == "POST" { self.body } else { self.query.as_bytes() };
        self.call.params = params::read(given).map_err(refused)?;
        let used_for = self.used_for();
        let mut state = locked(&self.shared.state);
        if let Some(key) = &self.call.key
            && let Some(reply) = state.keys.replay(self.account(), key, &used_for).map_err(refused)?
        {
            drop(state);
            self.call.replayed = true;
            return Err(reply);
        }
        params::check(&self.call.params, table).map_err(refused)?;
        if self.call.params.get("expand").is_some() {
            let message = "This property cannot be expanded: the lab expands nothing.";
            return Err(Refusal::new(400, Some("property_cannot_be_expanded"), message).reply());
        }
        if let Some(key) = &self.call.key {
            state.keys.begin(self.account(), key, &used_for);
        }
        Ok(())
    }

    fn authorize(&self) -> Result<(), Refusal> {
        let given = self.call.header("authorization");
        if given.and_then(|header| header.strip_prefix("Bearer ")) != Some(&self.shared.key) {
            return Err(Refusal::unauthorized(given));
        }
        let account = self.account();
        if !locked(&self.shared.state).accounts.contains_key(account) {
            return Err(Refusal::account(account));
        }
        Ok(())
    }

    fn work(&mut self, fault: Option<&Fault>) -> Reply {
        let account = self.account().to_owned();
        let mut state = locked(&self.shared.state);
        let books = state.accounts.get_mut(&account).expect("it was there when the caller was let in");
        let result = match fault {
            Some(Fault::StoredError) => Err(Refusal::server_error()),
            _ => self.act(books),
        };
        let created = result.is_ok() && self.call.method == "POST";
        let reply = match (result, fault) {
            (Ok(_), Some(Fault::ErrorAfterWork)) => Refusal::server_error().reply(),
            (Ok(value), _) => json_reply(200, &value),
            (Err(refusal), _) => refusal.reply(),
        };
        if let Some(key) = &self.call.key {
            state.keys.keep(&account, key, &reply);
        }
        drop(state);
        self.call.worked = created;
        reply
    }

    fn act(&self, books: &mut Books) -> Result<Value, Refusal> {
        let params = &self.call.params;
        let one = |kind: &str| {
            books.find(kind, &self.id).cloned().ok_or_else(|| Refusal::no_such(404, kind, &self.id, "id"))
        };
        let page = |kind: &str| list::page(books, kind, &self.call.path, params);
        match self.endpoint.as_str() {
            "GET /v1/checkout/sessions/{id}" => one("checkout.session"),
            "GET /v1/payment_intents/{id}" => one("payment_intent"),
            "GET /v1/charges/{id}" => one("charge"),
            "GET /v1/balance_transactions/{id}" => one("balance_transaction"),
            "GET /v1/refunds/{id}" => one("refund"),
            "GET /v1/events/{id}" => one("event"),
            "GET /v1/payment_intents" => page("payment_intent"),
            "GET /v1/refunds" => page("refund"),
            "GET /v1/events" => page("event"),
            "POST /v1/refunds" => create::refund(books, params, now()),
            "POST /v1/checkout/sessions" => create::session(books, params, now()),
            _ => Err(Refusal::no_endpoint(&self.call.method, &self.call.path)),
        }
    }

    /// Writes the request down before its answer is sent.
    fn note(self, reply: Reply) -> Reply {
        let mut state = locked(&self.shared.state);
        let id = format!("req_lab{:08}", state.calls.len());
        state.calls.push(Call { status: reply.status, ..self.call });
        reply.with_header("request-id", &id)
    }

    fn account(&self) -> &str {
        self.call.account.as_deref().unwrap_or_default()
    }

    /// What a key is bound to.
    fn used_for(&self) -> String {
        format!("{} {} {}", self.call.method, self.call.path, self.call.params)
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() as i64
}

#[cfg(test)]
mod tests;
