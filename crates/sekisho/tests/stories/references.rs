//! References are made from the program's own tables, so that they can't drift from it.
//!
//! Each page holds prose of people around parts between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. With
//! `SEKISHO_WRITE_REFERENCES=1` these stories write the parts anew instead of comparing them.

mod api;
mod commands;
mod metrics;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Gateway, Place, say};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a file with what it should be, or writes it.
fn check(file: &str, wanted: impl Fn(&str) -> String) {
    let path = root().join(file);
    let text = fs::read_to_string(&path).unwrap();
    let wanted = wanted(&text);
    if text == wanted {
        return;
    }
    assert!(
        std::env::var_os("SEKISHO_WRITE_REFERENCES").is_some(),
        "{file} is out of date: run `SEKISHO_WRITE_REFERENCES=1 cargo test -p sekisho --test stories references::`"
    );
    fs::write(&path, wanted).unwrap();
}

/// A page with one of its parts made anew.
fn with_part(page: &str, name: &str, part: &str) -> String {
    let (start, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end of {name} -->"));
    let before = page.split_once(&start).unwrap_or_else(|| panic!("there is no {start}")).0;
    let after = page.split_once(&end).unwrap_or_else(|| panic!("there is no {end}")).1;
    format!("{before}{start}\n{}\n\n{end}{after}", part.trim_end())
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[test]
fn settings() {
    check("sekisho.example.toml", |_| sekisho::config::example());
    check("docs/reference/configuration.md", |page| {
        with_part(page, "settings", &sekisho::config::markdown())
    });
}

#[test]
fn providers() {
    let table = say(&root(), &["providers", "--markdown"], &[]).done().stdout;
    check("docs/reference/providers.md", |page| with_part(page, "providers", &table));
}

#[test]
fn every_command_and_option() {
    check("docs/reference/commands.md", |page| {
        let page = with_part(page, "commands", &commands::overview());
        with_part(&page, "options", &commands::options())
    });
}

/// In Japanese each command has a line of its own words.
#[test]
fn no_command_is_missing_in_japanese() {
    let page = fs::read_to_string(root().join("docs/reference/commands.ja.md")).unwrap();
    let missing = commands::names().into_iter().filter(|name| !page.contains(&format!("`{name}")));
    let missing: Vec<_> = missing.filter(|name| !page.contains(&format!("`sekisho {name}"))).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_endpoint() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let document = serde_json::from_slice(&gateway.get("/v1/openapi.json").body).unwrap();
    check("docs/reference/api.md", |page| {
        let page = with_part(page, "endpoints", &api::endpoints(&document));
        with_part(&page, "schemas", &api::schemas(&document))
    });
}

#[test]
fn every_metric() {
    check("docs/reference/metrics.md", |page| with_part(page, "metrics", &metrics::table()));
}

#[test]
fn every_label_of_a_metric_is_explained() {
    let page = fs::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let (_, prose) = page.split_once("\nLabels:\n").expect("the page explains labels");
    let names = metrics::names_of_labels();
    assert!(names.len() > 5, "only {names:?} were found");
    let missing: Vec<_> = names.into_iter().filter(|name| !prose.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, [""; 0]);
}
