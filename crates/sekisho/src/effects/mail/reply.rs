//! What a mail server says, read within bounds: so many lines of such a length, all with the same code.

use std::io;

use sekisho_core::text::without_hidden;

/// Four times what the protocol allows.
const LINE_MAX: usize = 2 << 10;
const LINES_MAX: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmtpReply {
    pub code: u16,
    /// Without the codes, and without letters that nobody sees.
    pub lines: Vec<String>,
}

impl SmtpReply {
    /// On one line.
    pub fn text(&self) -> String {
        self.lines.join(" ")
    }

    pub fn is(&self, hundred: u16) -> bool {
        self.code / 100 == hundred
    }

    /// Takes the next line out of these bytes. Returns whether it was the reply's last; `None` if it is not whole yet.
    pub fn take_line(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<bool>> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return if bytes.len() > LINE_MAX {
                Err(bad("it sends a line without an end"))
            } else {
                Ok(None)
            };
        };
        if end > LINE_MAX || self.lines.len() == LINES_MAX {
            return Err(bad("its reply is too long"));
        }
        let line: Vec<u8> = bytes.drain(..=end).collect();
        let line = String::from_utf8_lossy(&line);
        let (code, is_last, text) = parse(line.trim_end()).ok_or_else(|| bad("what it says is no SMTP"))?;
        if !self.lines.is_empty() && code != self.code {
            return Err(bad("one reply of it has two codes"));
        }
        self.code = code;
        self.lines.push(without_hidden(text).trim().to_owned());
        Ok(Some(is_last))
    }
}

fn parse(line: &str) -> Option<(u16, bool, &str)> {
    let digits = line.get(..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    let code = digits.parse().ok().filter(|code| (200..600).contains(code))?;
    let rest = &line[3..];
    match rest.bytes().next() {
        None => Some((code, true, "")),
        Some(b' ') => Some((code, true, &rest[1..])),
        Some(b'-') => Some((code, false, &rest[1..])),
        Some(_) => None,
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<Option<SmtpReply>> {
        let mut bytes = text.as_bytes().to_vec();
        let mut reply = SmtpReply::default();
        loop {
            match reply.take_line(&mut bytes)? {
                Some(true) => return Ok(Some(reply)),
                Some(false) => {}
                None => return Ok(None),
            }
        }
    }

    #[test]
    fn g2_replies_of_one_and_of_many_lines_are_read() {
        for (text, code, said) in [
            ("250 Ok\r\n", 250, "Ok"),
            ("250\r\n", 250, ""),
            ("250-lab\r\n250-SIZE 5\r\n250 AUTH\n", 250, "lab SIZE 5 AUTH"),
            ("550-5.1.1 no\r\n550 5.1.1 such user\r\n", 550, "5.1.1 no 5.1.1 such user"),
            ("421 日本\r\n", 421, "日本"),
            ("550 no\u{1b}[2J\u{9b}1m\u{202e}x\u{7f}\r\n", 550, "no [2J 1m x"),
        ] {
            let reply = read(text).unwrap().unwrap();
            assert_eq!((reply.code, reply.text().as_str()), (code, said), "{text:?}");
        }
        for part in ["", "25", "250", "250-lab\r\n", "250-lab\r\n250 "] {
            assert_eq!(read(part).unwrap(), None, "{part:?}");
        }
    }

    #[test]
    fn g2_replies_are_bounded_and_must_be_smtp() {
        let long = format!("250 {}", "x".repeat(LINE_MAX + 1));
        let many = "250-x\r\n".repeat(LINES_MAX + 1);
        for text in [
            long.as_str(),
            &format!("{long}\r\n"),
            &many,
            "HTTP/1.1 400 Bad Request\r\n",
            "\r\n",
            "25\r\n",
            "199 x\r\n",
            "600 x\r\n",
            "2500 x\r\n",
            "+50 x\r\n",
            "250-a\r\n550 b\r\n",
            "日本語\r\n",
        ] {
            assert!(read(text).is_err(), "{text:.40?}");
        }
    }
}
