//! A real Chromium without a window, driven from a story: what a person sees, clicks and types.
//!
//! A [`Driver`] is one chromedriver process; each [`Browser`] it opens has an empty profile of its own and an exact
//! size, language and colour scheme ([`Look`]). Whatever needs an element waits for it, and fails by panic with the
//! page's address, its visible text and what the browser logged. Blocks the calling thread. Resolves no name but
//! `localhost`. All its processes form one group, which ends with the driver and its browsers, or with the test
//! process; so does the folder that holds everything they write.

mod keys;
mod page;
mod wire;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

pub use page::{Browser, Cookie, LIMIT};

use crate::warden::Warden;
use wire::{BrowserSession, WireRefusal};

const START: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// Longest load of a page; shorter than our own wait for chromedriver's answer, so that it is the one to complain.
const LOAD_MS: u64 = 20_000;
const SCRIPT_MS: u64 = 10_000;

const PACKAGE: &str = "install the Debian package `chromium-driver`";
const PORT_IS: &str = "started successfully on port ";
/// Ends the group, then removes the folder; a second time, since the dying may still write.
const CLEAN_UP: &str = "kill -s KILL -- \"-$1\"; rm -rf \"$2\" || { sleep 1; rm -rf \"$2\"; }";

const FLAGS: [&str; 13] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-crash-reporter",
    "--no-proxy-server",
    // A bar would take its part of the exact width.
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost",
];

/// What a page is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    /// As pages see it: `ja`, `en`.
    pub language: &'static str,
    pub dark: bool,
}

impl Look {
    /// Narrower than this is a phone: it obeys `meta viewport` and scrolls without a bar.
    pub const PHONE_BELOW: u32 = 600;

    pub fn phone(language: &'static str) -> Self {
        Self { width: 390, height: 844, language, dark: false }
    }

    pub fn desk(language: &'static str) -> Self {
        Self { width: 1440, height: 900, language, dark: false }
    }

    #[must_use]
    pub fn dark(self) -> Self {
        Self { dark: true, ..self }
    }
}

/// Opens browsers. Its process lives until the driver and every browser it opened are dropped.
#[derive(Clone, Debug)]
pub struct Driver(Arc<Chromedriver>);

impl Driver {
    pub fn start() -> Result<Self, String> {
        Chromedriver::start("chromedriver").map(|started| Self(Arc::new(started)))
    }

    /// A fresh browser with an empty profile, on an empty page.
    #[track_caller]
    pub fn open(&self, look: Look) -> Browser {
        match BrowserSession::open(Arc::clone(&self.0), &capabilities(look))
            .and_then(|session| dressed(session, look))
        {
            Ok(session) => Browser::new(session),
            Err(refusal) => panic!("no browser opened with {look:?}: {refusal}; {PACKAGE}\n{}", self.0.log()),
        }
    }
}

fn capabilities(look: Look) -> Value {
    let own = [format!("--lang={}", look.language), format!("--window-size={},{}", look.width, look.height)];
    let flags: Vec<&str> = FLAGS.into_iter().chain(own.iter().map(String::as_str)).collect();
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "unhandledPromptBehavior": "ignore",
        "timeouts": { "implicit": 0, "pageLoad": LOAD_MS, "script": SCRIPT_MS },
        "goog:loggingPrefs": { "browser": "ALL" },
        "goog:chromeOptions": {
            "args": flags,
            "prefs": {
                "intl.accept_languages": look.language,
                // No bubble that offers to save a password takes the keyboard away.
                "credentials_enable_service": false,
                "profile.password_manager_enabled": false,
            },
        },
    } } })
}

/// What no flag can say exactly: a window has borders and a least width.
fn dressed(session: BrowserSession, look: Look) -> Result<BrowserSession, WireRefusal> {
    let mobile = look.width < Look::PHONE_BELOW;
    let size =
        json!({ "width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": mobile });
    session.devtools("Emulation.setDeviceMetricsOverride", &size)?;
    let scheme = if look.dark { "dark" } else { "light" };
    let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
    session.devtools("Emulation.setEmulatedMedia", &media)?;
    session.devtools("Emulation.setLocaleOverride", &json!({ "locale": look.language }))?;
    Ok(session)
}

#[derive(Debug)]
struct Chromedriver {
    address: SocketAddr,
    child: Child,
    warden: Warden,
    dir: PathBuf,
}

impl Chromedriver {
    fn start(program: &str) -> Result<Self, String> {
        let dir = TempDir::with_prefix("sekisho-browser-")
            .map_err(|error| format!("no folder for chromedriver: {error}"))?;
        let log = File::create(dir.path().join("chromedriver.log"));
        let log = log.map_err(|error| format!("chromedriver's log can't be written: {error}"))?;
        // The port is chosen by itself and read from its log: one found beforehand may be taken by then.
        let child = Command::new(program)
            .arg("--port=0")
            .env("TMPDIR", dir.path())
            .env("HOME", dir.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program} did not start: {error}; {PACKAGE}"))?;
        let group = child.id().to_string();
        let warden = Warden::new(CLEAN_UP, &[OsStr::new(&group), dir.path().as_os_str()])?;
        let unknown = (Ipv4Addr::LOCALHOST, 0).into();
        let mut started = Self { address: unknown, child, warden, dir: dir.keep() };
        let since = Instant::now();
        while since.elapsed() < START {
            if let Some(port) = port_in(&started.log()) {
                started.address.set_port(port);
                return Ok(started);
            }
            sleep(POLL);
        }
        Err(format!("chromedriver did not start within {START:?}; {PACKAGE}:\n{}", started.log()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.join("chromedriver.log")).unwrap_or_default()
    }
}

fn port_in(log: &str) -> Option<u16> {
    log.split_once(PORT_IS)?.1.split_once('.')?.0.parse().ok()
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        // Order matters: until it is waited for, the group's number is its own.
        self.warden.act();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
