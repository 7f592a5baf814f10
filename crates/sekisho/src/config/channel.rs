//! `[[channel]]`: a way to tell somebody something: a mail server, a chat room, a program, a pager.

use std::fmt;
use std::time::Duration;

use sekisho_core::Secret;
use sekisho_core::notification::{Doubt, Limits, MailAddress, Tries};

use super::secret::{resolve, resolve_all};
use super::table::{self, Key, Table};
use crate::effects::mail::{self, Mailbox, Tls};

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
    /// It is told to one person, by an address.
    pub fn is_mail(&self) -> bool {
        matches!(self.kind, ChannelKind::Smtp(_))
    }
}

/// What is behind it.
#[derive(Clone)]
pub enum ChannelKind {
    Smtp(mail::Settings),
    Slack { url: Secret },
    Discord { url: Secret },
    Webhook { url: String, secrets: Vec<Secret> },
    PagerDuty { url: Option<String>, routing_key: Secret },
    Twilio { url: Option<String>, account: String, token: Secret, from: String, to: String },
}

impl ChannelKind {
    const NAMES: [&str; 6] = ["smtp", "slack", "discord", "webhook", "pagerduty", "twilio"];

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Smtp(_) => "smtp",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Webhook { .. } => "webhook",
            Self::PagerDuty { .. } => "pagerduty",
            Self::Twilio { .. } => "twilio",
        }
    }
}

