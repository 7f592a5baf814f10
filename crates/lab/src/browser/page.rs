//! One browser and the page it shows: a story's eyes and hands.
//!
//! What acts on an element or reads it waits until it is there and can be used. `wait_…` mean what can be seen;
//! `count` and `texts` take the page as it is at this moment, seen or not.

mod look;

use std::cell::RefCell;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::keys;
use super::wire::{BrowserSession, WireRefusal, element, element_id};

/// Longest wait for anything on a page.
pub const LIMIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(20);
/// Of a page's text in the message of a failure.
const SHOWN_MAX: usize = 4_000;

/// Set at once: typing into them depends on the language.
const PICKED: &str = "const [own, value] = arguments;
    if (!['color', 'date', 'datetime-local', 'month', 'range', 'time', 'week'].includes(own.type)) return false;
    own.value = value;
    ['input', 'change'].forEach((name) => own.dispatchEvent(new Event(name, { bubbles: true })));
    return true;";
const OPTION: &str = "return [...arguments[0].options].find((own) => own.value === arguments[1]) ?? null;";
const WITH_TEXT: &str = "return [...document.querySelectorAll(arguments[0])].find((own) =>
    own.checkVisibility({ visibilityProperty: true }) && own.innerText.includes(arguments[1])) ?? null;";
const VISIBLE: &str = "return [...document.querySelectorAll(arguments[0])]
    .some((own) => own.checkVisibility({ visibilityProperty: true }));";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    pub name: String,
    pub value: String,
    pub path: String,
    pub http_only: bool,
    pub secure: bool,
    /// `Strict`, `Lax` or `None`.
    pub same_site: String,
    /// Seconds since 1970; `None` ends with the browser.
    pub expires_at: Option<i64>,
}

#[derive(Debug)]
pub struct Browser {
    session: BrowserSession,
    /// Chromedriver tells each line once.
    logged: RefCell<Vec<String>>,
    pub(super) limit: Duration,
}

/// Where it is.
impl Browser {
    pub(super) fn new(session: BrowserSession) -> Self {
        Self { session, logged: RefCell::default(), limit: LIMIT }
    }

    /// Returns when the page and what it refers to are loaded.
    #[track_caller]
    pub fn go(&self, url: &str) {
        self.must(&format!("go to {url}"), self.session.post("/url", &json!({ "url": url })));
    }

    #[track_caller]
    pub fn reload(&self) {
        self.must("load the page again", self.session.post("/refresh", &json!({})));
    }

    #[track_caller]
    pub fn back(&self) {
        self.must("go back", self.session.post("/back", &json!({})));
    }

    #[track_caller]
    pub fn url(&self) -> String {
        text_of(&self.must("read the address", self.session.get("/url")))
    }

    #[track_caller]
    pub fn title(&self) -> String {
        text_of(&self.must("read the title", self.session.get("/title")))
    }

    #[track_caller]
    pub fn cookies(&self) -> Vec<Cookie> {
        let cookies = self.must("read the cookies", self.session.get("/cookie"));
        let cookie = |own: &Value| Cookie {
            name: text_of(&own["name"]),
            value: text_of(&own["value"]),
            path: text_of(&own["path"]),
            http_only: own["httpOnly"] == true,
            secure: own["secure"] == true,
            same_site: text_of(&own["sameSite"]),
            expires_at: own["expiry"].as_i64(),
        };
        cookies.as_array().into_iter().flatten().map(cookie).collect()
    }
}

/// Hands.
impl Browser {
    #[track_caller]
    pub fn click(&self, css: &str) {
        self.on(&format!("click {css}"), || self.find(css), |id| self.click_it(id));
    }

    /// The first visible element of `css` whose text contains `text`.
    #[track_caller]
    pub fn click_text(&self, css: &str, text: &str) {
        let find = || self.ask_element(WITH_TEXT, &[json!(css), json!(text)]);
        self.on(&format!("click {css} with {text:?}"), find, |id| self.click_it(id));
    }

    /// Types `text` in place of what is there. Dates, times, colours and ranges take their value as HTML writes it.
    #[track_caller]
    pub fn fill(&self, css: &str, text: &str) {
        self.on(
            &format!("fill {css}"),
            || self.find(css),
            |id| {
                if self.session.script(PICKED, &[element(id), json!(text)])? == true {
                    return Ok(());
                }
                self.session.post(&format!("/element/{id}/clear"), &json!({}))?;
                self.session.post(&format!("/element/{id}/value"), &json!({ "text": text })).map(drop)
            },
        );
    }

    /// The option of a select that has this value.
    #[track_caller]
    pub fn choose(&self, css: &str, value: &str) {
        let find = || self.ask_element(OPTION, &[element(&self.find(css)?), json!(value)]);
        self.on(&format!("choose {value:?} in {css}"), find, |id| self.click_it(id));
    }

    /// A key to whatever has the focus: `Tab`, `Enter`, `Escape`, `/`, `j`, `Shift+Tab`.
    #[track_caller]
    pub fn press(&self, key: &str) {
        let stroke = match keys::stroke(key) {
            Ok(stroke) => stroke,
            Err(error) => panic!("{error}"),
        };
        self.must(&format!("press {key}"), self.session.post("/actions", &stroke));
    }

