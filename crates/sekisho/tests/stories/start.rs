//! H5: how it starts, refuses to start, and stops.

use sekisho_lab::process::ServerOptions;

use crate::support::{Gateway, Place, Provider, Storm, each_store, say, stripe_source, together, wait_until};

#[test]
fn h5_a_second_server_on_the_same_sqlite_file_is_refused() {
    let place = Place::sqlite();
    let first = Gateway::open(&place);
    let Err(error) = Gateway::try_with(&place, &stripe_source(""), &[]) else {
        panic!("both serve one file")
    };
    assert!(error.contains("another Sekisho is running on") && error.contains("sekisho.db"), "{error}");
    assert_eq!(first.send(&Provider::stripe().event("evt_1")).status, 204, "the first goes on");
    // Those who only look are welcome, and so is the next server when the first has gone.
    assert_eq!(first.event_ids(), ["evt_1"]);
    drop(first);
    let next = Gateway::open(&place);
    assert_eq!(next.event_ids(), ["evt_1"]);
}

#[test]
fn h5_a_postgresql_that_may_forget_is_refused_unless_that_is_asked_for() {
    let place = Place::postgres();
    place.sql(&format!("ALTER DATABASE \"{}\" SET synchronous_commit = off", place.database()));
    let Err(error) = Gateway::try_with(&place, &stripe_source(""), &[]) else {
        panic!("it serves all the same")
    };
    assert!(
        error.contains("synchronous_commit = off") && error.contains("Set synchronous_commit = on"),
        "{error}"
    );

    let unsafe_config = "[store]\nallow_unsafe_durability = true\n".to_owned() + &stripe_source("");
    let gateway = Gateway::with(&place, &unsafe_config);
    assert_eq!(gateway.send(&Provider::stripe().event("evt_1")).status, 204);
    let doctor = gateway.type_in(&["doctor"]).failed(1);
    doctor.mentions(&["allow_unsafe_durability", "Problems found: correct the lines marked bad"]);
    drop(gateway);

    place.sql(&format!("ALTER DATABASE \"{}\" RESET synchronous_commit", place.database()));
    Gateway::open(&place);
}

#[test]
fn h5_a_stop_under_load_finishes_what_was_begun_and_exits_0() {
    each_store(|place| {
        let mut gateway = Gateway::open(place);
        let mut reports = Vec::new();
        for _ in 0..3 {
            let storm = Storm::start(gateway.address(), 16);
            wait_until("traffic", || gateway.metric("sekisho_requests_total", &["accepted"]) >= 50);
            let status = gateway.server.terminate().unwrap();
            reports.push(storm.stop());
            assert_eq!(status.code(), Some(0), "{}", gateway.server.log());
            gateway.server.start_again().unwrap();
        }
        gateway.check_ledger(&together(reports));
        assert!(gateway.server.stderr().contains("stopped"));
        if place.is_sqlite() {
            assert_eq!(place.sql("PRAGMA integrity_check"), "ok");
        }
    });
}

#[test]
fn h5_roles_are_honoured() {
    let place = Place::postgres();
    let role = |role: &str| {
        let role = Some(role.to_owned());
        Gateway::started(&place.url, &stripe_source(""), &[], |options| ServerOptions { role, ..options })
            .unwrap()
    };
    let receiver = role("gateway");
    assert_eq!(receiver.send(&Provider::stripe().event("evt_1")).status, 204);
    let worker = role("worker");
    assert_eq!(worker.send(&Provider::stripe().event("evt_2")).status, 404, "a worker has no doors");
    wait_until("the worker does the gateway's work", || worker.events()[0]["status"] == "success");
    assert_eq!(receiver.event_ids(), ["evt_1"]);
}

#[test]
fn h5_a_wrong_configuration_does_not_start_and_says_where_and_what() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sekisho.toml");
    let check = |text: &str, expected: &[&str]| {
        std::fs::write(&file, text).unwrap();
        for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["config", "check"], &["send"]] {
            say(folder.path(), command, &[]).failed(1).mentions(expected);
        }
    };
    check("[server]\nlistn = \"x\"\n", &["sekisho.toml:2", "did you mean `listen`?"]);
    check(&stripe_source("tolerence = \"5m\""), &["sekisho.toml:", "did you mean `tolerance`?"]);
    check(&stripe_source(""), &["STRIPE_SECRET is not set"]);
    check("[[source]]\nname = \"x\"\nprovider = \"nobody\"\n", &["there is no provider nobody", "stripe"]);
    std::fs::write(&file, "").unwrap();
    say(folder.path(), &["serve", "--listen", "127.0.0.1:0"], &[]).failed(1).mentions(&["no [[source]]"]);
    say(folder.path(), &["serve", "--store", "mysql://x"], &[]).failed(1).mentions(&["sqlite:PATH"]);
    say(folder.path(), &["serve", "--config", "none.toml"], &[]).failed(1).mentions(&["none.toml"]);
    say(folder.path(), &["serve", "--role", "cook"], &[]).failed(2);
    say(folder.path(), &["trigger"], &[]).failed(2);
    say(folder.path(), &["fly"], &[]).failed(2);
}

#[test]
fn h5_a_port_that_is_taken_is_a_clear_error() {
    let place = Place::sqlite();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    std::fs::write(place.folder.path().join("sekisho.toml"), stripe_source("")).unwrap();
    let words = ["serve", "--listen", &address, "--store", &place.url];
    say(place.folder.path(), &words, &[("STRIPE_SECRET", "whsec_x")])
        .failed(1)
        .mentions(&["can't listen on", &address]);
    let left: Vec<_> =
        std::fs::read_dir(place.folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, ["sekisho.toml"], "no empty store is left behind");
}
