//! `sekisho config check` and `sekisho config example`.

use std::process::ExitCode;

use sekisho_core::pattern::Pattern;
use serde_json::{Value, json};

use super::Context;
use super::output::{count, json_out, line_out};
use crate::config::{self, LoadedConfig};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Read the configuration as the server would, and say everything that is wrong with it
    Check(CheckArgs),
    /// Print every setting with its default, ready to be saved as sekisho.toml
    Example,
}

#[derive(clap::Args)]
pub struct CheckArgs {
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(command: &Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::Example => line_out(config::example().trim_end()),
        Command::Check(args) => {
            let loaded = context.load()?;
            if args.json {
                json_out(&shown(&loaded));
            } else {
                print(&loaded);
            }
            if loaded.config.sources.is_empty() {
                anyhow::bail!("there is no [[source]]: nothing can be received");
            }
            if !args.json {
                line_out("configuration OK");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(loaded: &LoadedConfig) {
    for warning in &loaded.warnings {
        line_out(&format!("warning: {warning}"));
    }
    let config = &loaded.config;
    line_out(&format!("listen  {}", config.server.listen));
    line_out(&format!("store   {}", config.store.url));
    for source in &config.sources {
        let about = source.provider.about();
        line_out(&format!(
            "source  {} ({}) at {}, {}",
            source.name,
            about.title,
            source.path,
            count(source.setup.secrets.len(), "secret")
        ));
    }
    for route in &config.routes {
        let rule = if route.route.filter.is_some() { ", filtered" } else { "" };
        line_out(&format!(
            "route   {} to {}, signed {}{rule}",
            route.route.name,
            route.shown_url(),
            route.signer.kind().name()
        ));
    }
    for channel in &config.channels {
        line_out(&format!("channel {} ({})", channel.name, channel.kind.name()));
    }
    for rule in &config.rules {
        let events: Vec<_> = rule.events.iter().map(Pattern::as_str).collect();
        let (name, events, to) = (&rule.name, events.join(", "), rule.to.name());
        line_out(&format!("notify  {name} tells {to} of {events} by {}", rule.channel));
    }
    for schedule in &config.schedules {
        let (cron, zone) = (&schedule.cron, &schedule.timezone);
        line_out(&format!("schedule {} at {cron} ({zone})", schedule.name));
    }
    for key in &config.keys {
        line_out(&format!("key     {} may {}", key.name, key.scope.name()));
    }
}

/// The same for programs.
fn shown(loaded: &LoadedConfig) -> Value {
    let config = &loaded.config;
    let sources = config.sources.iter().map(|source| {
        json!({
            "name": &*source.name,
            "provider": source.provider.about().name,
            "path": &*source.path,
            "secrets": source.setup.secrets.len(),
        })
    });
    let routes = config.routes.iter().map(|route| {
        json!({
            "name": &*route.route.name,
            "url": route.shown_url(),
            "signing": route.signer.kind().name(),
            "filtered": route.route.filter.is_some(),
        })
    });
    let channels = config.channels.iter();
    let channels = channels.map(|channel| json!({ "name": &*channel.name, "kind": channel.kind.name() }));
    let rules = config.rules.iter().map(|rule| {
        json!({
            "name": &*rule.name,
            "events": rule.events.iter().map(Pattern::as_str).collect::<Vec<_>>(),
            "to": rule.to.name(),
            "channel": &*rule.channel,
        })
    });
    let schedules = config.schedules.iter().map(
        |schedule| json!({ "name": schedule.name, "cron": schedule.cron, "timezone": schedule.timezone }),
    );
    let keys = config.keys.iter().map(|key| json!({ "name": &*key.name, "scope": key.scope.name() }));
    json!({
        "good": !config.sources.is_empty(),
        "warnings": loaded.warnings,
        "listen": config.server.listen.to_string(),
        "store": config.store.url.to_string(),
        "sources": sources.collect::<Vec<_>>(),
        "routes": routes.collect::<Vec<_>>(),
        "channels": channels.collect::<Vec<_>>(),
        "notify": rules.collect::<Vec<_>>(),
        "schedules": schedules.collect::<Vec<_>>(),
        "keys": keys.collect::<Vec<_>>(),
    })
}
