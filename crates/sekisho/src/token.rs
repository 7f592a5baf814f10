//! Chance, and hashes of what was made from it: tokens that nobody can guess, and what is kept of them.

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use sekisho_core::provider::encode_hex;
use sekisho_core::{Seq, Time};

pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
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

/// An id nobody has: the moment, then chance. Two that meet all the same find each other's version in the way.
pub fn fresh_seq(at: Time) -> Seq {
    let chance = u32::from_be_bytes(bytes());
    Seq::from_i64(Seq::floor_of(at).as_i64() | i64::from(chance >> 10))
}
