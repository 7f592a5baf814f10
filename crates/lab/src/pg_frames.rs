//! Where PostgreSQL's messages begin and end in a byte stream, and which of them commit.
//!
//! Knows the frame (type, length) and the few messages that matter: start-up, `Query`, `Parse`, `Execute`,
//! `Sync` from the client, `ReadyForQuery` from the server. Bytes may come in any pieces. An encrypted stream
//! has no frames to see: from then on everything passes unseen. So does anything that isn't PostgreSQL.

/// Something the client sent that ends a transaction, seen at the last byte of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PgEvent {
    Commit,
    Sync,
}

/// Start-up codes that the server answers with one bare byte.
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
/// A length beyond this is no message of ours.
const FRAME_MAX: usize = 1 << 30;
/// Enough of a message to recognise `COMMIT`.
const KEPT: usize = 64;

/// The client's side of a connection.
#[derive(Debug, Default)]
pub struct PgClient {
    frames: Frames,
    started: bool,
    /// Messages sent that end in a `ReadyForQuery`, and how many of those came.
    asked: u64,
    answered: u64,
    bare_bytes_due: usize,
    executed: bool,
    parsed_commit: bool,
}

/// The server's side.
#[derive(Debug, Default)]
pub struct PgServer {
    frames: Frames,
}

impl PgClient {
    /// Looks at the first bytes: how many belong together, and what they end. Takes at least one byte.
    pub fn scan(&mut self, bytes: &[u8]) -> (usize, Option<PgEvent>) {
        if self.frames.blind {
            return (bytes.len(), None);
        }
        let taken = self.frames.take(bytes, usize::from(self.started));
        let event = if self.frames.whole() { self.read() } else { None };
        (taken, event)
    }

    pub fn unanswered(&self) -> u64 {
        if self.frames.blind { 0 } else { self.asked.saturating_sub(self.answered) }
    }

    fn read(&mut self) -> Option<PgEvent> {
        let frame = self.frames.next();
        if !self.started {
            let code = frame.get(4..8).map(|code| u32::from_be_bytes([code[0], code[1], code[2], code[3]]));
            if let Some(SSL_REQUEST | GSS_REQUEST) = code {
                self.bare_bytes_due += 1;
            } else {
                self.started = true;
                self.asked += 1;
            }
            return None;
        }
        let payload = &frame[5..];
        match frame[0] {
            b'Q' => {
                self.asked += 1;
                is_commit(payload).then_some(PgEvent::Commit)
            }
            b'P' => {
                // The statement's name ends with a zero byte, then comes its text.
                let text =
                    payload.iter().position(|&byte| byte == 0).map_or(&[][..], |at| &payload[at + 1..]);
                self.parsed_commit |= is_commit(text);
                None
            }
            b'E' => {
                self.executed = true;
                None
            }
            b'S' => {
                self.asked += 1;
                let executed = std::mem::take(&mut self.executed);
                let commit = std::mem::take(&mut self.parsed_commit);
                executed.then_some(if commit { PgEvent::Commit } else { PgEvent::Sync })
            }
            _ => None,
        }
    }
}

impl PgServer {
    /// Follows the server's answers and tells `client` which of its questions they settle.
    pub fn scan(&mut self, mut bytes: &[u8], client: &mut PgClient) {
        while !bytes.is_empty() && !self.frames.blind {
            if client.bare_bytes_due > 0 && self.frames.kept.is_empty() {
                client.bare_bytes_due -= 1;
                if bytes[0] != b'N' {
                    self.frames.blind = true;
                    client.frames.blind = true;
                }
                bytes = &bytes[1..];
                continue;
            }
            let taken = self.frames.take(bytes, 1);
            bytes = &bytes[taken..];
            if self.frames.whole() && self.frames.next()[0] == b'Z' {
                client.answered += 1;
            }
        }
    }
}

/// `COMMIT` or `END` in any case, with whatever follows a word.
fn is_commit(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let word = text.iter().position(|byte| !byte.is_ascii_alphabetic()).map_or(text, |end| &text[..end]);
    word.eq_ignore_ascii_case(b"COMMIT") || word.eq_ignore_ascii_case(b"END")
}

/// One message at a time out of a stream; keeps only its beginning.
#[derive(Debug, Default)]
struct Frames {
    kept: Vec<u8>,
    seen: usize,
    size: Option<usize>,
    blind: bool,
}

