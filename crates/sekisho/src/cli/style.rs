//! How output looks: colours, the width of a terminal, whose clock shows the times, how much is said. Set once, before the
//! first line; what goes to a file or a program is plain, complete and in UTC unless asked otherwise.

use std::io::IsTerminal;
use std::sync::OnceLock;

use sekisho_core::Time;
use sekisho_core::calendar::Zone;

#[derive(clap::Args)]
pub struct Options {
    /// Colours: always, never, or auto: at a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Output"
    )]
    color: When,
    /// Show whole lines of tables, however narrow the terminal
    #[arg(long, global = true, help_heading = "Output")]
    wide: bool,
    /// Show times by the clock of this machine (TZ), not in UTC; JSON stays in UTC
    #[arg(long, global = true, help_heading = "Output")]
    local: bool,
    #[command(flatten)]
    detail: Detail,
}

// How much is said besides the result.
#[derive(clap::Args)]
struct Detail {
    /// Print results and errors only
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,
    /// Also name the server or store that is used, and show the log
    #[arg(long, short, global = true, help_heading = "Output")]
    verbose: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum When {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub has_color: bool,
    /// Lines of tables end here.
    pub width: Option<usize>,
    pub zone: Option<Zone>,
    pub is_quiet: bool,
    pub is_verbose: bool,
}

static STYLE: OnceLock<Style> = OnceLock::new();

/// What was set; plain before that.
pub fn style() -> &'static Style {
    static PLAIN: Style =
        Style { has_color: false, width: None, zone: None, is_quiet: false, is_verbose: false };
    STYLE.get().unwrap_or(&PLAIN)
}

impl Options {
    pub fn set(&self) {
        let is_terminal = std::io::stdout().is_terminal();
        let variable = |name| std::env::var(name).unwrap_or_default();
        let wants_none = !variable("NO_COLOR").is_empty() || variable("TERM") == "dumb";
        let has_color = match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => is_terminal && !wants_none,
        };
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = width.filter(|width| is_terminal && !self.wide && *width > 0);
        let zone = if self.local { Some(local_zone()) } else { None };
        let (is_quiet, is_verbose) = (self.detail.quiet, self.detail.verbose);
        // Set once in a process; a second time changes nothing.
        let _ = STYLE.set(Style { has_color, width, zone, is_quiet, is_verbose });
    }
}

/// The zone that `TZ` names, else that of the machine, else UTC.
fn local_zone() -> Zone {
    let link = std::fs::read_link("/etc/localtime").ok();
    zone_of(std::env::var("TZ").ok().as_deref(), link.as_ref().and_then(|link| link.to_str()))
}

fn zone_of(variable: Option<&str>, link: Option<&str>) -> Zone {
    let named = variable.map(|name| name.trim_start_matches(':')).filter(|name| !name.is_empty());
    let linked = link.and_then(|link| link.split_once("zoneinfo/")).map(|(_, name)| name);
    let found = [named, linked].into_iter().flatten().find_map(|name| name.parse().ok());
    found.unwrap_or_else(|| "UTC".parse().expect("UTC is a zone"))
}

impl Style {
    /// A time by the clock that is wanted; `None` for what is no time of ours.
    pub fn clock(&self, text: &str) -> Option<String> {
        const SHAPE: &str = "2026-02-02T02:40:00.000Z";
        let zone = self.zone.as_ref()?;
        let at = Time::parse_rfc3339(text).filter(|_| text.len() == SHAPE.len() && text.ends_with('Z'))?;
        Some(zone.clock(at))
    }

    /// The heading of a column.
    pub fn heading(&self, text: &str) -> String {
        if self.has_color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// What stands under this heading: a status has the colour of its meaning.
    pub fn cell(&self, heading: &str, text: &str) -> String {
        match color(heading, text.trim()).filter(|_| self.has_color) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
            None => text.to_owned(),
        }
    }
}

const GOOD: u8 = 32;
const WAITING: u8 = 33;
const BAD: u8 = 31;

fn color(heading: &str, status: &str) -> Option<u8> {
    let shown = match heading {
        "ATTENTION" => return (!status.is_empty()).then_some(WAITING),
        "STATUS" | "STANDING" | "BREAKER" | "ACCESS" | "status" | "standing" | "access" => status,
        _ => return None,
    };
    match shown {
        "success" | "delivered" | "done" | "paid" | "sent" | "active" | "closed" | "yes" | "succeeded"
        | "won" | "confirmed" | "resolved" => Some(GOOD),
        "received" | "waiting" | "running" | "queued" | "sending" | "retrying" | "processing" | "pending"
        | "unpaid" | "partially_paid" | "trialing" | "past_due" | "incomplete" | "paused" | "half_open"
        | "uncertain" | "needs_response" | "under_review" | "hold" | "acknowledged" => Some(WAITING),
        "failed" | "dead" | "bounced" | "complained" | "suppressed" | "open" | "lost" | "unreadable"
        | "no" => Some(BAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_a_status_has_the_colour_of_its_meaning() {
        let style = Style { has_color: true, ..Style::default() };
        for (heading, text, expected) in [
            ("STATUS", "paid  ", "\x1b[32mpaid  \x1b[0m"),
            ("STATUS", "failed", "\x1b[31mfailed\x1b[0m"),
            ("BREAKER", "half_open", "\x1b[33mhalf_open\x1b[0m"),
            ("STATUS", "confirmed", "\x1b[32mconfirmed\x1b[0m"),
            ("STATUS", "hold", "\x1b[33mhold\x1b[0m"),
            ("ATTENTION", "unlinked", "\x1b[33munlinked\x1b[0m"),
            ("ATTENTION", "  ", "  "),
            ("STATUS", "odd", "odd"),
            ("NAME", "paid", "paid"),
        ] {
            assert_eq!(style.cell(heading, text), expected, "{heading} {text}");
            assert_eq!(Style::default().cell(heading, text), text);
        }
    }

    #[test]
    fn h2_times_are_shown_by_the_clock_that_is_wanted() {
        let tokyo = Style { zone: "Asia/Tokyo".parse().ok(), ..Style::default() };
        assert_eq!(tokyo.clock("2026-02-02T02:40:00.000Z").as_deref(), Some("2026-02-02 11:40:00"));
        for other in ["2026-02-02", "evt_1", "2026-02-02T02:40:00Z", ""] {
            assert_eq!(tokyo.clock(other), None, "{other}");
        }
        assert_eq!(Style::default().clock("2026-02-02T02:40:00.000Z"), None);
    }

    #[test]
    fn h2_the_local_zone_is_that_of_the_variable_or_of_the_machine() {
        for (variable, link, expected) in [
            (Some("Europe/Berlin"), Some("/usr/share/zoneinfo/Asia/Tokyo"), "Europe/Berlin"),
            (Some(":Europe/Berlin"), None, "Europe/Berlin"),
            (Some(""), Some("../usr/share/zoneinfo/Asia/Tokyo"), "Asia/Tokyo"),
            (Some("JST-9"), Some("/usr/share/zoneinfo/Asia/Tokyo"), "Asia/Tokyo"),
            (None, Some("/usr/share/zoneinfo/Asia/Tokyo"), "Asia/Tokyo"),
            (None, None, "UTC"),
        ] {
            assert_eq!(zone_of(variable, link).name(), expected, "{variable:?} {link:?}");
        }
    }
}
