//! What Sekisho does: it receives, asks the core, commits to the store, and carries out what was decided.
//!
//! - [`config`] what the operator wants · [`cli`] what the operator types
//! - [`app`] one running process: opens the store, joins it as a [`node`], starts the roles, stops them again
//! - [`env`](mod@env) what a node takes from the world: clock, tasks, exit, the times of the protocol
//! - [`checkpoint`] webhooks in · [`engine`] leased work run · [`jobs`] the kinds of work · [`effects`] what reaches outside
//! - [`acts`] what people do · [`queries`] what they ask · [`types`] what they write and read · [`view`] how it is shown
//! - [`api`] all of this over HTTP · [`console`] as pages · [`transact`] the loop of everything that is changed · [`refusal`] why it is not
//! - `attempts` wrong keys and passwords · `token` tokens and their hashes · `test_event` test events
//! - [`http`] who calls, and errors over HTTP · `pages` health and metrics · `limits` bytes and rates · [`telemetry`] logs and figures

pub mod acts;
pub mod api;
pub mod app;
mod attempts;
#[allow(clippy::disallowed_methods, reason = "outside the engine's path")]
pub mod checkpoint;
#[allow(clippy::disallowed_methods, reason = "outside the engine's path")]
pub mod cli;
pub mod config;
#[allow(clippy::disallowed_methods, reason = "outside the engine's path")]
pub mod console;
#[allow(clippy::disallowed_methods, reason = "outside the engine's path")]
pub mod effects;
pub mod engine;
#[allow(clippy::disallowed_methods, reason = "it is what asks the system")]
pub mod env;
pub mod failpoint;
pub mod http;
pub mod jobs;
mod limits;
pub mod node;
mod pages;
pub mod queries;
pub mod refusal;
pub mod telemetry;
mod test_event;
mod token;
pub mod transact;
pub mod types;
pub mod view;

use tokio::sync::watch;

pub use env::now;

/// Waits until a task is told to stop, or until nobody is left who could tell it.
async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
