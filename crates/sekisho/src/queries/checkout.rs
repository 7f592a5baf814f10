//! Where a customer pays: waited for while the provider is asked for a session, by a few callers at once and not for long.

use std::time::Duration;

use sekisho_core::settlement::payment::{Facts, TryFate};
use sekisho_core::state::{Key, Kind};
use sekisho_store::{Error, Result, Store};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::states::load;

/// How long somebody waits for the address of a session.
const WITHIN: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(100);
/// Callers of this node that wait at once; more look once.
static WAITING: Semaphore = Semaphore::const_new(64);

/// A payment, as soon as it is known what became of the newest try to pay it, or when the time is over.
pub async fn awaited_payment(store: &dyn Store, payment: &str) -> Result<Option<Facts>> {
    let permit = WAITING.try_acquire().ok();
    let end = Instant::now() + WITHIN;
    loop {
        let facts = checkout_payment(store, payment).await?;
        if !facts.as_ref().is_some_and(is_near) || permit.is_none() || Instant::now() >= end {
            return Ok(facts);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether a session is about to be made. Once somebody is through with another, none is.
fn is_near(facts: &Facts) -> bool {
    let fate = facts.newest_try().map(|(_, one)| facts.fate(one));
    let is_through = || facts.sessions.values().any(|session| facts.may_bring_money(session));
    matches!(fate, Some(TryFate::Waiting | TryFate::Asked)) && !is_through()
}

/// What is known of the payment of a reservation.
pub async fn checkout_payment(store: &dyn Store, payment: &str) -> Result<Option<Facts>> {
    let state = load(store, &Key::new(Kind::Payment, payment)).await?;
    state.map(|state| Facts::parse(&state.facts).map_err(Error::corrupt)).transpose()
}
