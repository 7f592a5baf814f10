//! R1–R4, R10, R11 in short: load, every fault, an application with moods, and afterwards the whole account. The long
//! version is `sekisho-lab torture`.

use std::time::Duration;

use sekisho_lab::torture::faults::TortureFault;
use sekisho_lab::torture::{self, Plan, StoreKind};

use crate::support::{BINARY, seed};

/// Each store is troubled this long, or as many seconds as `SEKISHO_TROUBLE_SECONDS` says.
fn trouble() -> Duration {
    let given = std::env::var("SEKISHO_TROUBLE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(35))
}

/// All promises kept, and every fault struck.
fn survives(store: StoreKind, nodes: usize, faults: &[TortureFault], every: Duration) {
    let plan = Plan {
        store,
        nodes,
        lasts: trouble(),
        faults: faults.to_vec(),
        every,
        // Slow enough for a debug build that shares the machine with other stories.
        rate: 100.0,
        slack: Duration::from_secs(8),
        seed: seed(&format!("torture on {store:?}")),
        binary: BINARY.into(),
    };
    let verdict = torture::run(&plan).unwrap_or_else(|error| panic!("{error}"));
    eprintln!("{verdict}");
    assert!(verdict.violations().is_empty(), "{verdict}");
    for fault in faults {
        let struck = verdict.faults.iter().any(|(own, times, _)| own == fault && *times > 0);
        assert!(struck, "{} never struck: {verdict}", fault.name());
    }
}

#[test]
fn r1_r10_r11_one_node_on_sqlite_survives_every_fault_that_can_meet_it() {
    let faults = [TortureFault::Kill, TortureFault::Stop, TortureFault::Clock];
    survives(StoreKind::Sqlite, 1, &faults, Duration::from_millis(700));
}

#[test]
fn r2_r3_r4_r10_r11_two_nodes_on_postgresql_survive_every_fault() {
    survives(StoreKind::Postgres, 2, &TortureFault::ALL, Duration::from_millis(700));
}
