//! What Stripe's stand-in has to say of orders, sent as Stripe does: signed, some of it late, some of it twice, and each until
//! it is acknowledged.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ring::hmac;
use serde_json::Value;

use super::ledger::WebhookCount;
use crate::rng::Rng;
use crate::server::locked;
use crate::traffic::{now_seconds, signature};

/// Per cent of the events that come twice, and that come late.
const REPEATED: u64 = 15;
const LATE: u64 = 15;

#[derive(Debug)]
pub(super) struct WebhookSender {
    key: hmac::Key,
    rng: Mutex<Rng>,
    count: Mutex<WebhookCount>,
    /// Events that are not acknowledged as often as they are to be.
    open: AtomicUsize,
}

pub(super) struct PlannedSending {
    pub id: String,
    pub body: String,
    /// Before each time that it is sent.
    pub waits: Vec<Duration>,
}

impl WebhookSender {
    pub fn new(secret: &str, seed: u64) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
            rng: Mutex::new(Rng::new(seed)),
            count: Mutex::default(),
            open: AtomicUsize::new(0),
        }
    }

    pub fn plan(&self, event: &Value) -> PlannedSending {
        let mut rng = locked(&self.rng);
        let ms = |rng: &mut Rng, low, high| Duration::from_millis(rng.between(low, high));
        let is_late = rng.below(100) < LATE;
        let mut waits = vec![if is_late { ms(&mut rng, 500, 1_500) } else { ms(&mut rng, 0, 60) }];
        if rng.below(100) < REPEATED {
            waits.push(ms(&mut rng, 0, 900));
        }
        let id = event["id"].as_str().unwrap_or_default().to_owned();
        let mut count = locked(&self.count);
        count.events.insert(id.clone());
        count.planned += waits.len() as u64;
        self.open.fetch_add(1, Ordering::SeqCst);
        PlannedSending { id, body: event.to_string(), waits }
    }

    pub fn headers(&self, body: &str) -> Vec<(String, String)> {
        let at = now_seconds();
        let signed = format!("t={at},v1={}", signature(&self.key, at, body.as_bytes()));
        let json = ("content-type".to_owned(), "application/json; charset=utf-8".to_owned());
        vec![json, ("stripe-signature".to_owned(), signed)]
    }

    pub fn requested(&self) {
        locked(&self.count).requests += 1;
    }

    pub fn acknowledged(&self, id: &str) {
        locked(&self.count).acknowledged.push(id.to_owned());
    }

    pub fn done(&self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn is_idle(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0
    }

    pub fn count(&self) -> WebhookCount {
        locked(&self.count).clone()
    }
}
