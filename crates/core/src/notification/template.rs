//! What a notice says, in words: subject, text and HTML, in the reader's language.
//!
//! A template is a pair of files per language, `NAME.LANG.txt` (a line `Subject: …`, an empty line, the text) and
//! `NAME.LANG.html`; two more are shared, `layout.html` and `footer.txt`. Some are shipped; operators override any file or
//! add names. Whatever can be wrong with a template is found when it is loaded: every one is filled with its samples
//! then, and a name that does not exist is an error. HTML is escaped, text is not.
//!
//! What a template is filled with is fixed in [`sample`]: every key is always there, null when it is not known.

mod engine;
mod files;
mod filter;
mod flaw;
mod sample;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::language::Language;
use engine::TemplateEngine;
use files::Files;

pub use flaw::Flaw;
pub use sample::SampleKind;

/// All templates, ready to be filled. Cheap to clone.
#[derive(Clone)]
pub struct Templates(Arc<Loaded>);

struct Loaded {
    files: Files,
    engine: TemplateEngine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// One line.
    pub subject: String,
    /// Complete by itself.
    pub text: String,
    pub html: Option<String>,
}

impl Templates {
    /// Those that come with the program.
    pub fn shipped() -> Self {
        Self::with(Vec::new()).expect("the shipped templates are tested")
    }

    /// The shipped files, as a start for overriding them.
    pub fn shipped_files() -> &'static [(&'static str, &'static str)] {
        files::SHIPPED
    }

    /// The shipped templates with these files, by name and content, over them. Says everything that is wrong at once.
    pub fn with(overrides: Vec<(String, String)>) -> Result<Self, Vec<Flaw>> {
        let (files, mut flaws) = Files::with(overrides);
        let (engine, broken) = TemplateEngine::of(&files);
        let templates = Self(Arc::new(Loaded { files, engine }));
        // Whatever builds on a broken file fails for that reason only.
        for name in templates.names() {
            if !broken.iter().any(|flaw| files::builds_on(name, &flaw.file)) {
                flaws.extend(templates.check(name, |language| Self::samples(name, language)));
            }
        }
        flaws.extend(broken);
        if flaws.is_empty() { Ok(templates) } else { Err(in_order(flaws)) }
    }

    pub fn render(&self, template: &str, language: Language, data: &Value) -> Result<Rendered, Flaw> {
        self.0.engine.render(&self.0.files, template, language, data)
    }

    pub fn names(&self) -> Vec<&str> {
        self.0.files.names()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.files.has(name)
    }

    /// Is there an HTML part, or only text?
    pub fn has_html(&self, name: &str, language: Language) -> bool {
        self.0.files.html(name, language).is_some()
    }

    /// What a template may be filled with: everything known, and only what always is. A shipped template is about
    /// one kind of thing; any other may be about each of them, and is shown all.
    pub fn samples(template: &str, language: Language) -> Vec<(&'static str, Value)> {
        sample::both(SampleKind::of_shipped(template), language)
    }

    /// Can this template tell of such a thing? To be asked wherever one is chosen: a template that needs a payment
    /// has nothing to say about an alert.
    pub fn suits(&self, template: &str, kind: SampleKind) -> Result<(), Vec<Flaw>> {
        let flaws = self.check(template, |language| sample::both(Some(kind), language));
        if flaws.is_empty() { Ok(()) } else { Err(in_order(flaws)) }
    }

    fn check(&self, name: &str, samples: impl Fn(Language) -> Vec<(&'static str, Value)>) -> Vec<Flaw> {
        let Loaded { files, engine } = &*self.0;
        let each = Language::ALL.into_iter().flat_map(|language| {
            samples(language).into_iter().map(move |(_, data)| engine.check(files, name, language, &data))
        });
        each.flatten().collect()
    }
}

/// Sorted as a person reads the folder; each once.
fn in_order(flaws: Vec<Flaw>) -> Vec<Flaw> {
    flaws.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Templates").field(&self.names()).finish()
    }
}

#[cfg(test)]
mod tests;
