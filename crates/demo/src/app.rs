//! An application behind Sekisho, as good or as bad as a test wants it.
//!
//! It takes requests, behaves as told ([`Behaviour`], changed at run time) and keeps a [`Ledger`] of what it
//! processed, so that a checker can find effects that were lost or doubled. Processed means: this application
//! did its work, whether or not the caller ever hears of it; it stands in the ledger, and in the ledger's file,
//! before the answer is sent. Runs on a thread of its own until dropped, and speaks HTTP by hand: the nasty ways
//! to answer are those a server library prevents.

mod behaviour;
mod ledger;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;

pub use behaviour::{Behaviour, Reply};
pub use ledger::{AnsweredRequest, AppCounts, Ledger, SeenDelivery};

use crate::server::{ServedRequest, StubServer, locked};
use crate::sink::REQUEST_MAX;
use behaviour::{AppAct, AppEnding};

/// How long a port may take to be ours again: whoever tries to connect to it may hold it for a moment.
const PORT_BACK_WITHIN: Duration = Duration::from_secs(5);
const PORT_POLL: Duration = Duration::from_millis(20);

/// How an application starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Port 0 is any free one.
    pub listen: SocketAddr,
    pub behaviour: Behaviour,
    pub keep: Keep,
    /// Gets a line per processed request; [`Ledger::read`] reads them back.
    pub ledger: Option<PathBuf>,
    /// Gets every processed request, whole and as often as it came.
    pub tell: Option<UnboundedSender<SeenDelivery>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            behaviour: Behaviour::Ok,
            keep: Keep::Everything,
            ledger: None,
            tell: None,
        }
    }
}

/// What is kept of each request besides the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Everything,
    /// No headers and bodies, for many requests.
    Ids,
}

#[derive(Debug)]
pub struct DemoApp {
    address: SocketAddr,
    /// `None` after a crash.
    server: Option<StubServer>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    keep: Keep,
    ledger: Mutex<Ledger>,
    file: Option<File>,
    tell: Option<UnboundedSender<SeenDelivery>>,
}

impl DemoApp {
    pub fn start(behaviour: Behaviour) -> io::Result<Self> {
        Self::start_with(Settings { behaviour, ..Settings::default() })
    }

    pub fn start_with(settings: Settings) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(settings.behaviour),
            keep: settings.keep,
            ledger: Mutex::default(),
            file: settings.ledger.map(open).transpose()?,
            tell: settings.tell,
        });
        let server = shared.listen(settings.listen)?;
        Ok(Self { address: server.address(), server: Some(server), shared })
    }

    /// Closes its port and cuts every connection; what it had in hand is not processed. The ledger is kept.
    pub fn crash(&mut self) {
        self.server = None;
    }

    /// Listens again, on the same address.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.crash();
        let started = Instant::now();
        loop {
            match self.shared.listen(self.address) {
                Ok(server) => self.server = Some(server),
                Err(_) if started.elapsed() < PORT_BACK_WITHIN => {
                    std::thread::sleep(PORT_POLL);
                    continue;
                }
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Sets how requests are treated that come from now on.
    pub fn set(&self, behaviour: Behaviour) {
        *locked(&self.shared.behaviour) = behaviour;
    }

    /// Every request taken so far, in order.
    pub fn received(&self) -> Vec<SeenDelivery> {
        locked(&self.shared.ledger).received().to_vec()
    }

    pub fn counts(&self) -> AppCounts {
        locked(&self.shared.ledger).counts()
    }

    pub fn ledger(&self) -> Ledger {
        locked(&self.shared.ledger).clone()
    }
}

impl Shared {
    fn listen(self: &Arc<Self>, address: SocketAddr) -> io::Result<StubServer> {
        let serving = Arc::clone(self);
        StubServer::start(address, move |stream| serve(stream, Arc::clone(&serving)))
    }

    /// The request is seen: from here its fate is fixed.
    fn meet(&self, request: &mut SeenDelivery) -> AppAct {
        let seen = locked(&self.ledger).see(request);
        let act = locked(&self.behaviour).decide(&request.path, &request.message, seen);
        request.answered = act.answered();
        act
    }

    /// Writes down what was done, the file first: who reads of an answer must find its line.
    fn note(&self, mut request: SeenDelivery) -> io::Result<()> {
        if let (Some(mut file), true) = (self.file.as_ref(), request.is_processed()) {
            file.write_all(request.line().as_bytes())?;
        }
        if let (Some(tell), true) = (self.tell.as_ref(), request.is_processed()) {
            // Whoever listened may be gone.
            let _ = tell.send(request.clone());
        }
        if self.keep == Keep::Ids {
            (request.headers, request.body) = (Vec::new(), Vec::new());
        }
        locked(&self.ledger).note(request);
        Ok(())
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(8 << 10);
    loop {
        let Some((mut request, end)) = parse(&bytes)? else {
            if bytes.len() > REQUEST_MAX || stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        };
        bytes.drain(..end);
        let act = shared.meet(&mut request);
        tokio::time::sleep(act.delay).await;
        shared.note(request)?;
        match act.ending {
            AppEnding::Reply(reply) => stream.write_all(&reply.encode()).await?,
            AppEnding::Trickle(reply, pause) => {
                for byte in reply.encode() {
                    stream.write_all(&[byte]).await?;
                    tokio::time::sleep(pause).await;
                }
            }
            // Until the caller leaves.
            AppEnding::Silence => while stream.read(&mut [0; 4096]).await? > 0 {},
            AppEnding::Drop => return Ok(()),
        }
    }
}

/// The first request in these bytes and where it ends, once it is whole.
fn parse(bytes: &[u8]) -> io::Result<Option<(SeenDelivery, usize)>> {
    let Some((request, end)) = ServedRequest::parse(bytes)? else { return Ok(None) };
    let value = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let delivery = SeenDelivery {
        message: value("sekisho-message-id"),
        event: value("sekisho-event-id"),
        attempt: value("sekisho-attempt").parse().unwrap_or_default(),
        path: request.path,
        at_ms: since.as_millis() as u64,
        headers: request.headers,
        body: request.body,
        answered: AnsweredRequest::Nothing,
    };
    Ok(Some((delivery, end)))
}

#[cfg(test)]
mod tests;
