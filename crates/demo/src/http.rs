//! A plain HTTP/1.1 client for tests: one connection per request, nothing hidden, loopback only.
//!
//! It shows exactly what the server said, reads bodies of any framing, and gives up after [`TIMEOUT`]. The load
//! generator shares its reading of a response's head (`ResponseHead`).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::assert_loopback;

/// Longest wait for a connection, and for each piece of an answer.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest response taken.
const RESPONSE_MAX: usize = 64 << 20;
const HEADERS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub fn get(address: SocketAddr, path: &str) -> io::Result<Response> {
    request(address, "GET", path, &[], b"")
}

pub fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Response> {
    request(address, "POST", path, headers, body)
}

/// Sends one request and waits for its answer, blocking. `Host`, `Connection` and `Content-Length` are added.
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Response> {
    assert_loopback(address);
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    let sent = stream.write_all(&encode(address, method, path, headers, body));
    // A server may refuse before it has read everything: its answer counts more than our broken pipe.
    match (sent, receive(&mut stream)) {
        (_, Ok(response)) => Ok(response),
        (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(error),
    }
}

fn encode(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    if !body.is_empty() || method == "POST" {
        head.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

fn receive(stream: &mut impl Read) -> io::Result<Response> {
    let mut bytes = Vec::with_capacity(4096);
    let mut chunk = vec![0; 16 << 10];
    loop {
        let n = stream.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..n]);
        if let Some(response) = decode(&bytes, n == 0)? {
            return Ok(response);
        }
        if n == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed before its answer ended",
            ));
        }
        if bytes.len() > RESPONSE_MAX {
            return Err(io::Error::other("the answer is too large"));
        }
    }
}

/// The response in these bytes, or `None` as long as it isn't whole.
fn decode(bytes: &[u8], ended: bool) -> io::Result<Option<Response>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let Some(head) = ResponseHead::parse(bytes, &mut parsed)? else { return Ok(None) };
    let rest = &bytes[head.length..];
    let body = match head.body {
        Body::Length(length) if rest.len() < length => None,
        Body::Length(length) => Some(rest[..length].to_vec()),
        Body::Chunked => unchunk(rest)?,
        Body::UntilClose => ended.then(|| rest.to_vec()),
    };
    let named = parsed
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned()));
    Ok(body.map(|body| Response { status: head.status, headers: named.collect(), body }))
}

/// What the first lines of a response say about the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    pub status: u16,
    pub length: usize,
    pub body: Body,
    /// The server wants no further request on this connection.
    pub close: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Length(usize),
    Chunked,
    UntilClose,
}

impl ResponseHead {
    pub fn read(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        Self::parse(bytes, &mut httparse::Response::new(&mut headers))
    }

    fn parse<'b>(bytes: &'b [u8], parsed: &mut httparse::Response<'_, 'b>) -> io::Result<Option<Self>> {
        let httparse::Status::Complete(length) = parsed.parse(bytes).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let status = parsed.code.expect("a complete head has a status");
        let mut head = Self { status, length, body: Body::UntilClose, close: parsed.version == Some(0) };
        for header in parsed.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") && head.body == Body::UntilClose {
                let text = std::str::from_utf8(header.value).map_err(io::Error::other)?;
                head.body = Body::Length(text.trim().parse().map_err(io::Error::other)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                head.body = Body::Chunked;
            } else if header.name.eq_ignore_ascii_case("connection") {
                head.close |= header.value.eq_ignore_ascii_case(b"close");
            }
        }
        if matches!(status, 100..=199 | 204 | 304) {
            head.body = Body::Length(0);
        }
        head.close |= head.body == Body::UntilClose;
        Ok(Some(head))
    }
}

fn unchunk(mut rest: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let size = httparse::parse_chunk_size(rest).map_err(|_| io::Error::other("unreadable chunk size"))?;
        let httparse::Status::Complete((line, size)) = size else { return Ok(None) };
        if size == 0 {
            return Ok((rest.len() >= line + 2).then_some(body));
        }
        let end = line.saturating_add(usize::try_from(size).map_err(io::Error::other)?);
        let Some(chunk) = rest.get(line..end) else { return Ok(None) };
        body.extend_from_slice(chunk);
        match rest.get(end + 2..) {
            Some(after) => rest = after,
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn check(answer: &str, status: u16, body: &str) {
        for cut in 0..answer.len() {
            let part = decode(&answer.as_bytes()[..cut], false).unwrap();
            assert_eq!(part, None, "{cut} bytes of {answer:?}");
        }
        let response = decode(answer.as_bytes(), true).unwrap().unwrap();
        assert_eq!((response.status, response.text().as_str()), (status, body));
    }

    #[test]
    fn answers_of_every_framing_are_read_whole() {
        check("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
        check("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", 503, "no");
        check(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            200,
            "hello",
        );
        check("HTTP/1.0 200 OK\r\n\r\nall", 200, "all");
    }

    #[test]
    fn a_head_says_whether_the_connection_goes_on() {
        let read = |text: &str| ResponseHead::read(text.as_bytes()).unwrap().unwrap();
        assert!(!read("HTTP/1.1 204 No Content\r\n\r\n").close);
        assert!(read("HTTP/1.1 204 No Content\r\nConnection: Close\r\n\r\n").close);
        assert!(read("HTTP/1.1 200 OK\r\n\r\n").close);
        assert!(ResponseHead::read(b"nonsense\r\n\r\n").is_err());
    }

    #[test]
    fn a_request_arrives_as_written() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = vec![0; 4096];
            let mut n = 0;
            while !bytes[..n].ends_with(b"body") {
                n += stream.read(&mut bytes[n..]).unwrap();
            }
            stream.write_all(b"HTTP/1.1 201 Created\r\nX-One: 1\r\nContent-Length: 2\r\n\r\nok").unwrap();
            String::from_utf8(bytes[..n].to_vec()).unwrap()
        });
        let response = post(address, "/in", &[("x-key", "value")], b"body").unwrap();
        assert_eq!(
            (response.status, response.header("X-ONE"), response.text().as_str()),
            (201, Some("1"), "ok")
        );
        let seen = server.join().unwrap();
        assert!(seen.starts_with("POST /in HTTP/1.1\r\n"), "{seen}");
        assert!(seen.contains("x-key: value\r\ncontent-length: 4\r\n\r\nbody"), "{seen}");
    }
}
