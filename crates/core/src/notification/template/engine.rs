//! Fills a template: strict about names, sparing with steps and letters.
//!
//! While templates are checked, printing what is empty is an error, so that nobody is greeted as "none". When one is
//! sent it prints nothing: a mail with a gap is better than none.

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use serde_json::{Value, json};

use super::files::{Files, is_html, text_file};
use super::flaw::{EMPTY, Flaw, explain, missing};
use super::{Rendered, filter, sample};
use crate::language::Language;
use crate::text::is_hidden;

/// Steps of the engine for one part; a reminder with two long tables takes some thousands.
pub const FUEL: u64 = 250_000;
/// For one part. Mail programs cut off long before.
pub const OUTPUT_BYTES_MAX: usize = 512 * 1024;
/// Templates inside templates, and macros inside macros.
const DEPTH_MAX: usize = 60;
/// A longer subject is cut.
const SUBJECT_LETTERS_MAX: usize = 200;

/// The subject is a template of its own: whatever goes into it, it stays one line.
const SUBJECT: &str = "#subject";

pub struct TemplateEngine {
    sending: Environment<'static>,
    checking: Environment<'static>,
}

impl TemplateEngine {
    /// Takes in every file, and says what does not parse or names what is not there.
    pub fn of(files: &Files) -> (Self, Vec<Flaw>) {
        let mut sending = environment();
        let mut flaws = Vec::new();
        for (file, content) in files.all() {
            flaws.extend(add(&mut sending, file, content));
        }
        sending.set_formatter(print);
        let mut checking = sending.clone();
        checking.set_formatter(print_if_there);
        (Self { sending, checking }, flaws)
    }

    pub fn render(
        &self,
        files: &Files,
        name: &str,
        language: Language,
        data: &Value,
    ) -> Result<Rendered, Flaw> {
        if !files.has(name) {
            let problem = format!("there is no such template; known are: {}", files.names().join(", "));
            return Err(Flaw { file: name.to_owned(), line: None, problem });
        }
        fill(&self.sending, files, name, language, data)
    }

    /// What is wrong with a template when it is filled with this.
    pub fn check(&self, files: &Files, name: &str, language: Language, data: &Value) -> Option<Flaw> {
        fill(&self.checking, files, name, language, data).err()
    }
}

/// The file that a template of the engine comes from.
pub fn file_of(template: &str) -> &str {
    template.strip_suffix(SUBJECT).unwrap_or(template)
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters don't clash"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(
        |file| {
            if is_html(file) { AutoEscape::Html } else { AutoEscape::None }
        },
    );
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEPTH_MAX);
    // Errors then name the expression.
    environment.set_debug(true);
    environment.remove_global("debug");
    filter::add(&mut environment);
    environment
}

fn add(environment: &mut Environment<'static>, file: &str, content: &str) -> Vec<Flaw> {
    let (subject, body) = match halves(file, content) {
        Ok(halves) => halves,
        Err(flaw) => return vec![flaw],
    };
    let added = subject.map_or(Ok(()), |subject| {
        environment.add_template_owned(format!("{file}{SUBJECT}"), subject.to_owned())
    });
    if let Err(error) = added.and_then(|()| environment.add_template_owned(file.to_owned(), body)) {
        return vec![explain(&error, file, &Value::Null)];
    }
    [format!("{file}{SUBJECT}"), file.to_owned()]
        .iter()
        .filter_map(|name| environment.get_template(name).ok())
        .flat_map(|template| unknown_names(&template, file, content))
        .collect()
}

