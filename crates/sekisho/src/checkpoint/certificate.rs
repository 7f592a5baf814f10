//! Certificates that PayPal and SNS sign with, fetched once and kept. The provider's file has already checked that
//! the address is the provider's own; here it is fetched over TLS, with little patience and no redirects.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use sekisho_core::provider::Certificate;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::effects;
use crate::env::Env;

/// Enough for a first connection across the world.
const TIMEOUT: Duration = Duration::from_secs(3);
const BYTES_MAX: usize = 64 << 10;
/// Addresses remembered. An attacker can name many on an allowed host, so the bad ones make room first.
const KEPT_MAX: usize = 64;
/// Then it is fetched again: one that was withdrawn is noticed. While nobody answers, the old one holds.
const KEEP_GOOD: Duration = Duration::from_hours(24);
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
type Cell = Arc<OnceCell<Fetched>>;

pub struct Certificates {
    env: Env,
    kept: Mutex<BTreeMap<String, Kept>>,
}

struct Kept {
    since: Instant,
    asked_by: IpAddr,
    /// Empty while it is being fetched; whoever else wants it waits for the same answer.
    fetched: Cell,
    /// What was there when it was last fetched.
    before: Option<Arc<Certificate>>,
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

    fn is_fresh(&self) -> bool {
        self.since.elapsed() < self.lifetime()
    }

    fn is_under_way(&self) -> bool {
        self.fetched.get().is_none() && self.is_fresh()
    }

    /// The one to go by until it is known better.
    fn good(&self) -> Option<Arc<Certificate>> {
        match self.fetched.get() {
            Some(Ok(certificate)) => Some(Arc::clone(certificate)),
            Some(Err(no)) if no.is_made_up => None,
            Some(Err(_)) | None => self.before.clone(),
        }
    }

    fn is_made_up(&self) -> bool {
        matches!(self.fetched.get(), Some(Err(no)) if no.is_made_up)
    }
}

impl Certificates {
    pub fn new(env: Env) -> Self {
        Self { env, kept: Mutex::default() }
    }

    pub async fn get(&self, url: &str, peer: IpAddr) -> Fetched {
        let (cell, before) = self.cell(url, household(peer));
        let fetched = match cell {
            Ok(cell) => {
                let (own, url, env) = (Arc::clone(&cell), url.to_owned(), self.env.clone());
                // A task of its own: a caller who hangs up neither stops it nor escapes what it finds.
                let fetching = async move {
                    own.get_or_init(|| fetch(&url, &env)).await;
                };
                let _ = self.env.spawn(fetching).await;
                cell.get().cloned().unwrap_or_else(|| Err(NotAtHand::unknown("the fetching failed")))
            }
            Err(no) => Err(no),
        };
        match (fetched, before) {
            (Err(no), Some(before)) if !no.is_made_up => Ok(before),
            (fetched, _) => fetched,
        }
    }

    /// Where the answer is, or will be, and what to go by if there is none.
    fn cell(&self, url: &str, peer: IpAddr) -> (Result<Cell, NotAtHand>, Option<Arc<Certificate>>) {
        let mut kept = self.kept.lock().expect("no code panics here");
        kept.retain(|_, one| one.is_fresh() || one.good().is_some());
        let before = kept.get(url).and_then(Kept::good);
        if let Some(one) = kept.get(url).filter(|one| one.is_fresh()) {
            return (Ok(Arc::clone(&one.fetched)), before);
        }
        // Whoever lately named an address with nothing there goes last: the others find room.
        let is_suspect = kept.values().any(|one| one.asked_by == peer && one.is_made_up());
        let under_way = kept.values().filter(|one| one.is_under_way()).count();
        if under_way >= if is_suspect { 1 } else { FETCHES_MAX } {
            return (Err(NotAtHand::unknown("too many certificates are being fetched")), before);
        }
        if kept.len() >= KEPT_MAX && !kept.contains_key(url) {
            let worth = |one: &Kept| (one.is_under_way(), one.good().is_some(), one.since);
            let least = kept.iter().min_by_key(|(_, one)| worth(one)).map(|(url, _)| url.clone());
            least.map(|url| kept.remove(&url));
        }
        let fetched = Cell::default();
        let new = Kept {
            since: Instant::now(),
            asked_by: peer,
            fetched: Arc::clone(&fetched),
            before: before.clone(),
        };
        kept.insert(url.to_owned(), new);
        (Ok(fetched), before)
    }
}

async fn fetch(url: &str, env: &Env) -> Fetched {
    let body = get(url, env).await?;
    let certificate = Certificate::from_pem(&body);
    certificate.map(Arc::new).map_err(|what| NotAtHand::made_up(format!("the certificate {what}")))
}

