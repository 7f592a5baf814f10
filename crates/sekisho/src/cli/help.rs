//! What the program says about itself: commands in groups, examples, exit codes, completions and manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Command;
use serde_json::json;

use super::output::{json_out, line_out};

#[derive(clap::Args)]
pub struct Completions {
    /// bash, zsh, fish, elvish or powershell
    shell: clap_complete::Shell,
}

#[derive(clap::Args)]
pub struct Man {
    /// Write a page for each command into this folder, instead of the main page to standard output
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct Version {
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const NAME: &str = "sekisho";

/// Every command under the heading that people look for it by.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Run", &["serve", "doctor", "alerts", "targets", "config", "migrate", "demo", "bench"]),
    ("Money", &["payments", "billing", "balances", "books"]),
    ("Orders", &["slots", "reservations", "fulfilments", "cases", "compensation", "pages"]),
    (
        "Events and deliveries",
        &[
            "events",
            "trace",
            "deliveries",
            "dead",
            "messages",
            "reconcile",
            "routes",
            "schedules",
            "rejections",
        ],
    ),
    ("People", &["tenants", "customers", "staff", "subjects"]),
    ("Notifications", &["notices", "reminders", "channels", "suppressions", "templates", "notify"]),
    ("Access", &["keys", "users", "audit"]),
];
const DEVELOP: (&str, &[&str]) = ("Develop", &["trigger", "send", "listen", "verify", "providers"]);
const ABOUT_ITSELF: (&str, &[&str]) = ("Help", &["help", "completions", "man", "exit-codes", "version"]);

/// Each line is a command that can be typed.
const EXAMPLES: [(&str, &str); 22] = [
    ("serve", "sekisho serve\nsekisho serve --config sekisho.toml --listen 0.0.0.0:8787"),
    (
        "trigger",
        "sekisho trigger payment_intent.succeeded\nsekisho trigger charge.refunded --count 100 --chaos dup,reorder",
    ),
    (
        "listen",
        "sekisho listen --forward-to localhost:3000/hook\nsekisho listen --forward-to 3000 --type payment_intent.*",
    ),
    (
        "events",
        "sekisho events list --type charge.* --since 2h\nsekisho events show evt_1Q2w3E4\nsekisho events replay --since 3d --dry-run",
    ),
    (
        "dead",
        "sekisho dead groups\nsekisho dead retry --route app --since 2h --dry-run\nsekisho dead discard msg_06w4yt2580400 --reason duplicate",
    ),
    ("reconcile", "sekisho reconcile --dry-run\nsekisho reconcile --source stripe --since 30d --dry-run"),
    (
        "payments",
        "sekisho payments --status paid --limit 20\nsekisho payments show ORD-1\nsekisho payments create --amount 1200 --currency jpy --reference ORD-1",
    ),
    (
        "slots",
        "sekisho slots set dome-1:19:00 --capacity 80 --starts-at 2026-12-24T19:00:00+09:00\nsekisho slots show dome-1:19:00",
    ),
    (
        "reservations",
        "sekisho reservations --status hold --slot dome-1:19:00\nsekisho reservations hold dome-1:19:00 --amount 4800 --currency jpy --reference ORD-1 --hold 30m\nsekisho reservations extend rsv_06w4yt24z5801 --until 1h\nsekisho reservations cancel rsv_06w4yt24z5801 --reason rain",
    ),
    (
        "fulfilments",
        "sekisho fulfilments --status failed\nsekisho fulfilments retry ful_06w4yt24z5801 --reason repaired\nsekisho fulfilments result ful_06w4yt24z5801 --run 2 --status done",
    ),
    (
        "cases",
        "sekisho cases --status open\nsekisho cases ack case_0a1b2c3d4e5f6071 --note rendering\nsekisho cases resolve case_0a1b2c3d4e5f6071 --how fixed",
    ),
    (
        "compensation",
        "sekisho compensation --type REFUND --trigger RENDER_FAILURE\nsekisho compensation rules\nsekisho compensation check rsv_06w4yt24z5801",
    ),
    ("billing", "sekisho billing --status past_due\nsekisho billing office-1"),
    ("books", "sekisho books\nsekisho books check"),
    ("customers", "sekisho customers --tenant office-1\nsekisho customers import customers.csv --dry-run"),
    (
        "notices",
        "sekisho notices --to taro@example.jp --since 1d\nsekisho notices resend ntc_1 --to taro@example.jp",
    ),
    ("reminders", "sekisho reminders run --date 2026-11-16 --dry-run\nsekisho reminders show 2026-11-16"),
    ("keys", "sekisho keys create --scopes read,write --name shop\nsekisho keys revoke shop"),
    ("users", "sekisho users invite --rank operator\nsekisho users disable taro"),
    (
        "audit",
        "sekisho audit --target pay_06w4yt24z5801\nsekisho audit verify\nsekisho audit export --since 30d",
    ),
    ("completions", "sekisho completions bash"),
    ("man", "sekisho man --dir man"),
];

pub const EXIT_CODES: &str = "\
Exit codes of every command:
  0   done
  1   failed, or found something that is not as it must be (books check, audit verify, doctor, …)
  2   wrong usage: unknown options, missing or invalid fields

Of `sekisho serve`, for its supervisor:
  0   stopped on request
  1   could not start, or the database did not respond in time while stopping
  65  SQLite holds an event twice; an operator must look
  70  a background task exited unexpectedly
  74  SQLite only: the disk refused a sync";

/// The command line with groups and examples in its help.
pub fn with_help(mut command: Command) -> Command {
    for (name, lines) in EXAMPLES {
        let lines: Vec<_> = lines.lines().map(|line| format!("  {line}")).collect();
        let examples = format!("Examples:\n{}", lines.join("\n"));
        command = command.mut_subcommand(name, |own| own.after_help(examples));
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        grouped(&command)
    );
    command.help_template(template).after_help("`sekisho help COMMAND` says more, with examples.")
}

fn groups() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    GROUPS.into_iter().chain([DEVELOP, ABOUT_ITSELF])
}

