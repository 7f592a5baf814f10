//! What Sekisho does: it receives, asks the core, commits to the store, and carries out what was decided.
//!
//! - [`config`] what the operator wants · [`cli`] what the operator types
//! - [`app`] one running process: opens the store, joins it as a [`node`], starts the roles, stops them again
//! - [`env`](mod@env) what a node takes from the world: clock, chance, tasks, exit, requests and messages out, the times of the
//!   protocol · `stop` how tasks are told to stop
//! - [`checkpoint`] webhooks in · [`engine`] leased work run · [`jobs`] the kinds of work · [`effects`] what reaches outside
//! - [`acts`] what people do · [`queries`] what they ask · [`types`] what they write and read · [`view`] how it is shown
//! - [`api`] all of this over HTTP · [`console`] as pages · `customer` the pages of customers · [`transact`] the loop of everything that is changed · [`refusal`] why it is not
//! - `attempts` wrong keys and passwords · `token` tokens and their hashes · `test_event` test events
//! - [`http`] who calls, and errors over HTTP · `pages` health and metrics · `limits` bytes and rates · [`telemetry`] logs and figures

// What is shipped is checked without it.
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test is the world of its nodes")
)]

pub mod acts;
pub mod api;
pub mod app;
mod attempts;
pub mod checkpoint;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a command is no node")]
pub mod cli;
pub mod config;
pub mod console;
mod customer;
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
mod stop;
pub mod telemetry;
#[allow(clippy::disallowed_methods, reason = "test events come from outside")]
mod test_event;
mod token;
pub mod transact;
pub mod types;
pub mod view;
mod watch;

pub use env::now;
