//! A server that only answers: shows how fast the driver is by itself, and stands in where tests need an answer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const GOOD: &str = "HTTP/1.1 204 No Content\r\n\r\n";
pub const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbusy";

/// Largest request taken.
pub const REQUEST_MAX: usize = 16 << 20;
pub const HEADERS_MAX: usize = 64;

/// Answers the `n`-th request of all with what `answer` says, an empty text closing the connection. Runs on the
/// current tokio runtime until that ends.
pub async fn serve(answer: fn(u64) -> &'static str) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let count = Arc::new(AtomicU64::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move { answer_all(stream, &count, answer).await });
        }
    });
    Ok(address)
}

async fn answer_all(
    mut stream: TcpStream,
    count: &AtomicU64,
    answer: fn(u64) -> &'static str,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(8 << 10);
    while bytes.len() < REQUEST_MAX && stream.read_buf(&mut bytes).await? > 0 {
        while let Some(end) = request_end(&bytes)? {
            bytes.drain(..end);
            let text = answer(count.fetch_add(1, Ordering::Relaxed));
            if text.is_empty() {
                return Ok(());
            }
            stream.write_all(text.as_bytes()).await?;
        }
    }
    Ok(())
}

/// Where the first request in these bytes ends, once it is whole.
fn request_end(bytes: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes).map_err(io::Error::other)? else {
        return Ok(None);
    };
    let length = content_length(request.headers);
    let end = head.saturating_add(length);
    Ok((bytes.len() >= end).then_some(end))
}

/// How long the body is that these headers announce.
pub fn content_length(headers: &[httparse::Header<'_>]) -> usize {
    let length = headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok()).unwrap_or_default()
}
