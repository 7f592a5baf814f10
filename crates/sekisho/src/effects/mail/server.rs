//! Where mail goes: which address, trusted by which certificates, and the bytes in both directions.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use sekisho_core::Secret;
use sekisho_core::notification::Sent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::answer::{self, MailParties};
use super::{Settings, Tls};

/// Longest that one address of the server is tried.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Most addresses of the server that are tried.
const ADDRESSES_MAX: usize = 4;
/// Sent and not yet taken by the server, at most. Fixed: a machine may keep megabytes for a server that no longer
/// listens, and a mail that is all on its way counts as perhaps received.
const UNSENT_BYTES: u32 = 128 << 10;
/// Read at once.
const READ_BYTES: usize = 2 << 10;

/// Where mail goes, and how it is entered.
pub struct MailServer {
    pub host: String,
    port: u16,
    pub tls: Tls,
    connector: Option<(TlsConnector, ServerName<'static>)>,
    pub login: Option<(String, Secret)>,
    /// How we introduce ourselves.
    pub name: String,
}

impl std::fmt::Debug for MailServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl MailServer {
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

    /// The first of its addresses that answers.
    pub async fn connect(&self, parties: &MailParties<'_>) -> Result<Stream, Sent> {
        let host = self.host.trim_matches(['[', ']']);
        let found = tokio::net::lookup_host((host, self.port)).await;
        let found = found.map_err(|error| Sent::Failed(answer::dns(parties, &error.to_string())))?;
        let mut last = "the name has no address".to_owned();
        for address in found.take(ADDRESSES_MAX) {
            match timeout(CONNECT_MAX, connect(address)).await {
                Ok(Ok(tcp)) => return Ok(Stream::Plain(tcp)),
                Ok(Err(error)) => last = format!("{address}: {error}"),
                Err(_) => last = format!("{address}: no connection within {} s", CONNECT_MAX.as_secs()),
            }
        }
        Err(Sent::Failed(answer::connect(parties, &last)))
    }

    pub async fn encrypt(&self, stream: Stream, parties: &MailParties<'_>) -> Result<Stream, Sent> {
        let failed = |error: &str| Sent::Failed(answer::tls(parties, error));
        let Stream::Plain(tcp) = stream else { return Err(failed("it is encrypted already")) };
        let (connector, name) = self.connector.as_ref().expect("made wherever TLS is configured");
        let encrypted = connector.connect(name.clone(), tcp).await;
        encrypted.map(|tls| Stream::Encrypted(Box::new(tls))).map_err(|error| failed(&error.to_string()))
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

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_send_buffer_size(UNSENT_BYTES)?;
    let tcp = socket.connect(address).await?;
    // Commands are short and each waits for its reply.
    let _ = tcp.set_nodelay(true);
    Ok(tcp)
}

#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.write_all(bytes).await,
            Self::Encrypted(tls) => {
                tls.write_all(bytes).await?;
                tls.flush().await
            }
        }
    }

    pub async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let mut part = [0; READ_BYTES];
        let n = match self {
            Self::Plain(tcp) => tcp.read(&mut part).await?,
            Self::Encrypted(tls) => tls.read(&mut part).await?,
        };
        into.extend_from_slice(&part[..n]);
        Ok(n)
    }

    /// That the connection was reset, as the system knows it before anybody reads.
    pub fn error(&self) -> Option<io::Error> {
        let tcp = match self {
            Self::Plain(tcp) => tcp,
            Self::Encrypted(tls) => tls.get_ref().0,
        };
        tcp.take_error().unwrap_or_else(Some)
    }
}
