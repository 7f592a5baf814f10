//! A mail server, as good or as bad as a test wants it.
//!
//! It behaves as told ([`SmtpBehaviour`], changed at run time) and remembers every mail it took, when it took it, and
//! every word that was said. Taken means: this server would deliver it, whether or not the sender ever hears of it.
//! Speaks SMTP by hand, on a thread of its own until dropped: the nasty ways to answer are those a library prevents.

mod behaviour;
mod conversation;
mod mail;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio_rustls::TlsAcceptor;

pub use behaviour::{Point, SmtpBehaviour, SmtpFault};
pub use mail::{Mail, Part};

use crate::certificate;
use crate::server::{StubServer, locked};

/// How a mail server starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Port 0 is any free one.
    pub listen: SocketAddr,
    pub behaviour: SmtpBehaviour,
    pub tls: SmtpTls,
    pub login: Option<Login>,
    /// The largest mail it takes, and says so.
    pub size_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            behaviour: SmtpBehaviour::Accept,
            tls: SmtpTls::None,
            login: None,
            size_max: 64 << 20,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    None,
    /// Offered, and asked for before a login.
    Starttls,
    /// From the first byte.
    Implicit,
}

/// Without it, no mail is taken.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    pub password: String,
    /// As it is offered: `PLAIN LOGIN`.
    pub mechanisms: String,
}

impl Login {
    pub fn new(user: &str, password: &str) -> Self {
        Self { user: user.into(), password: password.into(), mechanisms: "PLAIN LOGIN".into() }
    }
}

#[derive(Debug)]
pub struct Smtp {
    server: StubServer,
    shared: Arc<Shared>,
    certificate: Option<String>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    behaviour: Mutex<SmtpBehaviour>,
    memory: Mutex<Memory>,
    acceptor: Option<Acceptor>,
}

#[derive(Clone)]
struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acceptor")
    }
}

#[derive(Debug, Default)]
struct Memory {
    accepted: Vec<Mail>,
    conversations: Vec<Vec<String>>,
    /// How often a point was met before a recipient was named.
    met: HashMap<Point, u32>,
    /// How often a recipient was named.
    tries: HashMap<String, u32>,
    under_way: usize,
    most_at_once: usize,
}

/// Most lines kept of one conversation.
const LINES_KEPT: usize = 10_000;

impl Smtp {
    pub fn start(behaviour: SmtpBehaviour) -> io::Result<Self> {
        Self::start_with(Settings { behaviour, ..Settings::default() })
    }

    pub fn start_with(settings: Settings) -> io::Result<Self> {
        let (acceptor, certificate) = match settings.tls {
            SmtpTls::None => (None, None),
            SmtpTls::Starttls | SmtpTls::Implicit => {
                let (acceptor, pem) = certificate::fresh(&["localhost"])?;
                (Some(Acceptor(acceptor)), Some(pem))
            }
        };
        let listen = settings.listen;
        let behaviour = Mutex::new(settings.behaviour.clone());
        let shared = Arc::new(Shared { settings, behaviour, memory: Mutex::default(), acceptor });
        let serving = Arc::clone(&shared);
        let server =
            StubServer::start(listen, move |stream| conversation::serve(stream, Arc::clone(&serving)))?;
        Ok(Self { server, shared, certificate })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// In PEM, for `localhost` and 127.0.0.1: who trusts it trusts this server.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// Sets how mails are treated that come from now on.
    pub fn set(&self, behaviour: SmtpBehaviour) {
        *locked(&self.shared.behaviour) = behaviour;
    }

    /// Every mail taken so far, in order.
    pub fn accepted(&self) -> Vec<Mail> {
        locked(&self.shared.memory).accepted.clone()
    }

    /// Every connection so far: what was said on it, `C: ` before the client's lines and `S: ` before ours.
    pub fn conversations(&self) -> Vec<Vec<String>> {
        locked(&self.shared.memory).conversations.clone()
    }

    pub fn connections(&self) -> usize {
        locked(&self.shared.memory).conversations.len()
    }

    /// How often a recipient was named, by its whole address.
    pub fn tries(&self, recipient: &str) -> u32 {
        locked(&self.shared.memory).tries.get(recipient).copied().unwrap_or_default()
    }

    /// Most mails that were under way at one moment, each from its `MAIL` to the last word about it.
    pub fn most_at_once(&self) -> usize {
        locked(&self.shared.memory).most_at_once
    }
}

impl Shared {
    fn begin(&self) -> usize {
        let mut memory = locked(&self.memory);
        memory.conversations.push(Vec::new());
        memory.conversations.len() - 1
    }

    fn note(&self, connection: usize, line: String) {
        let lines = &mut locked(&self.memory).conversations[connection];
        if lines.len() < LINES_KEPT {
            lines.push(line);
        }
    }

    /// What goes wrong here, if anything.
    fn meet(&self, point: Point, recipient: Option<&str>) -> Option<SmtpFault> {
        let mut memory = locked(&self.memory);
        let seen = match recipient {
            None => {
                let met = memory.met.entry(point).or_default();
                *met += 1;
                *met - 1
            }
            Some(recipient) => {
                let tries = memory.tries.entry(recipient.to_owned()).or_default();
                *tries += u32::from(point == Point::Recipient);
                tries.saturating_sub(1)
            }
        };
        drop(memory);
        locked(&self.behaviour).fault(point, recipient, seen)
    }

    fn take(&self, mail: Mail) -> usize {
        let mut memory = locked(&self.memory);
        memory.accepted.push(mail);
        memory.accepted.len()
    }
}

#[cfg(test)]
mod tests;
