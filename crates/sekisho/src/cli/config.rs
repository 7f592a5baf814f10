//! `sekisho config check` and `sekisho config example`.

use std::process::ExitCode;

use sekisho_core::delivery::Pattern;

use super::Context;
use super::output::{count, line_out};
use crate::config;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Read the configuration as the server would, and say everything that is wrong with it
    Check,
    /// Print every setting with its default, ready to be saved as sekisho.toml
    Example,
}

pub fn run(command: &Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::Example => line_out(config::example().trim_end()),
        Command::Check => {
            let loaded = context.load()?;
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
            if config.sources.is_empty() {
                anyhow::bail!("there is no [[source]], so nothing can be received");
            }
            line_out("the configuration is good");
        }
    }
    Ok(ExitCode::SUCCESS)
}
