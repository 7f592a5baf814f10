//! H2 and all before it, from the other side: what an attacker tries, in short. The long version is `sekisho-lab attack`.

use sekisho_lab::attack::{self, AttackPlan, Depth};
use sekisho_lab::torture::StoreKind;

use crate::support::{BINARY, seed};

/// Nothing succeeded, nothing answered 500 or above, nothing panicked, and everything was tried.
fn stands(store: StoreKind) {
    let seed = seed(&format!("attacks on {store:?}"));
    let plan = AttackPlan { store, depth: Depth::Short, seed, binary: BINARY.into() };
    let book = attack::run(&plan).unwrap_or_else(|error| panic!("{error}"));
    eprintln!("{book}");
    assert!(book.is_clean(), "{book}");
    assert!(book.lines.len() >= 20 && book.lines.iter().all(|line| line.tried > 0), "{book}");
}

#[test]
fn h2_no_known_attack_succeeds_on_sqlite() {
    stands(StoreKind::Sqlite);
}

#[test]
fn h2_no_known_attack_succeeds_on_postgresql() {
    stands(StoreKind::Postgres);
}
