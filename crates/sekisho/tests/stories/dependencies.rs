//! H3: what is linked into Sekisho is there for a reason that is written down.

use std::collections::BTreeMap;
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/reference/dependencies.md");

/// Name of each dependency, and who uses it: `core, sekisho (tests)`.
fn used() -> BTreeMap<String, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it lies beside its siblings");
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in ["core", "store", "sekisho", "demo", "lab"] {
        let text = std::fs::read_to_string(crates.join(one).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let names = |part: &str| {
            let part = manifest.get(part).and_then(toml::Value::as_table);
            part.into_iter().flat_map(toml::Table::keys).cloned().collect::<Vec<_>>()
        };
        let (linked, tests) = (names("dependencies"), names("dev-dependencies"));
        for name in &linked {
            used.entry(name.clone()).or_default().push(one.to_owned());
        }
        for name in tests.into_iter().filter(|name| !linked.contains(name)) {
            used.entry(name).or_default().push(format!("{one} (tests)"));
        }
    }
    used.into_iter().map(|(name, users)| (name, users.join(", "))).collect()
}

#[test]
fn h3_every_direct_dependency_is_there_for_a_reason_that_is_written_down() {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let mut told = BTreeMap::new();
    for row in rows {
        let cells: Vec<_> = row.split(" | ").collect();
        let [name, users, why] = cells[..] else { panic!("not three cells: {row}") };
        assert!(why.len() > 8, "{name} has no reason");
        assert!(
            told.insert(name.trim_end_matches('`').to_owned(), users.to_owned()).is_none(),
            "{name} twice"
        );
    }
    assert_eq!(told, used(), "docs/reference/dependencies.md (left) is not what the Cargo.toml files say");
}
