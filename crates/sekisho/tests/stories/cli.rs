//! H2: every command is a client of the API. It says the same through a server that is named, through the one that runs
//! here, and where none runs; and it has the manners of a command line.

use crate::support::{Gateway, Provider, each_store, say, stripe_source, wait_until};

const READ: &str = "canary-read-0123456789";

const READING: [&[&str]; 27] = [
    &["payments"],
    &["payments", "show", "pi_evt_1", "--json"],
    &["billing"],
    &["balances", "c_1"],
    &["books"],
    &["books", "check"],
    &["events", "list"],
    &["events", "list", "--json", "--own", "--limit", "0"],
    &["events", "show", "evt_1"],
    &["events", "show", "evt_1", "--body"],
    &["dead", "list"],
    &["dead", "groups", "--json"],
    &["routes"],
    &["schedules"],
    &["channels"],
    &["notices"],
    &["reminders", "show", "2026-11-16"],
    &["suppressions"],
    &["tenants"],
    &["customers", "--json"],
    &["staff"],
    &["subjects"],
    &["rejections"],
    &["audit", "--json"],
    &["audit", "export"],
    &["audit", "verify"],
    &["payments", "prove", "pi_evt_1", "--json"],
];

#[test]
fn h2_a_command_says_the_same_whoever_answers_it() {
    each_store(|place| {
        let key = "[[key]]\nname = \"looker\"\nsecret = \"env:LOOKER\"\nscopes = [\"read\"]\n";
        let mut gateway = Gateway::with_env(place, &(stripe_source("") + key), &[("LOOKER", READ)]);
        assert_eq!(gateway.send(&Provider::stripe().event("evt_1")).status, 204);
        wait_until("it is processed", || {
            let events = gateway.events();
            events.first().is_some_and(|event| event["status"] != "received")
        });
        gateway.type_in(&["tenants", "create", "a"]).done();
        gateway.type_in(&["customers", "create", "c_1", "--tenant", "a"]).done();

        let url = format!("http://{}", gateway.address());
        let elsewhere = tempfile::tempdir().unwrap();
        let by_name = |words: &[&str]| {
            let words = [words, &["--server", &url, "--key", READ]].concat();
            let said = say(elsewhere.path(), &words, &[]);
            (said.code, without_time(&said.stdout))
        };
        let here = |gateway: &Gateway, words: &[&str]| {
            let said = gateway.type_in(words);
            (said.code, without_time(&said.stdout))
        };
        let served: Vec<_> = READING.iter().map(|words| here(&gateway, words)).collect();
        for (words, served) in READING.iter().zip(&served) {
            assert_eq!(by_name(words), *served, "{words:?}");
        }
        // What changes something needs a key that may.
        let words = ["tenants", "create", "b", "--server", &url, "--key", READ];
        say(elsewhere.path(), &words, &[]).failed(1).mentions(&["403", "write"]);
        assert!(std::fs::read_dir(elsewhere.path()).unwrap().next().is_none(), "nothing was left there");

        gateway.server.terminate().unwrap();
        for (words, served) in READING.iter().zip(&served) {
            assert_eq!(here(&gateway, words), *served, "no server runs: {words:?}");
        }
    });
}

/// A report says when it was made.
fn without_time(stdout: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(stdout) {
        Ok(mut report) if report["checks"].is_array() => {
            report.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_at"));
            report.to_string()
        }
        _ => stdout.to_owned(),
    }
}

#[test]
fn h2_a_command_that_only_looks_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["payments"][..], &["events", "list"], &["audit", "verify"], &["keys"]] {
        say(folder.path(), words, &[]).failed(1).mentions(&["there is no store at", "sekisho serve"]);
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn h2_the_program_explains_itself() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |words: &[&str]| say(folder.path(), words, &[]);
    ask(&["version"]).done().mentions(&[concat!("sekisho ", env!("CARGO_PKG_VERSION"))]);
    assert_eq!(ask(&["version", "--json"]).done().lines()[0]["version"], env!("CARGO_PKG_VERSION"));
    ask(&["--help"]).done().mentions(&["Money:", "Develop:", "  payments"]);
    ask(&["help", "dead"]).done().mentions(&["Examples:", "sekisho dead retry --route app"]);
    ask(&["payments", "--help"]).done().mentions(&["--server", "--key", "--status", "Examples:"]);
    ask(&["help", "exit-codes"]).done().mentions(&["wrong usage", "65", "70", "74"]);
    for (shell, words) in [("bash", "complete -F"), ("zsh", "#compdef"), ("fish", "complete -c sekisho")] {
        ask(&["completions", shell]).done().mentions(&[words, "payments"]);
    }
    ask(&["man"]).done().mentions(&[".TH", "sekisho"]);
    ask(&["man", "--dir", "pages"]).done();
    for page in ["sekisho.1", "sekisho-payments.1", "sekisho-events-tail.1"] {
        assert!(folder.path().join("pages").join(page).exists(), "{page}");
    }
    ask(&["no-such-command"]).failed(2);
    ask(&["serve", "--server", "http://localhost"]).failed(2);
}

#[test]
fn h2_output_is_as_it_is_asked_for() {
    each_store(|place| {
        let gateway = Gateway::with_env(place, &stripe_source(""), &[("TZ", "Asia/Tokyo")]);
        gateway.send(&Provider::stripe().event("evt_1"));
        wait_until("it is processed", || gateway.events()[0]["status"] == "success");
        let list = |words: &[&str]| gateway.type_in(&[&["events", "list"], words].concat()).done().stdout;
        assert!(list(&["--color", "always"]).contains("\x1b[32msuccess\x1b[0m"));
        for plain in [list(&[]), list(&["--color", "never"]), list(&["--color", "always", "--json"])] {
            assert!(!plain.contains('\x1b'), "{plain}");
        }
        let utc = gateway.events()[0]["received_at"].as_str().unwrap().to_owned();
        assert!(list(&[]).contains(&utc));
        let local = list(&["--local"]);
        assert!(!local.contains(&utc) && local.contains(&utc[14..19]), "{local}");
        assert!(list(&["--local", "--json"]).contains(&utc), "programs read UTC");

        let made = gateway.type_in(&["keys", "create", "--scopes", "read", "--name", "one", "-q"]).done();
        assert_eq!((made.stdout.lines().count(), made.stderr.as_str()), (1, ""));
        gateway.type_in(&["keys", "-v"]).done().mentions(&["using the server at http://127.0.0.1:"]);
        gateway
            .type_in_with_url(&["trigger", "payment_intent.succeded"])
            .failed(1)
            .mentions(&["Did you mean payment_intent.succeeded?"]);
    });
}
