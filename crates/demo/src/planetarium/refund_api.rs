//! A small part of Stripe's API, with a memory: payments that came in, and the refunds of them that are listed and made.
//!
//! Idempotency keys are real. Some answers are lost after the work was done, some requests get a 500 before it, and some refunds
//! are sent back by the bank; which ones follows from the seed and from how many came before. What Stripe would tell of all this
//! is handed out by [`RefundApi::take_events`]. Runs on a thread of its own until dropped.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::now_ms;
use crate::app::Reply;
use crate::rng::Rng;
use crate::server::{ServedRequest, StubServer, locked};
use crate::sink::REQUEST_MAX;
use crate::traffic::{now_seconds, run_of};

/// Per cent of the refunds whose answer is lost, and that are first answered 500.
const LOST: u64 = 20;
const BROKEN: u64 = 5;
/// Of the refunds of what customers cancelled the third is sent back by the bank, and one in so many after it.
const SENT_BACK_EVERY: usize = 20;
const SENT_BACK_FIRST: usize = 3;
/// How Sekisho calls the order that such a refund carries out.
const CANCELLED: &str = "cancel/";

#[derive(Debug)]
pub struct RefundApi {
    server: StubServer,
    books: Arc<Mutex<RefundBooks>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeRefund {
    pub id: String,
    pub intent: String,
    pub amount: i64,
    pub made_ms: u64,
    /// The bank sent the money back: the refund failed in the end.
    pub is_sent_back: bool,
}

#[derive(Debug)]
struct RefundBooks {
    key: String,
    run: String,
    rng: Rng,
    events: Vec<Value>,
    events_made: usize,
    /// Charge and amount, by payment intent.
    payments: HashMap<String, (Value, i64)>,
    refunds: Vec<(MadeRefund, Value)>,
    /// Refunds of what customers cancelled.
    cancelled: usize,
    /// First answers, by idempotency key.
    answers: HashMap<String, Reply>,
    /// Keys that had their accident.
    unlucky: HashSet<String>,
    answers_lost: u64,
}

/// An answer, and whether the caller hears it.
struct Answered {
    reply: Reply,
    is_lost: bool,
}

impl RefundApi {
    /// Callers need this key.
    pub fn start(seed: u64, key: &str) -> io::Result<Self> {
        let mut rng = Rng::new(seed ^ 0x5245_4655);
        let books = Arc::new(Mutex::new(RefundBooks {
            key: key.to_owned(),
            run: run_of(rng.next_u64()),
            rng,
            events: Vec::new(),
            events_made: 0,
            payments: HashMap::new(),
            refunds: Vec::new(),
            cancelled: 0,
            answers: HashMap::new(),
            unlucky: HashSet::new(),
            answers_lost: 0,
        }));
        let serving = Arc::clone(&books);
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        let server = StubServer::start(listen, move |stream| serve(stream, Arc::clone(&serving)))?;
        Ok(Self { server, books })
    }

    /// Without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Somebody pays for an order; the payment intent.
    pub(super) fn pay(&self, amount: i64, reference: &str) -> String {
        locked(&self.books).pay(amount, reference)
    }

    /// What Stripe has to tell since this was called last.
    pub(super) fn take_events(&self) -> Vec<Value> {
        std::mem::take(&mut locked(&self.books).events)
    }

    pub(super) fn has_events(&self) -> bool {
        !locked(&self.books).events.is_empty()
    }

    pub fn refunds(&self) -> Vec<MadeRefund> {
        locked(&self.books).refunds.iter().map(|(made, _)| made.clone()).collect()
    }

