//! One connection to a mail server: opened, encrypted, logged in, and then mail after mail.
//!
//! A command goes out only when nothing unread has come in: a server that talks out of turn is never taken at its
//! word for something it was not asked yet.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use sekisho_core::Secret;
use sekisho_core::notification::Sent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::answer::{self, Parties};
use super::letter::Letter;
use super::reply::Reply;
use super::{Settings, Tls};

/// Longest that one address of the server is tried.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Most addresses of the server that are tried.
const ADDRESSES_MAX: usize = 4;
/// Most mails by one connection: some servers count.
const MAILS_MAX: u32 = 100;
/// Read at once.
const READ_BYTES: usize = 2 << 10;
/// Ends a mail. No line of a letter is a single dot.
const END: &[u8] = b".\r\n";

/// How far a try has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
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

/// Where mail goes, and how it is entered.
pub struct Server {
    pub host: String,
    port: u16,
    tls: Tls,
    connector: Option<(TlsConnector, ServerName<'static>)>,
    login: Option<(String, Secret)>,
    /// How we introduce ourselves.
    name: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Server {
    pub fn new(settings: &Settings) -> anyhow::Result<Self> {
        let connector = match settings.tls {
            Tls::None => None,
            Tls::Starttls | Tls::Implicit => {
                let host = settings.host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(host)
                    .with_context(|| format!("{:?} is no name of a mail server", settings.host))?;
                Some((TlsConnector::from(Arc::new(trusting(settings.ca.as_deref())?)), name))
            }
        };
        let domain = settings.from.address.whole().rsplit_once('@').map_or("localhost", |(_, domain)| domain);
        Ok(Self {
            host: settings.host.clone(),
            port: settings.port,
            tls: settings.tls,
            connector,
            login: settings.login.clone(),
            name: if domain.is_ascii() { domain.to_owned() } else { "localhost".to_owned() },
        })
    }
}

/// The certificate authorities of this system, and those given.
fn trusting(ca: Option<&str>) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let own: Vec<_> = CertificateDer::pem_slice_iter(ca.unwrap_or_default().as_bytes())
        .collect::<Result<_, _>>()
        .context("the mail server's ca is no certificate in PEM")?;
    if ca.is_some() && own.is_empty() {
        anyhow::bail!("the mail server's ca holds no certificate; expected -----BEGIN CERTIFICATE-----");
    }
    let verifier = Verifier::new_with_extra_roots(own, Arc::clone(&provider))
        .context("this system's certificate authorities can't be read; is `ca-certificates` installed?")?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

#[derive(Debug)]
pub struct Session {
    stream: Stream,
    /// Came in and is not read yet.
    heard: Vec<u8>,
    /// The reply that is being read.
    reply: Reply,
    offers: Offers,
    mails: u32,
    /// Both sides know whose turn it is.
    in_step: bool,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

/// What the server said it can do.
#[derive(Debug, Default)]
struct Offers {
    starttls: bool,
    plain: bool,
    login: bool,
    /// Whether it wants to be told the size, and the most it takes.
    size: bool,
    size_max: Option<usize>,
}

impl Session {
    /// Up to where a mail can begin.
    pub async fn open(server: &Server, parties: &Parties<'_>, stage: &mut Stage) -> Result<Self, Sent> {
        *stage = Stage::Connect;
        let tcp = connect(server, parties).await?;
        let mut session = Self {
            stream: Stream::Plain(tcp),
            heard: Vec::new(),
            reply: Reply::default(),
            offers: Offers::default(),
            mails: 0,
            in_step: true,
        };
        if server.tls == Tls::Implicit {
            *stage = Stage::Tls;
            session = session.encrypt(server, parties).await?;
        }
        *stage = Stage::Greeting;
        let greeting = session.hear().await;
        session.judged(Stage::Greeting, parties, greeting, 2)?;
        session.hello(server, parties, stage).await?;
        if server.tls == Tls::Starttls {
            *stage = Stage::Tls;
            if !session.offers.starttls {
                return Err(answer::no_tls(parties));
            }
            session.ask(Stage::Tls, parties, "STARTTLS", 2).await?;
            if !session.heard.is_empty() {
                // Whoever stands between could have written it.
                return Err(Sent::Failed(answer::tls(parties, "it went on talking in clear after STARTTLS")));
            }
            session = session.encrypt(server, parties).await?;
            session.hello(server, parties, stage).await?;
        }
        if let Some((user, password)) = &server.login {
            *stage = Stage::Login;
            session.log_in(parties, user, password).await?;
        }
        Ok(session)
    }

    async fn hello(&mut self, server: &Server, parties: &Parties<'_>, stage: &mut Stage) -> Result<(), Sent> {
        *stage = Stage::Hello;
        let reply = self.ask(Stage::Hello, parties, &format!("EHLO {}", server.name), 2).await?;
        self.offers = Offers::read(&reply.lines);
        Ok(())
    }

    async fn encrypt(self, server: &Server, parties: &Parties<'_>) -> Result<Self, Sent> {
        let failed = |error: &str| Sent::Failed(answer::tls(parties, error));
        let Stream::Plain(tcp) = self.stream else { return Err(failed("it is encrypted already")) };
        let (connector, name) = server.connector.as_ref().expect("made wherever TLS is configured");
        let stream =
            connector.connect(name.clone(), tcp).await.map_err(|error| failed(&error.to_string()))?;
        Ok(Self { stream: Stream::Encrypted(Box::new(stream)), offers: Offers::default(), ..self })
    }

    async fn log_in(&mut self, parties: &Parties<'_>, user: &str, password: &Secret) -> Result<(), Sent> {
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
            self.ask(Stage::Login, parties, line.expose(), 3).await?;
        }
        self.ask(Stage::Login, parties, last.expose(), 2).await?;
        Ok(())
    }

    /// A mail up to its end mark, without it.
    pub async fn hand_over(
        &mut self,
        letter: &Letter,
        parties: &Parties<'_>,
        stage: &mut Stage,
    ) -> Result<(), Sent> {
        self.mails += 1;
        if let Some(most) = self.offers.size_max.filter(|most| letter.bytes.len() > *most) {
            return Err(answer::too_big(parties, letter.bytes.len(), most));
        }
        let size = if self.offers.size { format!(" SIZE={}", letter.bytes.len()) } else { String::new() };
        *stage = Stage::Sender;
        self.ask(Stage::Sender, parties, &format!("MAIL FROM:<{}>{size}", letter.from), 2).await?;
        *stage = Stage::Recipient;
        self.ask(Stage::Recipient, parties, &format!("RCPT TO:<{}>", letter.to), 2).await?;
        *stage = Stage::Data;
        self.ask(Stage::Data, parties, "DATA", 3).await?;
        *stage = Stage::Body;
        // Until the last reply, whatever comes next is part of the mail to the server.
        self.in_step = false;
        if let Err(error) = self.stream.write(&letter.bytes).await {
            // Perhaps it said why before it left.
            return Err(match self.early().await {
                Some(Ok(reply)) => answer::of_a_refusal(Stage::Body, parties, &reply),
                Some(Err(_)) | None => Sent::Failed(answer::broken(Stage::Body, parties, &error)),
            });
        }
        match self.early().await {
            None => Ok(()),
            Some(Ok(reply)) => Err(answer::of_a_refusal(Stage::Body, parties, &reply)),
            Some(Err(error)) => Err(Sent::Failed(answer::broken(Stage::Body, parties, &error))),
        }
    }

    /// Writes the end mark, and returns what is said to the mail.
    pub async fn end(&mut self) -> io::Result<Reply> {
        self.stream.write(END).await?;
        let reply = self.hear().await?;
        self.in_step = reply.code != answer::GOING_AWAY;
        Ok(reply)
    }

    /// What was read of a reply that did not come to its end.
    pub fn begun_reply(&mut self) -> Option<Reply> {
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

    pub async fn quit(&mut self) -> io::Result<Reply> {
        self.stream.write(b"QUIT\r\n").await?;
        self.hear().await
    }

    /// Says one line and returns the reply, if it is of the hundred that lets us go on.
    async fn ask(
        &mut self,
        stage: Stage,
        parties: &Parties<'_>,
        line: &str,
        hundred: u16,
    ) -> Result<Reply, Sent> {
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
        stage: Stage,
        parties: &Parties<'_>,
        reply: io::Result<Reply>,
        hundred: u16,
    ) -> Result<Reply, Sent> {
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

    async fn hear(&mut self) -> io::Result<Reply> {
        self.reply = Reply::default();
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
    async fn early(&mut self) -> Option<io::Result<Reply>> {
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

impl Stream {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.write_all(bytes).await,
            Self::Encrypted(tls) => {
                tls.write_all(bytes).await?;
                tls.flush().await
            }
        }
    }

    async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let mut part = [0; READ_BYTES];
        let n = match self {
            Self::Plain(tcp) => tcp.read(&mut part).await?,
            Self::Encrypted(tls) => tls.read(&mut part).await?,
        };
        into.extend_from_slice(&part[..n]);
        Ok(n)
    }

    /// That the connection was reset, as the system knows it before anybody reads.
    fn error(&self) -> Option<io::Error> {
        let tcp = match self {
            Self::Plain(tcp) => tcp,
            Self::Encrypted(tls) => tls.get_ref().0,
        };
        tcp.take_error().unwrap_or_else(Some)
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
                    offers.size = true;
                    offers.size_max =
                        words.next().and_then(|most| most.parse().ok()).filter(|most| *most > 0);
                }
                Some(_) | None => {}
            }
        }
        offers
    }
}

async fn connect(server: &Server, parties: &Parties<'_>) -> Result<TcpStream, Sent> {
    let host = server.host.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((host, server.port)).await;
    let found = found.map_err(|error| Sent::Failed(answer::dns(parties, &error.to_string())))?;
    let mut last = "the name has no address".to_owned();
    for address in found.take(ADDRESSES_MAX) {
        match timeout(CONNECT_MAX, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => {
                // Commands are short and each waits for its reply.
                let _ = tcp.set_nodelay(true);
                return Ok(tcp);
            }
            Ok(Err(error)) => last = format!("{address}: {error}"),
            Err(_) => last = format!("{address}: no connection within {} s", CONNECT_MAX.as_secs()),
        }
    }
    Err(Sent::Failed(answer::connect(parties, &last)))
}

fn out_of_turn() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it answered before it was asked")
}
