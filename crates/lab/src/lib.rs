//! Where Sekisho is put to the test: traffic, private servers, faults and hostile clients.
//!
//! Used by tests, benchmarks, `sekisho bench` and the demo; never an API for users. Everything here speaks to
//! loopback only, is bounded in time and number, and ends what it started, even when the test process is killed
//! (`warden`). Whatever looks random comes from a seed ([`rng`]). The product is only ever seen from outside,
//! as a child process and a socket.

pub mod app;
pub mod browser;
pub mod certificate;
pub mod chat;
pub mod hostile;
pub mod http;
pub mod internet;
pub mod load;
pub mod measure;
mod pg_frames;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod redis;
pub mod rng;
mod server;
pub mod shop;
pub mod sink;
pub mod smtp;
pub mod sqlite;
pub mod stripe;
pub mod torture;
pub mod traffic;
mod warden;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// A loopback address nobody listens on at this moment.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Refuses to aim at anything but this machine.
fn assert_loopback(address: SocketAddr) {
    assert!(address.ip().is_loopback(), "the lab speaks to loopback only, not to {address}");
}
