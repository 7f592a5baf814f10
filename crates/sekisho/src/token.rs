//! Tokens that nobody can guess, and hashes: what is kept of them. The system draws them, whatever a node was handed for
//! chance: an id may be foreseen in a test, a key never.

use ring::digest::{SHA256, digest};
use ring::rand::SecureRandom;
use sekisho_core::provider::encode_hex;

#[allow(clippy::disallowed_types, reason = "it is what asks the system")]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
    filled.expect("a system without random numbers makes no secure connection either");
    bytes
}

/// So many bytes of chance, in hex.
pub fn generate<const N: usize>() -> String {
    encode_hex(bytes::<N>())
}

/// What is looked up tells nothing about what is kept: the hash of a long random text can't be guessed nor turned back.
pub fn hash(text: &str) -> String {
    encode_hex(digest(&SHA256, text.as_bytes()))
}
