//! What a channel's block must say, kind by kind: takes its texts, follows references to secrets, and says everything
//! that is missing, wrong or too much, with what to write instead.

use sekisho_core::Secret;
use sekisho_core::mail_address::MailAddress;

use super::{ChannelKind, Kind};
use crate::config::secret::{resolve, resolve_all};
use crate::effects::mail::{self, Mailbox, Tls};
use crate::effects::sentry::Dsn;

/// Takes the texts of a block one by one; what nobody took does not belong to its kind.
pub struct Taker<'a> {
    owner: &'a str,
    texts: Vec<(&'static str, String)>,
    warnings: &'a mut Vec<String>,
    problems: Vec<String>,
}

impl<'a> Taker<'a> {
    pub const fn new(
        owner: &'a str,
        texts: Vec<(&'static str, String)>,
        warnings: &'a mut Vec<String>,
    ) -> Self {
        Self { owner, texts, warnings, problems: Vec::new() }
    }

    /// What is behind the channel; nothing if something is missing, and then that was said.
    pub fn build(&mut self, kind: Kind, port: Option<u16>, secrets: &[String]) -> Option<ChannelKind> {
        let built = match kind {
            Kind::Smtp => self.smtp(port).map(ChannelKind::Smtp),
            Kind::Slack => self.secret("url", "env:SLACK_WEBHOOK_URL").map(|url| ChannelKind::Slack { url }),
            Kind::Discord => {
                self.secret("url", "env:DISCORD_WEBHOOK_URL").map(|url| ChannelKind::Discord { url })
            }
            Kind::Webhook => self.webhook(secrets),
            Kind::PagerDuty => self.pagerduty(),
            Kind::Twilio => self.twilio(),
            Kind::Sentry => self.sentry(),
        };
        if port.is_some() && kind != Kind::Smtp {
            self.problem("port is for kind = \"smtp\"; remove it".into());
        }
        if !secrets.is_empty() && kind != Kind::Webhook {
            self.problem("secrets is for kind = \"webhook\"; remove it".into());
        }
        built
    }

    /// Everything that was wrong, texts that nobody took too.
    pub fn finish(mut self, kind: Kind) -> Vec<String> {
        for (key, _) in std::mem::take(&mut self.texts) {
            self.problem(format!("{key} is not for kind = \"{}\"; remove it", kind.name()));
        }
        self.problems
    }

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
        if host.as_deref().is_some_and(|host| host.trim().is_empty()) {
            self.problem("host is empty: write host = \"email-smtp.ap-northeast-1.amazonaws.com\"".into());
        }
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

impl Taker<'_> {
    fn sentry(&mut self) -> Option<ChannelKind> {
        let dsn = self.secret("dsn", "env:SENTRY_DSN")?;
        match Dsn::parse(dsn.expose()) {
            Ok(dsn) => Some(ChannelKind::Sentry { dsn }),
            Err(error) => {
                self.problem(format!("dsn: {error:#}"));
                None
            }
        }
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
