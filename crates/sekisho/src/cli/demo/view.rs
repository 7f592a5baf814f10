//! What is shown while the demo runs, and at its end. On a terminal the figures stand still and change; elsewhere a line
//! is written every two seconds. What happens is written down as it does, with the time.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use sekisho_demo::measure::thousands;
use unicode_width::UnicodeWidthStr as _;

use super::proof::{Group, Proof, ProofRow};
use super::stage::Stage;
use crate::cli::output::raw_out;
use crate::cli::style::style;

const PLAIN_EVERY: Duration = Duration::from_secs(2);
const SPIN: Duration = Duration::from_millis(120);
const BAR_WIDTH: usize = 46;
const NUMBER_WIDTH: usize = 6;
const PLAIN_INDENT: &str = "            ";
/// Examples shown of what is wrong.
const EXAMPLES: usize = 5;

#[derive(PartialEq, Eq)]
pub struct Figures {
    pub planned: u64,
    pub requests: u64,
    pub acknowledged: u64,
    pub duplicates: u64,
    pub forgeries: u64,
    pub stored: u64,
    pub settled: u64,
    pub delivered: u64,
    pub waiting: u64,
    /// Visitors of the planetarium: with places, and without.
    pub held: usize,
    pub refused: usize,
    pub paid: usize,
    /// Videos, and refunds.
    pub made: usize,
    pub refunded: usize,
}

impl Figures {
    /// `refused` are forgeries; nothing else is.
    const NAMES: [&str; 8] =
        ["sent", "acknowledged", "duplicates", "refused", "stored", "processed", "delivered", "waiting"];

    fn names() -> String {
        Self::NAMES.map(|name| format!("{name:>width$}", width = Self::width(name))).join("  ")
    }

    fn values(&self) -> String {
        let counts = [
            self.requests,
            self.acknowledged,
            self.duplicates,
            self.forgeries,
            self.stored,
            self.settled,
            self.delivered,
            self.waiting,
        ];
        let cells = Self::NAMES.iter().zip(counts);
        let cells =
            cells.map(|(name, count)| format!("{:>width$}", thousands(count), width = Self::width(name)));
        cells.collect::<Vec<_>>().join("  ")
    }

    fn places(&self) -> String {
        format!(
            "places: {} held, {} paid, {} videos made, {} refunded, {} found none",
            self.held, self.paid, self.made, self.refunded, self.refused
        )
    }

    const fn width(name: &str) -> usize {
        if name.len() < NUMBER_WIDTH { NUMBER_WIDTH } else { name.len() }
    }
}

pub struct View {
    started: Instant,
    /// Standard output belongs to the proof alone.
    json: bool,
    live: Option<Live>,
    written: Option<Instant>,
    /// What was last written of the planetarium's places.
    places: String,
    colours: bool,
}

struct Live {
    all: MultiProgress,
    /// Stands between what happened and what happens.
    _blank: ProgressBar,
    now: ProgressBar,
    bar: ProgressBar,
    names: ProgressBar,
    values: ProgressBar,
    places: ProgressBar,
}

