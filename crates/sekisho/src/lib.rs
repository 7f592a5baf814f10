//! What Sekisho does: it receives, asks the core, commits to the store, and carries out what was decided.
//!
//! - [`config`] what the operator wants · [`cli`] what the operator types
//! - [`app`] one running process: opens the store, joins it as a [`node`], starts the roles, stops them again
//! - [`checkpoint`] webhooks in · [`worker`] stored work done · [`effects`] what reaches outside
//! - [`acts`] what people do · [`view`] what they are shown · [`api`] both over HTTP · [`console`] both as pages
//! - `attempts` wrong keys and passwords · `chance` tokens and their hashes · `probe` test events
//! - [`http`] health, metrics and errors over HTTP · [`telemetry`] logs and figures

pub mod acts;
pub mod api;
pub mod app;
mod attempts;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod console;
pub mod effects;
pub mod failpoint;
pub mod http;
mod limits;
pub mod node;
mod pages;
pub mod telemetry;
mod test_event;
mod token;
pub mod view;
pub mod worker;

use std::time::{SystemTime, UNIX_EPOCH};

use sekisho_core::Time;
use tokio::sync::watch;

/// The wall clock: read here, handed to everything else as an argument.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_ms(since.as_millis() as i64)
}

/// Waits until a task is told to stop, or until nobody is left who could tell it.
async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
