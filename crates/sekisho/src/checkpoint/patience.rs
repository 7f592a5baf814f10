//! How long a connection may keep us waiting. Two silences are told apart: a client that dawdles over its headers is
//! cut off soon, while one that merely keeps the line open between requests, as proxies do, is left alone for longer.
//! A client that does not take its answers is cut off too. (hyper has one time-out for all reading. Bodies have their own, in [`receive`](super::receive).)

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// What is awaited from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rest of a request's headers, or the first of them on a new connection.
    Headers,
    /// Nothing of ours: a request is being answered.
    Answer,
    /// The next request, if any.
    Next,
}

/// The phase of one connection and how many came before it, shared between its stream and whoever answers its
/// requests: only they change it, in turn.
#[derive(Clone, Default)]
pub struct Phases(Arc<AtomicU64>);

/// Below the count stands the phase.
const PHASE_BITS: u32 = 2;

impl Phases {
    pub fn set(&self, phase: Phase) {
        let count = (self.0.load(Ordering::Relaxed) >> PHASE_BITS) + 1;
        self.0.store((count << PHASE_BITS) | phase as u64, Ordering::Relaxed);
    }

    /// The phase, and a number that no other phase of this connection has.
    fn get(&self) -> (Phase, u64) {
        let value = self.0.load(Ordering::Relaxed);
        let phase = match value & ((1 << PHASE_BITS) - 1) {
            0 => Phase::Headers,
            1 => Phase::Answer,
            _ => Phase::Next,
        };
        (phase, value)
    }
}

/// A stream whose reads end with a time-out when its phase lasts too long.
pub struct Patient<S> {
    stream: S,
    phases: Phases,
    headers: Duration,
    next: Duration,
    /// The phase the alarm was set for.
    alarmed: u64,
    alarm: Pin<Box<Sleep>>,
    /// Set while the client does not take what we send.
    deaf: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub fn new(stream: S, phases: Phases, headers: Duration, next: Duration) -> Self {
        let alarm = Box::pin(tokio::time::sleep(headers));
        Self { stream, phases, headers, next, alarmed: 0, alarm, deaf: None }
    }

    /// A client that does not read holds its place no longer than one that does not write.
    fn check_deaf<T>(&mut self, context: &mut Context<'_>, sent: Poll<Result<T>>) -> Poll<Result<T>> {
        if sent.is_ready() {
            self.deaf = None;
            return sent;
        }
        let limit = self.headers;
        let deaf = self.deaf.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(deaf.as_mut().poll(context));
        Poll::Ready(Err(Error::from(ErrorKind::TimedOut)))
    }

    fn check_alarm(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let (phase, number) = self.phases.get();
        let limit = match phase {
            Phase::Answer => return Poll::Pending,
            Phase::Headers => self.headers,
            Phase::Next => self.next,
        };
        if self.alarmed != number {
            self.alarmed = number;
            self.alarm.as_mut().reset(Instant::now() + limit);
        }
        ready!(self.alarm.as_mut().poll(context));
        Poll::Ready(Err(Error::from(ErrorKind::TimedOut)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            return self.check_alarm(context);
        }
        if self.phases.get().0 == Phase::Next {
            // The first bytes of a request: from here its headers have their time, however they trickle.
            self.phases.set(Phase::Headers);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_deaf(context, sent)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let sent = Pin::new(&mut self.stream).poll_flush(context);
        self.check_deaf(context, sent)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check_deaf(context, sent)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const HEADERS: Duration = Duration::from_secs(10);
    const NEXT: Duration = Duration::from_secs(75);

    /// Reads until the time-out; how long that took.
    async fn silence(stream: &mut (impl AsyncRead + Unpin)) -> Duration {
        let start = Instant::now();
        let mut byte = [0; 1];
        loop {
            match stream.read(&mut byte).await {
                Ok(read) => assert_eq!(read, 1),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TimedOut);
                    return start.elapsed();
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a8_dawdling_and_waiting_have_each_their_time() {
        let phases = Phases::default();
        let (mut client, server) = duplex(64);
        let mut server = Patient::new(server, phases.clone(), HEADERS, NEXT);
        assert_eq!(silence(&mut server).await, HEADERS, "a new connection that says nothing");

        phases.set(Phase::Answer);
        phases.set(Phase::Next);
        assert_eq!(silence(&mut server).await, NEXT, "a connection kept open");

        for _ in 0..3 {
            phases.set(Phase::Answer);
            phases.set(Phase::Next);
            tokio::time::sleep(NEXT / 2).await;
            client.write_all(b"G").await.unwrap();
            assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 1);
        }
        assert_eq!(silence(&mut server).await, HEADERS, "a request begun and not ended");

        phases.set(Phase::Answer);
        let busy = tokio::time::timeout(NEXT * 10, silence(&mut server)).await;
        assert!(busy.is_err(), "while we answer, the client may be silent");
    }

    #[tokio::test(start_paused = true)]
    async fn a8_a_client_that_never_reads_is_cut_off() {
        let (mut client, server) = duplex(64);
        let mut server = Patient::new(server, Phases::default(), HEADERS, NEXT);
        let start = Instant::now();
        let error = server.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (ErrorKind::TimedOut, HEADERS));
        // One that reads, however slowly, is not.
        let (mut slow, server) = duplex(64);
        let mut server = Patient::new(server, Phases::default(), HEADERS, NEXT);
        let reading = async {
            for _ in 0..20 {
                tokio::time::sleep(HEADERS / 2).await;
                slow.read_exact(&mut [0; 50]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 1000]), reading);
        written.unwrap();
        client.read_exact(&mut [0; 64]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a8_a_byte_now_and_then_wins_no_time() {
        let (mut client, server) = duplex(64);
        let mut server = Patient::new(server, Phases::default(), HEADERS, NEXT);
        let trickle = async {
            for _ in 0..100 {
                client.write_all(b"x").await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            lasted = silence(&mut server) => assert_eq!(lasted, HEADERS),
            () = trickle => panic!("it was never cut off"),
        }
    }
}
