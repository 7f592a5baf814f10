//! One connection to a mail server: opened, encrypted, logged in, and then mail after mail.
//!
//! A command goes out only when nothing unread has come in: a server that talks out of turn is never taken at its
//! word for something it was not asked yet.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use sekisho_core::Secret;
use sekisho_core::notification::Sent;

use super::Tls;
use super::answer::{self, MailParties};
use super::message::MimeMessage;
use super::reply::SmtpReply;
use super::server::{MailServer, Stream};

/// Most mails by one connection: some servers count.
const MAILS_MAX: u32 = 100;
/// Ends a mail. No line of a letter is a single dot.
const END: &[u8] = b".\r\n";

/// How far a try has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpStage {
    Connect,
    Greeting,
    Hello,
    Tls,
    Login,
    Sender,
    Recipient,
    Data,
    Body,
}

#[derive(Debug)]
pub struct SmtpSession {
    stream: Stream,
    /// Came in and is not read yet.
    heard: Vec<u8>,
    /// The reply that is being read.
    reply: SmtpReply,
    offers: Offers,
    mails: u32,
    /// Both sides know whose turn it is.
    in_step: bool,
}

/// What the server said it can do.
#[derive(Debug, Default)]
struct Offers {
    starttls: bool,
    plain: bool,
    login: bool,
    /// It wants to be told the size; the most it takes, and 0 for no limit.
    size: Option<usize>,
}

impl SmtpSession {
    /// Up to where a mail can begin.
    pub async fn open(
        server: &MailServer,
        parties: &MailParties<'_>,
        stage: &mut SmtpStage,
    ) -> Result<Self, Sent> {
        *stage = SmtpStage::Connect;
        let stream = server.connect(parties).await?;
        let mut session = Self {
            stream,
            heard: Vec::new(),
            reply: SmtpReply::default(),
            offers: Offers::default(),
            mails: 0,
            in_step: true,
        };
        if server.tls == Tls::Implicit {
            *stage = SmtpStage::Tls;
            session = session.encrypt(server, parties).await?;
        }
        *stage = SmtpStage::Greeting;
        let greeting = session.hear().await;
        session.judged(SmtpStage::Greeting, parties, greeting, 2)?;
        session.hello(server, parties, stage).await?;
        if server.tls == Tls::Starttls {
            *stage = SmtpStage::Tls;
            if !session.offers.starttls {
                return Err(answer::no_tls(parties));
            }
            session.ask(SmtpStage::Tls, parties, "STARTTLS", 2).await?;
            if !session.heard.is_empty() {
                // Whoever stands between could have written it.
                return Err(Sent::Failed(answer::tls(parties, "it went on talking in clear after STARTTLS")));
            }
            session = session.encrypt(server, parties).await?;
            session.hello(server, parties, stage).await?;
        }
        if let Some((user, password)) = &server.login {
            *stage = SmtpStage::Login;
            session.log_in(parties, user, password).await?;
        }
        Ok(session)
    }

    async fn hello(
        &mut self,
        server: &MailServer,
        parties: &MailParties<'_>,
        stage: &mut SmtpStage,
    ) -> Result<(), Sent> {
        *stage = SmtpStage::Hello;
        let reply = self.ask(SmtpStage::Hello, parties, &format!("EHLO {}", server.name), 2).await?;
        self.offers = Offers::read(&reply.lines);
        Ok(())
    }

    async fn encrypt(self, server: &MailServer, parties: &MailParties<'_>) -> Result<Self, Sent> {
        let stream = server.encrypt(self.stream, parties).await?;
        Ok(Self { stream, offers: Offers::default(), ..self })
    }

    async fn log_in(&mut self, parties: &MailParties<'_>, user: &str, password: &Secret) -> Result<(), Sent> {
        let encoded = |text: String| Secret::new(STANDARD.encode(text));
        let lines = if self.offers.plain {
            let whole = encoded(format!("\0{user}\0{}", password.expose()));
            vec![Secret::new(format!("AUTH PLAIN {}", whole.expose()))]
        } else if self.offers.login {
            let password = encoded(password.expose().to_owned());
            vec![Secret::new("AUTH LOGIN"), encoded(user.to_owned()), password]
        } else {
            return Err(answer::no_login(parties));
        };
        let (last, firsts) = lines.split_last().expect("there is at least one line");
        for line in firsts {
            self.ask(SmtpStage::Login, parties, line.expose(), 3).await?;
        }
        self.ask(SmtpStage::Login, parties, last.expose(), 2).await?;
        Ok(())
    }

