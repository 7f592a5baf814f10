//! Who is told of orders without a block of their own: operators by what the rules of cases say, customers of what became of
//! what they ordered.

use sekisho_core::notification::{NotifyRule, To};
use sekisho_core::pattern::Pattern;
use sekisho_core::source_name::OWN;

use super::{ChannelKind, Config, Escalation};

/// What customers hear of, and in which words.
pub const CUSTOMER_NEWS: [(&str, &str, &str); 6] = [
    ("sekisho-confirmed", "reservation.confirmed", "reservation-confirmed"),
    ("sekisho-expired", "reservation.expired", "reservation-expired"),
    ("sekisho-cancelled", "reservation.cancelled", "reservation-cancelled"),
    ("sekisho-unmade", "fulfilment.failed", "video-render-failure"),
    ("sekisho-refunded", "payment.refunded", "refund-done"),
    ("sekisho-unrefunded", "payment.refund_failed", "refund-failed"),
];

impl Config {
    /// Who is told of cases, by what their rules say.
    pub(super) fn escalations(&self) -> Vec<NotifyRule> {
        let Escalation { chat, mail, pager } = &self.escalation;
        let mut rules = Vec::new();
        for (target, name) in [("chat", chat), ("mail", mail), ("pager", pager)] {
            let Some(channel) = self.channels.iter().find(|channel| channel.name == *name) else { continue };
            if channel.is_mail() && self.notifications.house.operators.is_empty() {
                continue;
            }
            let rule = |what: &str, events: &[&str], filter| NotifyRule {
                name: format!("sekisho-{what}-{target}"),
                events: events.iter().map(|kind| Pattern::new(*kind)).collect(),
                sources: vec![Pattern::new(OWN)],
                filter,
                to: if channel.is_mail() { To::Operators } else { To::Place },
                channel: channel.name.clone(),
                template: "operator-alert".into(),
                every_ms: None,
            };
            let told = format!("has(body.about.tell) && \"{target}\" in body.about.tell");
            let told = sekisho_core::rule::Rule::compile(&told).expect("it is tested");
            rules.push(rule("cases", &["case.raised", "case.overdue"], Some(told)));
            // Whoever was woken hears when it is over; a phone does not ring for that.
            if target == "pager" && !matches!(channel.kind, ChannelKind::Twilio { .. }) {
                let over = "has(body.about.told) && \"pager\" in body.about.told";
                let over = sekisho_core::rule::Rule::compile(over).expect("it is tested");
                rules.push(rule("closed", &["case.resolved"], Some(over)));
            }
            // Nobody is woken for these.
            if target != "pager" {
                rules.push(rule("orders", &["fulfilment.failed", "inquiry.received"], None));
            }
        }
        rules
    }

    /// What customers are told of their orders.
    pub(super) fn news_of_orders(&self) -> Vec<NotifyRule> {
        let Some(channel) = &self.notifications.customers else { return Vec::new() };
        let each = CUSTOMER_NEWS.into_iter().map(|(name, event, template)| NotifyRule {
            name: name.to_owned(),
            events: vec![Pattern::new(event)],
            sources: vec![Pattern::new(OWN)],
            filter: None,
            to: To::Customer,
            channel: channel.clone(),
            template: template.to_owned(),
            every_ms: None,
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::check;

    const MAIL: &str = "[[channel]]\nname = \"mail\"\nkind = \"smtp\"\nhost = \"127.0.0.1\"\ntls = \"none\"\nauth = \"none\"\nfrom = \"a@example.jp\"\n";
    const CHAT: &str =
        "[[channel]]\nname = \"chat\"\nkind = \"slack\"\nurl = \"https://hooks.slack.com/services/T/B/s\"\n";

    #[test]
    fn g1_customers_hear_by_a_mail_channel_or_not_at_all() {
        let rules = |text: &str| check(text, &[]).map(|config| config.news_of_orders().len());
        assert_eq!(rules(MAIL), Ok(0));
        let set = |name: &str| format!("[notifications]\ncustomers = \"{name}\"\n{MAIL}{CHAT}");
        assert_eq!(rules(&set("mail")), Ok(6));
        for (name, part) in [("post", "there is no channel post"), ("chat", "no mail channel")] {
            let error = rules(&set(name)).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
