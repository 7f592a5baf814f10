//! One conversation, from the greeting until somebody leaves.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Mail, Point, Shared, SmtpFault, SmtpTls, mail};
use crate::server::locked;

/// Longest line taken from a client; far more than commands may have.
const LINE_MAX: usize = 64 << 10;
/// Read at once, as a rule.
const READ_BYTES: usize = 16 << 10;
/// So much of a mail has come when [`Point::Body`] is reached, at least.
const PART_BYTES: usize = 1;

trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

struct Conversation {
    shared: Arc<Shared>,
    number: usize,
    wire: Box<dyn Wire>,
    heard: Vec<u8>,
    encrypted: bool,
    logged_in: bool,
    mail: Option<UnderWay>,
    /// The next word is the last one about this mail.
    is_whole: bool,
}

/// A mail between its `MAIL` and the last word about it.
struct UnderWay {
    from: String,
    to: Vec<String>,
    shared: Arc<Shared>,
}

impl UnderWay {
    fn begin(from: String, shared: &Arc<Shared>) -> Self {
        let mut memory = locked(&shared.memory);
        memory.under_way += 1;
        memory.most_at_once = memory.most_at_once.max(memory.under_way);
        drop(memory);
        Self { from, to: Vec::new(), shared: Arc::clone(shared) }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        locked(&self.shared.memory).under_way -= 1;
    }
}

pub async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let number = shared.begin();
    let mut conversation = Conversation {
        wire: Box::new(stream),
        heard: Vec::with_capacity(READ_BYTES),
        encrypted: false,
        logged_in: shared.settings.login.is_none(),
        mail: None,
        is_whole: false,
        number,
        shared,
    };
    if conversation.shared.settings.tls == SmtpTls::Implicit {
        conversation = conversation.encrypt().await?;
    }
    if conversation.say(Point::Greeting, "220 lab.example ESMTP").await? {
        conversation.go_on().await?;
    }
    Ok(())
}

impl Conversation {
    async fn go_on(mut self) -> io::Result<()> {
        while let Some(line) = self.line().await? {
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match verb.to_ascii_uppercase().as_str() {
                "EHLO" | "HELO" => {
                    self.mail = None;
                    let features = self.features();
                    self.say(Point::Hello, &features).await?;
                }
                "STARTTLS" if self.offers_tls() => {
                    if self.say(Point::Starttls, "220 2.0.0 Ready to start TLS").await? {
                        self = self.encrypt().await?;
                    }
                }
                "AUTH" => self.log_in(rest).await?,
                "MAIL" if !self.logged_in => self.write("530 Authentication required").await?,
                "MAIL" => {
                    if self.say(Point::Sender, "250 2.1.0 Ok").await? {
                        self.mail = Some(UnderWay::begin(address(rest), &self.shared));
                    }
                }
                "RCPT" => self.recipient(address(rest)).await?,
                "DATA" => self.data().await?,
                "RSET" => {
                    self.mail = None;
                    self.write("250 2.0.0 Ok").await?;
                }
                "NOOP" => self.write("250 2.0.0 Ok").await?,
                "QUIT" => return self.write("221 2.0.0 Bye").await,
                _ => self.write("502 5.5.2 Command not recognized").await?,
            }
        }
        Ok(())
    }

    fn offers_tls(&self) -> bool {
        self.shared.settings.tls == SmtpTls::Starttls && !self.encrypted
    }

    fn features(&self) -> String {
        let mut lines = vec![
            "lab.example".to_owned(),
            format!("SIZE {}", self.shared.settings.size_max),
            "8BITMIME".to_owned(),
        ];
        if self.offers_tls() {
            lines.push("STARTTLS".into());
        } else if let Some(login) = &self.shared.settings.login {
            lines.push(format!("AUTH {}", login.mechanisms));
        }
        let last = lines.pop().expect("there is at least one line");
        lines.iter().fold(String::new(), |text, line| text + "250-" + line + "\r\n") + "250 " + &last
    }

    async fn log_in(&mut self, rest: &str) -> io::Result<()> {
        let decoded = |text: &str| {
            let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
            String::from_utf8(bytes).unwrap_or_default()
        };
        let (mechanism, first) = rest.split_once(' ').unwrap_or((rest, ""));
        let given = match mechanism.to_ascii_uppercase().as_str() {
            "PLAIN" => decoded(first),
            "LOGIN" => {
                let mut said = String::new();
                for prompt in ["334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6"] {
                    self.write(prompt).await?;
                    let Some(line) = self.line().await? else { return Ok(()) };
                    said = format!("{said}\0{}", decoded(&line));
                }
                said
            }
            _ => return self.write("504 5.5.4 Unrecognized authentication type").await,
        };
        let login = self.shared.settings.login.as_ref();
        let right = login.is_some_and(|login| given == format!("\0{}\0{}", login.user, login.password));
        let answer =
            if right { "235 Authentication successful." } else { "535 Authentication Credentials Invalid" };
        self.logged_in = self.say(Point::Login, answer).await? && right;
        Ok(())
    }

    async fn recipient(&mut self, to: String) -> io::Result<()> {
        if self.mail.is_none() {
            return self.write("503 5.5.1 Error: need MAIL command").await;
        }
        let said = self.say_to(Point::Recipient, Some(&to), "250 2.1.5 Ok").await?;
        if let (true, Some(mail)) = (said, self.mail.as_mut()) {
            mail.to.push(to);
        }
        Ok(())
    }

