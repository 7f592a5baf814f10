//! The people and places of the stories: [`Place`] is a store, [`Gateway`] a running Sekisho, [`Provider`] somebody
//! who signs and sends.

mod browser;
mod gateway;
mod ledger;
mod place;
mod provider;
mod watching;

use std::time::{Duration, Instant};

pub use browser::Person;
pub use gateway::{BINARY, Gateway, Said, say};
pub use ledger::{Storm, together};
pub use place::{Place, each_store};
pub use provider::{Letter, Provider, vector};
pub use sekisho_lab::http::Response;
pub use watching::Watching;

/// How long anything may take that must happen in the end. Generous: the machine may be busy.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The secrets of every gateway here. Whatever prints one of these has leaked it.
pub const STRIPE_SECRET: &str = "whsec_canary_stripe_4fd1";

/// A configuration with one Stripe source and whatever `more` says about it.
pub fn stripe_source(more: &str) -> String {
    format!(
        "[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_SECRET\"]\n{more}\n"
    )
}

/// A route to an application on this machine, and whatever `more` says about it.
pub fn route_to(name: &str, url: &str, more: &str) -> String {
    format!(
        "[[route]]\nname = \"{name}\"\nurl = \"{url}\"\nsigning = \"none\"\nallow_private = true\n{more}\n"
    )
}

/// Asks until the answer is yes, with a bound.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A new seed each run, printed; `SEKISHO_SEED` replays one.
pub fn seed(story: &str) -> u64 {
    seed_or(story, std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64)
}

/// The seed that somebody gives, or this one.
pub fn seed_or(story: &str, otherwise: u64) -> u64 {
    let given = std::env::var("SEKISHO_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(otherwise);
    eprintln!("{story}: SEKISHO_SEED={seed}");
    seed
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
