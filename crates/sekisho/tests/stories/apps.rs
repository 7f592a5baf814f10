//! C3: handlers that shops already have, with the official libraries, stand behind Sekisho unchanged. They are those
//! of `examples/`, and so are the configurations; `./check` brings the libraries. The app of [`planetarium`] was written for it.

mod planetarium;

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Gateway, Place, Provider, STRIPE_SECRET, each_store, wait_until};

/// Base 64 behind its prefix, as Standard Webhooks wants it; to Stripe and QStash it is any text.
const OLD: &str = "whsec_canarySharedWithTheApp4fd1AAAAAA";
const NEW: &str = "whsec_canaryForTheAppAfterRotation7c2e";

const NODE_STRIPE: Handler = Handler { file: "node/stripe.mjs", config: "stripe.toml" };
const NODE_UPSTASH: Handler = Handler { file: "node/upstash.mjs", config: "upstash.toml" };
const PYTHON_STRIPE: Handler = Handler { file: "python/stripe_app.py", config: "stripe.toml" };
const PYTHON_STANDARD: Handler = Handler { file: "python/standard_app.py", config: "standard-webhooks.toml" };
const PYTHON_UPSTASH: Handler = Handler { file: "python/upstash_app.py", config: "upstash.toml" };
const HANDLERS: [Handler; 5] = [NODE_STRIPE, NODE_UPSTASH, PYTHON_STRIPE, PYTHON_STANDARD, PYTHON_UPSTASH];

#[test]
fn c3_stripes_node_library_accepts_every_type_of_event() {
    accepts_every_type_of_event(NODE_STRIPE);
}

#[test]
fn c3_stripes_python_library_accepts_every_type_of_event() {
    accepts_every_type_of_event(PYTHON_STRIPE);
}

#[test]
fn c3_the_standard_webhooks_library_accepts_every_type_of_event() {
    accepts_every_type_of_event(PYTHON_STANDARD);
}

#[test]
fn c3_qstashs_node_receiver_accepts_every_type_of_event() {
    accepts_every_type_of_event(NODE_UPSTASH);
}

#[test]
fn c3_qstashs_python_receiver_accepts_every_type_of_event() {
    accepts_every_type_of_event(PYTHON_UPSTASH);
}

fn accepts_every_type_of_event(handler: Handler) {
    each_store(|place| {
        let app = App::start(handler, OLD);
        let gateway = gateway_before(&app, place, "");
        let mut sent = Vec::new();
        for event in events() {
            // Over several lines, as Stripe writes: only the same bytes have the same signature.
            let body = serde_json::to_string_pretty(&event).unwrap();
            assert_eq!(gateway.send(&Provider::stripe().body(&body)).status, 204, "{body}");
            sent.push(id_and_type(&event));
        }
        sent.sort();
        wait_until("the app accepts them all", || app.accepted().len() >= sent.len());
        assert_eq!(app.accepted(), sent, "each of them, once");
    });
}

#[test]
fn c3_an_app_with_another_secret_refuses_and_the_event_waits_among_the_dead_letters() {
    for handler in HANDLERS {
        let place = Place::sqlite();
        let app = App::start(handler, NEW);
        let gateway = gateway_before(&app, &place, "retries = 1\nretry_first = \"10ms\"\n");
        assert_eq!(gateway.send(&Provider::stripe().event("evt_1")).status, 204);
        wait_until("the retries are used up", || gateway.events()[0]["status"] == "failed");
        assert!(app.accepted().is_empty(), "{handler:?}");
        let dead = place.sql("SELECT event_id, attempts, reason FROM failed_webhook_events");
        assert_eq!(dead, "evt_1|2|client_error", "{handler:?}");
    }
}

#[test]
fn c3_an_app_may_change_to_the_new_secret_when_it_likes() {
    for handler in HANDLERS {
        for known in [OLD, NEW] {
            let place = Place::sqlite();
            let app = App::start(handler, known);
            let config =
                app.config("").replace("\"env:APP_SECRET\"", "\"env:APP_SECRET_NEXT\", \"env:APP_SECRET\"");
            let gateway = Gateway::with_env(&place, &config, &ENV);
            let event = &events()[0];
            assert_eq!(gateway.send(&Provider::stripe().body(&event.to_string())).status, 204);
            wait_until("the app accepts it", || app.accepted() == [id_and_type(event)]);
        }
    }
}