impl Frames {
    /// Takes bytes up to the end of the current message. Before its length stand `prefix` bytes.
    fn take(&mut self, bytes: &[u8], prefix: usize) -> usize {
        let mut taken = 0;
        let header = prefix + 4;
        if self.size.is_none() {
            taken = (header - self.seen).min(bytes.len());
            self.keep(&bytes[..taken]);
            if self.seen < header {
                return taken;
            }
            let length = &self.kept[prefix..header];
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            self.blind = !(4..FRAME_MAX).contains(&length);
            if self.blind {
                return bytes.len();
            }
            self.size = Some(prefix + length);
        }
        let more = self.size.map_or(0, |size| size - self.seen).min(bytes.len() - taken);
        self.keep(&bytes[taken..taken + more]);
        taken + more
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.seen += bytes.len();
        let room = KEPT - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn whole(&self) -> bool {
        self.size == Some(self.seen)
    }

    /// Hands over the beginning of the message just taken and makes room for the next.
    fn next(&mut self) -> Vec<u8> {
        self.seen = 0;
        self.size = None;
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
        [&[kind], &(payload.len() as u32 + 4).to_be_bytes()[..], payload].concat()
    }

    fn start_up() -> Vec<u8> {
        [&9u32.to_be_bytes()[..], &196_608u32.to_be_bytes(), b"\0"].concat()
    }

    /// All events, and after how many bytes each was seen, when the stream comes in pieces of this size.
    fn events(stream: &[u8], piece: usize) -> Vec<(usize, PgEvent)> {
        let mut client = PgClient::default();
        let (mut seen, mut at) = (Vec::new(), 0);
        for mut rest in stream.chunks(piece) {
            while !rest.is_empty() {
                let (taken, event) = client.scan(rest);
                at += taken;
                rest = &rest[taken..];
                seen.extend(event.map(|event| (at, event)));
            }
        }
        seen
    }

    #[test]
    fn commits_are_seen_at_their_last_byte_however_the_stream_is_cut() {
        let parts = [
            start_up(),
            message(b'Q', b"BEGIN\0"),
            message(b'Q', b" commit;\0"),
            [message(b'P', b"s1\0SELECT 1\0\0\0"), message(b'D', b"Ss1\0"), message(b'S', b"")].concat(),
            [message(b'B', &[7; 500]), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat(),
            [message(b'P', b"\0COMMIT\0\0\0"), message(b'B', b""), message(b'E', b""), message(b'S', b"")]
                .concat(),
            message(b'Q', b"COMMITTED\0"),
        ];
        let ends: Vec<usize> = (1..=parts.len()).map(|n| parts[..n].concat().len()).collect();
        let expected = vec![(ends[2], PgEvent::Commit), (ends[4], PgEvent::Sync), (ends[5], PgEvent::Commit)];
        for piece in [1, 2, 7, 64, 4096] {
            assert_eq!(events(&parts.concat(), piece), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn answers_are_counted_against_questions() {
        let (mut client, mut server) = (PgClient::default(), PgServer::default());
        let ssl = [8u32.to_be_bytes(), SSL_REQUEST.to_be_bytes()].concat();
        client.scan(&ssl);
        server.scan(b"N", &mut client);
        client.scan(&start_up());
        assert_eq!(client.unanswered(), 1);
        server.scan(&[message(b'R', &[0; 4]), message(b'Z', b"I")].concat(), &mut client);
        assert_eq!(client.unanswered(), 0);
        client.scan(&message(b'Q', b"SELECT 1\0"));
        client.scan(&message(b'S', b""));
        assert_eq!(client.unanswered(), 2);
        for byte in [message(b'C', b"SELECT\0"), message(b'Z', b"I")].concat() {
            server.scan(&[byte], &mut client);
        }
        assert_eq!(client.unanswered(), 1);
    }

    #[test]
    fn what_is_not_postgresql_passes_unseen() {
        assert_eq!(events(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", 5), vec![]);
        let (mut client, mut server) = (PgClient::default(), PgServer::default());
        client.scan(&[8u32.to_be_bytes(), SSL_REQUEST.to_be_bytes()].concat());
        server.scan(b"S\x16\x03\x01", &mut client);
        assert_eq!(client.scan(&message(b'Q', b"COMMIT\0")), (12, None));
        assert_eq!(client.unanswered(), 0);
    }
}
