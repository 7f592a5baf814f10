//! The provider in a torture: small signed Stripe events about few objects, some sent twice at once, and somebody who
//! forges. What was acknowledged goes into a file per node, the moment it was.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ring::hmac;

use crate::load::{Load, LoadResend, Pace, Recording, Report, RunningLoad};
use crate::traffic::{Traffic, now_seconds, post_signed};

pub const SECRET: &str = "whsec_lab_torture";
/// One request in so many repeats the event of the one before.
const REPEAT_EVERY: u64 = 20;
const FORGERIES_PER_SECOND: f64 = 5.0;
const CONNECTIONS: usize = 8;
/// Shorter than a pause: events of unknown outcome are sent again to a node that stood still.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Every event of every node has its own number; `node` keeps them apart.
#[derive(Debug)]
pub struct Events {
    run: String,
    node: usize,
    /// Events are about so many objects in turn.
    objects: u64,
    key: hmac::Key,
    /// The same in every copy of an event.
    created: u64,
}

impl Events {
    pub fn new(seed: u64, node: usize, objects: u64) -> Self {
        Self::signed(SECRET, format!("t{seed:x}n"), node, objects)
    }

    fn forged(seed: u64, node: usize) -> Self {
        Self::signed("whsec_of_somebody_else", format!("forged{seed:x}n"), node, 1)
    }

    fn signed(secret: &str, run: String, node: usize, objects: u64) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        Self { run, node, objects: objects.max(1), key, created: now_seconds() }
    }

    fn number(n: u64) -> u64 {
        n - u64::from(n % REPEAT_EVERY == REPEAT_EVERY - 1)
    }

    /// Every third event is a refund, which not all routes want.
    fn kind(number: u64) -> &'static str {
        if number % 3 == 2 { "charge.refunded" } else { "payment_intent.succeeded" }
    }
}

impl Traffic for Events {
    fn write(&self, n: u64, request: &mut Vec<u8>) {
        let (number, at) = (Self::number(n), now_seconds());
        let is_paid = Self::kind(number) == "payment_intent.succeeded";
        let body = format!(
            r#"{{"id":"{}","object":"event","created":{},"livemode":false,"type":"{}","data":{{"object":{{"id":"pi_{}{}_{}","object":"payment_intent","amount":{},"amount_received":{},"currency":"jpy","status":"{}"}}}}}}"#,
            self.event_id(n),
            self.created,
            Self::kind(number),
            self.run,
            self.node,
            number % self.objects,
            100 + number,
            if is_paid { 100 + number } else { 0 },
            if is_paid { "succeeded" } else { "processing" }
        );
        post_signed("/webhooks/stripe", &self.key, at, body.as_bytes(), body.as_bytes(), request);
    }

    fn event_id(&self, n: u64) -> String {
        format!("evt_{}{}x{}", self.run, self.node, Self::number(n))
    }
}

/// Somebody who sends to one node until told to stop, and again what was not acknowledged.
#[derive(Debug)]
pub struct Storm {
    genuine: RunningLoad,
    forger: RunningLoad,
    events: Arc<Events>,
    ledger: PathBuf,
}

/// What one storm knows in the end.
#[derive(Debug)]
pub struct StormSent {
    pub report: Report,
    /// Every event that may have been sent.
    pub ids: Vec<String>,
    /// Forgeries that were answered 2xx.
    pub forgeries_accepted: u64,
    pub forgeries: u64,
}

impl Storm {
    pub fn start(
        address: SocketAddr,
        events: Events,
        per_second: f64,
        seed: u64,
        dir: &Path,
    ) -> Result<Self, String> {
        let ledger = dir.join(format!("acknowledged-{}", events.node));
        let recording = Recording::to_file(&ledger)
            .map_err(|error| format!("{} can't be written: {error}", ledger.display()))?;
        let load = Load {
            connections: CONNECTIONS,
            pace: Pace::Open { per_second },
            duration: Duration::from_hours(24),
            answer_timeout: ANSWER_WITHIN,
            ..Load::new(address)
        };
        let forger =
            Load { connections: 1, pace: Pace::Open { per_second: FORGERIES_PER_SECOND }, ..load.clone() };
        let forger = Load { stop: Arc::default(), ..forger };
        let genuine = Load { resend: LoadResend::UntilAcknowledged, ledger: recording, ..load };
        let forged = Events::forged(seed, events.node);
        let events = Arc::new(events);
        Ok(Self {
            genuine: genuine.start(Arc::clone(&events) as Arc<dyn Traffic>),
            forger: forger.start(Arc::new(forged)),
            events,
            ledger,
        })
    }

    /// Grows with every acknowledged event.
    pub fn acknowledged_bytes(&self) -> u64 {
        std::fs::metadata(&self.ledger).map_or(0, |file| file.len())
    }

    pub fn stop(self) -> StormSent {
        let (report, forged) = (self.genuine.stop(), self.forger.stop());
        let mut ids: Vec<_> = (0..report.next).map(|n| self.events.event_id(n)).collect();
        ids.dedup();
        StormSent {
            report,
            ids,
            forgeries_accepted: forged.acknowledged(),
            forgeries: forged.statuses.values().sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_in_twenty_repeats_its_neighbour_byte_for_byte() {
        let events = Events::new(7, 1, 5);
        let body = |n| {
            let mut bytes = Vec::new();
            events.write(n, &mut bytes);
            String::from_utf8(bytes).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned()
        };
        assert_eq!(body(18), body(19));
        assert_ne!(body(19), body(20));
        assert_eq!(events.event_id(19), events.event_id(18));
        assert!(body(23).contains("\"id\":\"pi_t7n1_3\""), "{}", body(23));
        assert_ne!(events.event_id(1), Events::new(7, 2, 5).event_id(1));
    }
}
