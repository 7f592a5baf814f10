//! Clients that mean harm, or behave as if they did: what does the server do with them, and how soon?
//!
//! Each attack opens a number of connections, misbehaves for at most a given time, and reports which statuses it
//! saw and how long the server put up with it. What counts as good is for the caller to say. Everything sent is
//! bounded and follows from a seed.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::http::ResponseHead;
use crate::rng::Rng;
use crate::{assert_loopback, measure};

/// Whom to attack, how broadly and how long.
#[derive(Clone, Debug)]
pub struct HostileTarget {
    pub address: SocketAddr,
    /// A path that takes POST.
    pub path: String,
    pub connections: usize,
    /// A connection that is still open after this is counted as such and closed by us.
    pub limit: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostileReport {
    pub connections: u64,
    pub connects_refused: u64,
    /// First status on each connection that got one.
    pub statuses: BTreeMap<u16, u64>,
    /// Closed or reset by the server.
    pub closed: u64,
    /// Still open when the time was over.
    pub still_open: u64,
    pub first_close: Option<Duration>,
    pub last_close: Option<Duration>,
    pub bytes_sent: u64,
}

impl fmt::Display for HostileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections", self.connections)?;
        if self.connects_refused > 0 {
            write!(f, " ({} refused)", self.connects_refused)?;
        }
        write!(f, ", {} closed", self.closed)?;
        if let (Some(first), Some(last)) = (self.first_close, self.last_close) {
            write!(f, " after {:.1}–{:.1} s", first.as_secs_f64(), last.as_secs_f64())?;
        }
        write!(f, ", {} still open, {} bytes sent, answers", self.still_open, self.bytes_sent)?;
        for (status, count) in &self.statuses {
            write!(f, " {status}: {count}")?;
        }
        Ok(())
    }
}

/// Slowloris: the head of a request, one byte a second, never ending.
pub async fn slow_headers(target: &HostileTarget) -> HostileReport {
    let head = format!("POST {} HTTP/1.1\r\nhost: lab\r\n", target.path);
    attack(target, Script { opening: head.into_bytes(), then: Then::Drip(b"x-slow: yes\r\n") }).await
}

/// A proper head, then a body of 100,000 bytes at one byte a second.
pub async fn slow_body(target: &HostileTarget) -> HostileReport {
    let head = head(target, "content-length: 100000\r\n");
    attack(target, Script { opening: head, then: Then::Drip(b" ") }).await
}

/// Connects and says nothing at all.
pub async fn silence(target: &HostileTarget) -> HostileReport {
    attack(target, Script { opening: Vec::new(), then: Then::Wait }).await
}

/// A chunked body without end, as fast as it goes, until the server closes or `bytes_max` per connection.
pub async fn endless_body(target: &HostileTarget, bytes_max: u64) -> HostileReport {
    let chunk = [b"4000\r\n", &[b' '; 0x4000][..], b"\r\n"].concat();
    let head = head(target, "transfer-encoding: chunked\r\n");
    attack(target, Script { opening: head, then: Then::Flood { piece: chunk, bytes_max } }).await
}

/// Announces a body of `bytes` and sends none of it.
pub async fn oversized_announced(target: &HostileTarget, bytes: u64) -> HostileReport {
    let head = head(target, &format!("content-length: {bytes}\r\n"));
    attack(target, Script { opening: head, then: Then::Wait }).await
}

/// Announces a body of `bytes` and sends all of it, whatever the server says meanwhile.
pub async fn oversized_sent(target: &HostileTarget, bytes: u64) -> HostileReport {
    let head = head(target, &format!("content-length: {bytes}\r\n"));
    let piece = vec![b' '; 0x4000];
    attack(target, Script { opening: head, then: Then::Flood { piece, bytes_max: bytes } }).await
}

/// `count` headers of `bytes_each`.
pub async fn header_bomb(target: &HostileTarget, count: usize, bytes_each: usize) -> HostileReport {
    let mut more = String::new();
    for n in 0..count {
        more.extend(["x-bomb-", &n.to_string(), ": ", &"x".repeat(bytes_each), "\r\n"]);
    }
    attack(target, Script { opening: head(target, &more), then: Then::Wait }).await
}

/// Random bytes, different on each connection; every other one begins like a request.
pub async fn garbage(target: &HostileTarget, seed: u64, bytes: usize) -> HostileReport {
    let mut rng = Rng::new(seed);
    let openings = (0..target.connections).map(|n| {
        let mut opening = if n % 2 == 0 { Vec::new() } else { head(target, "content-length: ") };
        let start = opening.len();
        opening.resize(start + bytes, 0);
        rng.fill(&mut opening[start..]);
        Script { opening, then: Then::Wait }
    });
    attack_each(target, openings.collect()).await
}

fn head(target: &HostileTarget, more: &str) -> Vec<u8> {
    format!("POST {} HTTP/1.1\r\nhost: lab\r\ncontent-type: application/json\r\n{more}\r\n", target.path)
        .into_bytes()
}

/// What one connection sends.
#[derive(Clone)]
struct Script {
    opening: Vec<u8>,
    then: Then,
}

