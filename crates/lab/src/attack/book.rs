//! What was tried and what came of it, a line for each kind.

use std::fmt;
use std::time::Duration;

use crate::http::Response;

/// Most examples kept of a line.
const EXAMPLES: usize = 5;
const EXAMPLE_LETTERS: usize = 300;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    pub lines: Vec<AttackLine>,
    /// What is wrong with the house as a whole: a panic, books that don't add up.
    pub damage: Vec<String>,
    /// How long each group of attacks took.
    pub took: Vec<(&'static str, Duration)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttackLine {
    pub kind: &'static str,
    pub tried: u64,
    pub succeeded: u64,
    /// Answers of 500 and above, and none at all where one was due.
    pub faults: u64,
    pub examples: Vec<String>,
}

impl Book {
    /// The line of a kind, new or old.
    pub(super) fn line(&mut self, kind: &'static str) -> &mut AttackLine {
        let n = self.lines.iter().position(|line| line.kind == kind).unwrap_or_else(|| {
            self.lines.push(AttackLine { kind, ..AttackLine::default() });
            self.lines.len() - 1
        });
        &mut self.lines[n]
    }

    /// Whether the house stood.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty() && self.lines.iter().all(|line| line.succeeded == 0 && line.faults == 0)
    }
}

impl AttackLine {
    /// One attempt: `what` is an example if it succeeded.
    pub(super) fn tried(&mut self, succeeded: bool, what: impl FnOnce() -> String) {
        self.tried += 1;
        if succeeded {
            self.succeeded += 1;
            self.example(what());
        }
    }

    /// One request that must be answered, and its answer judged.
    pub(super) fn asked(
        &mut self,
        answer: &std::io::Result<Response>,
        what: impl Fn() -> String,
        succeeds: impl FnOnce(&Response) -> bool,
    ) {
        match answer {
            Ok(answer) if answer.status < 500 => {
                let succeeded = succeeds(answer);
                self.tried(succeeded, || format!("{}: {} {}", what(), answer.status, answer.text()));
            }
            Ok(answer) => self.fault(format!("{}: {} {}", what(), answer.status, answer.text())),
            Err(error) => self.fault(format!("{}: no answer, {error}", what())),
        }
    }

    fn fault(&mut self, what: String) {
        self.tried += 1;
        self.faults += 1;
        self.example(what);
    }

    fn example(&mut self, what: String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(what.chars().take(EXAMPLE_LETTERS).collect());
        }
    }
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:34} {:>7} {:>9} {:>5}", "kind", "tried", "succeeded", "≥ 500")?;
        for line in &self.lines {
            writeln!(f, "{:34} {:>7} {:>9} {:>5}", line.kind, line.tried, line.succeeded, line.faults)?;
            for example in &line.examples {
                writeln!(f, "    {}", example.escape_debug())?;
            }
        }
        let took = self.took.iter().map(|(name, took)| format!("{name} {:.1}", took.as_secs_f64()));
        writeln!(f, "seconds: {}", took.collect::<Vec<_>>().join(", "))?;
        for damage in &self.damage {
            writeln!(f, "damage: {}", damage.escape_debug())?;
        }
        Ok(())
    }
}
