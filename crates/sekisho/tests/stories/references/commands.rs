//! Commands, from the tree that reads them.

use clap::{Arg, Command};

use super::cell;

fn root() -> Command {
    let mut root = sekisho::cli::command();
    root.build();
    root
}

/// Names of the commands right below `sekisho`.
pub fn names() -> Vec<String> {
    below(&root()).map(|command| command.get_name().to_owned()).collect()
}

/// A line for each command.
pub fn overview() -> String {
    let mut text = "| command | |\n|---|---|\n".to_owned();
    for (name, command) in all(&root()) {
        text += &format!("| [`{name}`](#{}) | {} |\n", name.replace(' ', "-"), about(&command));
    }
    text
}

/// A part for each command: how it is called, its arguments and its options.
pub fn options() -> String {
    let root = root();
    let mut text = format!("Every command takes:\n\n{}", arguments(&root, |_| true));
    for (name, mut command) in all(&root) {
        let usage = command.render_usage().to_string().replace("Usage: ", "");
        text += &format!("\n### {name}\n\n{}.\n\n```text\n{usage}\n```\n", about(&command));
        let own = arguments(&command, |argument| !argument.is_global_set());
        if !own.is_empty() {
            text += &format!("\n{own}");
        }
    }
    text
}

fn below(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set())
}

/// Commands that can be called, with their whole names, those of one subject together.
fn all(root: &Command) -> Vec<(String, Command)> {
    fn walk(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
        for one in below(command) {
            let name = format!("{name} {}", one.get_name());
            if !one.is_subcommand_required_set() {
                found.push((name.clone(), one.clone()));
            }
            walk(one, &name, found);
        }
    }
    let mut found = Vec::new();
    walk(root, root.get_name(), &mut found);
    found
}

fn about(command: &Command) -> String {
    command.get_about().map(|text| cell(text.to_string().trim_end_matches('.'))).unwrap_or_default()
}

fn arguments(command: &Command, wanted: impl Fn(&Arg) -> bool) -> String {
    let shown = command.get_arguments().filter(|argument| {
        wanted(argument)
            && !argument.is_hide_set()
            && !["help", "version"].contains(&argument.get_id().as_str())
    });
    let row = |argument: &Arg| format!("| `{}` | {} |", cell(&called(argument)), meaning(argument));
    let rows: Vec<_> = shown.map(row).collect();
    if rows.is_empty() { String::new() } else { format!("| argument | |\n|---|---|\n{}\n", rows.join("\n")) }
}

/// `-c, --config <FILE>`
fn called(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let mut called = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    if argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default();
        let values = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
        if !called.is_empty() {
            called += " ";
        }
        called += &values;
        let several = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
        if several || matches!(argument.get_action(), clap::ArgAction::Append) {
            called += "...";
        }
    }
    called
}

/// What it does, with what it may be and what it is otherwise.
fn meaning(argument: &Arg) -> String {
    let mut meaning = argument.get_help().map(|text| cell(&text.to_string())).unwrap_or_default();
    let list = |values: Vec<String>| values.join("`, `");
    let possible = argument.get_possible_values();
    if argument.get_action().takes_values() && !possible.is_empty() {
        let names = possible.iter().filter(|value| !value.is_hide_set());
        meaning += &format!("; one of `{}`", list(names.map(|value| value.get_name().to_owned()).collect()));
    }
    let default = argument.get_default_values();
    if argument.get_action().takes_values() && !default.is_empty() && !argument.is_hide_default_value_set() {
        let values = default.iter().map(|value| value.to_string_lossy().into_owned()).collect();
        meaning += &format!("; default: `{}`", list(values));
    }
    if let Some(variable) = argument.get_env() {
        meaning += &format!("; also `{}` in the environment", variable.to_string_lossy());
    }
    meaning
}
