//! Plain tables and counts for people.
//!
//! Much of what is printed was written by strangers. Letters of which a terminal makes commands, or that turn the direction
//! of writing, are therefore printed as `\u{1b}`, always, whoever reads: [`line_out`] and [`said`] see to it.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use sekisho_core::text::{is_hidden, visible};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::style::{Style, style};
use crate::types::{Call, Content, Object};

/// Columns under headings, each as wide as it needs on a screen, where 関所 is as wide as four Latin letters.
pub fn table(headings: &[&str], rows: &[Vec<String>]) {
    lines(headings, rows, style()).iter().for_each(|line| raw_out(line));
}

fn lines(headings: &[&str], rows: &[Vec<String>], style: &Style) -> Vec<String> {
    let row = |row: &Vec<String>| row.iter().map(|cell| in_a_line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    let width = |n: usize| {
        let cells = rows.iter().map(|row| row[n].width());
        cells.chain([headings[n].len()]).max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>, paint: &dyn Fn(usize, &str) -> String| {
        let padded =
            |(cell, width): (&str, &usize)| cell.to_owned() + &" ".repeat(width.saturating_sub(cell.width()));
        let mut cells: Vec<_> = cells.zip(&widths).map(padded).collect();
        while let Some(last) = cells.pop() {
            let last = last.trim_end().to_owned();
            if !last.is_empty() {
                cells.push(last);
                break;
            }
        }
        let cells = cut(cells, style.width);
        let painted: Vec<_> = cells.iter().enumerate().map(|(n, cell)| paint(n, cell)).collect();
        painted.join("  ")
    };
    let heading = line(&mut headings.iter().copied(), &|_, cell| style.heading(cell));
    let rows = rows
        .iter()
        .map(|row| line(&mut row.iter().map(String::as_str), &|n, cell| style.cell(headings[n], cell)));
    std::iter::once(heading).chain(rows).collect()
}

/// The cells that fit; the one that does not is cut, and says so.
fn cut(cells: Vec<String>, width: Option<usize>) -> Vec<String> {
    const GAP: usize = 2;
    let needed = cells.iter().map(|cell| cell.width() + GAP).sum::<usize>().saturating_sub(GAP);
    let Some(room) = width.filter(|width| needed > *width).map(|width| width.saturating_sub(1)) else {
        return cells;
    };
    let (mut kept, mut used) = (Vec::<String>::new(), 0);
    for cell in cells {
        let start = if kept.is_empty() { 0 } else { used + GAP };
        match (kept.last_mut(), room.checked_sub(start)) {
            (Some(last), None | Some(0)) => {
                last.push('…');
                break;
            }
            (_, Some(left)) if cell.width() <= left => {
                used = start + cell.width();
                kept.push(cell);
            }
            (_, left) => {
                kept.push(beginning(&cell, left.unwrap_or_default()) + "…");
                break;
            }
        }
    }
    kept
}

/// So much of a text as is no wider than that.
fn beginning(text: &str, width: usize) -> String {
    let mut part = String::new();
    for letter in text.chars() {
        part.push(letter);
        if part.width() > width {
            part.pop();
            break;
        }
    }
    part
}

/// The named fields of each row under headings, inner ones by their path (`/about/payment`); `nothing` when there is no
/// row.
pub fn rows_out<T: Serialize>(columns: &[(&str, &str)], rows: &[T], nothing: &str) {
    if rows.is_empty() {
        return line_out(nothing);
    }
    let headings: Vec<_> = columns.iter().map(|(heading, _)| *heading).collect();
    table(&headings, &rows.iter().map(|row| cells(columns, row)).collect::<Vec<_>>());
}

/// One row of a table.
pub fn cells(columns: &[(&str, &str)], row: &impl Serialize) -> Vec<String> {
    let row = json!(row);
    columns.iter().map(|(_, name)| cell_of(field(&row, name))).collect()
}

/// A list, for programs or for people.
pub fn list_out<T: Serialize>(as_json: bool, columns: &[(&str, &str)], rows: &[T], nothing: &str) {
    if as_json { rows.iter().for_each(json_out) } else { rows_out(columns, rows, nothing) }
}

/// A line for each named field that has a value.
pub fn fields_out(fields: &[(&str, &str)], value: &impl Serialize) {
    for ((label, _), text) in fields.iter().zip(cells(fields, value)) {
        if !text.is_empty() {
            raw_out(&format!("{label:10} {}", style().cell(label, &said(&text))));
        }
    }
}

fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    if name.starts_with('/') { value.pointer(name).unwrap_or(&Value::Null) } else { &value[name] }
}

/// The headers and the body of a request.
pub fn request_out(request: &Content) {
    line_out("");
    for (name, value) in request.headers.iter().flatten() {
        line_out(&format!("{}: {}", in_a_line(name), in_a_line(value)));
    }
    line_out("");
    match &request.body_base64 {
        None => line_out(request.body.as_deref().unwrap_or_default()),
        Some(encoded) => line_out(&format!("(base 64) {encoded}")),
    }
}

/// Every call of a message, each with what it was answered.
pub fn calls_out(calls: &[Call]) {
    const ANSWER_LETTERS: usize = 500;
    for Call { attempt, at, took_ms, status, error, answer, .. } in calls {
        let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let (at, error) = (cell(at), cell(error));
        line_out(format!("attempt {attempt}  {at}  {status}  {took_ms} ms  {error}").trim_end());
        let body = answer.body.as_deref().unwrap_or_default().trim();
        let body: String = body.chars().take(ANSWER_LETTERS).collect();
        body.lines().for_each(|line| line_out(&format!("    {line}")));
    }
}

/// In one line; nothing where there is no value.
pub fn cell(value: &impl Serialize) -> String {
    cell_of(&json!(value))
}

fn cell_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => style().clock(text).unwrap_or_else(|| in_a_line(text).into_owned()),
        Value::Object(_) => match Object::deserialize(value) {
            Ok(Object { kind, id }) => format!("{} {}", in_a_line(&kind), in_a_line(&id)),
            Err(_) => value.to_string(),
        },
        other => other.to_string(),
    }
}

