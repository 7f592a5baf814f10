//! What an application has seen and done, and what a checker wants to know of it.
//!
//! A message may be processed more than once: an answer can be lost, and the application is told to expect it.
//! Two different messages for one event at one path are an effect done twice, which nothing could have caught.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

/// Stands in a line for what a request did not say.
const NONE: &str = "-";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDelivery {
    /// `sekisho-message-id`, empty without one. The others likewise.
    pub message: String,
    pub event: String,
    pub attempt: u32,
    pub path: String,
    /// Milliseconds since 1970, when the request was whole.
    pub at_ms: u64,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub answered: AnsweredRequest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredRequest {
    Status(u16),
    /// Processed, then the connection was closed.
    Dropped,
    Nothing,
}

impl SeenDelivery {
    /// Whether the application did its work.
    pub fn is_processed(&self) -> bool {
        match self.answered {
            AnsweredRequest::Status(status) => (200..300).contains(&status),
            AnsweredRequest::Dropped => true,
            AnsweredRequest::Nothing => false,
        }
    }

    /// `processed MS MESSAGE EVENT ATTEMPT PATH`, a dash for what is missing.
    pub(super) fn line(&self) -> String {
        let word = |text: &str| match text {
            "" => NONE.to_owned(),
            text => text.replace(char::is_whitespace, "_"),
        };
        let (message, event, path) = (word(&self.message), word(&self.event), word(&self.path));
        format!("processed {} {message} {event} {} {path}\n", self.at_ms, self.attempt)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppCounts {
    /// Requests taken, with those still being worked on.
    pub seen: u64,
    pub processed: u64,
    /// Different messages processed.
    pub messages: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    received: Vec<SeenDelivery>,
    counts: AppCounts,
    messages: HashMap<String, Tally>,
    effects: BTreeMap<(String, String), BTreeSet<String>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    seen: u32,
    processed: u32,
}

impl Ledger {
    /// Reads a ledger's file. A last line without its end is still being written and left out.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let mut ledger = Self::default();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let words: Vec<&str> = line.split(' ').collect();
            let &["processed", _, message, event, _, path] = words.as_slice() else {
                return Err(io::Error::other(format!("not a line of a ledger: {line:?}")));
            };
            ledger.counts.seen += 1;
            ledger.process(message, event, path);
        }
        Ok(ledger)
    }

    /// Counts a request. Returns how often its message came before.
    pub(super) fn see(&mut self, request: &SeenDelivery) -> u32 {
        self.counts.seen += 1;
        let tally = self.messages.entry(request.message.clone()).or_default();
        tally.seen += 1;
        tally.seen - 1
    }

    pub(super) fn note(&mut self, request: SeenDelivery) {
        if request.is_processed() {
            self.process(&request.message, &request.event, &request.path);
        }
        self.received.push(request);
    }

    fn process(&mut self, message: &str, event: &str, path: &str) {
        let tally = self.messages.entry(message.to_owned()).or_default();
        tally.processed += 1;
        self.counts.processed += 1;
        self.counts.messages += u64::from(tally.processed == 1);
        if !matches!(event, "" | NONE) {
            let effect = (event.to_owned(), path.to_owned());
            self.effects.entry(effect).or_default().insert(message.to_owned());
        }
    }

    /// Every finished request, in order. Empty for a ledger read from a file.
    pub fn received(&self) -> &[SeenDelivery] {
        &self.received
    }

    pub fn counts(&self) -> AppCounts {
        self.counts
    }

    /// How often this message was processed.
    pub fn processed(&self, message: &str) -> u32 {
        self.messages.get(message).map_or(0, |tally| tally.processed)
    }

    /// Events and the paths they were processed at.
    pub fn effects(&self) -> impl Iterator<Item = (&str, &str)> {
        self.effects.keys().map(|(event, path)| (event.as_str(), path.as_str()))
    }

    /// Effects done twice: event, path, and the messages that did it.
    pub fn doubled(&self) -> Vec<(&str, &str, Vec<&str>)> {
        self.effects
            .iter()
            .filter(|(_, messages)| messages.len() > 1)
            .map(|((event, path), messages)| {
                (event.as_str(), path.as_str(), messages.iter().map(String::as_str).collect())
            })
            .collect()
    }
}
