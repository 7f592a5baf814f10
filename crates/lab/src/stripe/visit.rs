//! One request on its way through: let in, worked on, written down.

use serde_json::Value;

use super::access::KeyAccess;
use super::books::{RefundCause, StripeBooks, text};
use super::fault::StripeFault;
use super::ledger::StripeCall;
use super::refusal::{StripeRefusal, json_reply};
use super::{Shared, list, params, refund, session};
use crate::app::Reply;
use crate::server::{ServedRequest, locked};

pub struct StripeVisit<'a> {
    shared: &'a Shared,
    /// With `{id}` in the place of an id.
    endpoint: String,
    id: String,
    /// Form or query.
    given: &'a [u8],
    call: StripeCall,
}

impl<'a> StripeVisit<'a> {
    pub fn new(shared: &'a Shared, request: &'a ServedRequest) -> Self {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let header = |name: &str| request.header(name).map(str::to_owned);
        let given = if request.method == "POST" { &request.body } else { query.as_bytes() };
        let mut state = locked(&shared.state);
        state.requests += 1;
        let call = StripeCall {
            method: request.method.clone(),
            path: path.to_owned(),
            params: params::read(given).unwrap_or_default(),
            headers: request.headers.clone(),
            key: header("idempotency-key").filter(|_| request.method == "POST"),
            account: header("stripe-account"),
            request_id: format!("req_lab{:08}", state.requests),
            arrived: state.tick(),
            answered: 0,
            status: 0,
            is_cut: false,
            worked: false,
            made: None,
            replayed: false,
        };
        let (endpoint, id) = endpoint(&request.method, path);
        Self { shared, endpoint, id: id.to_owned(), given, call }
    }

    /// The first fault that waits for this request.
    pub fn fault(&self) -> Option<StripeFault> {
        let mut state = locked(&self.shared.state);
        let n = state.faults.iter().position(|(at, _)| at.is_empty() || *at == self.endpoint)?;
        state.faults.remove(n).map(|(_, fault)| fault)
    }

    pub async fn answer(&mut self, fault: Option<&StripeFault>) -> Reply {
        if let Err(reply) = self.enter(fault) {
            return reply;
        }
        if let Some(StripeFault::LateWork(delay)) = fault {
            tokio::time::sleep(*delay).await;
        }
        self.work(fault)
    }