fn grouped(command: &Command) -> String {
    const COLUMN: usize = 14;
    let about = |name: &str| match command.find_subcommand(name).and_then(Command::get_about) {
        Some(about) => about.to_string(),
        None => "Print this, or the help of a command".to_owned(),
    };
    let mut text = String::new();
    for (heading, names) in groups() {
        text += &format!("{heading}:\n");
        names.iter().for_each(|name| text += &format!("  {name:COLUMN$}{}\n", about(name)));
        text.push('\n');
    }
    text
}

pub fn completions(args: &Completions, mut command: Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, NAME, &mut text);
    line_out(String::from_utf8_lossy(&text).trim_end());
    ExitCode::SUCCESS
}

pub fn man(args: &Man, command: Command) -> anyhow::Result<ExitCode> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        line_out(String::from_utf8_lossy(&page).trim_end());
        return Ok(ExitCode::SUCCESS);
    };
    let cannot = || format!("can't write manual pages to {}", dir.display());
    std::fs::create_dir_all(dir).with_context(cannot)?;
    clap_mangen::generate_to(command, dir).with_context(cannot)?;
    Ok(ExitCode::SUCCESS)
}

pub fn exit_codes() -> ExitCode {
    line_out(EXIT_CODES);
    ExitCode::SUCCESS
}

pub fn version(args: &Version) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    if args.json {
        json_out(&json!({ "name": NAME, "version": version }));
    } else {
        line_out(&format!("{NAME} {version}"));
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn h2_every_command_is_in_one_group() {
        let command = Cli::command();
        let commands: BTreeSet<_> = command.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<_> = groups().flat_map(|(_, names)| names).copied().collect();
        grouped.retain(|name| *name != "help");
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), commands);
        assert_eq!(grouped.len(), commands.len(), "one is in two groups");
    }

    #[test]
    fn h2_every_example_can_be_typed() {
        for (name, lines) in EXAMPLES {
            for line in lines.lines() {
                assert!(line.starts_with(&format!("sekisho {name}")), "{line}");
                let parsed = Cli::try_parse_from(line.split(' '));
                assert!(
                    parsed.is_ok(),
                    "{line}: {}",
                    parsed.err().map(|e| e.to_string()).unwrap_or_default()
                );
            }
        }
    }

    #[test]
    fn h2_help_has_groups_and_examples() {
        let mut command = with_help(Cli::command());
        let help = command.render_help().to_string();
        for words in ["Money:\n", "  payments      Show payments", "Options:\n", "--config <FILE>"] {
            assert!(help.contains(words), "{words}: {help}");
        }
        let own = command.find_subcommand_mut("dead").expect("it is one").render_help().to_string();
        assert!(own.contains("Examples:\n  sekisho dead groups"), "{own}");
    }
}
