//! `[[channel]]`: a way to tell somebody something: a mail server, a chat room, a program, a pager.

mod taker;

use std::time::Duration;

use sekisho_core::notification::{Doubt, Limits, Tries};

use super::table::{self, SettingKey, Table};
use crate::effects::channel::{self, ChannelKind};
use crate::env::{self, Env};
use taker::Taker;

/// A channel, checked and ready.
#[derive(Clone, Debug)]
pub struct Channel {
    pub name: String,
    pub kind: ChannelKind,
    /// Conversations at the same time, on each node.
    pub concurrency: usize,
    /// On all nodes together.
    pub limits: Limits,
    pub tries: Tries,
    /// Whoever it is for, when the channel says so; otherwise it depends on whom a message is for.
    pub doubt: Option<Doubt>,
    /// May lead to a private, loopback or link-local address.
    pub allow_private: bool,
}

impl Channel {
    pub fn open(&self, env: &Env) -> anyhow::Result<Box<dyn env::Channel>> {
        channel::open(&self.name, self.kind.clone(), self.allow_private, env)
    }

    /// It is told to one person, by an address.
    pub fn is_mail(&self) -> bool {
        matches!(self.kind, ChannelKind::Smtp(_))
    }
}

/// What is behind it, as `kind` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Smtp,
    Slack,
    Discord,
    Webhook,
    PagerDuty,
    Twilio,
    Sentry,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Smtp, Self::Slack, Self::Discord, Self::Webhook, Self::PagerDuty, Self::Twilio, Self::Sentry];

    const fn name(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Webhook => "webhook",
            Self::PagerDuty => "pagerduty",
            Self::Twilio => "twilio",
            Self::Sentry => "sentry",
        }
    }
}

