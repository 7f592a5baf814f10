//! One keep-alive connection, opened again whenever it ends.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{LoadResend, LoadRun};
use crate::http::{Body, ResponseHead};

/// Pause before a refused connection is tried again: a server restarting is worth waiting for.
const RECONNECT: Duration = Duration::from_millis(5);
/// Largest answer worth reading.
const ANSWER_MAX: usize = 1 << 20;

pub struct KeepAlive<'r> {
    run: &'r LoadRun,
    stream: Option<TcpStream>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl<'r> KeepAlive<'r> {
    pub fn new(run: &'r LoadRun) -> Self {
        Self { run, stream: None, request: Vec::with_capacity(8 << 10), answer: Vec::with_capacity(4 << 10) }
    }

    pub async fn drive(&mut self) {
        while let Some((n, due)) = self.run.take().await {
            self.request.clear();
            self.run.traffic.write(n, &mut self.request);
            while !self.send(n, due).await && self.run.load.resend == LoadResend::UntilAcknowledged {
                tokio::time::sleep(RECONNECT).await;
                if self.run.is_over() {
                    break;
                }
            }
        }
    }

    /// Sends the request once; says whether it was acknowledged.
    async fn send(&mut self, n: u64, due: Instant) -> bool {
        let Some(mut stream) = self.connected().await else {
            self.run.tally().unsent += 1;
            return false;
        };
        let exchange = exchange(&mut stream, &self.request, &mut self.answer);
        let Ok(Ok(head)) = tokio::time::timeout(self.run.load.answer_timeout, exchange).await else {
            self.run.unanswered(n, due);
            return false;
        };
        // Bodies of other framings are not read: the next request takes a new connection.
        if !head.close && matches!(head.body, Body::Length(_)) {
            self.stream = Some(stream);
        }
        self.run.answered(n, due, head.status);
        (200..300).contains(&head.status)
    }

    /// An open connection, or `None` when the load ended before there was one.
    async fn connected(&mut self) -> Option<TcpStream> {
        if let Some(stream) = self.stream.take() {
            return Some(stream);
        }
        loop {
            match TcpStream::connect(self.run.load.address).await {
                Ok(stream) => {
                    self.run.tally().connects += 1;
                    stream.set_nodelay(true).ok();
                    return Some(stream);
                }
                Err(_) => self.run.tally().connects_refused += 1,
            }
            if self.run.is_over() {
                return None;
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }
}

async fn exchange(stream: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) -> io::Result<ResponseHead> {
    stream.write_all(request).await?;
    answer.clear();
    loop {
        if stream.read_buf(answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(head) = ResponseHead::read(answer)? {
            let whole = match head.body {
                Body::Length(length) => head.length + length,
                Body::Chunked | Body::UntilClose => head.length,
            };
            if answer.len() >= whole {
                return Ok(head);
            }
        }
        if answer.len() > ANSWER_MAX {
            return Err(io::Error::other("the answer is too large"));
        }
    }
}
