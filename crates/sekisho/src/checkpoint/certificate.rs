//! Certificates that PayPal and SNS sign with, fetched once and kept. The provider's file has already checked that
//! the address is the provider's own; here it is fetched over TLS, with little patience and no redirects.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sekisho_core::provider::Certificate;
use tokio::sync::OnceCell;

use super::rejection::network;

/// Enough for a first connection across the world.
const TIMEOUT: Duration = Duration::from_secs(3);
const BYTES_MAX: usize = 64 << 10;
/// Addresses remembered. An attacker can name many on an allowed host, so the bad ones make room first.
const KEPT_MAX: usize = 64;
/// Then it is fetched again: one that was withdrawn is noticed.
const KEEP_GOOD: Duration = Duration::from_secs(24 * 60 * 60);
/// There is nothing at the address.
const KEEP_MADE_UP: Duration = Duration::from_secs(30);
/// Nobody answered, which says nothing of the address.
const KEEP_UNKNOWN: Duration = Duration::from_secs(1);
/// A fetch that lasts longer was given up together with the request.
const UNDER_WAY_MAX: Duration = Duration::from_secs(5);
/// Fetches under way at once: a flood here must not become a flood elsewhere.
const FETCHES_MAX: usize = 4;

/// Why a certificate is not at hand: the sender is asked to come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAtHand {
    pub reason: String,
    /// The host answered, and not with a certificate.
    is_made_up: bool,
}

impl NotAtHand {
    fn unknown(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_made_up: false }
    }

    fn made_up(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_made_up: true }
    }
}

type Fetched = Result<Arc<Certificate>, NotAtHand>;

#[derive(Default)]
pub struct Certificates {
    kept: Mutex<HashMap<String, Kept>>,
}

struct Kept {
    since: Instant,
    asked_by: IpAddr,
    /// Empty while it is being fetched; whoever else wants it waits for the same answer.
    fetched: Arc<OnceCell<Fetched>>,
}

impl Kept {
    fn lifetime(&self) -> Duration {
        match self.fetched.get() {
            None => UNDER_WAY_MAX,
            Some(Ok(_)) => KEEP_GOOD,
            Some(Err(no)) if no.is_made_up => KEEP_MADE_UP,
            Some(Err(_)) => KEEP_UNKNOWN,
        }
    }

    fn is_under_way(&self) -> bool {
        self.fetched.get().is_none()
    }

    fn is_good(&self) -> bool {
        self.fetched.get().is_some_and(Result::is_ok)
    }

    fn is_made_up(&self) -> bool {
        matches!(self.fetched.get(), Some(Err(no)) if no.is_made_up)
    }
}

impl Certificates {
    pub async fn get(&self, url: &str, peer: IpAddr) -> Fetched {
        let cell = self.cell(url, network(peer))?;
        cell.get_or_init(|| fetch(url)).await.clone()
    }

    fn cell(&self, url: &str, peer: IpAddr) -> Result<Arc<OnceCell<Fetched>>, NotAtHand> {
        let mut kept = self.kept.lock().expect("no code panics here");
        kept.retain(|_, one| one.since.elapsed() < one.lifetime());
        if let Some(one) = kept.get(url) {
            return Ok(Arc::clone(&one.fetched));
        }
        // Whoever lately named an address with nothing there goes last: the others find room.
        let is_suspect = kept.values().any(|one| one.asked_by == peer && one.is_made_up());
        let under_way = kept.values().filter(|one| one.is_under_way()).count();
        if under_way >= if is_suspect { 1 } else { FETCHES_MAX } {
            return Err(NotAtHand::unknown("too many certificates are being fetched"));
        }
        if kept.len() >= KEPT_MAX {
            let worth = |one: &Kept| (one.is_under_way(), one.is_good(), one.since);
            let least = kept.iter().min_by_key(|(_, one)| worth(one)).map(|(url, _)| url.clone());
            least.map(|url| kept.remove(&url));
        }
        let new = Kept { since: Instant::now(), asked_by: peer, fetched: Arc::default() };
        let cell = Arc::clone(&new.fetched);
        kept.insert(url.to_owned(), new);
        Ok(cell)
    }
}