/// A channel as written, before it is checked.
#[derive(Default)]
pub struct ChannelDraft {
    name: Option<String>,
    kind: Option<Kind>,
    /// Texts by their keys, in the order they were written.
    texts: Vec<(&'static str, String)>,
    port: Option<u16>,
    secrets: Vec<String>,
    rate: Option<u32>,
    spacing: Option<Duration>,
    daily: Option<u64>,
    concurrency: Option<usize>,
    attempts: Option<u32>,
    within: Option<Duration>,
    doubt: Option<Doubt>,
    allow_private: bool,
}

/// A key that only some kinds have, and is a text.
macro_rules! text_key {
    ($name:literal, $example:literal, $help:literal) => {
        SettingKey {
            name: $name,
            example: $example,
            help: $help,
            set: |draft, given| {
                draft.texts.push(($name, given.text()?));
                Ok(())
            },
        }
    };
}

const KEYS: &[SettingKey<ChannelDraft>] = &[
    SettingKey {
        name: "name",
        example: "\"mail\"",
        help: "Letters, digits, - and _.",
        set: |draft, given| {
            draft.name = Some(table::name(given)?);
            Ok(())
        },
    },
    SettingKey {
        name: "kind",
        example: "\"smtp\"",
        help: "smtp, slack, discord, webhook, pagerduty, twilio or sentry.",
        set: |draft, given| {
            let text = given.text()?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == text);
            draft.kind = Some(kind.ok_or(
                "expected \"smtp\", \"slack\", \"discord\", \"webhook\", \"pagerduty\", \"twilio\" or \"sentry\"",
            )?);
            Ok(())
        },
    },
    text_key!("host", "\"email-smtp.ap-northeast-1.amazonaws.com\"", "smtp: the mail server."),
    SettingKey {
        name: "port",
        example: "587",
        help: "smtp: 587 with STARTTLS, 465 with implicit TLS.",
        set: |draft, given| {
            draft.port = Some(given.count(1, 65_535)? as u16);
            Ok(())
        },
    },
    text_key!(
        "tls",
        "\"starttls\"",
        "smtp: starttls, implicit, or none (for a server on this machine only)."
    ),
    text_key!(
        "username",
        "\"env:SMTP_USERNAME\"",
        "smtp: who logs in; with Amazon SES the SMTP credentials."
    ),
    text_key!("password", "\"env:SMTP_PASSWORD\"", "smtp: its password; env:NAME or file:PATH."),
    text_key!("auth", "\"login\"", "smtp: login, or none for a server that wants no login."),
    text_key!(
        "from",
        "\"Example Shop <no-reply@example.jp>\"",
        "smtp: the sender; twilio: the number that calls."
    ),
    text_key!("reply_to", "\"support@example.jp\"", "smtp: where answers go."),
    text_key!(
        "ca",
        "\"file:/etc/ssl/our-ca.pem\"",
        "smtp: a certificate to be trusted beside those of this machine."
    ),
    text_key!(
        "url",
        "\"env:SLACK_WEBHOOK_URL\"",
        "slack, discord, webhook: where it is posted; it may be a secret."
    ),
    SettingKey {
        name: "secrets",
        example: "[\"env:NOTICE_WEBHOOK_SECRET\"]",
        help: "webhook: what requests are signed with (Standard Webhooks).",
        set: |draft, given| {
            draft.secrets = given.list()?;
            Ok(())
        },
    },
    text_key!(
        "routing_key",
        "\"env:PAGERDUTY_ROUTING_KEY\"",
        "pagerduty: the integration's key (Events API v2)."
    ),
    text_key!("account", "\"env:TWILIO_ACCOUNT_SID\"", "twilio: the account's SID."),
    text_key!("token", "\"env:TWILIO_AUTH_TOKEN\"", "twilio: its token."),
    text_key!("to", "\"+819012345678\"", "twilio: the number that is called."),
    text_key!("dsn", "\"env:SENTRY_DSN\"", "sentry: the project's DSN."),
    SettingKey {
        name: "rate",
        example: "14",
        help: "Messages a second, on all nodes together; default for smtp: 14.",
        set: |draft, given| {
            draft.rate = Some(given.count(1, 10_000)? as u32);
            Ok(())
        },
    },
    SettingKey {
        name: "spacing",
        example: "\"100ms\"",
        help: "Shortest pause between two messages; default for smtp: 100ms.",
        set: |draft, given| {
            draft.spacing = Some(given.duration()?);
            Ok(())
        },
    },
    SettingKey {
        name: "daily",
        example: "50000",
        help: "Messages a day (UTC), on all nodes together; default for smtp: 50000. Messages above it wait until the next day.",
        set: |draft, given| {
            draft.daily = Some(given.count(1, 1_000_000_000)? as u64);
            Ok(())
        },
    },
    SettingKey {
        name: "concurrency",
        example: "5",
        help: "Messages under way at the same time, on each node; 1 to 100.",
        set: |draft, given| {
            draft.concurrency = Some(given.count(1, 100)? as usize);
            Ok(())
        },
    },
    SettingKey {
        name: "attempts",
        example: "3",
        help: "Attempts for one message, 2 s, 4 s, 8 s and then 10 s apart.",
        set: |draft, given| {
            draft.attempts = Some(given.count(1, 20)? as u32);
            Ok(())
        },
    },
    SettingKey {
        name: "within",
        example: "\"30s\"",
        help: "For all attempts of one message together, from the first on; 5s to 10m.",
        set: |draft, given| {
            let within = given.duration()?;
            if !(Duration::from_secs(5)..=Duration::from_mins(10)).contains(&within) {
                return Err("expected between 5s and 10m".into());
            }
            draft.within = Some(within);
            Ok(())
        },
    },
    SettingKey {
        name: "uncertain",
        example: "\"hold\"",
        help: "When it is unknown whether a message was accepted: hold, or resend. Default: hold; to operators: resend.",
        set: |draft, given| {
            draft.doubt = Some(Doubt::parse(&given.text()?).ok_or("expected \"hold\" or \"resend\"")?);
            Ok(())
        },
    },
    SettingKey {
        name: "allow_private",
        example: "false",
        help: "slack, discord, webhook, pagerduty, twilio, sentry: allow an address inside your own network or on this machine.",
        set: |draft, given| {
            draft.allow_private = given.boolean()?;
            Ok(())
        },
    },
];

impl Table for ChannelDraft {
    const NAME: &'static str = "channel";
    const ABOUT: &'static str = "One block per way to send notifications.";
    const KEYS: &'static [SettingKey<Self>] = KEYS;
    type Ready = Channel;

