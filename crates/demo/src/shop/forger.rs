//! Somebody who knows what Stripe's events look like and lacks the secret, or has only an old request.

use std::sync::Arc;

use ring::hmac;

use super::Shop;
use crate::rng::Rng;
use crate::traffic::{Traffic, now_seconds, post_signed};

/// Older than any tolerance.
const STALE_S: u64 = 3_600;
const GARBAGE_BYTES: u64 = 600;

/// What the n-th request is: its kind is n modulo their number.
pub const FORGERIES: [&str; 4] = ["wrong signature", "stale timestamp", "changed body", "garbage"];

#[derive(Debug)]
pub struct Forger {
    shop: Arc<Shop>,
    own: hmac::Key,
    seed: u64,
}

impl Forger {
    pub fn beside(shop: Arc<Shop>, seed: u64) -> Self {
        Self { shop, own: hmac::Key::new(hmac::HMAC_SHA256, b"whsec_of_somebody_else"), seed }
    }

    /// An event of the shop under a name of the forger's.
    fn body(&self, n: u64, rng: &mut Rng) -> (String, String) {
        let events = &self.shop.events;
        let event = &events[rng.below(events.len() as u64) as usize];
        (event.body.clone(), event.body.replace(&event.id, &self.event_id(n)))
    }
}

impl Traffic for Forger {
    fn write(&self, n: u64, request: &mut Vec<u8>) {
        let mut rng = Rng::new(self.seed ^ n.rotate_left(32));
        let (genuine, forged) = self.body(n, &mut rng);
        let (path, now) = (&self.shop.path, now_seconds());
        let mut post = |key, at, says: &[u8], body: &[u8]| post_signed(path, key, at, says, body, request);
        match n % FORGERIES.len() as u64 {
            0 => post(&self.own, now, forged.as_bytes(), forged.as_bytes()),
            1 => post(&self.shop.key, now - STALE_S, forged.as_bytes(), forged.as_bytes()),
            2 => post(&self.shop.key, now, genuine.as_bytes(), forged.as_bytes()),
            _ => {
                let mut garbage = vec![0; rng.between(1, GARBAGE_BYTES) as usize];
                rng.fill(&mut garbage);
                post(&self.own, now, &garbage, &garbage);
            }
        }
    }

    fn event_id(&self, n: u64) -> String {
        format!("evt_forged{n:06}")
    }
}