impl View {
    pub fn new(json: bool) -> Self {
        let is_terminal =
            if json { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        let colours = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let live = is_terminal.then(|| Live::new(json));
        Self { started: Instant::now(), json, live, written: None, places: String::new(), colours }
    }

    pub fn title(&self, payments: u32, store: &str, seed: u64) {
        self.line("");
        self.line(&format!(
            "  Sekisho 関所   {} payments on {store}, seed {seed}",
            thousands(u64::from(payments))
        ));
        self.line("");
    }

    /// Something happens now.
    pub fn say(&mut self, text: &str) {
        self.line(&format!("  {:5.1} s   {text}", self.started.elapsed().as_secs_f64()));
        if let Some(live) = &self.live {
            live.now.set_message(text.to_owned());
        }
    }

    pub fn figures(&mut self, figures: &Figures) {
        if let Some(live) = &self.live {
            live.bar.set_length(figures.planned.max(1));
            live.bar.set_position(figures.acknowledged.min(figures.planned));
            live.names.set_message(Figures::names());
            live.values.set_message(figures.values());
            live.places.set_message(figures.places());
        } else if self.written.is_none_or(|at| at.elapsed() >= PLAIN_EVERY) {
            if self.written.is_none() {
                self.line(&format!("{PLAIN_INDENT}{}", Figures::names()));
            }
            self.written = Some(Instant::now());
            self.line(&format!("{PLAIN_INDENT}{}", figures.values()));
            if self.places != figures.places() {
                self.places = figures.places();
                self.line(&format!("{PLAIN_INDENT}{}", self.places));
            }
        }
    }

    /// Takes away what moves.
    pub fn end(&mut self) {
        if let Some(live) = self.live.take() {
            let _ = live.all.clear();
        }
    }

    pub fn proof(&self, proof: &Proof, seconds: f64) {
        let width = proof.lines.iter().map(|line| line.what.len()).max().unwrap_or_default();
        for group in Group::ALL {
            self.line("");
            self.line(&format!("  {}", self.painted("1", group.title())));
            for line in proof.lines.iter().filter(|line| line.group == group) {
                self.proof_line(line, width);
            }
        }
        self.line("");
        let verdict = match proof.lines.iter().filter(|line| line.holds == Some(false)).count() {
            0 => self.painted("32", "Nothing was lost, done twice or oversold, and the money is right."),
            1 => self.painted("31", "One line does not hold."),
            n => self.painted("31", &format!("{n} lines do not hold.")),
        };
        self.line(&format!("  {verdict}   {seconds:.0} s"));
    }

    fn proof_line(&self, line: &ProofRow, width: usize) {
        let mark = match line.holds {
            Some(true) => self.painted("32", "✓"),
            Some(false) => self.painted("31", "✗"),
            None => "·".to_owned(),
        };
        let indent = " ".repeat(width + 6);
        let room = style().width.map_or(usize::MAX, |all| all.saturating_sub(indent.len()));
        let texts = line.says.lines().enumerate();
        let texts = texts.flat_map(|(n, text)| wrapped(text, room).into_iter().map(move |text| (n, text)));
        for (at, (n, text)) in texts.enumerate() {
            if at == 0 {
                self.line(&format!("  {mark} {:width$}  {text}", line.what));
            } else {
                self.line(&format!("{indent}{}", if n == 0 { text } else { self.painted("2", &text) }));
            }
        }
        for example in line.wrong.iter().take(EXAMPLES) {
            self.line(&format!("{indent}{example}"));
        }
        if line.wrong.len() > EXAMPLES {
            self.line(&format!("{indent}and {} more", line.wrong.len() - EXAMPLES));
        }
    }

    /// The server goes on.
    pub fn stay(&self, console: &str, order: Option<String>, stage: &Stage) {
        self.line("");
        self.line(&format!("  Console  {console}"));
        if let Some(order) = order {
            self.line(&format!("  Order    {order}"));
        }
        self.line(&format!("  Data     sekisho payments --store {}", stage.store));
        self.line("");
        self.line("  The server goes on until you press Ctrl-C; then it and its data are removed.");
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&self, text: &str) {
        match &self.live {
            Some(live) => drop(live.all.println(text)),
            None if self.json => drop(writeln!(std::io::stderr(), "{text}")),
            None => raw_out(text),
        }
    }
}

/// A text in lines of at most so many letters, broken between words.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one from the start");
        if last.is_empty() {
            last.push_str(word);
        } else if last.width() + 1 + word.width() <= room {
            last.extend([" ", word]);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

impl Live {
    fn new(json: bool) -> Self {
        let target = if json { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::stdout() };
        let all = MultiProgress::with_draw_target(target);
        let styled = |template: &str| {
            let style = ProgressStyle::with_template(template).expect("the templates below are well-formed");
            all.add(ProgressBar::new(1).with_style(style.progress_chars("━╸ ")))
        };
        let blank = styled(" ");
        let now = styled("  {spinner} {wide_msg}");
        now.enable_steady_tick(SPIN);
        let bar = styled(&format!("    {{bar:{BAR_WIDTH}}} {{percent:>3}} % acknowledged"));
        let [names, values, places] = ["{wide_msg}", "{wide_msg}", "  {wide_msg}"].map(styled);
        Self { all, _blank: blank, now, bar, names, values, places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h6_a_line_of_the_proof_is_broken_between_words() {
        assert_eq!(wrapped("sent again, twice", 11), ["sent again,", "twice"]);
        assert_eq!(wrapped("acknowledged → stored", 14), ["acknowledged →", "stored"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
        assert_eq!(wrapped("a b", usize::MAX), ["a b"]);
    }

    #[test]
    fn h6_the_figures_fit_into_eighty_columns() {
        let many = 99_999;
        let figures = Figures {
            planned: many,
            requests: many,
            acknowledged: many,
            duplicates: many,
            forgeries: many,
            stored: many,
            settled: many,
            delivered: many,
            waiting: many,
            held: 400,
            refused: 400,
            paid: 400,
            made: 400,
            refunded: 400,
        };
        for line in [Figures::names(), figures.values(), figures.places()] {
            assert!(line.width() <= 80, "{line}");
        }
    }
}