    fn finish(mut self, warnings: &mut Vec<String>) -> Result<Channel, Vec<String>> {
        let Some(name) = self.name.take() else {
            return Err(vec!["a channel needs a name: write name = \"mail\"".into()]);
        };
        let owner = format!("channel {name}");
        let Some(kind) = self.kind else {
            return Err(vec![format!("{owner} needs a kind: write kind = \"smtp\"")]);
        };
        let mut taker = Taker::new(&owner, self.texts, warnings);
        let built = taker.build(kind, self.port, &self.secrets);
        let problems = taker.finish(kind);
        let (Some(kind), true) = (built, problems.is_empty()) else { return Err(problems) };
        let is_mail = matches!(kind, ChannelKind::Smtp(_));
        let default_tries = Tries::default();
        let within_ms = self.within.map_or(default_tries.within_ms, |within| within.as_millis() as i64);
        let most = self.attempts.unwrap_or(default_tries.most);
        let spacing = self.spacing.unwrap_or(Duration::from_millis(if is_mail { 100 } else { 0 }));
        let channel = Channel {
            kind,
            concurrency: self.concurrency.unwrap_or(5),
            limits: Limits::new(
                self.rate.or(is_mail.then_some(14)),
                spacing.as_millis() as i64,
                self.daily.or(is_mail.then_some(50_000)),
            ),
            tries: Tries { most, within_ms, each_ms: default_tries.each_ms.min(within_ms), ..default_tries },
            doubt: self.doubt,
            allow_private: self.allow_private,
            name,
        };
        // Opened once to see whether it can be: nobody is called.
        channel.open(&Env::system()).map_err(|error| vec![format!("{error:#}")])?;
        Ok(channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::check;
    use crate::effects::mail::Tls;

    const MAIL: &str =
        "name = \"mail\"\nkind = \"smtp\"\nhost = \"smtp.example.jp\"\nfrom = \"店 <no-reply@example.jp>\"\n";

    fn channel(keys: &str) -> Result<Channel, String> {
        check(&format!("[[channel]]\n{keys}"), &[]).map(|mut config| config.channels.remove(0))
    }

    #[test]
    fn g1_mail_is_made_for_ses() {
        let mail = channel(&format!("{MAIL}username = \"u\"\npassword = \"canary\"\n")).unwrap();
        let ChannelKind::Smtp(smtp) = &mail.kind else { panic!("smtp") };
        assert_eq!((smtp.port, smtp.tls, smtp.from.name.as_deref()), (587, Tls::Starttls, Some("店")));
        assert_eq!((mail.concurrency, mail.limits), (5, Limits { gap_ms: 100, daily: Some(50_000) }));
        assert_eq!((mail.tries.most, mail.tries.within_ms), (3, 30_000));
        assert!(!format!("{mail:?}").contains("canary"));
        let slack =
            channel("name = \"ops\"\nkind = \"slack\"\nurl = \"https://hooks.example.com/x\"\n").unwrap();
        assert!(slack.limits.is_free() && !slack.is_mail());
    }

    #[test]
    fn g1_what_is_wrong_with_a_channel_is_said_with_a_cure() {
        let cases = [
            ("kind = \"smtp\"\n", "s.toml:1: a channel needs a name"),
            ("name = \"m\"\n", "channel m needs a kind: write kind = \"smtp\""),
            ("name = \"m\"\nkind = \"fax\"\n", "s.toml:3: channel.kind: expected \"smtp\""),
            (MAIL, "needs username: write username = \"env:SMTP_USERNAME\""),
            (MAIL, "write auth = \"none\""),
            ("name = \"m\"\nkind = \"smtp\"\n", "needs host: write host ="),
            ("name = \"m\"\nkind = \"smtp\"\nhost = \"\"\n", "host is empty: write host ="),
            ("name = \"m\"\nkind = \"slack\"\nurl = \"not a url\"\n", "s.toml:1: channel m: "),
            (
                "name = \"m\"\nkind = \"smtp\"\nhost = \"h\"\nauth = \"none\"\nfrom = \"nobody\"\n",
                "from: \"nobody\" is no mail address",
            ),
            ("name = \"m\"\nkind = \"slack\"\n", "needs url: write url = \"env:SLACK_WEBHOOK_URL\""),
            ("name = \"m\"\nkind = \"slack\"\nurl = \"env:SEKISHO_NO_SUCH\"\n", "SEKISHO_NO_SUCH is not set"),
            (
                "name = \"m\"\nkind = \"slack\"\nurl = \"https://x\"\nhost = \"h\"\n",
                "host is not for kind = \"slack\"",
            ),
            ("name = \"m\"\nkind = \"webhook\"\nurl = \"https://x\"\n", "needs secrets"),
            ("name = \"m\"\nkind = \"pagerduty\"\n", "needs routing_key"),
            (
                "name = \"m\"\nkind = \"twilio\"\naccount = \"AC\"\ntoken = \"t\"\nfrom = \"110\"\nto = \"+819012345678\"\n",
                "from: expected a number",
            ),
            (
                "name = \"m\"\nkind = \"slack\"\nwithin = \"1s\"\n",
                "channel.within: expected between 5s and 10m",
            ),
            ("name = \"m\"\nkind = \"slack\"\nuncertain = \"maybe\"\n", "expected \"hold\" or \"resend\""),
        ];
        for (keys, expected) in cases {
            let found = channel(keys).unwrap_err();
            assert!(found.contains(expected), "{keys}\nexpected {expected}\nfound {found}");
        }
    }
}
