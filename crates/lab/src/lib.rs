//! Where Sekisho is put to the test: faults, hostile clients, and stand-ins for what is on the internet. Built on the demo's
//! parts, used by tests alone.

pub mod attack;
pub mod browser;
pub mod certificate;
pub mod chat;
pub mod hostile;
pub mod instructions;
pub mod internet;
mod pg_frames;
pub mod providers;
pub mod proxy;
pub mod redis;
pub mod smtp;
pub mod sqlite;
pub mod stripe;
pub mod torture;

pub use sekisho_demo::{
    app, assert_loopback, free_address, http, load, measure, postgres, process, rng, server, shop, sink,
    traffic, warden,
};
