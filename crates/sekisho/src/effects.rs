//! What Sekisho does to the world outside, one file per kind of act.
//!
//! An effect is handed everything it needs and returns what happened. It never touches the store and decides
//! nothing: what an outcome means for the job is the core's business, writing it down the engine's.

pub mod channel;
pub mod deliver;
pub mod discord;
pub mod http;
pub mod mail;
pub mod pagerduty;
mod post;
pub mod slack;
pub mod stripe;
pub mod twilio;
pub mod webhook;