async fn fetch(url: &str) -> Fetched {
    let body = get(url).await?;
    let certificate = Certificate::from_pem(&body);
    certificate.map(Arc::new).map_err(|what| NotAtHand::made_up(format!("the certificate {what}")))
}

/// Fetches an address that a provider's file found trustworthy. 200 only, bounded in time and size.
pub async fn get(url: &str) -> Result<Vec<u8>, NotAtHand> {
    let unknown = |error: reqwest::Error| NotAtHand::unknown(sekisho_store::chain(&error.without_url()));
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT);
    let mut response = client.build().map_err(unknown)?.get(url).send().await.map_err(unknown)?;
    let status = response.status();
    if status.is_server_error() || status == reqwest::StatusCode::TOO_MANY_REQUESTS {
        return Err(NotAtHand::unknown(format!("the answer was {status}")));
    }
    if status != reqwest::StatusCode::OK {
        return Err(NotAtHand::made_up(format!("the answer was {status}")));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unknown)? {
        body.extend_from_slice(&chunk);
        if body.len() > BYTES_MAX {
            return Err(NotAtHand::made_up("the answer is too large"));
        }
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HONEST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 1));
    const FORGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 9));

    fn good() -> Fetched {
        let pem = include_str!("../../../core/tests-data/signatures.json");
        let pem = pem.split("-----BEGIN CERTIFICATE-----").nth(1).unwrap().split("-----END").next().unwrap();
        let pem = format!("-----BEGIN CERTIFICATE-----{pem}-----END CERTIFICATE-----").replace("\\n", "\n");
        Ok(Arc::new(Certificate::from_pem(pem.as_bytes()).unwrap()))
    }

    fn has(certificates: &Certificates, url: &str) -> bool {
        certificates.kept.lock().unwrap().contains_key(url)
    }

    #[test]
    fn a2_a_flood_of_made_up_addresses_is_bounded_and_costs_no_good_one() {
        let certificates = Certificates::default();
        certificates.cell("good", HONEST).unwrap().set(good()).unwrap();
        let honest = certificates.cell("on its way", HONEST).unwrap();
        for n in 0..10_000u32 {
            let peer = IpAddr::from((0x0a00_0000 + n).to_be_bytes());
            certificates.cell(&n.to_string(), peer).unwrap().set(Err(NotAtHand::made_up("404"))).unwrap();
        }
        assert_eq!(certificates.kept.lock().unwrap().len(), KEPT_MAX);
        honest.set(good()).unwrap();
        for url in ["good", "on its way"] {
            assert!(certificates.cell(url, FORGER).unwrap().get().is_some_and(Result::is_ok), "{url}");
        }
    }

    #[test]
    fn a2_who_made_an_address_up_leaves_room_for_the_others() {
        let certificates = Certificates::default();
        for n in 0..FETCHES_MAX {
            assert!(certificates.cell(&n.to_string(), FORGER).is_ok());
        }
        assert!(certificates.cell("real", HONEST).is_err(), "all are busy with it, once");
        for n in 0..FETCHES_MAX {
            let cell = certificates.cell(&n.to_string(), FORGER).unwrap();
            cell.set(Err(NotAtHand::made_up("404"))).unwrap();
        }
        assert!(certificates.cell("another", FORGER).is_ok());
        assert!(certificates.cell("and one more", FORGER).is_err(), "one at a time from now on");
        assert!(certificates.cell("real", HONEST).is_ok());
        for _ in 0..100 {
            assert!(certificates.cell("real", HONEST).is_ok(), "who waits for the same needs no room");
        }
        assert!(!has(&certificates, "and one more"), "who is sent away leaves nothing behind");
    }

    #[test]
    fn a2_a_provider_that_can_not_be_reached_makes_nobody_a_suspect() {
        let certificates = Certificates::default();
        let cell = certificates.cell("slow", HONEST).unwrap();
        cell.set(Err(NotAtHand::unknown("no answer"))).unwrap();
        assert!((0..FETCHES_MAX).all(|n| certificates.cell(&n.to_string(), HONEST).is_ok()));
    }
}
