//! Keeps a record of who was turned away, without letting them fill the disk or wash out what others did: alike refusals
//! become one line with a count, lines are written a few times a second, and the store adds them up by the hour, keeps
//! only the newest few thousand, and of one network only its share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipnet::IpNet;
use sekisho_core::Time;
use sekisho_core::change::Rejection;
use sekisho_store::Store;

use crate::limits::network;
use crate::node::Node;
use crate::stop::Stop;

const FLUSH: Duration = Duration::from_millis(300);
/// Different lines held between two flushes; beyond that only the counters grow.
const LINES_MAX: usize = 1_000;
/// Letters kept of a detail that an attacker may have chosen.
const DETAIL_MAX: usize = 200;

/// A request that did not become an event.
#[derive(Clone, Copy)]
pub struct RefusedRequest<'a> {
    pub source: &'a Arc<str>,
    pub peer: IpAddr,
    pub reason: &'static str,
    pub detail: &'a str,
    pub request_id: &'a str,
    pub at: Time,
}

#[derive(Clone, Default)]
pub struct Recorder {
    lines: Arc<Mutex<BTreeMap<Alike, Line>>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    source: Arc<str>,
    network: IpNet,
    reason: &'static str,
}

struct Line {
    /// The first of them.
    peer: IpAddr,
    at: Time,
    last_at: Time,
    detail: String,
    request_id: String,
    count: i64,
}

impl Recorder {
    pub fn record(&self, refused: RefusedRequest<'_>) {
        let RefusedRequest { source, peer, reason, detail, request_id, at } = refused;
        let mut lines = self.lines.lock().expect("no code panics here");
        let alike = Alike { source: Arc::clone(source), network: network(peer), reason };
        if let Some(line) = lines.get_mut(&alike) {
            line.count += 1;
            line.last_at = line.last_at.max(at);
        } else if lines.len() < LINES_MAX {
            let detail: String =
                detail.chars().filter(|letter| !letter.is_control()).take(DETAIL_MAX).collect();
            // Logged once per flush and kind, so that a flood can't fill the log either.
            tracing::warn!(source = &**source, %peer, error_type = reason, detail, request_id, "request rejected");
            let request_id = request_id.to_owned();
            lines.insert(alike, Line { peer, at, last_at: at, detail, request_id, count: 1 });
        }
    }

    /// Writes what gathered until told to stop, then a last time.
    pub async fn run(self, store: Arc<dyn Store>, node: Arc<Node>, stop: Stop) {
        loop {
            let stopped = tokio::select! {
                biased;
                () = stop.told() => true,
                () = tokio::time::sleep(FLUSH) => false,
            };
            let rejections = self.take(&node);
            if !rejections.is_empty() {
                // A record of refusals is worth no retry: the counters have them.
                if let Err(error) = store.reject(rejections).await {
                    tracing::warn!(
                        error_type = "store_unavailable",
                        error = error.chain(),
                        "rejected requests could not be recorded"
                    );
                }
            }
            if stopped {
                return;
            }
        }
    }

    fn take(&self, node: &Node) -> Vec<Rejection> {
        let lines = std::mem::take(&mut *self.lines.lock().expect("no code panics here"));
        let mut rejections: Vec<_> = lines
            .into_iter()
            .map(|(alike, line)| Rejection {
                seq: node.next_seq(line.at),
                at: line.at,
                last_at: line.last_at,
                source: alike.source.to_string(),
                peer: line.peer.to_string(),
                network: alike.network.to_string(),
                reason: alike.reason.to_owned(),
                detail: line.detail,
                request_id: line.request_id,
                count: line.count,
            })
            .collect();
        rejections.sort_by_key(|rejection| rejection.at);
        rejections
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn a3_one_callers_many_addresses_make_one_line() {
        let recorder = Recorder::default();
        let source: Arc<str> = "stripe".into();
        let of_v6 = |n: u128| IpAddr::from(Ipv6Addr::from_bits((0x2001_0db8 << 96) + (n << 64) + n));
        let of_v4 = |n: u128| IpAddr::from([203, 0, 113, n as u8]);
        for peer in (0..5_000).map(of_v6).chain((0..200).map(of_v4)) {
            recorder.record(RefusedRequest {
                source: &source,
                peer,
                reason: "bad_signature",
                detail: "x",
                request_id: "req_1",
                at: Time::from_ms(1),
            });
        }
        let lines = recorder.lines.lock().unwrap();
        assert_eq!(lines.values().map(|line| line.count).collect::<Vec<_>>(), [200, 5_000]);
    }
}
