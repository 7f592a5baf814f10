//! What is missing where orders are sold: somebody who refunds, somebody who is told, somebody who makes what was paid for.

use std::collections::BTreeSet;

use sekisho_core::pattern::Pattern;
use sekisho_core::source_name::OWN;
use url::Url;

use super::Grade;
use crate::config::Config;

/// What is sold here.
#[derive(Clone, Copy)]
pub struct OrdersInUse {
    pub has_slots: bool,
    pub has_fulfilments: bool,
}

impl OrdersInUse {
    fn has_any(self) -> bool {
        self.has_slots || self.has_fulfilments
    }
}

type Add<'a> = &'a mut dyn FnMut(&'static str, Grade, String);

pub fn check(config: &Config, used: OrdersInUse, add: Add<'_>) {
    if used.has_any() {
        check_refunds(config, add);
        check_told(config, add);
    }
    if used.has_slots && config.notifications.customers.is_none() {
        let text = "customers hear nothing of their reservations; set [notifications] customers = \"mail\", the name of a \
                    [[channel]] with kind = \"smtp\"";
        add("orders", Grade::Look, text.into());
    }
    check_pages(config, add);
    if used.has_fulfilments {
        check_requests(config, add);
    }
}

fn check_refunds(config: &Config, add: Add<'_>) {
    let rules = config.orders.rules.iter().filter(|rule| rule.is_enabled && rule.action.refunds());
    let names: Vec<&str> = rules.map(|rule| rule.name.as_str()).collect();
    let may_refund = config.sources.iter().any(|source| source.api.as_ref().is_some_and(|api| api.refunds));
    if !names.is_empty() && !may_refund {
        let text = format!(
            "{}: these rules give money back, but no source has refunds = true, so each refund waits for a person; write \
             refunds = true and api_key in the [[source]] of your provider",
            names.join(", ")
        );
        add("orders", Grade::Look, text);
    }
}

/// Whoever a rule tells must have a channel.
fn check_told(config: &Config, add: Add<'_>) {
    let rules = config.orders.rules.iter().filter(|rule| rule.is_enabled && rule.level > 0);
    let targets: BTreeSet<&str> = rules.flat_map(|rule| rule.tell.iter().map(String::as_str)).collect();
    for target in targets {
        let name = match target {
            "chat" => &config.escalation.chat,
            "mail" => &config.escalation.mail,
            "pager" => &config.escalation.pager,
            _ => continue,
        };
        match config.channels.iter().find(|channel| channel.name == *name) {
            None => {
                let text = format!(
                    "cases are told to {target}, and there is no channel {name}, so nobody hears of them there; add a \
                     [[channel]] of that name, or name yours in [escalation] {target}"
                );
                add("orders", Grade::Look, text);
            }
            Some(channel) if channel.is_mail() && config.notifications.house.operators.is_empty() => {
                let text = format!(
                    "cases are told to {target} by mail, and no operators are configured; write [notifications] operators = \
                     [\"ops@example.jp\"]"
                );
                add("orders", Grade::Look, text);
            }
            Some(_) => {}
        }
    }
}

/// A link is a key, so it must not travel in the clear.
fn check_pages(config: &Config, add: Add<'_>) {
    let url = config.pages.url.as_deref().and_then(|url| Url::parse(url).ok());
    let Some(url) = url.filter(|url| url.scheme() == "http") else { return };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_near = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if !is_near {
        let text = format!(
            "[pages] url is {url}: customers' links travel without TLS, and whoever reads one has the order; serve the pages \
             by TLS and write https://"
        );
        add("pages", Grade::Bad, text);
    }
}

/// What is made must be asked for somewhere.
fn check_requests(config: &Config, add: Add<'_>) {
    let any = |patterns: &[Pattern], text: &str| {
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
    };
    let is_sent = config
        .routes
        .iter()
        .any(|route| any(&route.route.events, "fulfilment.requested") && any(&route.route.sources, OWN));
    if !is_sent {
        let text = "fulfilments are asked for, but no route takes fulfilment.requested, so every run ends by its time-out; add a \
                    [[route]] with events = [\"fulfilment.requested\"]";
        add("orders", Grade::Bad, text.into());
    }
}