impl fmt::Debug for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A channel as written, before it is checked.
#[derive(Default)]
pub struct Draft {
    name: Option<String>,
    kind: Option<&'static str>,
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
        Key {
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

const KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        example: "\"mail\"",
        help: "Letters, digits, - and _.",
        set: |draft, given| {
            draft.name = Some(table::name(given)?);
            Ok(())
        },
    },
    Key {
        name: "kind",
        example: "\"smtp\"",
        help: "smtp, slack, discord, webhook, pagerduty or twilio.",
        set: |draft, given| {
            let text = given.text()?;
            let kind = ChannelKind::NAMES.into_iter().find(|name| *name == text);
            draft.kind = Some(kind.ok_or(
                "expected \"smtp\", \"slack\", \"discord\", \"webhook\", \"pagerduty\" or \"twilio\"",
            )?);
            Ok(())
        },
    },
    text_key!("host", "\"email-smtp.ap-northeast-1.amazonaws.com\"", "smtp: the mail server."),
    Key {
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
    Key {
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
    Key {
        name: "rate",
        example: "14",
        help: "Messages a second, on all nodes together; smtp: 14 when not written.",
        set: |draft, given| {
            draft.rate = Some(given.count(1, 10_000)? as u32);
            Ok(())
        },
    },
    Key {
        name: "spacing",
        example: "\"100ms\"",
        help: "At least so long between two messages; smtp: 100ms when not written.",
        set: |draft, given| {
            draft.spacing = Some(given.duration()?);
            Ok(())
        },
    },
    Key {
        name: "daily",
        example: "50000",
        help: "Messages a day (UTC), on all nodes together; smtp: 50000 when not written. Then the rest waits.",
        set: |draft, given| {
            draft.daily = Some(given.count(1, 1_000_000_000)? as u64);
            Ok(())
        },
    },
    Key {
        name: "concurrency",
        example: "5",
        help: "Messages under way at the same time, on each node; 1 to 100.",
        set: |draft, given| {
            draft.concurrency = Some(given.count(1, 100)? as usize);
            Ok(())
        },
    },
    Key {
        name: "attempts",
        example: "3",
        help: "Tries for one message, 2 s, 4 s, 8 s and then 10 s apart.",
        set: |draft, given| {
            draft.attempts = Some(given.count(1, 20)? as u32);
            Ok(())
        },
    },
    Key {
        name: "within",
        example: "\"30s\"",
        help: "For all tries of one message together, from the first on; 5s to 10m.",
        set: |draft, given| {
            let within = given.duration()?;
            if !(Duration::from_secs(5)..=Duration::from_mins(10)).contains(&within) {
                return Err("expected between 5s and 10m".into());
            }
            draft.within = Some(within);
            Ok(())
        },
    },
    Key {
        name: "uncertain",
        example: "\"hold\"",
        help: "When nobody knows whether a message was taken: hold, or resend. Not written: hold, and resend to operators.",
        set: |draft, given| {
            draft.doubt = Some(Doubt::parse(&given.text()?).ok_or("expected \"hold\" or \"resend\"")?);
            Ok(())
        },
    },
    Key {
        name: "allow_private",
        example: "false",
        help: "slack, discord, webhook, pagerduty, twilio: allow an address inside your own network or on this machine.",
        set: |draft, given| {
            draft.allow_private = given.boolean()?;
            Ok(())
        },
    },
];

impl Table for Draft {
    const NAME: &'static str = "channel";
    const ABOUT: &'static str = "One block per way to tell somebody something.";
    const KEYS: &'static [Key<Self>] = KEYS;
    type Ready = Channel;

    fn finish(mut self, warnings: &mut Vec<String>) -> Result<Channel, Vec<String>> {
        let Some(name) = self.name.take() else {
            return Err(vec!["a channel needs a name: write name = \"mail\"".into()]);
        };
        let owner = format!("channel {name}");
        let Some(kind) = self.kind else {
            return Err(vec![format!("{owner} needs a kind: write kind = \"smtp\"")]);
        };
        let mut taker = Taker { owner: &owner, texts: self.texts, warnings, problems: Vec::new() };
        let (port, secrets) = (self.port, self.secrets);
        let built = match kind {
            "slack" => taker.secret("url", "env:SLACK_WEBHOOK_URL").map(|url| ChannelKind::Slack { url }),
            "discord" => {
                taker.secret("url", "env:DISCORD_WEBHOOK_URL").map(|url| ChannelKind::Discord { url })
            }
            "webhook" => taker.webhook(&secrets),
            "pagerduty" => taker.pagerduty(),
            "twilio" => taker.twilio(),
            _ => taker.smtp(port).map(ChannelKind::Smtp),
        };
        if port.is_some() && kind != "smtp" {
            taker.problem("port is for kind = \"smtp\"; remove it".into());
        }
        if !secrets.is_empty() && kind != "webhook" {
            taker.problem("secrets is for kind = \"webhook\"; remove it".into());
        }
        for (key, _) in std::mem::take(&mut taker.texts) {
            taker.problem(format!("{key} is not for kind = \"{kind}\"; remove it"));
        }
        let problems = taker.problems;
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
        crate::effects::channel::open(&channel).map_err(|error| vec![format!("{error:#}")])?;
        Ok(channel)
    }
}

/// Takes the texts of a block one by one; what nobody took does not belong to its kind.
struct Taker<'a> {
    owner: &'a str,
    texts: Vec<(&'static str, String)>,
    warnings: &'a mut Vec<String>,
    problems: Vec<String>,
}

impl Taker<'_> {
    fn problem(&mut self, problem: String) {
        self.problems.push(format!("{}: {problem}", self.owner));
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let found = self.texts.iter().position(|(known, _)| *known == key)?;
        let (_, written) = self.texts.remove(found);
        match resolve(&written) {
            Ok(resolved) => Some(resolved.text),
            Err(problem) => {
                self.problem(format!("{key}: {problem}"));
                Some(String::new())
            }
        }
    }

    fn needed(&mut self, key: &str, example: &str) -> Option<String> {
        let found = self.text(key);
        if found.is_none() {
            self.problem(format!("needs {key}: write {key} = \"{example}\""));
        }
        found
    }

    fn secret(&mut self, key: &'static str, example: &str) -> Option<Secret> {
        let Some(found) = self.texts.iter().position(|(known, _)| *known == key) else {
            self.problem(format!("needs {key}: write {key} = \"{example}\""));
            return None;
        };
        let (_, written) = self.texts.remove(found);
        let mut problems = Vec::new();
        let secrets = resolve_all(self.owner, &[written], self.warnings, &mut problems);
        problems.into_iter().for_each(|problem| self.problem(format!("{key}: {problem}")));
        secrets.into_iter().next()
    }

    fn address(&mut self, key: &str, text: &str) -> Option<MailAddress> {
        let address = text.parse();
        if address.is_err() {
            self.problem(format!(
                "{key}: {text:?} is no mail address; write {key} = \"no-reply@example.jp\""
            ));
        }
        address.ok()
    }

    fn smtp(&mut self, port: Option<u16>) -> Option<mail::Settings> {
        let host = self.needed("host", "email-smtp.ap-northeast-1.amazonaws.com");
        let tls = match self.text("tls").as_deref() {
            None | Some("starttls") => Tls::Starttls,
            Some("implicit") => Tls::Implicit,
            Some("none") => Tls::None,
            Some(_) => {
                self.problem("tls: expected \"starttls\", \"implicit\" or \"none\"".into());
                Tls::Starttls
            }
        };
        let login = match self.text("auth").as_deref() {
            Some("none") => None,
            None | Some("login") => {
                let username = self.needed("username", "env:SMTP_USERNAME");
                let password = self.secret("password", "env:SMTP_PASSWORD");
                if username.is_none() {
                    self.problem("if the server wants no login, write auth = \"none\"".into());
                }
                username.zip(password)
            }
            Some(_) => {
                self.problem("auth: expected \"login\" or \"none\"".into());
                None
            }
        };
        let from = self.needed("from", "Example Shop <no-reply@example.jp>");
        let (from_name, from) = match from.as_deref().map(split_name) {
            Some((name, address)) => (name, self.address("from", &address)),
            None => (None, None),
        };
        let reply_to = self.text("reply_to").and_then(|text| self.address("reply_to", &text));
        let ca = self.text("ca");
        let port = port.unwrap_or(if tls == Tls::Implicit { 465 } else { 587 });
        let from = Mailbox { name: from_name, address: from? };
        let reply_to = reply_to.map(|address| Mailbox { name: None, address });
        Some(mail::Settings { host: host?, port, tls, login, from, reply_to, ca })
    }

    fn webhook(&mut self, written: &[String]) -> Option<ChannelKind> {
        let url = self.needed("url", "https://app.example.jp/notices");
        if written.is_empty() {
            self.problem("needs secrets = [\"env:NAME\"] so that the receiver can trust what it gets".into());
        }
        let mut problems = Vec::new();
        let secrets = resolve_all(self.owner, written, self.warnings, &mut problems);
        problems.into_iter().for_each(|problem| self.problem(format!("secrets: {problem}")));
        Some(ChannelKind::Webhook { url: url?, secrets })
    }

    fn pagerduty(&mut self) -> Option<ChannelKind> {
        let routing_key = self.secret("routing_key", "env:PAGERDUTY_ROUTING_KEY");
        let url = self.text("url");
        Some(ChannelKind::PagerDuty { url, routing_key: routing_key? })
    }

    fn twilio(&mut self) -> Option<ChannelKind> {
        let account = self.needed("account", "env:TWILIO_ACCOUNT_SID");
        let token = self.secret("token", "env:TWILIO_AUTH_TOKEN");
        let mut number = |key: &'static str| {
            let text = self.needed(key, "+819012345678")?;
            let digits = text.strip_prefix('+').unwrap_or_default();
            if !(7..=15).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                self.problem(format!("{key}: expected a number such as \"+819012345678\""));
            }
            Some(text)
        };
        let (from, to) = (number("from"), number("to"));
        let url = self.text("url");
        Some(ChannelKind::Twilio { url, account: account?, token: token?, from: from?, to: to? })
    }
}

/// `Example Shop <no-reply@example.jp>`, or the address alone.
fn split_name(text: &str) -> (Option<String>, String) {
    match text.trim().strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some((name, address)) => {
            let name = name.trim().trim_matches('"').trim();
            ((!name.is_empty()).then(|| name.to_owned()), address.to_owned())
        }
        None => (None, text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::check;

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