    pub fn answers_lost(&self) -> u64 {
        locked(&self.books).answers_lost
    }
}

impl RefundBooks {
    fn pay(&mut self, amount: i64, reference: &str) -> String {
        let n = self.payments.len();
        let [intent, charge] = ["pi", "ch"].map(|prefix| format!("{prefix}_{}p{n:05}", self.run));
        let metadata = json!({ "order_id": reference });
        let charge = json!({
            "id": charge,
            "object": "charge",
            "amount": amount,
            "amount_captured": amount,
            "amount_refunded": 0,
            "balance_transaction": null,
            "captured": true,
            "created": now_seconds(),
            "currency": "jpy",
            "livemode": false,
            "metadata": metadata,
            "paid": true,
            "payment_intent": intent,
            "refunded": false,
            "status": "succeeded",
        });
        let paid = json!({
            "id": intent,
            "object": "payment_intent",
            "amount": amount,
            "amount_received": amount,
            "created": now_seconds(),
            "currency": "jpy",
            "latest_charge": charge["id"],
            "livemode": false,
            "metadata": metadata,
            "payment_method_types": ["card"],
            "status": "succeeded",
        });
        self.tell("charge.succeeded", &charge);
        self.tell("payment_intent.succeeded", &paid);
        self.payments.insert(intent.clone(), (charge, amount));
        intent
    }

    fn tell(&mut self, kind: &str, object: &Value) {
        self.events_made += 1;
        self.events.push(json!({
            "id": format!("evt_{}p{:05}", self.run, self.events_made),
            "object": "event",
            "api_version": "2026-10-28.endive",
            "created": now_seconds(),
            "data": { "object": object },
            "livemode": false,
            "pending_webhooks": 1,
            "request": { "id": null, "idempotency_key": null },
            "type": kind,
        }));
    }

