//! Which files there are, and which of them belong together. An override wins over the shipped file of its name; a new
//! name needs its text in every language. A name one slip away from a shipped one is taken for that slip.

use std::collections::{BTreeMap, BTreeSet};

use super::flaw::{Flaw, likely};
use crate::language::Language;

macro_rules! shipped {
    ($($file:literal)*) => {
        &[$(($file, include_str!(concat!("../../../templates/", $file)))),*]
    };
}

pub const SHIPPED: &[(&str, &str)] = shipped![
    "deadline-reminder.en.html"
    "deadline-reminder.en.txt"
    "deadline-reminder.ja.html"
    "deadline-reminder.ja.txt"
    "footer.txt"
    "layout.html"
    "operator-alert.en.html"
    "operator-alert.en.txt"
    "operator-alert.ja.html"
    "operator-alert.ja.txt"
    "payment-failed.en.html"
    "payment-failed.en.txt"
    "payment-failed.ja.html"
    "payment-failed.ja.txt"
    "payment-received.en.html"
    "payment-received.en.txt"
    "payment-received.ja.html"
    "payment-received.ja.txt"
    "refund-done.en.html"
    "refund-done.en.txt"
    "refund-done.ja.html"
    "refund-done.ja.txt"
    "refund-failed.en.html"
    "refund-failed.en.txt"
    "refund-failed.ja.html"
    "refund-failed.ja.txt"
    "refund-pending.en.html"
    "refund-pending.en.txt"
    "refund-pending.ja.html"
    "refund-pending.ja.txt"
    "reservation-cancelled.en.html"
    "reservation-cancelled.en.txt"
    "reservation-cancelled.ja.html"
    "reservation-cancelled.ja.txt"
    "reservation-confirmed.en.html"
    "reservation-confirmed.en.txt"
    "reservation-confirmed.ja.html"
    "reservation-confirmed.ja.txt"
    "reservation-expired.en.html"
    "reservation-expired.en.txt"
    "reservation-expired.ja.html"
    "reservation-expired.ja.txt"
    "test.en.html"
    "test.en.txt"
    "test.ja.html"
    "test.ja.txt"
    "video-render-failure.en.html"
    "video-render-failure.en.txt"
    "video-render-failure.ja.html"
    "video-render-failure.ja.txt"
];

/// Belong to no template: others build on them.
const SHARED: [&str; 2] = ["layout.html", "footer.txt"];

const NAME_MAX: usize = 64;

/// Every file by its name, with lines that end as ours do.
pub struct Files {
    contents: BTreeMap<String, String>,
    names: BTreeSet<String>,
}

impl Files {
    /// The shipped files with these over them, and what is wrong with their names. Misnamed files are left out.
    pub fn with(overrides: Vec<(String, String)>) -> (Self, Vec<Flaw>) {
        let own = |(file, content): &(&str, &str)| ((*file).to_owned(), (*content).to_owned());
        let mut contents: BTreeMap<_, _> = SHIPPED.iter().map(own).collect();
        let mut flaws = Vec::new();
        for (file, content) in overrides {
            match misnamed(&file) {
                Some(problem) => flaws.push(Flaw { file, line: None, problem }),
                None => drop(contents.insert(file, tidy(&content))),
            }
        }
        let all: BTreeSet<_> =
            contents.keys().filter_map(|file| Some(parse(file)?.name.to_owned())).collect();
        let mut names = BTreeSet::new();
        for name in all {
            let missing = missing(&contents, &name);
            if missing.is_empty() {
                names.insert(name);
            }
            flaws.extend(missing);
        }
        (Self { contents, names }, flaws)
    }

    pub fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.contents.iter().map(|(file, content)| (file.as_str(), content.as_str()))
    }

    /// The file with the HTML of a template, if it has any.
    pub fn html(&self, name: &str, language: Language) -> Option<String> {
        Some(html_file(name, language)).filter(|file| self.contents.contains_key(file))
    }
}

pub fn text_file(name: &str, language: Language) -> String {
    format!("{name}.{}.txt", language.name())
}

fn html_file(name: &str, language: Language) -> String {
    format!("{name}.{}.html", language.name())
}

/// Is this file part of the template, or shared by all?
pub fn builds_on(name: &str, file: &str) -> bool {
    SHARED.contains(&file) || parse(file).is_some_and(|parts| parts.name == name)
}

/// Only HTML is escaped.
pub fn is_html(file: &str) -> bool {
    file.rsplit('.').next() == Some("html")
}

struct Parts<'f> {
    name: &'f str,
    language: &'f str,
    /// Of a text or of HTML.
    format: &'f str,
}

/// The parts of `NAME.LANG.txt` and `NAME.LANG.html`.
fn parse(file: &str) -> Option<Parts<'_>> {
    let (rest, format) = file.rsplit_once('.')?;
    let (name, language) = rest.rsplit_once('.')?;
    matches!(format, "txt" | "html").then_some(Parts { name, language, format })
}

fn misnamed(file: &str) -> Option<String> {
    if SHARED.contains(&file) {
        return None;
    }
    let Some(Parts { name, language, format }) = parse(file) else {
        let hint = likely(file, SHIPPED.iter().map(|(file, _)| *file));
        let hint = hint.map(|file| format!("; did you mean `{file}`?")).unwrap_or_default();
        return Some(format!(
            "no file of a template: expected NAME.ja.txt, NAME.ja.html, NAME.en.txt, NAME.en.html, {}{hint}",
            SHARED.join(" or ")
        ));
    };
    if language.parse::<Language>().is_err() {
        let known = Language::ALL.map(Language::name).join(" and ");
        return Some(format!("there is no language `{language}`; known are {known}"));
    }
    let is_letter = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_letter) {
        return Some(format!(
            "a template's name has 1 to {NAME_MAX} of the letters a–z, 0–9 and -, such as order-shipped"
        ));
    }
    let shipped: BTreeSet<_> = SHIPPED.iter().filter_map(|(file, _)| Some(parse(file)?.name)).collect();
    if shipped.contains(name) {
        return None;
    }
    let meant = likely(name, shipped)?;
    Some(format!(
        "there is no template `{name}`; did you mean `{meant}.{language}.{format}`? \
         A new template needs a name that can't be taken for it"
    ))
}

/// The files a template lacks, each as a flaw that says what to write.
fn missing(contents: &BTreeMap<String, String>, name: &str) -> Vec<Flaw> {
    let has = |file: &String| contents.contains_key(file);
    let html: Vec<_> = Language::ALL.map(|language| html_file(name, language)).into();
    let html_there = html.iter().find(|file| has(file)).cloned();
    let needed_html = html.into_iter().filter(|_| html_there.is_some());
    let needed = Language::ALL.map(|language| text_file(name, language)).into_iter().chain(needed_html);
    let flaw = |file: String| {
        let problem = match &html_there {
            Some(there) if is_html(&file) => {
                format!("missing: there is a {there}, so write this one, too")
            }
            _ => format!("missing: write it, so that `{name}` can be read in every language as text"),
        };
        Flaw { file, line: None, problem }
    };
    needed.filter(|file| !has(file)).map(flaw).collect()
}

/// What editors add and nobody sees.
fn tidy(content: &str) -> String {
    content.trim_start_matches('\u{feff}').replace("\r\n", "\n")
}
