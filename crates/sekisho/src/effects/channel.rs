//! The ways to tell somebody something, and how each is opened.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use sekisho_core::Secret;
use sekisho_core::notification::{Message, Sent};

use super::discord::{self, Discord};
use super::mail::{self, Mailer};
use super::pagerduty::{self, PagerDuty};
use super::sentry::{self, Dsn, Sentry};
use super::slack::{self, Slack};
use super::twilio::{self, Twilio};
use super::webhook::{self, Webhook};
use crate::env::{Channel, Env};

/// What is behind it.
#[derive(Clone)]
pub enum ChannelKind {
    Smtp(mail::Settings),
    Slack { url: Secret },
    Discord { url: Secret },
    Webhook { url: String, secrets: Vec<Secret> },
    PagerDuty { url: Option<String>, routing_key: Secret },
    Twilio { url: Option<String>, account: String, token: Secret, from: String, to: String },
    Sentry { dsn: Dsn },
}

impl ChannelKind {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Smtp(_) => "smtp",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Webhook { .. } => "webhook",
            Self::PagerDuty { .. } => "pagerduty",
            Self::Twilio { .. } => "twilio",
            Self::Sentry { .. } => "sentry",
        }
    }
}

impl fmt::Debug for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Opens a channel; nobody is called yet.
pub fn open(
    name: &str,
    kind: ChannelKind,
    allow_private: bool,
    env: &Env,
) -> anyhow::Result<Box<dyn Channel>> {
    if let Some(channel) = env.outside.channel(name) {
        return Ok(channel);
    }
    let opened = || -> anyhow::Result<Box<dyn Channel>> {
        Ok(match kind {
            ChannelKind::Smtp(settings) => Box::new(Mailer::new(settings, env)?),
            ChannelKind::Slack { url } => Box::new(Slack::new(slack::Settings { url, allow_private }, env)?),
            ChannelKind::Discord { url } => {
                Box::new(Discord::new(discord::Settings { url, allow_private }, env)?)
            }
            ChannelKind::Webhook { url, secrets } => {
                Box::new(Webhook::new(webhook::Settings { url, secrets, allow_private }, env)?)
            }
            ChannelKind::PagerDuty { url, routing_key } => {
                let url = url.unwrap_or_else(|| pagerduty::BASE_URL.to_owned());
                Box::new(PagerDuty::new(pagerduty::Settings { url, routing_key, allow_private }, env)?)
            }
            ChannelKind::Twilio { url, account, token, from, to } => {
                let url = url.unwrap_or_else(|| twilio::BASE_URL.to_owned());
                let (account_sid, auth_token) = (account, token);
                let settings = twilio::Settings { url, account_sid, auth_token, from, to, allow_private };
                Box::new(Twilio::new(settings, env)?)
            }
            ChannelKind::Sentry { dsn } => {
                Box::new(Sentry::new(&sentry::Settings { dsn, allow_private }, env)?)
            }
        })
    };
    opened().with_context(|| format!("channel {name}"))
}

/// Each of them sends in its own way.
macro_rules! channels {
    ($($channel:ty),*) => {$(
        #[async_trait]
        impl Channel for $channel {
            async fn send(&self, message: &Message, within: Duration) -> Sent {
                <$channel>::send(self, message, within).await
            }
        }
    )*};
}

channels!(Mailer, Slack, Discord, Webhook, PagerDuty, Twilio, Sentry);
