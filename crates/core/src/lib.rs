//! What Sekisho decides. Pure: no I/O, no clock, no randomness, no async.
//!
//! - [`provider`] which requests are genuine, and what events they carry: one file per provider
//! - [`diagnose`] why a request was refused, in words that lead to the cure
//! - [`event`] an event as read from a request, and the key that makes it unique
//! - [`change`] the language between the crates: what `store` is asked to write, and what it answers
//! - [`settlement`] what an event means
//! - [`id`], [`time`], [`secret`] the small words everything else is written in

pub mod change;
pub mod diagnose;
pub mod event;
pub mod id;
pub mod provider;
pub mod secret;
pub mod settlement;
pub mod time;

pub use id::{Epoch, Seq};
pub use secret::Secret;
pub use time::Time;