    fn answer(&mut self, request: &ServedRequest) -> Answered {
        let heard = |reply| Answered { reply, is_lost: false };
        if request.header("authorization") != Some(&format!("Bearer {}", self.key)) {
            return heard(refusal(401, None, "Invalid API Key provided"));
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match (&*request.method, path) {
            ("GET", "/v1/refunds") => heard(self.list(&fields(query))),
            ("POST", "/v1/refunds") => {
                let key = request.header("idempotency-key").unwrap_or_default().to_owned();
                self.post(&key, &fields(&String::from_utf8_lossy(&request.body)))
            }
            _ => heard(refusal(404, Some("resource_missing"), "No such object")),
        }
    }

    fn list(&self, wanted: &HashMap<String, String>) -> Reply {
        let is_wanted = |refund: &Value| {
            ["payment_intent", "charge"]
                .iter()
                .all(|name| wanted.get(*name).is_none_or(|id| refund[*name] == id.as_str()))
        };
        let newest_first = self.refunds.iter().rev().map(|(_, refund)| refund);
        let data: Vec<_> = newest_first.filter(|refund| is_wanted(refund)).collect();
        body(&json!({ "object": "list", "data": data, "has_more": false, "url": "/v1/refunds" }))
    }

    /// Once for each key: the first answer again, as Stripe gives it.
    fn post(&mut self, key: &str, form: &HashMap<String, String>) -> Answered {
        if let Some(reply) = self.answers.get(key) {
            let reply = reply.clone().with_header("idempotent-replayed", "true");
            return Answered { reply, is_lost: false };
        }
        let accident = self.rng.below(100);
        let is_first = self.unlucky.insert(key.to_owned());
        if is_first && accident < BROKEN {
            self.answers_lost += 1;
            return Answered { reply: refusal(500, None, "Something went wrong"), is_lost: false };
        }
        let reply = self.refund(form).map_or_else(|refused| refused, |refund| body(&refund));
        self.answers.insert(key.to_owned(), reply.clone());
        let is_lost = is_first && accident < BROKEN + LOST;
        self.answers_lost += u64::from(is_lost);
        Answered { reply, is_lost }
    }

    fn refund(&mut self, form: &HashMap<String, String>) -> Result<Value, Reply> {
        let missing = || refusal(400, Some("resource_missing"), "No such payment_intent");
        let named = |(intent, (charge, _)): &(&String, &(Value, i64))| {
            form.get("payment_intent").is_some_and(|id| id == *intent)
                || form.get("charge").is_some_and(|id| charge["id"] == id.as_str())
        };
        let (intent, (charge, received)) = self.payments.iter().find(named).ok_or_else(missing)?;
        let (intent, charge, received) = (intent.clone(), charge.clone(), *received);
        let counts = |(made, _): &&(MadeRefund, Value)| made.intent == intent && !made.is_sent_back;
        let before: i64 = self.refunds.iter().filter(counts).map(|(made, _)| made.amount).sum();
        let left = received - before;
        let amount = form.get("amount").and_then(|amount| amount.parse().ok()).unwrap_or(left);
        if left <= 0 {
            return Err(refusal(400, Some("charge_already_refunded"), "Charge has already been refunded."));
        }
        if !(1..=left).contains(&amount) {
            return Err(refusal(400, Some("amount_too_large"), "Refund amount is greater than what is left"));
        }
        let number = self.refunds.len() + 1;
        let is_cancel =
            form.get("metadata[sekisho_refund]").is_some_and(|order| order.starts_with(CANCELLED));
        self.cancelled += usize::from(is_cancel);
        let is_sent_back = is_cancel && self.cancelled % SENT_BACK_EVERY == SENT_BACK_FIRST;
        let metadata: serde_json::Map<_, _> = form
            .iter()
            .filter_map(|(name, value)| {
                let name = name.strip_prefix("metadata[")?.strip_suffix(']')?;
                Some((name.to_owned(), json!(value)))
            })
            .collect();
        let mut refund = json!({
            "id": format!("re_{}p{number:05}", self.run),
            "object": "refund",
            "amount": amount,
            "balance_transaction": null,
            "charge": charge["id"],
            "created": now_seconds(),
            "currency": "jpy",
            "metadata": metadata,
            "payment_intent": intent,
            "reason": form.get("reason"),
            "status": if is_sent_back { "pending" } else { "succeeded" },
        });
        let id = refund["id"].as_str().unwrap_or_default().to_owned();
        let answer = refund.clone();
        self.tell("refund.created", &refund);
        if is_sent_back {
            refund["status"] = json!("failed");
            refund["failure_reason"] = json!("expired_or_canceled_card");
            self.tell("refund.failed", &refund);
        } else {
            let mut refunded = charge;
            refunded["amount_refunded"] = json!(before + amount);
            refunded["refunded"] = json!(before + amount == received);
            self.tell("charge.refunded", &refunded);
        }
        self.refunds.push((MadeRefund { id, intent, amount, made_ms: now_ms(), is_sent_back }, refund));
        Ok(answer)
    }
}

async fn serve(mut stream: TcpStream, books: Arc<Mutex<RefundBooks>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(4 << 10);
    loop {
        let Some((request, end)) = ServedRequest::parse(&bytes)? else {
            if bytes.len() > REQUEST_MAX || stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        };
        bytes.drain(..end);
        let answered = locked(&books).answer(&request);
        if answered.is_lost {
            return Ok(());
        }
        stream.write_all(&answered.reply.encode()).await?;
    }
}

fn body(value: &Value) -> Reply {
    Reply::status(200).with_header("content-type", "application/json").with_body(&value.to_string())
}

fn refusal(status: u16, code: Option<&str>, message: &str) -> Reply {
    let kind = if status < 500 { "invalid_request_error" } else { "api_error" };
    let param = code.filter(|code| code.starts_with("amount")).map(|_| "amount");
    let error = json!({ "error": { "type": kind, "code": code, "param": param, "message": message } });
    Reply::status(status).with_header("content-type", "application/json").with_body(&error.to_string())
}

/// `name=value&…`, as forms and queries have it.
fn fields(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (plain(name), plain(value))).collect()
}

fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = (digit().unwrap_or_default(), digit().unwrap_or_default());
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
