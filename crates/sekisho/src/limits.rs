//! Limits that cost next to nothing: bytes held in memory, requests a second, and who is really calling.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::time::Instant;

/// How many bytes of requests may be in memory at once.
#[derive(Clone)]
pub struct Bytes {
    held: Arc<AtomicUsize>,
    most: usize,
}

impl Bytes {
    pub fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    pub fn hold(&self) -> Held {
        Held { of: self.clone(), bytes: 0 }
    }
}

/// A share of [`Bytes`], given back when dropped. It goes where the bytes go: a caller who hangs up does not free
/// what still waits for the store.
pub struct Held {
    of: Bytes,
    bytes: usize,
}

impl Held {
    /// Takes more; false when there is no room.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let before = self.of.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        before + bytes <= self.of.most
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Requests a second, with a burst of one second's worth (the generic cell rate algorithm).
pub struct Rate {
    started: Instant,
    /// Nanoseconds between two requests.
    interval: i64,
    /// When the next request would be due if all came evenly.
    due: AtomicI64,
}

const SECOND: i64 = 1_000_000_000;

impl Rate {
    pub fn per_second(requests: u32) -> Self {
        Self {
            started: Instant::now(),
            interval: SECOND / i64::from(requests.max(1)),
            due: AtomicI64::new(0),
        }
    }

    pub fn allow(&self) -> bool {
        self.allow_at(self.started.elapsed().as_nanos() as i64)
    }

    fn allow_at(&self, now: i64) -> bool {
        let next = |due: i64| after(due, now, self.interval);
        self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// When the next request is due, if this one may come now.
fn after(due: i64, now: i64, interval: i64) -> Option<i64> {
    let next = due.max(now) + interval;
    (next - now <= SECOND).then_some(next)
}

/// Networks watched at once. Each is forgotten a second after its last request at the latest.
const NETWORKS_MAX: usize = 4_096;

/// The same for each network of callers, so that one of them can't use up what is meant for all.
pub struct NetworkRates {
    started: Instant,
    interval: i64,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    due: HashMap<IpNet, i64>,
    cleared_at: i64,
}

impl NetworkRates {
    pub fn per_second(requests: u32) -> Self {
        Self {
            started: Instant::now(),
            interval: SECOND / i64::from(requests.max(1)),
            watched: Mutex::default(),
        }
    }

    pub fn allow(&self, network: IpNet) -> bool {
        self.allow_at(network, self.started.elapsed().as_nanos() as i64)
    }

    /// More networks at once than are watched are left to the limit for all: by then it holds.
    fn allow_at(&self, network: IpNet, now: i64) -> bool {
        let mut watched = self.watched.lock().expect("no code panics here");
        if watched.due.len() >= NETWORKS_MAX && now - watched.cleared_at >= SECOND {
            watched.due.retain(|_, due| *due > now);
            watched.cleared_at = now;
        }
        let known = watched.due.get(&network).copied();
        if known.is_none() && watched.due.len() >= NETWORKS_MAX {
            return true;
        }
        let next = after(known.unwrap_or(0), now, self.interval);
        watched.due.extend(next.map(|next| (network, next)));
        next.is_some()
    }
}

/// The network an address is of, as far as one caller is likely to have more of it: whoever has one IPv6 address has at
/// least 2^64, and often 2^80.
pub fn network(peer: IpAddr) -> IpNet {
    match peer {
        IpAddr::V4(address) => Ipv4Net::new_assert(address, 24).trunc().into(),
        IpAddr::V6(address) => Ipv6Net::new_assert(address, 48).trunc().into(),
    }
}

/// Who calls: the connection's address or, behind trusted proxies, what the outermost of them wrote.
/// An IPv4 address stays one, also on a socket that speaks IPv6.
pub fn caller(connection: IpAddr, headers: &HeaderMap, trusted_proxies: usize) -> IpAddr {
    claimed(connection, headers, trusted_proxies).to_canonical()
}

fn claimed(connection: IpAddr, headers: &HeaderMap, trusted_proxies: usize) -> IpAddr {
    if trusted_proxies == 0 {
        return connection;
    }
    let lines: Vec<_> =
        headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
    let hops: Vec<_> = lines.iter().flat_map(|line| line.split(',')).map(str::trim).collect();
    // Everything left of what our own proxies appended is the caller's own claim.
    hops.len().checked_sub(trusted_proxies).and_then(|n| hops[n].parse().ok()).unwrap_or(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_bytes_are_bounded_and_given_back() {
        let bytes = Bytes::new(100);
        let mut one = bytes.hold();
        assert!(one.grow(60));
        let mut two = bytes.hold();
        assert!(!two.grow(60));
        drop((one, two));
        assert!(bytes.hold().grow(100));
    }

    #[test]
    fn a8_a_rate_lets_a_burst_through_and_then_holds() {
        let rate = Rate::per_second(10);
        assert_eq!((0..50).filter(|_| rate.allow_at(0)).count(), 10);
        assert!(!rate.allow_at(SECOND / 20));
        assert!(rate.allow_at(SECOND / 10));
        assert_eq!((0..50).filter(|_| rate.allow_at(10 * SECOND)).count(), 10);
    }

    #[test]
    fn a8_a_noisy_network_leaves_the_others_their_share() {
        let rates = NetworkRates::per_second(5);
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!((0..80).filter(|n| rates.allow_at(of(&format!("203.0.113.{n}")), 0)).count(), 5);
        assert_eq!((0..80).filter(|n| rates.allow_at(of(&format!("2001:db8:7:{n:x}::1")), 0)).count(), 5);
        assert!(rates.allow_at(of("198.51.100.1"), 0));
        assert!(rates.allow_at(of("203.0.113.1"), SECOND / 5));
    }

    #[test]
    fn a8_networks_are_watched_in_bounded_memory() {
        let rates = NetworkRates::per_second(1);
        let of = |n: usize| network(IpAddr::from([10, (n >> 8) as u8, n as u8, 1]));
        assert!((0..NETWORKS_MAX).all(|n| rates.allow_at(of(n), 0)));
        assert!(!rates.allow_at(of(0), 0));
        assert!((0..3).all(|_| rates.allow_at(of(NETWORKS_MAX), 0)), "left to the limit for all");
        assert_eq!(rates.watched.lock().unwrap().due.len(), NETWORKS_MAX);
        assert!(rates.allow_at(of(NETWORKS_MAX), SECOND) && !rates.allow_at(of(NETWORKS_MAX), SECOND));
        assert_eq!(rates.watched.lock().unwrap().due.len(), 1, "the quiet ones are forgotten");
    }

    #[test]
    fn a8_a_caller_cant_claim_another_address() {
        let connection: IpAddr = "10.0.0.1".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "1.1.1.1, 203.0.113.9".parse().unwrap());
        headers.append("x-forwarded-for", "10.0.0.2".parse().unwrap());
        let from = |hops| caller(connection, &headers, hops).to_string();
        assert_eq!(from(0), "10.0.0.1");
        assert_eq!(from(1), "10.0.0.2");
        assert_eq!(from(2), "203.0.113.9");
        assert_eq!(from(9), "10.0.0.1", "fewer hops than trusted: believe nobody");
        assert_eq!(caller(connection, &HeaderMap::new(), 1).to_string(), "10.0.0.1");
        let mapped = "::ffff:203.0.113.9".parse().unwrap();
        assert_eq!(caller(mapped, &HeaderMap::new(), 0).to_string(), "203.0.113.9");
    }
}