    /// A mail up to its end mark, without it.
    pub async fn hand_over(
        &mut self,
        letter: &MimeMessage,
        parties: &MailParties<'_>,
        stage: &mut SmtpStage,
    ) -> Result<(), Sent> {
        self.mails += 1;
        if let Some(most) = self.offers.size.filter(|most| *most > 0 && letter.bytes.len() > *most) {
            return Err(answer::too_big(parties, letter.bytes.len(), most));
        }
        let size =
            if self.offers.size.is_some() { format!(" SIZE={}", letter.bytes.len()) } else { String::new() };
        *stage = SmtpStage::Sender;
        self.ask(SmtpStage::Sender, parties, &format!("MAIL FROM:<{}>{size}", letter.from), 2).await?;
        *stage = SmtpStage::Recipient;
        self.ask(SmtpStage::Recipient, parties, &format!("RCPT TO:<{}>", letter.to), 2).await?;
        *stage = SmtpStage::Data;
        self.ask(SmtpStage::Data, parties, "DATA", 3).await?;
        *stage = SmtpStage::Body;
        // Until the last reply, whatever comes next is part of the mail to the server.
        self.in_step = false;
        if let Err(error) = self.stream.write(&letter.bytes).await {
            // Perhaps it said why before it left.
            return Err(match self.early().await {
                Some(Ok(reply)) => answer::of_a_refusal(SmtpStage::Body, parties, &reply),
                Some(Err(_)) | None => Sent::Failed(answer::broken(SmtpStage::Body, parties, &error)),
            });
        }
        match self.early().await {
            None => Ok(()),
            Some(Ok(reply)) => Err(answer::of_a_refusal(SmtpStage::Body, parties, &reply)),
            Some(Err(error)) => Err(Sent::Failed(answer::broken(SmtpStage::Body, parties, &error))),
        }
    }

    /// Writes the end mark, and returns what is said to the mail.
    pub async fn end(&mut self) -> io::Result<SmtpReply> {
        self.stream.write(END).await?;
        let reply = self.hear().await?;
        self.in_step = reply.code != answer::GOING_AWAY;
        Ok(reply)
    }

    /// What was read of a reply that did not come to its end.
    pub fn begun_reply(&mut self) -> Option<SmtpReply> {
        self.in_step = false;
        Some(std::mem::take(&mut self.reply)).filter(|reply| !reply.lines.is_empty())
    }

    pub fn is_fit(&self) -> bool {
        self.in_step && self.heard.is_empty() && self.mails < MAILS_MAX
    }

    /// Whether it still answers, and has forgotten the last mail.
    pub async fn is_alive(&mut self) -> bool {
        self.stream.write(b"RSET\r\n").await.is_ok()
            && self.hear().await.is_ok_and(|reply| reply.code == 250)
            && self.heard.is_empty()
    }

    pub async fn quit(&mut self) -> io::Result<SmtpReply> {
        self.stream.write(b"QUIT\r\n").await?;
        self.hear().await
    }

    /// Says one line and returns the reply, if it is of the hundred that lets us go on.
    async fn ask(
        &mut self,
        stage: SmtpStage,
        parties: &MailParties<'_>,
        line: &str,
        hundred: u16,
    ) -> Result<SmtpReply, Sent> {
        let reply = if self.heard.is_empty() {
            let line = Secret::new(format!("{line}\r\n"));
            match self.stream.write(line.expose().as_bytes()).await {
                Ok(()) => self.hear().await,
                Err(error) => Err(error),
            }
        } else {
            self.hear()
                .await
                .and_then(|reply| if reply.is(4) || reply.is(5) { Ok(reply) } else { Err(out_of_turn()) })
        };
        self.judged(stage, parties, reply, hundred)
    }

    fn judged(
        &mut self,
        stage: SmtpStage,
        parties: &MailParties<'_>,
        reply: io::Result<SmtpReply>,
        hundred: u16,
    ) -> Result<SmtpReply, Sent> {
        match reply {
            Ok(reply) if reply.is(hundred) => Ok(reply),
            Ok(reply) => {
                // Before a mail has begun there is nothing to come back to.
                self.in_step = self.mails > 0 && reply.code != answer::GOING_AWAY;
                Err(answer::of_a_refusal(stage, parties, &reply))
            }
            Err(error) => {
                self.in_step = false;
                Err(Sent::Failed(answer::broken(stage, parties, &error)))
            }
        }
    }

    async fn hear(&mut self) -> io::Result<SmtpReply> {
        self.reply = SmtpReply::default();
        loop {
            match self.reply.take_line(&mut self.heard)? {
                Some(true) => return Ok(std::mem::take(&mut self.reply)),
                Some(false) => {}
                None => {
                    if self.stream.read(&mut self.heard).await? == 0 {
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
                    }
                }
            }
        }
    }

    /// What it said before it could know the whole mail: that it won't take it, or that it is gone. Looks, and does
    /// not wait.
    async fn early(&mut self) -> Option<io::Result<SmtpReply>> {
        if self.heard.is_empty() {
            match self.stream.read(&mut self.heard).now_or_never() {
                None => return self.stream.error().map(Err),
                Some(Ok(0)) => return Some(Err(io::ErrorKind::ConnectionReset.into())),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Some(Err(error)),
            }
        }
        match self.hear().await {
            Ok(reply) if reply.is(4) || reply.is(5) => Some(Ok(reply)),
            Ok(_) => Some(Err(out_of_turn())),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Offers {
    fn read(lines: &[String]) -> Self {
        let mut offers = Self::default();
        for line in lines.iter().skip(1) {
            let line = line.to_ascii_uppercase();
            // Old servers write `AUTH=PLAIN`.
            let mut words = line.split([' ', '=']);
            match words.next() {
                Some("STARTTLS") => offers.starttls = true,
                Some("AUTH") => words.for_each(|word| {
                    offers.plain |= word == "PLAIN";
                    offers.login |= word == "LOGIN";
                }),
                Some("SIZE") => {
                    offers.size = Some(words.next().and_then(|most| most.parse().ok()).unwrap_or(0));
                }
                Some(_) | None => {}
            }
        }
        offers
    }
}

fn out_of_turn() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it answered before it was asked")
}
