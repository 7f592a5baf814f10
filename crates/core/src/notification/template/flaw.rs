//! What is wrong with a template, where, and what to write instead. Says names of variables, never what they hold.

use std::error::Error as _;
use std::fmt;

use minijinja::{Error, ErrorKind};
use serde_json::Value;

use super::engine::{FUEL, OUTPUT_BYTES_MAX, file_of};
use super::{filter, sample};
use crate::text::{distance, nearest};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flaw {
    pub file: String,
    pub line: Option<usize>,
    pub problem: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for Flaw {}

/// What the engine says when a template prints what is not there.
pub const EMPTY: &str = "printed but empty";

/// The engine's error, in words that lead to the cure.
pub fn explain(error: &Error, file: &str, data: &Value) -> Flaw {
    let error = innermost(error);
    let problem = match error.kind() {
        ErrorKind::OutOfFuel => {
            format!("it takes more than {FUEL} steps and was stopped; is there a loop inside a loop?")
        }
        ErrorKind::WriteFailure => {
            format!("it writes more than {} KiB and was stopped", OUTPUT_BYTES_MAX / 1024)
        }
        ErrorKind::UnknownFilter => {
            format!("{}; ours are {}", error.detail().unwrap_or("unknown filter"), filter::NAMES.join(", "))
        }
        kind => undefined(error)
            .and_then(|path| missing(path, data))
            .or_else(|| empty(error))
            .unwrap_or_else(|| match error.detail() {
                Some(detail) => format!("{kind}: {detail}"),
                None => kind.to_string(),
            }),
    };
    let file = error.name().map_or(file, file_of).to_owned();
    Flaw { file, line: error.line(), problem }
}

/// An error in a file that another includes or extends is that file's.
fn innermost(error: &Error) -> &Error {
    let mut innermost = error;
    while let Some(source) = innermost.source().and_then(|source| source.downcast_ref::<Error>()) {
        innermost = source;
    }
    innermost
}

/// The expression that led nowhere.
fn undefined(error: &Error) -> Option<&str> {
    let before = error.detail()?.split("` is undefined").next()?;
    let at = before.rfind('`')?;
    error.detail()?.contains("` is undefined").then(|| &before[at + 1..])
}

fn empty(error: &Error) -> Option<String> {
    if error.detail() != Some(EMPTY) {
        return None;
    }
    let source = error.template_source()?;
    let expression = source.get(error.range()?)?.trim_matches(['{', '}', '-', ' ']).trim();
    Some(format!(
        "`{expression}` may be empty (null): put {{% if {expression} %}}…{{% endif %}} around it, \
         or write {{{{ {expression} | default(\"…\", true) }}}}"
    ))
}

/// Why a path such as `payment.amuont` leads nowhere, if the shape of the data explains it.
pub fn missing(path: &str, data: &Value) -> Option<String> {
    let shape = sample::shape();
    let (mut known, mut given, mut walked) = (shape, Some(data), String::new());
    for word in path.split('.') {
        if sample::is_open(&walked) {
            return Some(format!(
                "`{path}` may be missing: write {{{{ {path} | default(\"…\") }}}}, or {{% if {path} is defined %}}"
            ));
        }
        if !walked.is_empty() && given.is_some_and(Value::is_null) {
            return Some(format!(
                "`{walked}` may be empty (null): put {{% if {walked} %}}…{{% endif %}} around `{path}`"
            ));
        }
        let keys = known.as_object()?;
        let Some(next) = keys.get(word) else {
            let head = walked.is_empty();
            // The name of a loop or of a macro's argument: what it stands for is not known here.
            if head && path.contains('.') && likely(word, keys.keys().map(String::as_str)).is_none() {
                return None;
            }
            return Some(unknown(word, &walked, keys.keys().map(String::as_str)));
        };
        known = next;
        given = given.and_then(|given| given.get(word));
        walked = if walked.is_empty() { word.to_owned() } else { format!("{walked}.{word}") };
    }
    None
}

fn unknown<'k>(word: &str, inside: &str, known: impl Iterator<Item = &'k str>) -> String {
    let known: Vec<_> = known.collect();
    let what = if inside.is_empty() {
        format!("there is no variable `{word}`")
    } else {
        format!("there is no `{word}` in `{inside}`")
    };
    let meant = likely(word, known.iter().copied());
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("{what}; known are: {}{meant}", known.join(", "))
}

/// The known word that was probably meant: a near one, of which no more than a third is different.
pub fn likely<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    nearest(word, known).filter(|near| distance(word, near) * 3 <= near.chars().count())
}
