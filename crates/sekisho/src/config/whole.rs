//! What only shows once everything is read: blocks that clash, and limits that contradict each other.

use std::collections::BTreeSet;

use sekisho_core::announcement::{is_announced, is_like_announced};
use sekisho_core::event::Trust;
use sekisho_core::notification::template::SampleKind;
use sekisho_core::notification::{NotifyRule, To};
use sekisho_core::pattern::Pattern;
use sekisho_core::settlement;
use sekisho_core::settlement::checkout::CheckoutRefusal;

use super::told::CUSTOMER_NEWS;
use super::{Config, Route, Source};

/// Something that does not fit.
pub struct Clash {
    /// The block it shows in, by kind and name, if it is one.
    pub block: Option<(&'static str, String)>,
    pub message: String,
}

impl From<String> for Clash {
    fn from(message: String) -> Self {
        Self { block: None, message }
    }
}

pub fn clashes(config: &Config, warnings: &mut Vec<String>) -> Vec<Clash> {
    let mut clashes = Vec::<String>::new();
    clashes.extend(same_names("sources", config.sources.iter().map(|source| &*source.name)));
    clashes.extend(same_names("routes", config.routes.iter().map(|route| route.route.name.as_str())));
    clashes.extend(same_names("channels", config.channels.iter().map(|channel| channel.name.as_str())));
    clashes.extend(same_names("notify blocks", config.rules().iter().map(|rule| rule.name.as_str())));
    clashes.extend(same_names("schedules", config.schedules.iter().map(|schedule| schedule.name.as_str())));
    clashes.extend(same_names("keys", config.keys.iter().map(|key| key.name.as_str())));
    clashes.extend(same_paths(config));
    clashes.extend(same_secrets(config));
    clashes.extend(too_little_room(config));
    clashes.extend(compared_twice(config));
    clashes.extend(unfit_till(config));
    warnings.extend(missing_sources(config));
    warnings.extend(unsaid_modes(config));
    warnings.extend(unnamed_hints(config));
    warnings.extend(unheard_types(config));
    warnings.extend(clear_cookies(config));
    warnings.extend(no_dashboard(config));
    warnings.extend(told_twice(config));
    let mut clashes: Vec<_> = clashes.into_iter().map(Clash::from).collect();
    clashes.extend(config.routes.iter().filter_map(|route| borrowed_name(config, route)));
    clashes.extend(unfit_rules(config));
    clashes.extend(missing_channels(config).into_iter().map(Clash::from));
    clashes
}

/// Sessions are made by a source that can.
fn unfit_till(config: &Config) -> Option<String> {
    let policy = config.orders().checkout;
    let modes = [true, false].map(|livemode| policy.source(None, livemode));
    // A key of one mode is no mistake: orders of the other are told so.
    let refused = modes.into_iter().find_map(|found| match found {
        Err(CheckoutRefusal::NoSource | CheckoutRefusal::OtherMode { .. }) | Ok(_) => None,
        Err(refusal) => Some(refusal),
    });
    refused.map(|refusal| format!("checkout.source: {refusal}"))
}

/// A signature that is taken for one provider's word, under another's events.
fn borrowed_name(config: &Config, route: &Route) -> Option<Clash> {
    let provider = route.route.speaks_for?;
    let is_other = |source: &&Source| {
        source.provider.about().name != provider
            && route.route.sources.iter().any(|pattern| pattern.matches(&source.name))
    };
    let other = config.sources.iter().find(is_other)?;
    let (name, source, title) = (&route.route.name, &other.name, other.provider.about().title);
    let signing = route.signer.kind().name();
    Some(Clash {
        block: Some(("route", name.clone())),
        message: format!(
            "route {name}: signing = \"{signing}\" would let events of {source} ({title}) pass for {provider}'s: an app that \
             believes the signature believes them; take {source} out of its sources, and give {source} a route of its own with \
             signing = \"standard-webhooks\""
        ),
    })
}

/// Hints go only where they are named, so that one which nobody names goes nowhere.
fn unnamed_hints(config: &Config) -> Vec<String> {
    let routes = || config.routes.iter().map(|route| &route.route);
    let is_named =
        |source: &Source| routes().any(|route| route.sources.iter().any(|pattern| pattern.is(&source.name)));
    let hints = config.sources.iter().filter(|source| source.provider.about().trust == Trust::Hint);
    let unnamed = hints.filter(|source| !config.routes.is_empty() && !is_named(source));
    let told = unnamed.map(|source| {
        let (name, title) = (&source.name, source.provider.about().title);
        format!(
            "source {name}: {title} proves nothing, so what comes in goes only to routes that name it, and none does; write \
             sources = [\"{name}\"] in the route that is to get it"
        )
    });
    told.collect()
}

/// Types that look like announcements, that Sekisho does not announce, and that are asked for without a source.
fn unheard_types(config: &Config) -> Vec<String> {
    let mut told = Vec::new();
    for rule in config.rules.iter().filter(|rule| rule.sources.is_empty()) {
        let types = rule.events.iter().map(Pattern::as_str).filter(|one| !one.contains('*'));
        let is_made = |one: &str| config.schedules.iter().any(|schedule| schedule.event_type == one);
        let foreign = types.filter(|one| is_like_announced(one) && !is_announced(one) && !is_made(one));
        told.extend(foreign.map(|one| {
            let name = &rule.name;
            format!(
                "notify {name}: Sekisho announces no {one}, and what others call so is not believed unless their source is \
                 named; if a provider's event is meant, write sources = [\"NAME\"]"
            )
        }));
    }
    told
}

/// Behind a proxy browsers mostly come by TLS; cookies are for TLS alone only if that is known.
fn clear_cookies(config: &Config) -> Option<String> {
    (config.server.trusted_proxies > 0 && !config.console.is_secure()).then(|| {
        "server.trusted_proxies is set, and console.url is no https:// address: if browsers reach the console by TLS, \
         write it, so that its cookies never travel in the clear"
            .to_owned()
    })
}

/// Whoever is told something by a channel needs one, and by mail one that is mail.
fn unfit_rules(config: &Config) -> Vec<Clash> {
    let each = config.rules.iter().flat_map(|rule| {
        let problems = unfit(config, rule);
        problems.into_iter().map(|problem| Clash {
            block: Some(("notify", rule.name.clone())),
            message: format!("notify {}: {problem}", rule.name),
        })
    });
    each.collect()
}

fn unfit(config: &Config, rule: &NotifyRule) -> Vec<String> {
    let mut problems = Vec::new();
    match config.channels.iter().find(|channel| channel.name == rule.channel) {
        None => problems.push(no_channel(config, &rule.channel)),
        Some(channel) if !channel.is_mail() && rule.to != To::Place => problems.push(format!(
            "{} is no mail channel; write to = \"channel\", or the name of one with kind = \"smtp\"",
            channel.name
        )),
        Some(channel) if channel.is_mail() && rule.to == To::Place => problems.push(format!(
            "{} is a mail channel, so say whom: write to = \"customer\", \"staff\" or \"operators\"",
            channel.name
        )),
        Some(_) => {}
    }
    if rule.every_ms.is_some() && matches!(rule.to, To::Customer | To::Staff) {
        let cure = "it is for to = \"operators\" or \"channel\"";
        problems.push(format!("`every` would keep news from all but one of them; {cure}"));
    }
    problems.extend(unsuitable(config, rule));
    if rule.to == To::Operators && config.notifications.house.operators.is_empty() {
        let cure = "write [notifications] operators = [\"ops@example.jp\"]";
        problems.push(format!("no operators are configured; {cure}"));
    }
    problems
}

/// Staff who are reminded want to go where the deadlines are.
fn no_dashboard(config: &Config) -> Option<String> {
    let notifications = &config.notifications;
    (notifications.reminders.is_some() && notifications.dashboard_url.is_none()).then(|| {
        "notifications.reminders: without dashboard_url the mails have no link to the dashboard; write \
         dashboard_url = \"https://…/{tenant}\""
            .to_owned()
    })
}

/// What `customers` tells already, and a block tells once more.
fn told_twice(config: &Config) -> Vec<String> {
    if config.notifications.customers.is_none() {
        return Vec::new();
    }
    let mut told = Vec::new();
    for rule in config.rules.iter().filter(|rule| rule.to == To::Customer) {
        let same =
            CUSTOMER_NEWS.iter().find(|(_, event, _)| rule.events.iter().any(|one| one.matches(event)));
        told.extend(same.map(|(_, event, _)| {
            let name = &rule.name;
            format!(
                "notify {name}: customers hear of {event} by [notifications] customers, too, so they get two mails; take \
                 {event} out of this block"
            )
        }));
    }
    told
}

fn no_channel(config: &Config, name: &str) -> String {
    let known: Vec<_> = config.channels.iter().map(|channel| channel.name.as_str()).collect();
    let known =
        if known.is_empty() { "none is written".into() } else { format!("known are {}", known.join(", ")) };
    format!("there is no channel {name}; {known}")
}

fn missing_channels(config: &Config) -> Vec<String> {
    let find = |name: &str| config.channels.iter().find(|channel| channel.name == name);
    let missing = |who: &str, name: &str| format!("{who}: {}", no_channel(config, name));
    let mut problems = Vec::new();
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
    if let Some(name) = &notifications.customers {
        match find(name) {
            None => problems.push(missing("notifications.customers", name)),
            Some(channel) if !channel.is_mail() => problems.push(format!(
                "notifications.customers: {name} is no mail channel; customers hear of their orders by mail"
            )),
            Some(_) => {}
        }
    }
    if let Some(name) = &notifications.alerts {
        match find(name) {
            None => problems.push(missing("notifications.alerts", name)),
            Some(channel) if channel.is_mail() && notifications.house.operators.is_empty() => problems.push(
                "notifications.alerts: it goes by mail, and no operators are configured; write operators = [\"ops@example.jp\"]".into(),
            ),
            Some(_) => {}
        }
    }
    problems
}

/// A template that has nothing to say of what a rule tells.
fn unsuitable(config: &Config, rule: &NotifyRule) -> Option<String> {
    if !config.templates.has(&rule.template) {
        let known = config.templates.names().join(", ");
        return Some(format!("there is no template {}; known are {known}", rule.template));
    }
    let kind = |pattern: &str| match pattern.split('.').next() {
        Some("payment") => SampleKind::Payment,
        Some("billing") => SampleKind::Billing,
        Some("fulfilment") => SampleKind::Fulfilment,
        Some("reservation") => SampleKind::Reservation,
        _ => SampleKind::Alert,
    };
    rule.events.iter().find_map(|pattern| {
        let suits = |kind| config.templates.suits(&rule.template, kind);
        // Every event can be told as an alert.
        let flaws = suits(kind(pattern.as_str()))
            .or_else(|flaws| suits(SampleKind::Alert).map_err(|_| flaws))
            .err()?;
        let flaw = flaws.first()?;
        let (template, events) = (&rule.template, pattern.as_str());
        Some(format!("the template {template} can't tell of {events}: {flaw}"))
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

/// Two sources that read one account's lists would both take in what either missed, and the app would get it twice.
fn compared_twice(config: &Config) -> Vec<String> {
    let same = config.sources.iter().enumerate().filter_map(|(n, source)| {
        let earlier = config.sources[..n].iter().find_map(|earlier| {
            let what = earlier.shares_lists_with(source)?;
            Some((&earlier.name, what))
        });
        let (one, what) = earlier?;
        let (other, title) = (&source.name, source.provider.about().title);
        Some(format!(
            "sources {one} and {other} have the same {what} at {title}, so each would take in the other's events as missing; write \
             reconcile = false in one of them"
        ))
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

/// Objects are keyed by their provider, not by their source, so each of its secrets may speak for live money.
fn unsaid_modes(config: &Config) -> Vec<String> {
    let provider = |source: &Source| source.provider.about().name;
    let unsaid = config
        .sources
        .iter()
        .filter(|source| source.livemode.is_none() && settlement::PROVIDERS.contains(&provider(source)))
        // A hint settles nothing by itself.
        .filter(|source| source.provider.about().trust != Trust::Hint);
    let told = unsaid.filter_map(|source| {
        let is_other = |other: &&Source| provider(other) == provider(source) && other.name != source.name;
        let other = config.sources.iter().find(is_other)?;
        let (name, other, title) = (&source.name, &other.name, source.provider.about().title);
        Some(format!(
            "source {name}: {other} receives from {title} too, and which mode this one takes is not written, so whoever \
             has its secret can settle live orders; write livemode = true, or false if it is for tests"
        ))
    });
    told.collect()
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
