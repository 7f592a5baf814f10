//! Whether a key may be stored, asked in memory: a Bloom filter. Nearly every key is new, and to read a page of the index
//! for each, only to find nothing there, costs the more the larger the index is.
//!
//! It never says no to a key that is stored. It forgets none either: keys of events long gone cost a needless look.

use std::path::Path;
use std::sync::{Arc, Weak};

use rusqlite::{Connection, params};
use sekisho_core::event::DedupeKey;

use super::connection::open_reader;
use super::keys::DedupeKeys;

/// Keys the first level has room for; each further level has room for four times as many as the one before.
const FIRST_LEVEL: usize = 1 << 16;
/// Room for 22 million keys, in 34 MB. Beyond that every key is looked up.
const LEVELS_MAX: u32 = 5;
/// About one needless look in 240 for each level that has no room left.
const BITS_PER_KEY: usize = 12;
const BITS_SET: u32 = 7;
/// Keys read at a time when it is filled.
const CHUNK: i64 = 10_000;

#[derive(Default)]
pub struct Sieve {
    levels: Vec<Level>,
    state: State,
}

#[derive(Default, PartialEq, Eq)]
enum State {
    /// Not all that is stored is in it yet.
    #[default]
    Filling,
    Filled,
    /// More is stored than it has room for.
    Full,
}

struct Level {
    blocks: Vec<Block>,
    room: usize,
}

/// A line of the processor's cache: all bits of a key are in one.
#[repr(align(64))]
#[derive(Clone, Copy, Default)]
struct Block([u64; 8]);

impl Sieve {
    /// What is not held is not stored.
    pub fn may_hold(&self, key: &DedupeKey) -> bool {
        let mark = Mark::of(key);
        self.state != State::Filled || self.levels.iter().any(|level| level.has(&mark))
    }

    pub fn add(&mut self, key: &DedupeKey) {
        let mark = Mark::of(key);
        // Added before by a commit that failed: room is for new ones.
        if self.state == State::Full || self.levels.last().is_some_and(|level| level.has(&mark)) {
            return;
        }
        if self.levels.last().is_none_or(|level| level.room == 0) {
            let number = self.levels.len() as u32;
            if number == LEVELS_MAX {
                (self.levels, self.state) = (Vec::new(), State::Full);
                return;
            }
            self.levels.push(Level::with_room(FIRST_LEVEL * 4_usize.pow(number)));
        }
        self.levels.last_mut().expect("one was just made").add(&mark);
    }

    /// Takes in what was read; with nothing more to read it is filled. Says whether to read on.
    fn fill(&mut self, keys: &[DedupeKey]) -> bool {
        keys.iter().for_each(|key| self.add(key));
        if keys.is_empty() && self.state == State::Filling {
            self.state = State::Filled;
        }
        self.state == State::Filling
    }
}

impl Level {
    fn with_room(room: usize) -> Self {
        Self { blocks: vec![Block::default(); (room * BITS_PER_KEY).div_ceil(512)], room }
    }

    fn has(&self, mark: &Mark) -> bool {
        self.blocks[mark.place_among(self.blocks.len())]
            .0
            .iter()
            .zip(mark.bits.0)
            .all(|(own, bits)| own & bits == bits)
    }

    fn add(&mut self, mark: &Mark) {
        let block = mark.place_among(self.blocks.len());
        self.blocks[block].0.iter_mut().zip(mark.bits.0).for_each(|(own, bits)| *own |= bits);
        self.room -= 1;
    }
}

/// What a key leaves in a level. It is mostly hash already: some of it says which block, the rest which bits there.
struct Mark {
    place: u64,
    bits: Block,
}

impl Mark {
    fn of(key: &DedupeKey) -> Self {
        let hash = key.hash().iter().fold(0, |hash: u128, byte| (hash << 8) | u128::from(*byte));
        // Nine bits for one of 512, seven times: the lower ones, while blocks are told apart by the upper ones.
        let (place, mut choices) = ((hash >> 32) as u64, hash as u64);
        let mut bits = Block::default();
        for _ in 0..BITS_SET {
            let bit = choices as usize % 512;
            bits.0[bit / 64] |= 1 << (bit % 64);
            choices >>= 9;
        }
        Self { place, bits }
    }

    fn place_among(&self, blocks: usize) -> usize {
        ((u128::from(self.place) * blocks as u128) >> 64) as usize
    }
}

/// Fills the sieve of these keys with the merged ones beside everything else, for as long as somebody holds them. What
/// comes meanwhile adds itself.
pub fn fill_beside(keys: &Arc<DedupeKeys>, path: &Path) -> rusqlite::Result<()> {
    let (keys, db) = (Arc::downgrade(keys), open_reader(path)?);
    let run = move || {
        if let Err(error) = fill(&keys, &db) {
            tracing::warn!(error_type = "store_slow", %error, "the keys could not be read into memory; each will be looked up, which is slower");
        }
    };
    std::thread::Builder::new().name("sqlite-sieve".into()).spawn(run).expect("a thread can be started");
    Ok(())
}

/// A few at a time, so that no read holds the log.
fn fill(keys: &Weak<DedupeKeys>, db: &Connection) -> rusqlite::Result<()> {
    let mut next = db.prepare("SELECT key FROM dedupe_merged WHERE key > $1 ORDER BY key LIMIT $2")?;
    let mut last = Vec::new();
    while let Some(keys) = keys.upgrade() {
        let rows = next.query_map(params![last, CHUNK], |row| row.get(0).map(DedupeKey::from_bytes))?;
        let chunk: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
        if let Some(key) = chunk.last() {
            last = key.as_bytes().to_vec();
        }
        if !keys.sieve().fill(&chunk) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> DedupeKey {
        DedupeKey::new("shop", &n.to_string(), None)
    }

    #[test]
    fn a4_a_key_that_is_held_is_never_denied_and_others_mostly_are() {
        // Into the second level.
        let count = 3 * FIRST_LEVEL;
        let mut sieve = Sieve::default();
        assert!(sieve.may_hold(&key(0)), "nothing is known yet");
        sieve.fill(&(0..count).map(key).collect::<Vec<_>>());
        assert!(sieve.may_hold(&key(count)), "there may be more");
        sieve.fill(&[]);
        assert!((0..count).all(|n| sieve.may_hold(&key(n))));
        let needless = (count..2 * count).filter(|n| sieve.may_hold(&key(*n))).count();
        assert!(needless < count / 100, "{needless} of {count}");
    }

    #[test]
    fn a4_a_sieve_that_is_full_denies_nothing() {
        let mut sieve = Sieve::default();
        sieve.fill(&[]);
        assert!(!sieve.may_hold(&key(1)));
        sieve.levels = (0..LEVELS_MAX).map(|_| Level { room: 0, ..Level::with_room(1) }).collect();
        sieve.add(&key(2));
        assert!((0..9).all(|n| sieve.may_hold(&key(n))));
        sieve.fill(&[]);
        assert!(sieve.may_hold(&key(1)), "it stays full");
    }
}
