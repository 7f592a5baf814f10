//! Hosts of the internet, on loopback: a proxy that a program finds by `HTTPS_PROXY`, and behind it a server that bears
//! every name it is asked for. Who is told by `SSL_CERT_FILE` to trust its certificate takes it for genuine.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::app::Reply;
use crate::certificate;
use crate::server::{ServedRequest, StubServer, locked};
use crate::sink::REQUEST_MAX;

#[derive(Debug)]
pub struct Internet {
    shared: Arc<Shared>,
    server: StubServer,
    folder: TempDir,
}

#[derive(Debug, Default)]
struct Shared {
    pages: Mutex<HashMap<String, (Duration, Reply)>>,
    asked: Mutex<Vec<String>>,
}

impl Internet {
    /// With nothing on it but these hosts, which have no pages yet.
    pub fn start(hosts: &[&str]) -> io::Result<Self> {
        let (acceptor, pem) = certificate::fresh(hosts)?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("trusted.pem"), pem)?;
        let shared = Arc::new(Shared::default());
        let known = Arc::clone(&shared);
        let serve = move |stream| serve(stream, acceptor.clone(), Arc::clone(&known));
        Ok(Self { shared, server: StubServer::start((Ipv4Addr::LOCALHOST, 0).into(), serve)?, folder })
    }

    /// What the environment of a program must say, for it to be on this internet.
    pub fn env(&self) -> [(&'static str, String); 2] {
        let trusted = self.folder.path().join("trusted.pem");
        [
            ("HTTPS_PROXY", format!("http://{}", self.server.address())),
            ("SSL_CERT_FILE", trusted.display().to_string()),
        ]
    }

    /// What is at an address from now on. Everything else is 404.
    pub fn put(&self, url: &str, reply: Reply) {
        self.put_slow(url, Duration::ZERO, reply);
    }

    /// The same, answered late.
    pub fn put_slow(&self, url: &str, delay: Duration, reply: Reply) {
        locked(&self.shared.pages).insert(url.to_owned(), (delay, reply));
    }

    /// Every address that was asked for, in order.
    pub fn asked(&self) -> Vec<String> {
        locked(&self.shared.asked).clone()
    }
}

async fn serve(mut stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) -> io::Result<()> {
    let tunnel = read(&mut stream).await?;
    let host = tunnel.path.strip_suffix(":443").filter(|_| tunnel.method == "CONNECT");
    let host = host.ok_or_else(|| io::Error::other("only tunnels to port 443 lead anywhere"))?;
    stream.write_all(b"HTTP/1.1 200 Go On\r\n\r\n").await?;
    let mut stream = acceptor.accept(stream).await?;
    let url = format!("https://{host}{}", read(&mut stream).await?.path);
    locked(&shared.asked).push(url.clone());
    let page = locked(&shared.pages).get(&url).cloned();
    let (delay, reply) = page.unwrap_or_else(|| (Duration::ZERO, Reply::status(404)));
    tokio::time::sleep(delay).await;
    stream.write_all(&reply.with_header("connection", "close").encode()).await?;
    stream.shutdown().await
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<ServedRequest> {
    let mut bytes = Vec::new();
    loop {
        if let Some((request, _)) = ServedRequest::parse(&bytes)? {
            return Ok(request);
        }
        if bytes.len() > REQUEST_MAX || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
