//! `[[compensation]]`: what is done when something goes wrong with an order. A block under a shipped name changes that rule;
//! any other is a rule of its own.

use sekisho_core::compensation::{CompensationRule, RuleAction, RuleSubject, SYSTEM_FAULT, shipped};

use super::table::{SettingKey, Table};

/// A rule as written, before it is checked.
#[derive(Default)]
pub struct CompensationDraft {
    name: Option<String>,
    when: Option<String>,
    after_ms: Option<i64>,
    action: Option<RuleAction>,
    trigger: Option<String>,
    level: Option<u8>,
    tell: Option<Vec<String>>,
    respond_within_ms: Option<i64>,
    enabled: Option<bool>,
}

const NAME_MAX: usize = 64;

const KEYS: &[SettingKey<CompensationDraft>] = &[
    SettingKey {
        name: "name",
        example: "\"RENDER_FAILURE_TIMEOUT\"",
        help: "Capital letters, digits and _. The name of a shipped rule changes that rule: docs/operating/cases.md.",
        set: |draft, given| {
            draft.name = Some(word(given.text()?)?);
            Ok(())
        },
    },
    SettingKey {
        name: "when",
        example: "'fulfilment.status == \"failed\" && fulfilment.tier == \"paid\"'",
        help: "A CEL condition over payment, reservation and fulfilment.",
        set: |draft, given| {
            draft.when = Some(given.text()?);
            Ok(())
        },
    },
    SettingKey {
        name: "after",
        example: "\"24h\"",
        help: "How long it must have held.",
        set: |draft, given| {
            draft.after_ms = Some(ms(given.duration()?)?);
            Ok(())
        },
    },
    SettingKey {
        name: "action",
        example: "\"refund\"",
        help: "none, refund (all that is left), refund_surplus (what came beyond what was asked for) or fetch (ask the provider what became of the payment).",
        set: |draft, given| {
            let wanted = "expected \"none\", \"refund\", \"refund_surplus\" or \"fetch\"";
            draft.action = Some(RuleAction::parse(&given.text()?).ok_or(wanted)?);
            Ok(())
        },
    },
    SettingKey {
        name: "trigger",
        example: "\"RENDER_FAILURE\"",
        help: "Rules of one trigger share a case; default: the rule's name.",
        set: |draft, given| {
            draft.trigger = Some(word(given.text()?)?);
            Ok(())
        },
    },
    SettingKey {
        name: "level",
        example: "3",
        help: "1 to 3; 0: nobody is told.",
        set: |draft, given| {
            draft.level = Some(given.count(0, 3)? as u8);
            Ok(())
        },
    },
    SettingKey {
        name: "tell",
        example: "[\"pager\"]",
        help: "chat, mail or pager: the channels of [escalation].",
        set: |draft, given| {
            let tell = given.list()?;
            if let Some(odd) = tell.iter().find(|one| !["chat", "mail", "pager"].contains(&one.as_str())) {
                return Err(format!("{odd} is none of chat, mail and pager"));
            }
            draft.tell = Some(tell);
            Ok(())
        },
    },
    SettingKey {
        name: "respond_within",
        example: "\"4h\"",
        help: "Within which somebody must have acknowledged it; 0s: no answer is due.",
        set: |draft, given| {
            draft.respond_within_ms = Some(ms(given.duration()?)?);
            Ok(())
        },
    },
    SettingKey {
        name: "enabled",
        example: "true",
        help: "false switches the rule off.",
        set: |draft, given| {
            draft.enabled = Some(given.boolean()?);
            Ok(())
        },
    },
];

fn word(text: String) -> Result<String, String> {
    let is_good = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if text.is_empty() || text.len() > NAME_MAX || !text.bytes().all(is_good) {
        return Err(format!("expected 1 to {NAME_MAX} capital letters, digits or _"));
    }
    Ok(text)
}

fn ms(duration: std::time::Duration) -> Result<i64, String> {
    i64::try_from(duration.as_millis()).map_err(|_| "this is too long".to_owned())
}

impl Table for CompensationDraft {
    const NAME: &'static str = "compensation";
    const ABOUT: &'static str = "What is done when something goes wrong with an order. Rules are shipped; a block of a shipped name changes it.";
    const KEYS: &'static [SettingKey<Self>] = KEYS;
    type Ready = CompensationRule;

