//! What an attacker tries, and the question whether any of it succeeds.
//!
//! A server of its own, with every provider as a source, keys of every scope, two tenants, users, an application and a
//! mail server; then one kind of attack after the other, told from outside. What must not happen is written here, apart
//! from the product's own tables: this is the second opinion. Nothing may succeed, no answer may be 500 or above, and no
//! panic may stand in the log. Bounded in number, loopback only, by seed.

mod bodies;
mod book;
mod cli;
mod console;
mod fuzz;
mod hints;
mod house;
mod keys;
mod letter;
mod quirks;
mod replays;
mod rights;
mod signatures;
mod tenants;

use std::path::PathBuf;
use std::time::Instant;

pub use book::{AttackLine, Book};

use crate::rng::Rng;
use crate::torture::StoreKind;
use house::AttackedHouse;

/// What to try on which store.
#[derive(Clone, Debug)]
pub struct AttackPlan {
    pub store: StoreKind,
    pub depth: Depth,
    pub seed: u64,
    pub binary: PathBuf,
}

/// How often whatever is random is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A few of everything, within a minute.
    Short,
    Full,
}

impl Depth {
    pub(crate) fn of(self, short: usize, full: usize) -> usize {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}

/// What an attack works with.
struct Attack<'a> {
    house: &'a AttackedHouse,
    book: &'a mut Book,
    rng: Rng,
    depth: Depth,
}

type Kind = fn(&mut Attack<'_>) -> Result<(), String>;

/// In this order: what fills the store or shuts somebody out comes late.
const KINDS: [(&str, Kind); 12] = [
    ("signatures", signatures::run),
    ("quirks", quirks::run),
    ("hints", hints::run),
    ("replays", replays::run),
    ("rights", rights::run),
    ("keys", keys::run),
    ("tenants", tenants::run),
    ("bodies", bodies::run),
    ("cli", cli::run),
    ("console", console::run),
    ("fuzz", fuzz::run),
    ("aftermath", house::aftermath),
];

pub fn run(plan: &AttackPlan) -> Result<Book, String> {
    let house = AttackedHouse::open(plan)?;
    let mut book = Book::default();
    let mut rng = Rng::new(plan.seed);
    for (name, kind) in KINDS {
        let started = Instant::now();
        kind(&mut Attack { house: &house, book: &mut book, rng: rng.fork(), depth: plan.depth })
            .map_err(|error| format!("{name}: {error}\n{book}"))?;
        book.took.push((name, started.elapsed()));
    }
    Ok(book)
}
