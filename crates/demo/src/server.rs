//! A server of the lab: takes connections on a thread of its own until dropped, and reads requests by hand.
//!
//! What is done with a connection is its owner's business. Dropping the server drops its connections too, however
//! they hang.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;

use crate::sink::{HEADERS_MAX, content_length};
use crate::{assert_loopback, measure};

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);
const BACKLOG: u32 = 1024;
/// Of each connection. Fixed: left to itself, a machine may take tens of megabytes for a server that does not read.
const UNREAD_BYTES: u32 = 256 << 10;

#[derive(Debug)]
pub struct StubServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StubServer {
    /// Port 0 is any free one.
    pub fn start<S, F>(listen: SocketAddr, serve: S) -> io::Result<Self>
    where
        S: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        assert_loopback(listen);
        measure::raise_open_files();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            let socket = if listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            socket.set_recv_buffer_size(UNREAD_BYTES)?;
            socket.bind(listen)?;
            socket.listen(BACKLOG)?
        };
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, serve) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept<S, F>(listener: TcpListener, serve: S)
where
    S: Fn(TcpStream) -> F,
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        // Out of file descriptors: some come back when callers leave.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        tokio::spawn(serve(stream));
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedRequest {
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ServedRequest {
    /// The first request in these bytes and where it ends, once it is whole.
    pub fn parse(bytes: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(head) = request.parse(bytes).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let end = head.saturating_add(content_length(request.headers));
        let Some(body) = bytes.get(head..end) else { return Ok(None) };
        let named = |header: &httparse::Header<'_>| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
        };
        let whole = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
            headers: request.headers.iter().map(named).collect(),
            body: body.to_vec(),
        };
        Ok(Some((whole, end)))
    }

    /// `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