/// Fetches an address that a provider's file found trustworthy. 200 only, bounded in time and size.
pub async fn get(url: &str, env: &Env) -> Result<Bytes, NotAtHand> {
    let deadline = Instant::now() + TIMEOUT;
    let answer = effects::http::get(url, BYTES_MAX + 1, deadline, env).await;
    let answer = answer.map_err(|fault| NotAtHand::unknown(fault.to_string()))?;
    let status = StatusCode::from_u16(answer.status).expect("it was one when it came");
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(NotAtHand::unknown(format!("the answer was {status}")));
    }
    if status != StatusCode::OK {
        return Err(NotAtHand::made_up(format!("the answer was {status}")));
    }
    if answer.body.len() > BYTES_MAX {
        return Err(NotAtHand::made_up("the answer is too large"));
    }
    if answer.truncated {
        return Err(NotAtHand::unknown("the answer broke off"));
    }
    Ok(answer.body)
}

/// The owner of one IPv6 address has 2^64 of them: they are one caller.
fn household(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
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

    fn cell(certificates: &Certificates, url: &str, peer: IpAddr) -> Result<Cell, NotAtHand> {
        certificates.cell(url, peer).0
    }

    fn has(certificates: &Certificates, url: &str) -> bool {
        certificates.kept.lock().unwrap().contains_key(url)
    }

    #[test]
    fn a2_a_flood_of_made_up_addresses_is_bounded_and_costs_no_good_one() {
        let certificates = Certificates::new(Env::system());
        cell(&certificates, "good", HONEST).unwrap().set(good()).unwrap();
        let honest = cell(&certificates, "on its way", HONEST).unwrap();
        for n in 0..10_000u32 {
            let peer = IpAddr::from((0x0a00_0000 + n).to_be_bytes());
            cell(&certificates, &n.to_string(), peer).unwrap().set(Err(NotAtHand::made_up("404"))).unwrap();
        }
        assert_eq!(certificates.kept.lock().unwrap().len(), KEPT_MAX);
        honest.set(good()).unwrap();
        for url in ["good", "on its way"] {
            assert!(cell(&certificates, url, FORGER).unwrap().get().is_some_and(Result::is_ok), "{url}");
        }
    }

    #[test]
    fn a2_who_made_an_address_up_leaves_room_for_the_others() {
        let certificates = Certificates::new(Env::system());
        for n in 0..FETCHES_MAX {
            assert!(cell(&certificates, &n.to_string(), FORGER).is_ok());
        }
        assert!(cell(&certificates, "real", HONEST).is_err(), "all are busy with it, once");
        for n in 0..FETCHES_MAX {
            let made_up = cell(&certificates, &n.to_string(), FORGER).unwrap();
            made_up.set(Err(NotAtHand::made_up("404"))).unwrap();
        }
        assert!(cell(&certificates, "another", FORGER).is_ok());
        assert!(cell(&certificates, "and one more", FORGER).is_err(), "one at a time from now on");
        assert!(cell(&certificates, "real", HONEST).is_ok());
        for _ in 0..100 {
            assert!(cell(&certificates, "real", HONEST).is_ok(), "who waits for the same needs no room");
        }
        assert!(!has(&certificates, "and one more"), "who is sent away leaves nothing behind");
    }

    #[test]
    fn a2_a_provider_that_can_not_be_reached_makes_nobody_a_suspect() {
        let certificates = Certificates::new(Env::system());
        let slow = cell(&certificates, "slow", HONEST).unwrap();
        slow.set(Err(NotAtHand::unknown("no answer"))).unwrap();
        assert!((0..FETCHES_MAX).all(|n| cell(&certificates, &n.to_string(), HONEST).is_ok()));
    }

    #[test]
    fn a2_a_good_one_holds_while_nobody_answers_and_not_once_it_is_withdrawn() {
        for (answer, holds) in [(NotAtHand::unknown("no answer"), true), (NotAtHand::made_up("404"), false)] {
            let certificates = Certificates::new(Env::system());
            assert!(cell(&certificates, "url", HONEST).unwrap().set(good()).is_ok());
            let long_ago = Instant::now().checked_sub(KEEP_GOOD).expect("this machine has run for a day");
            certificates.kept.lock().unwrap().get_mut("url").unwrap().since = long_ago;
            let (again, before) = certificates.cell("url", HONEST);
            assert!(before.is_some());
            let again = again.unwrap();
            assert!(again.get().is_none(), "it is fetched again");
            assert!(again.set(Err(answer)).is_ok());
            assert_eq!(certificates.cell("url", HONEST).1.is_some(), holds);
        }
    }
}
