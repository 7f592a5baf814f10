//! Limits that cost next to nothing: bytes held in memory, requests a second, and who is really calling.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Instant;

use http::HeaderMap;

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
        let next = |due: i64| {
            let next = due.max(now) + self.interval;
            (next - now <= SECOND).then_some(next)
        };
        self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
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