    /// Says yes to an alert, confirm or prompt, and what it asked. `None` if none is open.
    #[track_caller]
    pub fn accept_dialog(&self) -> Option<String> {
        self.answer_dialog("accept")
    }

    /// Says no to it.
    #[track_caller]
    pub fn dismiss_dialog(&self) -> Option<String> {
        self.answer_dialog("dismiss")
    }

    #[track_caller]
    fn answer_dialog(&self, answer: &str) -> Option<String> {
        let asked = match self.session.get("/alert/text") {
            Err(refusal) if refusal.code == "no such alert" => return None,
            asked => self.must("read the dialog", asked),
        };
        self.must("answer the dialog", self.session.post(&format!("/alert/{answer}"), &json!({})));
        Some(text_of(&asked))
    }

    fn click_it(&self, id: &str) -> Result<(), WireRefusal> {
        self.session.post(&format!("/element/{id}/click"), &json!({})).map(drop)
    }
}

/// Patience.
impl Browser {
    #[track_caller]
    pub fn wait_for(&self, css: &str) {
        self.wait(&format!("see {css}"), || self.visible(css));
    }

    /// Anywhere on the page, as it can be read there.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) {
        self.wait(&format!("read {text:?}"), || Ok(text_of(&self.text_now()?).contains(text)));
    }

    #[track_caller]
    pub fn wait_gone(&self, css: &str) {
        self.wait(&format!("see {css} go"), || Ok(!self.visible(css)?));
    }

    /// Until the address contains `part`.
    #[track_caller]
    pub fn wait_for_url(&self, part: &str) {
        self.wait(&format!("come to {part}"), || Ok(text_of(&self.session.get("/url")?).contains(part)));
    }

    fn visible(&self, css: &str) -> Result<bool, WireRefusal> {
        Ok(self.session.script(VISIBLE, &[json!(css)])? == true)
    }

    #[track_caller]
    fn wait(&self, what: &str, met: impl Fn() -> Result<bool, WireRefusal>) {
        let hurried = || match met() {
            Ok(true) => Ok(()),
            Ok(false) => Err(WireRefusal { code: "waiting".into(), message: "it did not happen".into() }),
            Err(refusal) => Err(refusal),
        };
        let done = self.patiently(hurried);
        self.must(&format!("{what} within {:?}", self.limit), done);
    }

    /// Finds an element and does something to it, again while the page is not ready for that: a command refused
    /// for one of these reasons has not touched it.
    #[track_caller]
    fn on<T>(
        &self,
        what: &str,
        find: impl Fn() -> Result<String, WireRefusal>,
        act: impl Fn(&str) -> Result<T, WireRefusal>,
    ) -> T {
        let done = self.patiently(|| act(&find()?));
        self.must(what, done)
    }

    fn patiently<T>(&self, attempt: impl Fn() -> Result<T, WireRefusal>) -> Result<T, WireRefusal> {
        let started = Instant::now();
        loop {
            match attempt() {
                Err(refusal) if may_pass(&refusal) && started.elapsed() < self.limit => sleep(POLL),
                ended => return ended,
            }
        }
    }

    fn find(&self, css: &str) -> Result<String, WireRefusal> {
        let found = self.session.post("/element", &json!({ "using": "css selector", "value": css }))?;
        Ok(element_id(&found).unwrap_or_default().to_owned())
    }

    fn ask_element(&self, body: &str, arguments: &[Value]) -> Result<String, WireRefusal> {
        let found = self.session.script(body, arguments)?;
        let nothing = || WireRefusal { code: "no such element".into(), message: "nothing fits".into() };
        element_id(&found).map(str::to_owned).ok_or_else(nothing)
    }

    fn text_now(&self) -> Result<Value, WireRefusal> {
        self.session.script("return document.body?.innerText ?? '';", &[])
    }

    fn log_now(&self) -> Result<Vec<String>, WireRefusal> {
        let fresh = self.session.post("/se/log", &json!({ "type": "browser" }))?;
        let line = |own: &Value| format!("{} {}", text_of(&own["level"]), text_of(&own["message"]));
        let mut logged = self.logged.borrow_mut();
        logged.extend(fresh.as_array().into_iter().flatten().map(line));
        Ok(logged.clone())
    }

    #[track_caller]
    fn must<T>(&self, what: &str, done: Result<T, WireRefusal>) -> T {
        match done {
            Ok(value) => value,
            Err(refusal) => panic!("the browser could not {what} ({refusal})\n{}", self.scene()),
        }
    }

    /// What a reader of a failed story wants to know.
    fn scene(&self) -> String {
        let or_why =
            |asked: Result<Value, WireRefusal>| asked.map_or_else(|no| format!("({no})"), |it| text_of(&it));
        let text: String = or_why(self.text_now()).chars().take(SHOWN_MAX).collect();
        let log = self.log_now().map_or_else(|no| format!("({no})"), |lines| lines.join("\n"));
        format!("at {}\n--- page\n{text}\n--- log\n{log}", or_why(self.session.get("/url")))
    }
}

fn may_pass(refusal: &WireRefusal) -> bool {
    let passing = [
        "waiting",
        "no such element",
        "stale element reference",
        "element click intercepted",
        "element not interactable",
        "invalid element state",
        "javascript error",
    ];
    passing.contains(&refusal.code.as_str())
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
