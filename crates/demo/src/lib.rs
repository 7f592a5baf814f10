//! What plays shop, provider and app on one machine, for `sekisho demo` and `sekisho bench`; the lab is built on it.
//!
//! Everything here speaks to loopback only, is bounded in time and number, and ends what it started, even when the process that
//! started it is killed ([`warden`]). Whatever looks random comes from a seed ([`rng`]). The product is only ever seen from outside,
//! as a child process and a socket.

pub mod app;
pub mod http;
pub mod load;
pub mod measure;
pub mod planetarium;
pub mod postgres;
pub mod process;
pub mod rng;
pub mod server;
pub mod shop;
pub mod sink;
pub mod traffic;
pub mod warden;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// A loopback address nobody listens on at this moment.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Refuses to aim at anything but this machine.
pub fn assert_loopback(address: SocketAddr) {
    assert!(address.ip().is_loopback(), "the demo speaks to loopback only, not to {address}");
}
