//! Certificates that PayPal and SNS sign with, fetched once and kept. The provider's file has already checked that
//! the address is the provider's own; here it is fetched over TLS, with little patience and no redirects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sekisho_core::provider::Certificate;
use tokio::sync::Mutex;

const TIMEOUT: Duration = Duration::from_secs(1);
const BYTES_MAX: usize = 64 << 10;
/// Addresses remembered, good and bad; an attacker can name many on an allowed host.
const KEPT_MAX: usize = 64;
const KEEP_GOOD: Duration = Duration::from_hours(24);
const KEEP_BAD: Duration = Duration::from_secs(30);

/// Why a certificate is not at hand: the sender is asked to come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAtHand(pub String);

type Fetched = Result<Arc<Certificate>, NotAtHand>;

#[derive(Default)]
pub struct Certificates {
    /// The lock is held while fetching: one fetch at a time is plenty, and a flood can't become a flood elsewhere.
    kept: Mutex<HashMap<String, (Fetched, Instant)>>,
}

impl Certificates {
    pub async fn get(&self, url: &str) -> Fetched {
        let mut kept = self.kept.lock().await;
        kept.retain(|_, (fetched, at)| at.elapsed() < if fetched.is_ok() { KEEP_GOOD } else { KEEP_BAD });
        if let Some((fetched, _)) = kept.get(url) {
            return fetched.clone();
        }
        let bad = kept.values().filter(|(fetched, _)| fetched.is_err()).count();
        if kept.len() >= KEPT_MAX || bad >= KEPT_MAX / 2 {
            return Err(NotAtHand("too many certificate addresses were named lately".into()));
        }
        let fetched = fetch(url).await;
        if let Err(NotAtHand(reason)) = &fetched {
            tracing::warn!(url, reason, "a signing certificate could not be fetched");
        }
        kept.insert(url.to_owned(), (fetched.clone(), Instant::now()));
        fetched
    }
}

async fn fetch(url: &str) -> Fetched {
    let body = get(url).await.map_err(NotAtHand)?;
    Certificate::from_pem(&body).map(Arc::new).map_err(|what| NotAtHand(format!("the certificate {what}")))
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
