//! What only shows once everything is read: blocks that clash, and limits that contradict each other.

use std::collections::BTreeSet;

use sekisho_core::notification::template::Kind;
use sekisho_core::notification::{Rule, To};

use super::Config;

pub fn clashes(config: &Config, warnings: &mut Vec<String>) -> Vec<String> {
    let mut clashes = Vec::new();
    clashes.extend(same_names("sources", config.sources.iter().map(|source| &*source.name)));
    clashes.extend(same_names("routes", config.routes.iter().map(|route| route.route.name.as_str())));
    clashes.extend(same_names("channels", config.channels.iter().map(|channel| channel.name.as_str())));
    clashes.extend(same_names("notify blocks", config.rules().iter().map(|rule| rule.name.as_str())));
    clashes.extend(missing_channels(config));
    clashes.extend(same_names("schedules", config.schedules.iter().map(|schedule| schedule.name.as_str())));
    clashes.extend(same_names("keys", config.keys.iter().map(|key| key.name.as_str())));
    clashes.extend(same_paths(config));
    clashes.extend(same_secrets(config));
    clashes.extend(too_little_room(config));
    warnings.extend(missing_sources(config));
    clashes
}

/// Whoever is told something by a channel needs one, and by mail one that is mail.
fn missing_channels(config: &Config) -> Vec<String> {
    let find = |name: &str| config.channels.iter().find(|channel| channel.name == name);
    let missing = |who: &str, name: &str| {
        let known: Vec<_> = config.channels.iter().map(|channel| channel.name.as_str()).collect();
        let known = if known.is_empty() {
            "none is written".into()
        } else {
            format!("known are {}", known.join(", "))
        };
        format!("{who}: there is no channel {name}; {known}")
    };
    let mut problems = Vec::new();
    for rule in &config.rules {
        let who = format!("notify {}", rule.name);
        match find(&rule.channel) {
            None => problems.push(missing(&who, &rule.channel)),
            Some(channel) if !channel.is_mail() && rule.to != To::Place => problems.push(format!(
                "{who}: {} is no mail channel; write to = \"channel\", or the name of one with kind = \"smtp\"",
                channel.name
            )),
            Some(channel) if channel.is_mail() && rule.to == To::Place => problems.push(format!(
                "{who}: {} is a mail channel, so say whom: write to = \"customer\", \"staff\" or \"operators\"",
                channel.name
            )),
            Some(_) => {}
        }
        if rule.every_ms.is_some() && matches!(rule.to, To::Customer | To::Staff) {
            problems.push(format!(
                "{who}: `every` would keep news from all but one of them; it is for to = \"operators\" or \"channel\""
            ));
        }
        problems.extend(unsuitable(config, rule));
        if rule.to == To::Operators && config.notifications.house.operators.is_empty() {
            problems.push(format!(
                "{who}: nobody is an operator; write [notifications] operators = [\"ops@example.jp\"]"
            ));
        }
    }
    let notifications = &config.notifications;
    if let Some(name) = &notifications.reminders {
        match find(name) {
            None => problems.push(missing("notifications.reminders", name)),
            Some(channel) if !channel.is_mail() => {
                problems.push(format!(
                    "notifications.reminders: {name} is no mail channel; staff are reminded by mail"
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(name) = &notifications.alerts {
        match find(name) {
            None => problems.push(missing("notifications.alerts", name)),
            Some(channel) if channel.is_mail() && notifications.house.operators.is_empty() => problems.push(
                "notifications.alerts: it goes by mail, and nobody is an operator; write operators = [\"ops@example.jp\"]".into(),
            ),
            Some(_) => {}
        }
    }
    problems
}

/// A template that has nothing to say of what a rule tells.
fn unsuitable(config: &Config, rule: &Rule) -> Option<String> {
    let who = format!("notify {}", rule.name);
    if !config.templates.has(&rule.template) {
        let known = config.templates.names().join(", ");
        return Some(format!("{who}: there is no template {}; known are {known}", rule.template));
    }
    let kind = |pattern: &str| match pattern.split('.').next() {
        Some("payment") => Kind::Payment,
        Some("billing") => Kind::Billing,
        Some("fulfilment") => Kind::Fulfilment,
        _ => Kind::Alert,
    };
    rule.events.iter().find_map(|pattern| {
        let suits = |kind| config.templates.suits(&rule.template, kind);
        // Every event can be told as an alert.
        let flaws =
            suits(kind(pattern.as_str())).or_else(|flaws| suits(Kind::Alert).map_err(|_| flaws)).err()?;
        let flaw = flaws.first()?;
        let (template, events) = (&rule.template, pattern.as_str());
        Some(format!("{who}: the template {template} can't tell of {events}: {flaw}"))
    })
}

fn same_names<'n>(kind: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names
        .filter(|name| !seen.insert(*name))
        .map(|name| format!("two {kind} are named {name}: give one another name"))
        .collect()
}

fn same_paths(config: &Config) -> Vec<String> {
    let same = config.sources.iter().enumerate().filter_map(|(n, source)| {
        let earlier = config.sources[..n].iter().find(|earlier| earlier.path == source.path)?;
        let (one, other, path) = (&earlier.name, &source.name, &source.path);
        (one != other).then(|| format!("sources {one} and {other} share the path {path}"))
    });
    same.collect()
}

fn same_secrets(config: &Config) -> Vec<String> {
    let same = config.keys.iter().enumerate().filter_map(|(n, key)| {
        let earlier = config.keys[..n].iter().find(|earlier| earlier.secret == key.secret)?;
        let (one, other) = (&earlier.name, &key.name);
        Some(format!("keys {one} and {other} have the same secret: give each its own"))
    });
    same.collect()
}

fn too_little_room(config: &Config) -> Option<String> {
    let (waiting, body) = (config.admission.waiting_bytes_max, config.server.body_bytes_max);
    (waiting < body).then(|| {
        format!(
            "admission.waiting_bytes_max is {waiting} bytes, but server.body_bytes_max is {body}: \
             such a body could never be taken in; raise the first or lower the second"
        )
    })
}

/// Only a warning, and none where schedules make events: their sources are not in the list.
fn missing_sources(config: &Config) -> Vec<String> {
    let mut missing = Vec::new();
    for route in config.routes.iter().map(|route| &route.route).filter(|_| config.schedules.is_empty()) {
        for pattern in &route.sources {
            if !config.sources.iter().any(|source| pattern.matches(&source.name)) {
                missing.push(format!("route {}: there is no source {}", route.name, pattern.as_str()));
            }
        }
    }
    missing
}
