//! Certificates that PayPal and SNS sign with, fetched once and kept. The provider's file has already checked that
//! the address is the provider's own; here it is fetched over TLS, with little patience and no redirects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sekisho_core::provider::Certificate;
use tokio::sync::{OnceCell, Semaphore};

const TIMEOUT: Duration = Duration::from_secs(1);
const BYTES_MAX: usize = 64 << 10;
/// Addresses remembered. An attacker can name many on an allowed host, so the bad ones make room first.
const KEPT_MAX: usize = 64;
/// A good one is kept as long as there is room (it has its own dates); a bad one is tried again after this.
const KEEP_BAD: Duration = Duration::from_secs(30);
/// Fetches under way at once: a flood here must not become a flood elsewhere.
const FETCHES_MAX: usize = 4;

/// Why a certificate is not at hand: the sender is asked to come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAtHand(pub String);

type Fetched = Result<Arc<Certificate>, NotAtHand>;

pub struct Certificates {
    kept: Mutex<HashMap<String, Kept>>,
    fetches: Semaphore,
}

struct Kept {
    since: Instant,
    /// Empty while it is being fetched; whoever else wants it waits for the same answer.
    fetched: Arc<OnceCell<Fetched>>,
}

impl Kept {
    fn is_good(&self) -> bool {
        self.fetched.get().is_some_and(Result::is_ok)
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self { kept: Mutex::default(), fetches: Semaphore::new(FETCHES_MAX) }
    }
}

impl Certificates {
    pub async fn get(&self, url: &str) -> Fetched {
        let cell = self.cell(url);
        if let Some(fetched) = cell.get() {
            return fetched.clone();
        }
        let Ok(_turn) = self.fetches.try_acquire() else {
            return Err(NotAtHand("too many certificates are being fetched".into()));
        };
        cell.get_or_init(|| fetch(url)).await.clone()
    }

    fn cell(&self, url: &str) -> Arc<OnceCell<Fetched>> {
        let mut kept = self.kept.lock().expect("no code panics here");
        kept.retain(|_, one| one.is_good() || one.since.elapsed() < KEEP_BAD);
        if kept.len() >= KEPT_MAX && !kept.contains_key(url) {
            let oldest =
                kept.iter().min_by_key(|(_, one)| (one.is_good(), one.since)).map(|(url, _)| url.clone());
            oldest.map(|url| kept.remove(&url));
        }
        let new = || Kept { since: Instant::now(), fetched: Arc::default() };
        Arc::clone(&kept.entry(url.to_owned()).or_insert_with(new).fetched)
    }
}

async fn fetch(url: &str) -> Fetched {
    let read = async {
        let body = get(url).await?;
        Certificate::from_pem(&body).map(Arc::new).map_err(|what| format!("the certificate {what}"))
    };
    read.await.map_err(|reason| {
        tracing::warn!(url, reason, "a signing certificate could not be fetched");
        NotAtHand(reason)
    })
}

/// Fetches an address that a provider's file found trustworthy. 200 only, bounded in time and size.
pub async fn get(url: &str) -> Result<Vec<u8>, String> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT)
        .build()
        .map_err(|error| error.to_string())?;
    let mut response = client.get(url).send().await.map_err(|error| sekisho_store::chain(&error))?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(format!("the answer was {}", response.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| sekisho_store::chain(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > BYTES_MAX {
            return Err("the answer is too large".into());
        }
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_a_flood_of_made_up_addresses_is_bounded_and_costs_no_good_one() {
        let certificates = Certificates::default();
        let pem = include_str!("../../../core/tests-data/signatures.json");
        let pem = pem.split("-----BEGIN CERTIFICATE-----").nth(1).unwrap().split("-----END").next().unwrap();
        let pem = format!("-----BEGIN CERTIFICATE-----{pem}-----END CERTIFICATE-----").replace("\\n", "\n");
        let good = Arc::new(Certificate::from_pem(pem.as_bytes()).unwrap());
        assert!(certificates.cell("good").set(Ok(good)).is_ok());
        for n in 0..10_000 {
            let cell = certificates.cell(&format!("bad {n}"));
            assert!(cell.set(Err(NotAtHand("no".into()))).is_ok());
        }
        assert_eq!(certificates.kept.lock().unwrap().len(), KEPT_MAX);
        assert!(certificates.cell("good").get().is_some());
    }
}
