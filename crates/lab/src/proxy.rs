//! A TCP proxy on loopback that does to a connection what networks do: delay, trickle, swallow, refuse, cut.
//!
//! Faults are switched at run time and counted. One knows PostgreSQL's frames (`pg_frames`): it cuts a
//! connection around a commit, so that the client can't know whether the commit happened. Which commits are hit
//! follows from the seed and the order in which they pass.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::assert_loopback;
use crate::pg_frames::{PgClient, PgEvent, PgServer};
use crate::rng::Rng;

const CHUNK: usize = 16 << 10;
/// Trickling sends this many pieces a second.
const PIECES_PER_SECOND: u64 = 20;
/// How long the proxy waits for the reply it is going to drop.
const REPLY_WAIT: Duration = Duration::from_secs(5);

/// What is wrong with the network at the moment. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// New connections are accepted and closed at once.
    pub refuse: bool,
    /// Each piece is held back this long, in each direction.
    pub latency: Duration,
    /// At most this many bytes a second, in each direction.
    pub bytes_per_second: Option<u64>,
    /// Bytes in this direction vanish while the connection stays open.
    pub swallow: Option<Direction>,
    /// Connections die around commits.
    pub cut: Option<Cut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// Which of PostgreSQL's commits lose their connection, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    pub at: CutPoint,
    pub lost: Lost,
    pub choice: Choice,
}

/// What counts as a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// `COMMIT` or `END` as a statement of its own.
    Commit,
    /// A `Sync` after at least one `Execute`: where an implicit transaction of the extended protocol ends.
    Sync,
    /// Either.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The server never sees it: nothing was committed.
    Request,
    /// The server has answered, so it is committed; the client never hears.
    Reply,
    /// One or the other, by seed.
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// Every k-th commit over all connections, from the k-th on.
    Every(u64),
    Probability(f64),
}

/// Faults that really happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutCounts {
    pub connections: u64,
    pub refused: u64,
    /// Connections ended by [`Proxy::cut_all`].
    pub cut: u64,
    pub lost_requests: u64,
    pub lost_replies: u64,
    /// Commits that passed by while some were to be cut, hit or not.
    pub commits: u64,
    pub bytes_swallowed: u64,
}

impl CutCounts {
    /// Connections cut around a commit.
    pub fn lost(&self) -> u64 {
        self.lost_requests + self.lost_replies
    }
}

/// Runs until dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    cut: watch::Sender<u64>,
    acceptor: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    faults: Mutex<Faults>,
    rng: Mutex<Rng>,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    connections: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
    lost_requests: AtomicU64,
    lost_replies: AtomicU64,
    commits: AtomicU64,
    bytes_swallowed: AtomicU64,
}

impl Proxy {
    /// Listens on a free loopback port and forwards to `target`, on the current tokio runtime.
    pub async fn start(target: SocketAddr, seed: u64) -> io::Result<Self> {
        assert_loopback(target);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            faults: Mutex::default(),
            rng: Mutex::new(Rng::new(seed)),
            tally: Tally::default(),
        });
        let (cut, cuts) = watch::channel(0);
        let acceptor = tokio::spawn(accept(listener, Arc::clone(&shared), cuts));
        Ok(Self { address, shared, cut, acceptor })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets what is wrong from now on, for open connections too.
    pub fn set(&self, faults: Faults) {
        *self.shared.faults() = faults;
    }

    pub fn heal(&self) {
        self.set(Faults::default());
    }

    /// Ends every open connection now.
    pub fn cut_all(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    pub fn counts(&self) -> CutCounts {
        let tally = &self.shared.tally;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CutCounts {
            connections: read(&tally.connections),
            refused: read(&tally.refused),
            cut: read(&tally.cut),
            lost_requests: read(&tally.lost_requests),
            lost_replies: read(&tally.lost_replies),
            commits: read(&tally.commits),
            bytes_swallowed: read(&tally.bytes_swallowed),
        }
    }
}