/// What Sekisho knows, whatever the app knows.
const ENV: [(&str, &str); 3] =
    [("STRIPE_WEBHOOK_SECRET", STRIPE_SECRET), ("APP_SECRET", OLD), ("APP_SECRET_NEXT", NEW)];

fn gateway_before(app: &App, place: &Place, more: &str) -> Gateway {
    Gateway::with_env(place, &app.config(more), &ENV)
}

/// One event of each usual type, as Stripe sends it, made just now.
fn events() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stripe");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let events: Vec<_> = files
        .map(|file| {
            let mut event: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            event["created"] = sekisho::now().seconds().into();
            event
        })
        .collect();
    assert!(events.len() > 20, "only {} events", events.len());
    events
}

fn id_and_type(event: &Value) -> (String, String) {
    let text = |key: &str| event[key].as_str().unwrap().to_owned();
    (text("id"), text("type"))
}

/// A file in `examples/`, and the configuration there that puts Sekisho before it.
#[derive(Clone, Copy, Debug)]
struct Handler {
    file: &'static str,
    config: &'static str,
}

impl Handler {
    fn config_for(self, app: SocketAddr) -> String {
        let text = fs::read_to_string(examples().join(self.config)).unwrap();
        let written = "http://127.0.0.1:4242/";
        assert!(text.contains(written), "{} sends elsewhere", self.config);
        text.replace(written, &format!("http://{app}/"))
    }
}

/// A running handler. It prints a line for each event that its library accepted.
struct App {
    handler: Handler,
    address: SocketAddr,
    folder: TempDir,
    guard: Child,
}

impl App {
    /// A shell holds the app and ends it when its own input closes, also when the test process was killed.
    const GUARD: &str = "\"$@\" < /dev/null & read -r _; kill -9 $!; wait";

    fn start(handler: Handler, secret: &str) -> Self {
        Self::start_at(handler, sekisho_lab::free_address().unwrap(), &[("APP_SECRET", secret)])
    }

    fn start_at(handler: Handler, address: SocketAddr, env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (program, file) = runnable(handler, folder.path());
        let guard = Command::new("sh")
            .args(["-c", Self::GUARD, "app"])
            .args([program, file])
            .env("PORT", address.port().to_string())
            .env("APP_SECRET_NEXT", NEW)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(File::create(folder.path().join("stdout.log")).unwrap())
            .stderr(File::create(folder.path().join("stderr.log")).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        let app = Self { handler, address, folder, guard };
        wait_until("the app listens", || TcpStream::connect(address).is_ok());
        app
    }

    /// The example as it is written, but for the app's port, which is free here; `more` is about its route.
    fn config(&self, more: &str) -> String {
        self.handler.config_for(self.address) + more
    }

    fn accepted(&self) -> Vec<(String, String)> {
        let mut accepted: Vec<_> = self.lines().iter().map(id_and_type).collect();
        accepted.sort();
        accepted
    }

    fn lines(&self) -> Vec<Value> {
        let printed = self.printed("stdout.log");
        let whole = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn printed(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).unwrap()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        if std::thread::panicking() {
            eprintln!(
                "{} said:\n{}",
                self.handler.file,
                self.printed("stdout.log") + &self.printed("stderr.log")
            );
        }
    }
}

/// The program and the file it runs.
fn runnable(handler: Handler, folder: &Path) -> (PathBuf, PathBuf) {
    let file = examples().join(handler.file);
    if handler.file.starts_with("python/") {
        return (from_check("SEKISHO_TEST_PYTHON"), file);
    }
    // Node looks for libraries beside the file, so both get a place of their own.
    let copy = folder.join("app.mjs");
    fs::copy(file, &copy).unwrap();
    symlink(from_check("SEKISHO_TEST_NODE_APPS").join("node_modules"), folder.join("node_modules")).unwrap();
    ("node".into(), copy)
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn from_check(variable: &str) -> PathBuf {
    let Some(path) = std::env::var_os(variable) else {
        panic!(
            "{variable} is not set. Run ./check: it installs the libraries of examples/ and sets it. Afterwards also: \
             SEKISHO_TEST_NODE_APPS=$PWD/target/apps/node SEKISHO_TEST_PYTHON=$PWD/target/apps/python/bin/python \
             cargo test --test stories apps::"
        )
    };
    path.into()
}
