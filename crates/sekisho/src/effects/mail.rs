//! One mail by SMTP: it goes out, and what became of it is returned.
//!
//! Promises: a try ends within its time, whatever the server does; until the end mark of a mail is written the
//! server can't have it, so that whatever goes wrong before is a certain failure, and only a reply that is lost
//! afterwards leaves it uncertain; no mail and no login goes out unencrypted, unless that was configured; no field of
//! a message can add a header. When to try again, how many at once and how fast is decided elsewhere.

mod answer;
mod message;
mod pool;
mod reply;
#[allow(clippy::disallowed_methods, reason = "the way out itself")]
mod server;
mod session;

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::Secret;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::{Message, Sent};
use tokio::time::{Instant, timeout_at};

use crate::env::Env;
use answer::MailParties;
use message::MimeMessage;
use pool::Pool;
use server::MailServer;
use session::{SmtpSession, SmtpStage};

/// Longest that a try is ever given.
const WITHIN_MAX: Duration = Duration::from_mins(10);
/// This part of a try's time is kept for the last reply: better a certain failure than an uncertain one.
const LAST_REPLY_PART: u32 = 8;

#[derive(Clone, Debug)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub tls: Tls,
    pub login: Option<(String, Secret)>,
    pub from: Mailbox,
    pub reply_to: Option<Mailbox>,
    /// Certificates in PEM that are trusted besides those of the system: for a mail server with one of its own.
    pub ca: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Begins in clear and is encrypted before anything is said, or nothing is: port 587.
    Starttls,
    /// Encrypted from the first byte: port 465.
    Implicit,
    /// In clear, login included.
    None,
}

#[derive(Clone, Debug)]
pub struct Mailbox {
    pub name: Option<String>,
    pub address: MailAddress,
}

/// Sends by one server and keeps a few connections to it.
#[derive(Debug)]
pub struct Mailer {
    env: Env,
    server: MailServer,
    from: Mailbox,
    reply_to: Option<Mailbox>,
    pool: Arc<Pool>,
}

impl Mailer {
    pub fn new(settings: Settings, env: &Env) -> anyhow::Result<Self> {
        let (server, pool) = (MailServer::new(&settings)?, Arc::new(Pool::new(env.clone())));
        let (from, reply_to) = (settings.from, settings.reply_to);
        Ok(Self { env: env.clone(), server, from, reply_to, pool })
    }

    /// One try.
    pub async fn send(&self, message: &Message, within: Duration) -> Sent {
        let within = within.min(WITHIN_MAX);
        let started = Instant::now();
        let letter = match MimeMessage::write(message, &self.from, self.reply_to.as_ref(), self.env.wall()) {
            Ok(letter) => letter,
            Err(failure) => return Sent::Failed(failure),
        };
        let parties = MailParties { host: &self.server.host, from: &letter.from, to: &letter.to };
        let mut stage = SmtpStage::Connect;
        let handing = self.hand_over(&letter, &parties, &mut stage);
        let handed_by = started + within - within / LAST_REPLY_PART;
        let mut session = match timeout_at(handed_by, handing).await {
            Ok(Err(sent)) => return sent,
            // Asked again: a timer is late by up to a millisecond, and much happens in one.
            Ok(Ok(session)) if Instant::now() < handed_by => session,
            Ok(Ok(_)) | Err(_) => return Sent::Failed(answer::too_slow(&parties, stage)),
        };
        // Invariant: from here on the server may have it, and before it could not.
        let heard = match timeout_at(started + within, session.end()).await {
            Ok(heard) => heard.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        };
        // A code that was said stands, even if the rest of the reply never comes.
        let sent = match heard.or_else(|error| session.begun_reply().ok_or(error)) {
            Ok(reply) => answer::of_the_end(&parties, &reply),
            Err(error) => answer::lost(&parties, &error),
        };
        self.pool.park(session);
        sent
    }

    /// Everything but the end mark.
    async fn hand_over(
        &self,
        letter: &MimeMessage,
        parties: &MailParties<'_>,
        stage: &mut SmtpStage,
    ) -> Result<SmtpSession, Sent> {
        let mut session = match self.pool.take().await {
            Some(session) => session,
            None => SmtpSession::open(&self.server, parties, stage).await?,
        };
        match session.hand_over(letter, parties, stage).await {
            Ok(()) => Ok(session),
            Err(sent) => {
                self.pool.park(session);
                Err(sent)
            }
        }
    }
}

#[cfg(test)]
mod tests;