    /// Everything before the work. What ends here leaves nothing behind; otherwise the key is in use from now on.
    fn enter(&mut self, fault: Option<&StripeFault>) -> Result<(), Reply> {
        let refused = |refusal: StripeRefusal| refusal.reply();
        self.authorize().map_err(refused)?;
        if let Some(reply) = fault.and_then(StripeFault::at_the_door) {
            return Err(reply);
        }
        let table = params::of(&self.endpoint)
            .ok_or_else(|| StripeRefusal::no_endpoint(&self.call.method, &self.call.path).reply())?;
        params::read(self.given).map_err(refused)?;
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
            return Err(StripeRefusal::new(400, Some("property_cannot_be_expanded"), message).reply());
        }
        if let Some(key) = &self.call.key {
            state.keys.begin(self.account(), key, &used_for);
        }
        Ok(())
    }

    fn authorize(&self) -> Result<(), StripeRefusal> {
        let given = self.call.header("authorization");
        let state = locked(&self.shared.state);
        let is_right = given.and_then(|header| header.strip_prefix("Bearer ")) == Some(&state.key);
        match state.access {
            KeyAccess::Full | KeyAccess::ReadOnly if !is_right => {
                return Err(StripeRefusal::unauthorized(given));
            }
            KeyAccess::Refused => return Err(StripeRefusal::unauthorized(given)),
            KeyAccess::ReadOnly if self.call.method != "GET" => {
                return Err(StripeRefusal::no_permission(given));
            }
            KeyAccess::Full | KeyAccess::ReadOnly => {}
        }
        let account = self.account();
        if !state.accounts.contains_key(account) {
            return Err(StripeRefusal::account(account));
        }
        Ok(())
    }

    fn work(&mut self, fault: Option<&StripeFault>) -> Reply {
        let account = self.account().to_owned();
        let mut state = locked(&self.shared.state);
        let now = state.now();
        let books = state.accounts.get_mut(&account).expect("it was there when the caller was let in");
        books.request =
            Some(RefundCause { request_id: self.call.request_id.clone(), key: self.call.key.clone() });
        let result = match fault {
            Some(StripeFault::StoredError) => Err(StripeRefusal::server_error()),
            Some(StripeFault::Disputed) => {
                Err(StripeRefusal::disputed(self.call.payment().unwrap_or_default()))
            }
            _ => self.act(books, now),
        };
        books.request = None;
        let made = result.as_ref().ok().filter(|_| self.call.method == "POST").map(|made| text(made, "id"));
        let reply = match (result, fault) {
            (Ok(_), Some(StripeFault::ErrorAfterWork)) => StripeRefusal::server_error().reply(),
            (Ok(value), _) => json_reply(200, &value),
            (Err(refusal), _) => refusal.reply(),
        };
        if let Some(key) = &self.call.key {
            state.keys.keep(&account, key, &reply);
        }
        drop(state);
        self.call.worked = made.is_some();
        self.call.made = made;
        reply
    }

    fn act(&self, books: &mut StripeBooks, now: i64) -> Result<Value, StripeRefusal> {
        let params = &self.call.params;
        let one = |kind: &str| {
            books
                .find(kind, &self.id)
                .cloned()
                .ok_or_else(|| StripeRefusal::no_such(404, kind, &self.id, "id"))
        };
        let page = |kind: &str| list::page(books, kind, &self.call.path, params);
        match self.endpoint.as_str() {
            "GET /v1/checkout/sessions/{id}" => one("checkout.session"),
            "GET /v1/payment_intents/{id}" => one("payment_intent"),
            "GET /v1/charges/{id}" => one("charge"),
            "GET /v1/balance_transactions/{id}" => one("balance_transaction"),
            "GET /v1/refunds/{id}" => one("refund"),
            "GET /v1/events/{id}" => one("event"),
            "GET /v1/balance_transactions" => page("balance_transaction"),
            "GET /v1/charges" => page("charge"),
            "GET /v1/checkout/sessions" => page("checkout.session"),
            "GET /v1/payment_intents" => page("payment_intent"),
            "GET /v1/refunds" => page("refund"),
            "GET /v1/events" => page("event"),
            "POST /v1/refunds" => refund::create(books, params, now),
            "POST /v1/checkout/sessions" => session::create(books, params, now),
            "POST /v1/checkout/sessions/{id}/expire" => session::expire(books, &self.id, now),
            _ => Err(StripeRefusal::no_endpoint(&self.call.method, &self.call.path)),
        }
    }

    /// Writes the request down before its answer is sent.
    pub fn note(self, reply: Reply, fault: Option<&StripeFault>) -> Reply {
        let mut state = locked(&self.shared.state);
        let reply = reply.with_header("request-id", &self.call.request_id);
        let is_cut = matches!(fault, Some(StripeFault::Cut { .. }));
        let answered = state.tick();
        state.calls.push(StripeCall { status: reply.status, is_cut, answered, ..self.call });
        reply
    }

    fn account(&self) -> &str {
        self.call.account.as_deref().unwrap_or_default()
    }

    /// What a key is bound to.
    fn used_for(&self) -> String {
        format!("{} {} {}", self.call.method, self.call.path, self.call.params)
    }
}

/// The name of an endpoint, with `{id}` in the place of an id, and the id.
fn endpoint<'a>(method: &str, path: &'a str) -> (String, &'a str) {
    let whole = format!("{method} {path}");
    if params::of(&whole).is_some() {
        return (whole, "");
    }
    let (above, last) = path.rsplit_once('/').unwrap_or_default();
    let (collection, middle) = above.rsplit_once('/').unwrap_or_default();
    let verb = format!("{method} {collection}/{{id}}/{last}");
    if params::of(&verb).is_some() { (verb, middle) } else { (format!("{method} {above}/{{id}}"), last) }
}