    async fn data(&mut self) -> io::Result<()> {
        let Some(to) = self.mail.as_ref().and_then(|mail| mail.to.first().cloned()) else {
            return self.write("503 5.5.1 Error: need RCPT command").await;
        };
        let to = Some(to.as_str());
        if !self.say_to(Point::Data, to, "354 End data with <CR><LF>.<CR><LF>").await? {
            return Ok(());
        }
        if let Some(fault) = self.shared.meet(Point::Body, to) {
            self.fill(PART_BYTES).await?;
            self.act(fault, "").await?;
            return Ok(());
        }
        let Some(raw) = self.body().await? else { return Ok(()) };
        self.is_whole = true;
        if raw.len() > self.shared.settings.size_max {
            return self.write("552 5.3.4 Message size exceeds fixed limit").await;
        }
        if let Some(fault) = self.shared.meet(Point::End, to) {
            return self.act(fault, "").await.map(drop);
        }
        let n = self.take(raw);
        // Asked before the answer: who hears it may change our ways at once.
        let told = self.shared.meet(Point::Told, to);
        if self.say_to(Point::Taken, to, &format!("250 2.0.0 Ok: queued as LAB{n}")).await?
            && let Some(fault) = told
        {
            self.act(fault, "").await?;
        }
        Ok(())
    }

    fn take(&self, raw: Vec<u8>) -> usize {
        let (from, to) =
            self.mail.as_ref().map(|mail| (mail.from.clone(), mail.to.clone())).unwrap_or_default();
        let (headers, parts) = mail::read(&raw);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.shared.take(Mail {
            from,
            to,
            at_ms: since.as_millis() as u64,
            connection: self.number,
            encrypted: self.encrypted,
            raw,
            headers,
            parts,
        })
    }

    /// A mail up to its final dot, with doubled dots made single again.
    async fn body(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut raw = Vec::new();
        while let Some(line) = self.bytes_to_line_end().await? {
            if line == b".\r\n" {
                return Ok(Some(raw));
            }
            raw.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
            if raw.len() > self.shared.settings.size_max + LINE_MAX {
                return Err(io::Error::other("a mail without an end"));
            }
        }
        Ok(None)
    }

    /// The usual answer, or what goes wrong. Returns whether the client heard the usual one.
    async fn say(&mut self, point: Point, usual: &str) -> io::Result<bool> {
        self.say_to(point, None, usual).await
    }

    async fn say_to(&mut self, point: Point, recipient: Option<&str>, usual: &str) -> io::Result<bool> {
        match self.shared.meet(point, recipient) {
            None => self.write(usual).await.map(|()| true),
            Some(fault) => self.act(fault, usual).await,
        }
    }

    async fn act(&mut self, fault: SmtpFault, usual: &str) -> io::Result<bool> {
        match fault {
            SmtpFault::Say(text) => return self.write(&text).await.map(|()| false),
            SmtpFault::Drop => return Err(io::ErrorKind::ConnectionAborted.into()),
            SmtpFault::Silence => while self.wire.read(&mut [0; 4096]).await? > 0 {},
            SmtpFault::Deafness => std::future::pending().await,
            SmtpFault::Trickle(pause) => {
                for byte in format!("{usual}\r\n").bytes() {
                    self.send(&[byte]).await?;
                    tokio::time::sleep(pause).await;
                }
                return Ok(true);
            }
            // Until the client leaves, which fails the writing.
            SmtpFault::EndlessLines => loop {
                self.send("250-and more\r\n".repeat(100).as_bytes()).await?;
            },
            SmtpFault::EndlessLine => {
                self.send(b"250 ").await?;
                loop {
                    self.send(&[b'x'; 4096]).await?;
                }
            }
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    async fn write(&mut self, line: &str) -> io::Result<()> {
        line.split("\r\n").for_each(|line| self.shared.note(self.number, format!("S: {line}")));
        self.send(format!("{line}\r\n").as_bytes()).await
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Order matters: who hears the last word may begin the next mail elsewhere before we come back.
        if std::mem::take(&mut self.is_whole) {
            self.mail = None;
        }
        self.wire.write_all(bytes).await?;
        self.wire.flush().await
    }

    async fn line(&mut self) -> io::Result<Option<String>> {
        let Some(bytes) = self.bytes_to_line_end().await? else { return Ok(None) };
        let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
        self.shared.note(self.number, format!("C: {line}"));
        Ok(Some(line))
    }

    /// With its CRLF: a lone CR or LF ends no line here.
    async fn bytes_to_line_end(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.heard[searched..].windows(2).position(|pair| pair == b"\r\n") {
                return Ok(Some(self.heard.drain(..searched + at + 2).collect()));
            }
            searched = self.heard.len().saturating_sub(1);
            if self.heard.len() > LINE_MAX || !self.fill(self.heard.len() + 1).await? {
                return Ok(None);
            }
        }
    }

    /// Reads until so much is there. Returns whether it came.
    async fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        while self.heard.len() < bytes {
            if self.wire.read_buf(&mut self.heard).await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn encrypt(self) -> io::Result<Self> {
        let acceptor = self.shared.acceptor.clone().expect("TLS is asked for only where it was set up");
        let wire = acceptor.0.accept(self.wire).await?;
        Ok(Self { wire: Box::new(wire), heard: Vec::new(), encrypted: true, ..self })
    }
}

/// What stands between the angle brackets, in lower case.
fn address(rest: &str) -> String {
    let inner = rest.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inner.map_or(rest, |(address, _)| address).to_lowercase()
}
