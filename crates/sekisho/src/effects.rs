//! What Sekisho does to the world outside, one file per kind of act.
//!
//! An effect is handed everything it needs and returns what happened. It never touches the store and decides
//! nothing: what an outcome means for the job is the core's business, writing it down the engine's.

pub mod call;
pub mod channel;
pub mod deliver;
pub mod discord;
pub mod http;
pub mod komoju;
pub mod line_pay;
pub mod listing;
pub mod mail;
pub mod mollie;
pub mod otlp;
pub mod pagerduty;
pub mod payjp;
pub mod paypal;
mod post;
pub mod provider_api;
pub mod sentry;
pub mod slack;
pub mod square;
pub mod stripe;
pub mod twilio;
pub mod webhook;
