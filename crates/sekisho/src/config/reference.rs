//! Every setting with its help and default, written out: as the example file, and as tables for the reference.

use std::fmt::Write as _;

use super::settings::SETTINGS;
use super::table::Table;
use super::{channel, compensation, key, notify, route, schedule, source};

/// The whole example file: every key with its help and its default.
pub fn example() -> String {
    let mut text = String::from(
        "# Sekisho: every setting, with its default. All of it may be left out but one [[source]].\n\
         # A variable such as SEKISHO_SERVER_LISTEN overrides the key `listen` of [server].\n",
    );
    let mut section = "";
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            writeln!(text, "\n[{section}]").expect("writing to a string can't fail");
        }
        line(&mut text, setting.help, setting.key, setting.default, "");
    }
    block::<source::SourceDraft>(&mut text);
    text.push_str("\n# Keys that only some providers have:\n");
    for provider in sekisho_core::provider::ALL {
        for setting in provider.about().settings {
            let name = provider.about().name;
            let example = format!("\"{}\"", setting.example);
            line(&mut text, &format!("{name}: {}", setting.help), setting.name, &example, "# ");
        }
    }
    block::<route::RouteDraft>(&mut text);
    block::<channel::ChannelDraft>(&mut text);
    block::<notify::NotifyDraft>(&mut text);
    block::<schedule::ScheduleDraft>(&mut text);
    block::<compensation::CompensationDraft>(&mut text);
    block::<key::KeyDraft>(&mut text);
    text
}

fn block<T: Table>(text: &mut String) {
    let comment = |n: usize| if n < T::WRITTEN { "" } else { "# " };
    writeln!(text, "\n# {}\n{}[[{}]]", T::ABOUT, comment(0), T::NAME)
        .expect("writing to a string can't fail");
    for (n, key) in T::KEYS.iter().enumerate() {
        line(text, key.help, key.name, key.example, comment(n));
    }
}

fn line(text: &mut String, help: &str, key: &str, value: &str, comment: &str) {
    writeln!(text, "# {help}\n{comment}{key} = {value}").expect("writing to a string can't fail");
}

/// The same as Markdown: a table for each section and each kind of block.
pub fn markdown() -> String {
    let mut text = String::new();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            heading(&mut text, &format!("`[{section}]`"), "", "default");
        }
        row(&mut text, setting.key, setting.default, setting.help);
    }
    blocks::<source::SourceDraft>(&mut text);
    heading(&mut text, "`[[source]]` of some providers", "Keys that only these providers have.", "example");
    for provider in sekisho_core::provider::ALL {
        for setting in provider.about().settings {
            let help = format!("{}: {}", provider.about().name, setting.help);
            row(&mut text, setting.name, &format!("\"{}\"", setting.example), &help);
        }
    }
    blocks::<route::RouteDraft>(&mut text);
    blocks::<channel::ChannelDraft>(&mut text);
    blocks::<notify::NotifyDraft>(&mut text);
    blocks::<schedule::ScheduleDraft>(&mut text);
    blocks::<compensation::CompensationDraft>(&mut text);
    blocks::<key::KeyDraft>(&mut text);
    text
}

fn blocks<T: Table>(text: &mut String) {
    heading(text, &format!("`[[{}]]`", T::NAME), T::ABOUT, "example");
    for key in T::KEYS {
        row(text, key.name, key.example, key.help);
    }
}

fn heading(text: &mut String, name: &str, about: &str, value: &str) {
    let about = if about.is_empty() { String::new() } else { format!("{about}\n\n") };
    let gap = if text.is_empty() { "" } else { "\n" };
    write!(text, "{gap}### {name}\n\n{about}| key | {value} | |\n|---|---|---|\n")
        .expect("writing to a string can't fail");
}

fn row(text: &mut String, key: &str, value: &str, help: &str) {
    let cell = |text: &str| text.replace('|', "\\|");
    writeln!(text, "| `{key}` | `{}` | {} |", cell(value), cell(help))
        .expect("writing to a string can't fail");
}