    fn finish(self, _warnings: &mut Vec<String>) -> Result<CompensationRule, Vec<String>> {
        let Some(name) = self.name else {
            return Err(vec!["a compensation needs a name: write name = \"MY_RULE\"".into()]);
        };
        let known = shipped().into_iter().find(|rule| rule.name == name);
        let is_of_system = |trigger: Option<&String>| trigger.is_some_and(|trigger| trigger == SYSTEM_FAULT);
        let known_trigger = known.as_ref().map(|rule| &rule.trigger);
        if self.when.is_some() && is_of_system(self.trigger.as_ref().or(known_trigger)) {
            let problem = "the probe says when it holds: leave `when` out";
            return Err(vec![format!("compensation {name}: {problem}")]);
        }
        let when = self.when.or_else(|| known.as_ref().map(|rule| rule.when.as_str().to_owned()));
        let Some(when) = when else {
            return Err(vec![format!("compensation {name} needs a condition: write when = '…'")]);
        };
        let trigger = self.trigger.or_else(|| known.as_ref().map(|rule| rule.trigger.clone()));
        let trigger = trigger.unwrap_or_else(|| name.clone());
        let wrong = |error| vec![format!("compensation {name}: when: {error}")];
        let rule = CompensationRule::new(&name, &trigger, &when).map_err(wrong)?;
        rule.when.check_order_condition().map_err(wrong)?;
        let known = known.as_ref().unwrap_or(&rule);
        let action = self.action.unwrap_or(known.action);
        if action == RuleAction::Fetch && (rule.subject != RuleSubject::Reservation || self.level > Some(0)) {
            let problem = "`fetch` needs a condition over reservation, and tells nobody: leave `level` out";
            return Err(vec![format!("compensation {name}: {problem}")]);
        }
        Ok(CompensationRule {
            after_ms: self.after_ms.unwrap_or(known.after_ms),
            action,
            level: self.level.unwrap_or(known.level),
            tell: self.tell.unwrap_or_else(|| known.tell.clone()),
            respond_within_ms: self.respond_within_ms.unwrap_or(known.respond_within_ms),
            // Whoever writes a rule wants it, also one that is shipped switched off.
            is_enabled: self.enabled.unwrap_or(true),
            ..rule.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::check;

    fn rules(keys: &str) -> Result<Vec<CompensationRule>, String> {
        check(&format!("[[compensation]]\n{keys}"), &[]).map(|config| config.orders().rules)
    }

    #[test]
    fn f4_a_block_changes_a_shipped_rule_or_adds_one() {
        let changed = rules("name = \"RENDER_FAILURE_TIMEOUT\"\nafter = \"2h\"").unwrap();
        assert_eq!(changed.len(), shipped().len());
        let rule = changed.iter().find(|rule| rule.name == "RENDER_FAILURE_TIMEOUT").unwrap();
        assert_eq!((rule.after_ms, rule.action, rule.level), (7_200_000, RuleAction::Refund, 3));
        let off = rules("name = \"EXPIRED_AFTER_PAYMENT\"\nenabled = false").unwrap();
        assert!(off.iter().any(|rule| rule.name == "EXPIRED_AFTER_PAYMENT" && !rule.is_enabled));
        let own = rules("name = \"MINE\"\nwhen = 'payment.disputed'\nlevel = 1\ntell = [\"chat\"]").unwrap();
        assert_eq!(own.len(), shipped().len() + 1);
    }

    #[test]
    fn f4_what_is_wrong_with_a_rule_is_said() {
        for (keys, part) in [
            ("when = 'true'", "needs a name"),
            ("name = \"MINE\"", "needs a condition"),
            ("name = \"mine\"", "capital letters"),
            ("name = \"MINE\"\nwhen = 'payment.'", "when"),
            ("name = \"MINE\"\nwhen = 'order.paid'", "`order` is not known"),
            ("name = \"MINE\"\nwhen = '1 + 1'", "expected true or false"),
            ("name = \"MINE\"\nwhen = 'true'\naction = \"shout\"", "refund_surplus"),
            ("name = \"MINE\"\nwhen = 'payment.paid'\naction = \"fetch\"", "over reservation"),
            ("name = \"SYSTEM_FAULT\"\nwhen = 'payment.paid'", "leave `when` out"),
            ("name = \"MINE\"\nwhen = 'true'\ntell = [\"phone\"]", "none of chat"),
            ("name = \"MINE\"\nwhen = 'true'\nlevel = 4", "level"),
        ] {
            let error = rules(keys).unwrap_err();
            assert!(error.contains(part), "{keys}: {error}");
        }
    }
}
