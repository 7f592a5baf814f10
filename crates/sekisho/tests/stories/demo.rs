//! H6: `sekisho demo` in small, with its shop and its planetarium. It kills its own server, and its proof must hold all the same.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{BINARY, Place, say, wait_until};

const LINES: [&str; 19] = [
    "sent",
    "acknowledged",
    "stored",
    "processed",
    "waiting",
    "dead letters",
    "books",
    "audit log",
    "delivered",
    "repeated",
    "lost",
    "doubled",
    "forgeries",
    "payments",
    "money, jpy",
    "money, usd",
    "oversold",
    "paid",
    "refunds",
];

/// Its folder for temporary things, so that what stays behind can be seen.
fn demo(store: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let words = [&["demo", "--payments", "250", "--seed", "7", "--exit", "--json"], store].concat();
    let said = say(folder.path(), &words, &[("TMPDIR", folder.path().to_str().unwrap())]).done();

    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let words =
        ["killing the server with SIGKILL", "answers 500", "its port is closed", "40 visitors for 20 places"];
    for words in words {
        assert!(said.stderr.contains(words), "nothing about {words} in\n{}", said.stderr);
    }
    let proof = said.lines().remove(0);
    let lines = proof["lines"].as_array().unwrap();
    assert_eq!(lines.iter().map(|line| line["what"].as_str().unwrap()).collect::<Vec<_>>(), LINES);
    assert!(lines.iter().all(|line| line["holds"] != false), "{proof:#}");
    let says = |what: &str| lines.iter().find(|line| line["what"] == what).unwrap()["says"].as_str().unwrap();
    assert!(says("oversold").starts_with("0 of 20 places in 2 shows"), "{proof:#}");
    assert!(!says("paid").contains(" 0 confirmed") && !says("refunds").starts_with("0 owed"), "{proof:#}");
    assert_eq!((&proof["holds"], &proof["seed"], &proof["payments"]), (&true.into(), &7.into(), &250.into()));
    proof
}

#[test]
fn h6_the_demo_proves_itself() {
    let proof = demo(&[]);
    assert_eq!(proof["store"], "SQLite");
}

#[test]
fn h6_the_demo_proves_itself_on_postgresql() {
    let place = Place::postgres();
    let proof = demo(&["--store", &place.url]);
    assert_eq!(proof["store"], "PostgreSQL");
    // What it left there is the user's: a second run would count it.
    let words = ["demo", "--exit", "--store", &place.url];
    say(place.folder.path(), &words, &[]).failed(1).mentions(&["holds events already", "--store postgres"]);
}

#[test]
fn h6_a_demo_that_is_stopped_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut demo = Command::new(BINARY)
        .args(["demo", "--payments", "3000"])
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&log).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let in_it =
        || std::fs::read_dir(&temporary).unwrap().filter_map(Result::ok).map(|entry| entry.path()).next();
    wait_until("traffic", || std::fs::read_to_string(&log).unwrap().contains("the shop is open"));
    let server = in_it().unwrap().join("server.json");
    wait_until("the server's note", || server.exists());
    let note: Value = serde_json::from_slice(&std::fs::read(&server).unwrap()).unwrap();
    let stopped = Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert_eq!(in_it(), None);
    let address = note["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
    let answer = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1));
    assert!(answer.is_err(), "the server still listens at {address}");
}