/// The subject and the text below it, which keeps its line numbers.
fn halves<'c>(file: &str, content: &'c str) -> Result<(Option<&'c str>, String), Flaw> {
    if file == "footer.txt" || is_html(file) {
        return Ok((None, content.to_owned()));
    }
    let flaw =
        |line, problem: &str| Flaw { file: file.to_owned(), line: Some(line), problem: problem.into() };
    let (first, rest) = content.split_once('\n').unwrap_or((content, ""));
    let subject = first.strip_prefix("Subject:").map(str::trim).filter(|subject| !subject.is_empty());
    let subject = subject.ok_or_else(|| flaw(1, "the first line must be `Subject: …`"))?;
    let (second, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    if !second.trim().is_empty() {
        return Err(flaw(2, "the line below the subject must be empty"));
    }
    if rest.trim().is_empty() {
        return Err(flaw(3, "the text is missing: write it below the empty line"));
    }
    Ok((Some(subject), format!("\n\n{rest}")))
}

/// Names that don't exist, also where no sample leads.
fn unknown_names(template: &minijinja::Template<'_, '_>, file: &str, content: &str) -> Vec<Flaw> {
    let globals: Vec<_> = ["range", "dict", "namespace", "loop", "self", "super", "caller"].into();
    let paths = template.undeclared_variables(true).into_iter();
    let paths = paths.filter(|path| !globals.contains(&path.split('.').next().unwrap_or_default()));
    let everything = sample::shape();
    let flaw = |path: String| {
        let problem = missing(&path, everything).filter(|problem| problem.starts_with("there is no"))?;
        Some(Flaw { file: file.to_owned(), line: line_of(&path, content), problem })
    };
    paths.filter_map(flaw).collect()
}

fn line_of(path: &str, content: &str) -> Option<usize> {
    let last = path.rsplit('.').next().unwrap_or(path);
    let line = |word: &str| content.lines().position(|line| line.contains(word));
    line(path).or_else(|| line(last)).map(|index| index + 1)
}

fn fill(
    environment: &Environment<'static>,
    files: &Files,
    name: &str,
    language: Language,
    data: &Value,
) -> Result<Rendered, Flaw> {
    let mut data = sample::complete(data);
    data["language"] = json!(language.name());
    let text_file = text_file(name, language);
    let one = |template: &str, data: &Value| {
        part(environment, template, data).map_err(|error| explain(&error, file_of(template), data))
    };
    let subject = one_line(&one(&format!("{text_file}{SUBJECT}"), &data)?);
    if subject.is_empty() {
        let problem = "the subject is empty".to_owned();
        return Err(Flaw { file: text_file, line: Some(1), problem });
    }
    data["subject"] = json!(subject);
    let text = paragraphs(&readable(&one(&text_file, &data)?));
    let html = files.html(name, language).map(|file| one(&file, &data)).transpose()?;
    Ok(Rendered { subject, text, html: html.map(|html| readable(&html)) })
}

fn part(environment: &Environment<'static>, template: &str, data: &Value) -> Result<String, Error> {
    let mut written = Written(Vec::new());
    let template = environment.get_template(template)?;
    template.render_captured_to(minijinja::value::Serde(data), &mut written)?;
    String::from_utf8(written.0).map_err(|_| Error::new(ErrorKind::BadSerialization, "no UTF-8"))
}

/// What was written, up to the limit.
struct Written(Vec<u8>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn print(out: &mut Output, state: &mut State, value: &minijinja::Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => Ok(()),
        ValueKind::Undefined => minijinja::escape_formatter(out, state, value),
        _ if *state.auto_escape() == AutoEscape::Html && !value.is_safe() => escape(out, &value.to_string()),
        _ => out.write_str(&value.to_string()).map_err(Error::from),
    }
}

fn print_if_there(out: &mut Output, state: &mut State, value: &minijinja::Value) -> Result<(), Error> {
    if value.is_none() {
        return Err(Error::new(ErrorKind::InvalidOperation, EMPTY));
    }
    print(out, state, value)
}

/// For text and for quoted attributes. Slashes stay: filters against spam distrust links that are written in entities.
fn escape(out: &mut Output, text: &str) -> Result<(), Error> {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        let (before, from) = rest.split_at(at);
        let entity = match from.as_bytes()[0] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        };
        out.write_str(before)?;
        out.write_str(entity)?;
        rest = &from[1..];
    }
    Ok(out.write_str(rest)?)
}

/// Without letters that nobody sees but that turn a line around or end it early.
fn readable(text: &str) -> String {
    text.chars().filter(|letter| !is_hidden(*letter) || matches!(letter, '\n' | '\t')).collect()
}

fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let words = readable(&spaced).split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SUBJECT_LETTERS_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

/// At most one empty line in a row, none at the ends: what a condition leaves behind is not seen.
fn paragraphs(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim_end) {
        if !line.is_empty() || kept.last().is_some_and(|last| !last.is_empty()) {
            kept.push(line);
        }
    }
    format!("{}\n", kept.join("\n").trim_end())
}
