//! Plain tables and counts for people.

use std::io::{IsTerminal, Write};

/// Columns under headings, each as wide as it needs.
pub fn table(headings: &[&str], rows: &[Vec<String>]) {
    let width = |n: usize| {
        let cells = rows.iter().map(|row| row[n].chars().count());
        cells.chain([headings[n].len()]).max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..headings.len()).map(width).collect();
    let print = |cells: &mut dyn Iterator<Item = &str>| {
        let line: Vec<_> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        line_out(line.join("  ").trim_end());
    };
    print(&mut headings.iter().copied());
    for row in rows {
        print(&mut row.iter().map(String::as_str));
    }
}

/// Prints a line. A reader that went away (`| head`) is no error; a full disk is.
pub fn line_out(line: &str) {
    let Err(error) = writeln!(std::io::stdout(), "{line}") else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("error: can't write the answer: {error}");
    std::process::exit(1);
}

pub fn json_out(value: &serde_json::Value) {
    line_out(&value.to_string());
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
        Self { shown: std::io::stderr().is_terminal() }
    }

    pub fn show(&self, text: &str) {
        if self.shown {
            eprint!("\r\x1b[K{text}");
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