fn in_a_line(text: &str) -> Cow<'_, str> {
    visible(text, |_| false)
}

/// Asks at the terminal. Where nobody sits there, who wrote the command is taken at their word.
pub fn is_confirmed(question: &str) -> std::io::Result<bool> {
    eprint!("{} [y/N] ", said(question));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

pub fn is_attended() -> bool {
    std::io::stdin().is_terminal()
}

/// A text as it may be printed: its line breaks and tabs stay.
pub fn said(text: &str) -> Cow<'_, str> {
    let text =
        if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    match visible(&text, |letter| matches!(letter, '\n' | '\t')) {
        Cow::Owned(changed) => Cow::Owned(changed),
        Cow::Borrowed(_) => text,
    }
}

/// Prints a line. A reader that went away (`| head`) is no error; a full disk is.
pub fn line_out(line: &str) {
    raw_out(&said(line));
}

/// Prints a line with colours of our own: nothing in it may be a stranger's.
pub fn raw_out(line: &str) {
    let Err(error) = writeln!(std::io::stdout(), "{line}") else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("error: can't write the answer: {error}");
    std::process::exit(1);
}

/// JSON writes the first control characters as `\u001b` by itself; the other hidden letters can only stand in its texts,
/// where the same is another way to write the same.
pub fn json_out(value: &impl Serialize) {
    let mut line = json!(value).to_string();
    if line.contains(is_hidden) {
        let escaped = |letter: char| {
            if is_hidden(letter) { format!("\\u{:04x}", u32::from(letter)) } else { letter.to_string() }
        };
        line = line.chars().map(escaped).collect();
    }
    raw_out(&line);
}

/// What helps a person and is no result: on standard error, unless `--quiet`.
pub fn hint(text: &str) {
    if !style().is_quiet {
        eprintln!("{}", said(text));
    }
}

/// `1 event`, `2 events`
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// A line that is rewritten while long work goes on; silent when nobody watches.
pub struct Progress {
    shown: bool,
}

impl Progress {
    pub fn new() -> Self {
        Self { shown: std::io::stderr().is_terminal() && !style().is_quiet }
    }

    pub fn show(&self, text: &str) {
        if self.shown {
            eprint!("\r\x1b[K{}", said(text));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        [["evt_1", "関所", "paid"], ["evt_22", "a\u{1b}[2J", ""]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec()
    }

    const HEADINGS: [&str; 3] = ["ID", "NAME", "STATUS"];

    #[test]
    fn h2_a_table_is_as_wide_as_it_needs() {
        let plain = lines(&HEADINGS, &rows(), &Style::default());
        assert_eq!(plain[0], "ID      NAME        STATUS");
        assert_eq!(plain[1], "evt_1   関所        paid");
        assert_eq!(plain[2], r"evt_22  a\u{1b}[2J");
    }

    #[test]
    fn h2_a_table_is_cut_to_its_terminal() {
        for width in 1..=30 {
            let style = Style { width: Some(width), ..Style::default() };
            for (line, whole) in
                lines(&HEADINGS, &rows(), &style).iter().zip(lines(&HEADINGS, &rows(), &Style::default()))
            {
                assert!(line.width() <= width, "{width}: {line}");
                let is_whole = whole.width() <= width;
                assert_eq!(*line == whole, is_whole, "{width}: {line}");
                assert_eq!(line.ends_with('…'), !is_whole, "{width}: {line}");
            }
        }
    }

    #[test]
    fn h2_colours_change_no_letter() {
        let style = Style { has_color: true, ..Style::default() };
        let painted = lines(&HEADINGS, &rows(), &style);
        assert_eq!(painted[1], "evt_1   関所        \x1b[32mpaid\x1b[0m");
        assert!(painted[2].ends_with(r"a\u{1b}[2J"), "a stranger's are shown, not obeyed: {}", painted[2]);
    }
}