impl Drop for Proxy {
    /// Connections end as well: their end of the `cut` channel closes.
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a commit that passes by.
    fn strike(&self, event: PgEvent) -> Option<Lost> {
        let cut = self.faults().cut?;
        match (cut.at, event) {
            (CutPoint::Any, _) | (CutPoint::Commit, PgEvent::Commit) | (CutPoint::Sync, PgEvent::Sync) => {}
            (CutPoint::Commit, PgEvent::Sync) | (CutPoint::Sync, PgEvent::Commit) => return None,
        }
        let nth = bump(&self.tally.commits) + 1;
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let hit = match cut.choice {
            Choice::Every(k) => nth.is_multiple_of(k.max(1)),
            Choice::Probability(probability) => rng.chance(probability),
        };
        let lost = match cut.lost {
            Lost::Either if rng.chance(0.5) => Lost::Request,
            Lost::Either | Lost::Reply => Lost::Reply,
            Lost::Request => Lost::Request,
        };
        hit.then_some(lost)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, cuts: watch::Receiver<u64>) {
    while let Ok((client, _)) = listener.accept().await {
        if shared.faults().refuse {
            bump(&shared.tally.refused);
            continue;
        }
        bump(&shared.tally.connections);
        let (shared, mut cuts) = (Arc::clone(&shared), cuts.clone());
        cuts.mark_unchanged();
        tokio::spawn(async move {
            tokio::select! {
                _ = relay(client, &shared) => {}
                _ = cuts.changed() => drop(bump(&shared.tally.cut)),
            }
        });
    }
}

/// Forwards both ways until either side ends or a fault ends it.
async fn relay(client: TcpStream, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(shared.target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let session = Session {
        shared,
        frames: Mutex::new((PgClient::default(), PgServer::default())),
        muted: AtomicBool::new(false),
    };
    tokio::select! {
        ended = session.to_server(from_client, to_server) => ended,
        ended = session.to_client(from_server, to_client) => ended,
    }
}

struct Session<'s> {
    shared: &'s Shared,
    frames: Mutex<(PgClient, PgServer)>,
    /// True once a reply is to be dropped: nothing reaches the client any more.
    muted: AtomicBool,
}

impl Session<'_> {
    async fn to_server(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let n = from.read(&mut chunk).await?;
            if n == 0 {
                return Ok(());
            }
            let Some((before, hit, lost)) = self.find_hit(&chunk[..n]) else {
                self.forward(&chunk[..n], &mut to, Direction::ToServer).await?;
                continue;
            };
            self.forward(&chunk[..before], &mut to, Direction::ToServer).await?;
            if lost == Lost::Reply {
                // Order matters: muted first, or a fast reply slips through.
                self.muted.store(true, Ordering::SeqCst);
                to.write_all(&chunk[before..hit]).await?;
                self.wait_for_reply().await;
                bump(&self.shared.tally.lost_replies);
            } else {
                bump(&self.shared.tally.lost_requests);
            }
            return Ok(());
        }
    }

    /// The first message in these bytes that is to be lost: its beginning, its end, and how.
    fn find_hit(&self, bytes: &[u8]) -> Option<(usize, usize, Lost)> {
        let mut at = 0;
        while at < bytes.len() {
            let (taken, event) = self.frames().0.scan(&bytes[at..]);
            let lost = event.and_then(|event| self.shared.strike(event));
            if let Some(lost) = lost {
                return Some((at, at + taken, lost));
            }
            at += taken;
        }
        None
    }

    async fn to_client(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let n = from.read(&mut chunk).await?;
            if n == 0 {
                return Ok(());
            }
            {
                let (client, server) = &mut *self.frames();
                server.scan(&chunk[..n], client);
            }
            if !self.muted.load(Ordering::SeqCst) {
                self.forward(&chunk[..n], &mut to, Direction::ToClient).await?;
            }
        }
    }

    /// Returns when the server has answered everything it was asked.
    async fn wait_for_reply(&self) {
        let started = Instant::now();
        while started.elapsed() < REPLY_WAIT && self.frames().0.unanswered() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn forward(&self, bytes: &[u8], to: &mut OwnedWriteHalf, direction: Direction) -> io::Result<()> {
        let faults = self.shared.faults().clone();
        if faults.swallow == Some(direction) {
            self.shared.tally.bytes_swallowed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            return Ok(());
        }
        if !faults.latency.is_zero() {
            tokio::time::sleep(faults.latency).await;
        }
        let Some(rate) = faults.bytes_per_second else { return to.write_all(bytes).await };
        let piece = (rate / PIECES_PER_SECOND).max(1);
        for piece_bytes in bytes.chunks(piece as usize) {
            tokio::time::sleep(Duration::from_secs_f64(piece as f64 / rate.max(1) as f64)).await;
            to.write_all(piece_bytes).await?;
        }
        Ok(())
    }

    fn frames(&self) -> MutexGuard<'_, (PgClient, PgServer)> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bump(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres;

    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        address
    }

    /// Sends `hello` and waits half a second for it to come back.
    async fn hello(stream: &mut TcpStream) -> Option<Duration> {
        let started = Instant::now();
        stream.write_all(b"hello").await.ok()?;
        let mut bytes = [0; 5];
        let read = tokio::time::timeout(Duration::from_millis(500), stream.read_exact(&mut bytes)).await;
        read.ok()?.ok().map(|_| started.elapsed())
    }

    #[tokio::test]
    async fn each_fault_shows_and_heals() {
        let proxy = Proxy::start(echo().await, 1).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(hello(&mut stream).await.is_some());

        proxy.set(Faults { latency: Duration::from_millis(30), ..Faults::default() });
        assert!(hello(&mut stream).await.unwrap() >= Duration::from_millis(60));
        proxy.set(Faults { bytes_per_second: Some(50), ..Faults::default() });
        assert!(hello(&mut stream).await.unwrap() >= Duration::from_millis(150));

        proxy.set(Faults { swallow: Some(Direction::ToClient), ..Faults::default() });
        assert_eq!(hello(&mut stream).await, None);
        proxy.set(Faults { swallow: Some(Direction::ToServer), ..Faults::default() });
        assert_eq!(hello(&mut stream).await, None);
        assert_eq!(proxy.counts().bytes_swallowed, 10);
        proxy.heal();
        assert!(hello(&mut stream).await.is_some(), "half-open is not closed");

        proxy.cut_all();
        assert_eq!(hello(&mut stream).await, None);
        proxy.set(Faults { refuse: true, ..Faults::default() });
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(hello(&mut stream).await, None);
        proxy.heal();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(hello(&mut stream).await.is_some());
        let counts = proxy.counts();
        assert_eq!((counts.connections, counts.refused, counts.cut), (2, 1, 1));

        drop(proxy);
        assert_eq!(hello(&mut stream).await, None, "a dropped proxy takes its connections along");
    }

    async fn connect(url: &str) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Inserts 1 to 40 through the proxy, each on its own or in a transaction, reconnecting when cut. Returns
    /// what the client believes was stored.
    async fn insert_through(url: &str, in_transaction: bool) -> Vec<i32> {
        let mut client = connect(url).await;
        let mut acknowledged = Vec::new();
        for n in 1..=40 {
            let outcome = if in_transaction {
                let transaction = client.transaction().await.unwrap();
                transaction.execute("INSERT INTO t VALUES ($1)", &[&n]).await.unwrap();
                transaction.commit().await
            } else {
                client.execute("INSERT INTO t VALUES ($1)", &[&n]).await.map(drop)
            };
            match outcome {
                Ok(()) => acknowledged.push(n),
                Err(_) => client = connect(url).await,
            }
        }
        acknowledged
    }

    async fn check(
        at: CutPoint,
        lost: Lost,
        choice: Choice,
        in_transaction: bool,
    ) -> (CutCounts, usize, usize) {
        let postgres = tokio::task::spawn_blocking(postgres::shared).await.unwrap().unwrap();
        let database = postgres.fresh_database().unwrap();
        postgres.psql_in(&database, "CREATE TABLE t (n integer)").unwrap();
        let target = SocketAddr::from(([127, 0, 0, 1], postgres.port().expect("a private server")));
        let proxy = Proxy::start(target, 7).await.unwrap();
        proxy.set(Faults { cut: Some(Cut { at, lost, choice }), ..Faults::default() });
        let url = format!("postgres://postgres@{}/{database}", proxy.address());
        let acknowledged = insert_through(&url, in_transaction).await;
        let stored = postgres.psql_in(&database, "SELECT n FROM t ORDER BY n").unwrap();
        let stored: Vec<i32> = stored.lines().map(|line| line.parse().unwrap()).collect();
        assert!(acknowledged.iter().all(|n| stored.contains(n)), "acknowledged and lost");
        (proxy.counts(), acknowledged.len(), stored.len())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn r4_a_lost_reply_leaves_the_row_and_a_lost_request_does_not() {
        let (counts, acknowledged, stored) =
            check(CutPoint::Sync, Lost::Reply, Choice::Every(4), false).await;
        assert_eq!((counts.lost_replies, acknowledged, stored), (10, 30, 40));
        let (counts, acknowledged, stored) =
            check(CutPoint::Sync, Lost::Request, Choice::Every(4), false).await;
        assert_eq!((counts.lost_requests, acknowledged, stored), (10, 30, 30));
        let (counts, acknowledged, stored) =
            check(CutPoint::Commit, Lost::Reply, Choice::Every(5), true).await;
        assert_eq!((counts.commits, counts.lost_replies, acknowledged, stored), (40, 8, 32, 40));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn r4_the_same_seed_hits_the_same_commits() {
        let once = check(CutPoint::Any, Lost::Either, Choice::Probability(0.3), false).await;
        assert!(once.0.lost_requests > 0 && once.0.lost_replies > 0, "{:?}", once.0);
        assert_eq!(once.2 as u64, 40 - once.0.lost_requests);
        assert_eq!(check(CutPoint::Any, Lost::Either, Choice::Probability(0.3), false).await, once);
    }
}
