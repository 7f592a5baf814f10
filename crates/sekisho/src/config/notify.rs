//! `[[notify]]`: which events are told to whom, by which channel and in which words.

use std::time::Duration;

use sekisho_core::notification::{NotifyRule, To};
use sekisho_core::pattern::Pattern;
use sekisho_core::rule;

use super::route::patterns;
use super::table::{self, SettingKey, Table};

/// A rule as written, before it is checked.
#[derive(Default)]
pub struct NotifyDraft {
    name: Option<String>,
    events: Vec<Pattern>,
    sources: Vec<Pattern>,
    filter: Option<rule::Rule>,
    to: Option<To>,
    channel: Option<String>,
    template: Option<String>,
    every: Option<Duration>,
}

const KEYS: &[SettingKey<NotifyDraft>] = &[
    SettingKey {
        name: "name",
        example: "\"receipt\"",
        help: "Letters, digits, - and _.",
        set: |draft, given| {
            draft.name = Some(table::name(given)?);
            Ok(())
        },
    },
    SettingKey {
        name: "events",
        example: "[\"payment.paid\"]",
        help: "Types of events that are told, with * for any characters.",
        set: |draft, given| {
            draft.events = patterns(given)?;
            Ok(())
        },
    },
    SettingKey {
        name: "sources",
        example: "[\"sekisho\"]",
        help: "Names of sources they come from, with * for any characters. Without it, types such as payment.paid are Sekisho's own.",
        set: |draft, given| {
            draft.sources = patterns(given)?;
            Ok(())
        },
    },
    SettingKey {
        name: "to",
        example: "\"customer\"",
        help: "customer, staff (of the tenant), operators (by mail), or channel: its fixed destination.",
        set: |draft, given| {
            let wanted = "expected \"customer\", \"staff\", \"operators\" or \"channel\"";
            draft.to = Some(To::parse(&given.text()?).ok_or(wanted)?);
            Ok(())
        },
    },
    SettingKey {
        name: "channel",
        example: "\"mail\"",
        help: "The name of a [[channel]].",
        set: |draft, given| {
            draft.channel = Some(given.text()?);
            Ok(())
        },
    },
    SettingKey {
        name: "template",
        example: "\"payment-received\"",
        help: "What is said: a name that `sekisho templates` lists.",
        set: |draft, given| {
            draft.template = Some(given.text()?);
            Ok(())
        },
    },
    SettingKey {
        name: "filter",
        example: "\"body.data.amount >= 10000\"",
        help: "Only events for which this CEL expression is true, as for routes.",
        set: |draft, given| {
            let filter = rule::Rule::compile(&given.text()?).map_err(|error| error.to_string())?;
            filter.check_condition().map_err(|error| error.to_string())?;
            draft.filter = Some(filter);
            Ok(())
        },
    },
    SettingKey {
        name: "every",
        example: "\"10m\"",
        help: "Told at most once in so long, however many such events there are.",
        set: |draft, given| {
            let every = given.duration()?;
            if every < Duration::from_secs(1) {
                return Err("expected 1s or more".into());
            }
            draft.every = Some(every);
            Ok(())
        },
    },
];

impl Table for NotifyDraft {
    const NAME: &'static str = "notify";
    const ABOUT: &'static str = "One block per kind of notification.";
    const KEYS: &'static [SettingKey<Self>] = KEYS;
    type Ready = NotifyRule;

    fn finish(self, _warnings: &mut Vec<String>) -> Result<NotifyRule, Vec<String>> {
        let Some(name) = self.name else {
            return Err(vec!["a notify block needs a name: write name = \"receipt\"".into()]);
        };
        let mut problems = Vec::new();
        let mut missing = |key: &str, example: &str| {
            problems.push(format!("notify {name} needs {key}: write {key} = {example}"));
        };
        if self.events.is_empty() {
            missing("events", "[\"payment.paid\"]");
        }
        let mut needed = |key: &str, example: &str, value: Option<String>| {
            if value.is_none() {
                missing(key, example);
            }
            value.unwrap_or_default()
        };
        let channel = needed("channel", "\"mail\"", self.channel);
        let template = needed("template", "\"payment-received\"", self.template);
        let Some(to) = self.to else {
            missing("to", "\"customer\"");
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let every_ms = self.every.map(|every| every.as_millis() as i64);
        Ok(NotifyRule {
            name,
            events: self.events,
            sources: self.sources,
            filter: self.filter,
            to,
            channel,
            template,
            every_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::check;

    const SLACK: &str =
        "[[channel]]\nname = \"ops\"\nkind = \"slack\"\nurl = \"https://hooks.example.com/x\"\n";

    #[test]
    fn g5_what_is_wrong_with_a_rule_is_said_with_a_cure() {
        let whole = "name = \"r\"\nevents = [\"payment.paid\"]\nto = \"channel\"\nchannel = \"ops\"\ntemplate = \"payment-received\"\n";
        let rules = check(&format!("{SLACK}[[notify]]\n{whole}"), &[]).unwrap().rules;
        assert_eq!((rules[0].name.as_str(), rules[0].channel.as_str()), ("r", "ops"));
        let cases = [
            ("", "a notify block needs a name"),
            ("name = \"r\"\n", "notify r needs events: write events = [\"payment.paid\"]"),
            ("name = \"r\"\n", "notify r needs to: write to = \"customer\""),
            ("name = \"r\"\nto = \"everybody\"\n", "notify.to: expected \"customer\""),
            (&whole.replace("ops", "nobody"), "there is no channel nobody"),
            (&whole.replace("payment-received", "paymnt-received"), "there is no template paymnt-received"),
            (&whole.replace("\"channel\"", "\"customer\""), "ops is no mail channel"),
            (&format!("{whole}filter = \"1 + 1\"\n"), "notify.filter"),
        ];
        for (keys, expected) in cases {
            let found = check(&format!("{SLACK}[[notify]]\n{keys}"), &[]).unwrap_err();
            assert!(found.contains(expected), "{keys}\nexpected {expected}\nfound {found}");
        }
    }

    #[test]
    fn g5_a_type_that_only_others_have_wants_its_source() {
        let warned = |events: &str, more: &str| {
            let keys = "name = \"r\"\nto = \"channel\"\nchannel = \"ops\"\ntemplate = \"operator-alert\"\n";
            let text = format!("{SLACK}[[notify]]\n{keys}events = [\"{events}\"]\n{more}\n");
            let loaded =
                crate::config::load(std::path::Path::new("s.toml"), &text, std::iter::empty()).unwrap();
            loaded.warnings.concat().contains("if a provider's event is meant, write sources")
        };
        assert!(warned("payment.captured", ""));
        assert!(!warned("payment.captured", "sources = [\"komoju-*\"]"));
        for known in ["payment.paid", "payment.*", "charge.failed", "*"] {
            assert!(!warned(known, ""), "{known}");
        }
    }
}
