//! Somebody at the console: a real browser, entered by an invitation as anybody would.

use std::path::Path;
use std::sync::OnceLock;

use sekisho_lab::browser::{Browser, Driver, Look};

use super::Gateway;

/// One driver for all stories; each has browsers of its own.
fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| Driver::start().unwrap_or_else(|error| panic!("{error}")))
}

const PASSWORD: &str = "関所の門は朝早くに開く";

/// Somebody of a rank, logged in.
pub struct Person {
    pub browser: Browser,
    root: String,
}

impl Person {
    /// Comes in by a link that the operator printed.
    pub fn join(gateway: &Gateway, name: &str, rank: &str, look: Look) -> Self {
        let link = gateway.type_in(&["users", "invite", "--rank", rank]).done().stdout;
        let browser = driver().open(look);
        browser.go(link.trim());
        browser.fill("input[name=name]", name);
        browser.fill("input[name=password]", PASSWORD);
        browser.fill("input[name=again]", PASSWORD);
        browser.click("main button");
        browser.wait_for(".menu");
        Self { browser, root: format!("http://{}", gateway.address()) }
    }

    /// The same person with another browser.
    pub fn log_in(gateway: &Gateway, name: &str, look: Look) -> Self {
        let browser = driver().open(look);
        let root = format!("http://{}", gateway.address());
        browser.go(&format!("{root}/console/login"));
        browser.fill("input[name=name]", name);
        browser.fill("input[name=password]", PASSWORD);
        browser.click("main button");
        browser.wait_for(".menu");
        Self { browser, root }
    }

    pub fn go(&self, path: &str) {
        self.browser.go(&format!("{}{path}", self.root));
    }

    /// What every page must be, whatever it shows.
    pub fn check_page(&self, what: &str) {
        assert_eq!(self.browser.overflow(), None, "{what} is wider than the screen");
        assert_eq!(self.browser.unlabelled(), Vec::<String>::new(), "{what} has something without a name");
        let log = self.browser.log();
        let bad: Vec<_> = log.iter().filter(|line| line.starts_with("SEVERE")).collect();
        assert!(bad.is_empty(), "{what}: {bad:?}");
    }

    /// Kept where `SEKISHO_SCREENSHOTS` says, for people to look at.
    pub fn picture(&self, name: &str) {
        if let Ok(folder) = std::env::var("SEKISHO_SCREENSHOTS") {
            self.browser.screenshot(&Path::new(&folder).join(format!("{name}.png")));
        }
    }
}
