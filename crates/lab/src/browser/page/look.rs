//! What can be seen on the page: texts, values, pictures, and what is wrong with it.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Browser, text_of};
use crate::browser::wire::{WireRefusal, element, element_id};

/// Taller pages are cut: Chromium repeats itself beyond.
const SCREENSHOT_HEIGHT_MAX: f64 = 16_000.0;
const CONTROLS_MAX: usize = 500;

const PAGE: &str = include_str!("../page.js");

impl Browser {
    /// What can be read in the first element of `css`.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        let read = |id: &str| self.session.get(&format!("/element/{id}/text"));
        text_of(&self.on(&format!("read {css}"), || self.find(css), read))
    }

    #[track_caller]
    pub fn texts(&self, css: &str) -> Vec<String> {
        let body = "return [...document.querySelectorAll(arguments[0])].map((own) => own.innerText.trim());";
        let texts = self.must(&format!("read all {css}"), self.session.script(body, &[json!(css)]));
        texts.as_array().into_iter().flatten().map(text_of).collect()
    }

    /// As the page's source or a script set it; `None` if it is not there.
    #[track_caller]
    pub fn attribute(&self, css: &str, name: &str) -> Option<String> {
        let body = "return arguments[0].getAttribute(arguments[1]);";
        let read = |id: &str| self.session.script(body, &[element(id), json!(name)]);
        let value = self.on(&format!("read {name} of {css}"), || self.find(css), read);
        value.as_str().map(str::to_owned)
    }

    /// What a field holds now.
    #[track_caller]
    pub fn value(&self, css: &str) -> String {
        let read = |id: &str| self.session.script("return arguments[0].value;", &[element(id)]);
        text_of(&self.on(&format!("read the value of {css}"), || self.find(css), read))
    }

    #[track_caller]
    pub fn count(&self, css: &str) -> usize {
        let body = "return document.querySelectorAll(arguments[0]).length;";
        let count = self.must(&format!("count {css}"), self.session.script(body, &[json!(css)]));
        count.as_u64().unwrap_or_default() as usize
    }

    /// All that can be read.
    #[track_caller]
    pub fn page_text(&self) -> String {
        text_of(&self.must("read the page", self.text_now()))
    }

    /// The value of an expression in the page; a promise is waited for.
    #[track_caller]
    pub fn eval(&self, expression: &str) -> Value {
        self.must(
            &format!("run {expression}"),
            self.session.script(&format!("return (\n{expression}\n);"), &[]),
        )
    }

    /// The whole page as a PNG file, one pixel for each of CSS.
    #[track_caller]
    pub fn screenshot(&self, path: &Path) {
        let what = format!("write {}", path.display());
        let size = self.must(&what, self.session.devtools("Page.getLayoutMetrics", &json!({})));
        let (width, height) = (&size["cssContentSize"]["width"], &size["cssContentSize"]["height"]);
        let height = height.as_f64().unwrap_or_default().clamp(1.0, SCREENSHOT_HEIGHT_MAX);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let wish = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.must(&what, self.session.devtools("Page.captureScreenshot", &wish));
        let bytes = STANDARD.decode(text_of(&shot["data"])).expect("Chromium sends base64");
        if let Err(error) = std::fs::write(path, bytes) {
            panic!("can't {what}: {error}");
        }
    }

    /// Every line of the console since the browser opened, as `LEVEL text`; errors of scripts, failed loads and
    /// what the content security policy stopped are `SEVERE`.
    #[track_caller]
    pub fn log(&self) -> Vec<String> {
        self.must("read the log", self.log_now())
    }

    /// What makes the page scroll sideways, except inside a box that scrolls by itself.
    #[track_caller]
    pub fn overflow(&self) -> Option<String> {
        let found = self.session.script(&format!("{PAGE}\nreturn overflow();"), &[]);
        self.must("look for what is too wide", found).as_str().map(str::to_owned)
    }

    /// Visible fields, buttons and links without an accessible name. A placeholder is none. A page that renews itself in
    /// the middle is looked at again.
    #[track_caller]
    pub fn unlabelled(&self) -> Vec<String> {
        let found = self.patiently(|| self.unlabelled_now());
        self.must("look for fields, buttons and links, and read their names", found)
    }

    fn unlabelled_now(&self) -> Result<Vec<String>, WireRefusal> {
        let found = self.session.script(&format!("{PAGE}\nreturn controls();"), &[])?;
        let controls = found.as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(controls.len() <= CONTROLS_MAX, "{} controls are too many to look at", controls.len());
        let mut nameless = Vec::new();
        for control in controls {
            let id = element_id(&control[0]).expect("the script returns elements");
            let name = self.session.get(&format!("/element/{id}/computedlabel"))?;
            if control[2] == true || text_of(&name).trim().is_empty() {
                nameless.push(text_of(&control[1]));
            }
        }
        Ok(nameless)
    }
}
