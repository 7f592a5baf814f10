//! Metrics, from the registry of a process that has counted one of each kind.

use std::collections::{BTreeMap, BTreeSet};

use sekisho::telemetry::Metrics;

pub fn table() -> String {
    let figures = Metrics::with_one_of_each().encode();
    let labels = labels(&figures);
    let mut text = "| name | type | labels | |\n|---|---|---|---|\n".to_owned();
    let mut help = "";
    for line in figures.lines() {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", _, meaning] => help = meaning.trim_end_matches('.'),
            ["#", "TYPE", name, kind] => {
                let ending = if kind == "counter" { "_total" } else { "" };
                let own = labels.get(name).map(|own| format!("`{}`", own.join("`, `"))).unwrap_or_default();
                text += &format!("| `{name}{ending}` | {kind} | {own} | {} |\n", super::cell(help));
            }
            _ => {}
        }
    }
    text
}

/// Every label that a figure has: the page says what each may be.
pub fn names_of_labels() -> BTreeSet<String> {
    let figures = Metrics::with_one_of_each().encode();
    labels(&figures).into_values().flatten().map(str::to_owned).collect()
}

fn labels(figures: &str) -> BTreeMap<String, Vec<&str>> {
    let mut labels: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let names: BTreeSet<_> = figures.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    for line in figures.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, rest)) = line.split_once('{') else { continue };
        let metric = names.iter().filter_map(|one| one.split(' ').next()).find(|one| {
            ["", "_total", "_sum", "_count", "_bucket"].iter().any(|ending| format!("{one}{ending}") == name)
        });
        let Some(metric) = metric else { continue };
        let own = labels.entry(metric.to_owned()).or_default();
        for label in rest.split("\",").filter_map(|pair| pair.split("=\"").next()) {
            if label != "le" && !own.contains(&label) {
                own.push(label);
            }
        }
    }
    labels.retain(|_, own| !own.is_empty());
    labels
}