#[derive(Clone)]
enum Then {
    Wait,
    /// These bytes over and over, one a second.
    Drip(&'static [u8]),
    Flood {
        piece: Vec<u8>,
        bytes_max: u64,
    },
}

async fn attack(target: &HostileTarget, script: Script) -> HostileReport {
    attack_each(target, vec![script; target.connections]).await
}

async fn attack_each(target: &HostileTarget, scripts: Vec<Script>) -> HostileReport {
    assert_loopback(target.address);
    measure::raise_open_files();
    let mut tasks = JoinSet::new();
    for script in scripts {
        tasks.spawn(play(target.address, script, target.limit));
    }
    let mut report = HostileReport::default();
    while let Some(played) = tasks.join_next().await {
        report.add(played.expect("a connection reports its errors, it doesn't panic"));
    }
    report
}

/// What came of one connection.
#[derive(Default)]
struct Played {
    connected: bool,
    status: Option<u16>,
    closed_after: Option<Duration>,
    bytes_sent: u64,
}

impl HostileReport {
    fn add(&mut self, played: Played) {
        if !played.connected {
            self.connects_refused += 1;
            return;
        }
        self.connections += 1;
        self.bytes_sent += played.bytes_sent;
        if let Some(status) = played.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        match played.closed_after {
            None => self.still_open += 1,
            Some(after) => {
                self.closed += 1;
                self.first_close = Some(self.first_close.map_or(after, |first| first.min(after)));
                self.last_close = self.last_close.max(Some(after));
            }
        }
    }
}

async fn play(address: SocketAddr, script: Script, limit: Duration) -> Played {
    let mut played = Played::default();
    let Ok(Ok(stream)) = tokio::time::timeout(limit, TcpStream::connect(address)).await else {
        return played;
    };
    played.connected = true;
    let started = Instant::now();
    let (mut from, mut to) = stream.into_split();
    let mut answer = Vec::new();
    let mut sent = 0;
    let listening = listen(&mut from, &mut answer);
    let sending = async {
        let _ = send(&mut to, &script, &mut sent).await;
        // A server that stopped reading may still have something to say: only listening ends a connection.
        std::future::pending::<()>().await;
    };
    let ended = tokio::time::timeout(limit, async {
        tokio::select! { () = listening => {}, () = sending => {} }
    });
    if ended.await.is_ok() {
        played.closed_after = Some(started.elapsed());
    }
    played.bytes_sent = sent;
    played.status = ResponseHead::read(&answer).ok().flatten().map(|head| head.status);
    played
}

async fn send(to: &mut (impl AsyncWriteExt + Unpin), script: &Script, sent: &mut u64) -> io::Result<()> {
    to.write_all(&script.opening).await?;
    *sent += script.opening.len() as u64;
    match &script.then {
        Then::Wait => {}
        Then::Drip(bytes) => {
            for &byte in bytes.iter().cycle() {
                tokio::time::sleep(Duration::from_secs(1)).await;
                to.write_all(&[byte]).await?;
                *sent += 1;
            }
        }
        Then::Flood { piece, bytes_max } => {
            while *sent < *bytes_max {
                to.write_all(piece).await?;
                *sent += piece.len() as u64;
            }
        }
    }
    Ok(())
}

/// Returns when the server closes or resets the connection.
async fn listen(from: &mut (impl AsyncReadExt + Unpin), answer: &mut Vec<u8>) {
    const KEPT_MAX: usize = 64 << 10;
    let mut bytes = vec![0; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes).await {
        if answer.len() < KEPT_MAX {
            answer.extend_from_slice(&bytes[..n]);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Reads up to 40,000 bytes for up to 200 ms, then says 413 or 408 and closes.
    async fn strict_server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(refuse(stream));
            }
        });
        address
    }

    async fn refuse(mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let read =
            async { while bytes.len() < 40_000 && stream.read_buf(&mut bytes).await.is_ok_and(|n| n > 0) {} };
        let status = tokio::time::timeout(Duration::from_millis(200), read).await.map_or("408", |()| "413");
        let _ = stream.write_all(format!("HTTP/1.1 {status} No\r\n\r\n").as_bytes()).await;
        let _ = stream.shutdown().await;
        // What stays unread turns the close into a reset and takes the answer with it.
        while stream.read(&mut [0; 4096]).await.is_ok_and(|n| n > 0) {}
    }

    fn target(address: SocketAddr) -> HostileTarget {
        HostileTarget { address, path: "/in".into(), connections: 4, limit: Duration::from_secs(5) }
    }

    fn check(report: &HostileReport, status: u16) {
        assert_eq!((report.connections, report.closed, report.still_open), (4, 4, 0), "{report}");
        assert_eq!(report.statuses, BTreeMap::from([(status, 4)]), "{report}");
        assert!(report.last_close >= report.first_close && report.last_close < Some(Duration::from_secs(3)));
    }

    #[tokio::test]
    async fn a_strict_server_sends_every_kind_away() {
        let target = target(strict_server().await);
        check(&slow_headers(&target).await, 408);
        check(&slow_body(&target).await, 408);
        check(&silence(&target).await, 408);
        check(&oversized_announced(&target, 1 << 40).await, 408);
        check(&endless_body(&target, 10 << 20).await, 413);
        check(&oversized_sent(&target, 10 << 20).await, 413);
        check(&header_bomb(&target, 1_000, 100).await, 413);
        check(&garbage(&target, 1, 100_000).await, 413);
    }

    #[tokio::test]
    async fn a_patient_server_is_found_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target =
            HostileTarget { limit: Duration::from_millis(200), ..target(listener.local_addr().unwrap()) };
        let report = slow_headers(&target).await;
        assert_eq!((report.still_open, report.closed, report.first_close), (4, 0, None), "{report}");
        drop(listener);
        assert_eq!(silence(&target).await.connects_refused, 4);
    }
}
