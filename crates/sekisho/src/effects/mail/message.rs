//! A message as a mail: envelope, headers, parts, and the bytes that go over the wire.
//!
//! Promises: only ASCII, lines of bounded length that end with CRLF, no line that ends the mail early; no text can add
//! or break a header. The same message has the same `Message-ID` at every try.

use std::time::{Duration, UNIX_EPOCH};

use lettre::address::{Address, Envelope};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{self, MultiPart, SinglePart};
use sekisho_core::Time;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::Message;
use sekisho_core::queue::Failure;

use super::Mailbox;

/// The largest mail that is sent. Most servers take 10 MB or more.
pub const LETTER_MAX_BYTES: usize = 10_000_000;
/// Most letters of a name or a subject; more is cut.
const LINE_LETTERS: usize = 500;
/// Longest id of a message, so that its header stays one line.
const ID_LETTERS: usize = 200;

#[derive(Debug)]
pub struct MimeMessage {
    /// The envelope's addresses, as they are written in commands.
    pub from: String,
    pub to: String,
    /// With doubled dots, without the end mark.
    pub bytes: Vec<u8>,
}

impl MimeMessage {
    pub fn write(
        message: &Message,
        from: &Mailbox,
        reply_to: Option<&Mailbox>,
        at: Time,
    ) -> Result<Self, Failure> {
        let Some(to) = &message.to else {
            return Err(unsendable("it has no recipient: a mail needs an address to go to"));
        };
        let size = message.text.len() + message.html.as_deref().map_or(0, str::len);
        if size > LETTER_MAX_BYTES {
            return Err(too_big(size));
        }
        if message.id.is_empty() || message.id.len() > ID_LETTERS || !message.id.bytes().all(is_in_ids) {
            return Err(unsendable("its id holds what no Message-ID may hold"));
        }
        let sender = address(&from.address)?;
        let recipient = address(&to.address)?;
        let envelope = Envelope::new(Some(sender.clone()), vec![recipient.clone()])
            .map_err(|error| unsendable(&error.to_string()))?;
        let mut builder = lettre::Message::builder()
            .envelope(envelope)
            .from(mailbox(from.name.as_deref(), sender.clone()))
            .to(mailbox(to.name.as_deref(), recipient.clone()))
            .subject(one_line(&message.subject))
            .date(UNIX_EPOCH + Duration::from_millis(at.ms().max(0).unsigned_abs()))
            .message_id(Some(format!("<{}@{}>", message.id, sender.domain())))
            .raw_header(header("Auto-Submitted", "auto-generated"))
            .raw_header(header("X-Sekisho-Notice", &message.id));
        if let Some(reply_to) = reply_to {
            builder = builder.reply_to(mailbox(reply_to.name.as_deref(), address(&reply_to.address)?));
        }
        let text = with_crlf(&message.text);
        let built = match &message.html {
            Some(html) => builder.multipart(MultiPart::alternative_plain_html(text, with_crlf(html))),
            None => builder.singlepart(SinglePart::plain(text)),
        };
        let built = built.map_err(|error| unsendable(&error.to_string()))?;
        let bytes = stuffed(&built.formatted());
        if bytes.len() > LETTER_MAX_BYTES {
            return Err(too_big(bytes.len()));
        }
        Ok(Self { from: sender.to_string(), to: recipient.to_string(), bytes })
    }
}

fn unsendable(why: &str) -> Failure {
    Failure::terminal(
        "unsendable",
        format!("this message can't be made a mail: {why}; correct what it was made from, then resend it"),
    )
}

fn too_big(size: usize) -> Failure {
    Failure::terminal(
        "too_big",
        format!(
            "this mail has {size} bytes, and {LETTER_MAX_BYTES} is the most that is sent: make its template or what \
             is filled in shorter, then resend it"
        ),
    )
}

/// What may stand in a `Message-ID` before the `@`.
fn is_in_ids(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte)
}

fn header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
}

fn mailbox(name: Option<&str>, address: Address) -> message::Mailbox {
    message::Mailbox::new(name.map(one_line).filter(|name| !name.is_empty()), address)
}

/// Whatever would end or hide a line is a space.
fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|letter| if letter.is_control() || "\u{2028}\u{2029}".contains(letter) { ' ' } else { letter })
        .take(LINE_LETTERS)
        .collect();
    plain.trim().to_owned()
}

/// In ASCII, as every server understands it.
fn address(address: &MailAddress) -> Result<Address, Failure> {
    let (local, domain) = address.whole().rsplit_once('@').expect("an address has an @");
    let is_plain = !local.starts_with('.') && !local.ends_with('.') && !local.contains("..");
    // Dots that may not stand bare may stand in quotes: no other letter that needs them is in an address.
    let local = if is_plain { local.to_owned() } else { format!("\"{local}\"") };
    let domain = if domain.is_ascii() {
        domain.to_owned()
    } else {
        let url = url::Url::parse(&format!("http://{domain}/")).ok();
        let ascii = url.and_then(|url| url.domain().map(str::to_owned));
        ascii.ok_or_else(|| unsendable(&format!("{address} has a domain that does not exist")))?
    };
    // Its letters were checked when it became a `MailAddress`; lettre would refuse some that exist.
    Ok(Address::new_dangerous(local, domain))
}

/// Done here, because lettre does it line by line in place: minutes for a long text.
fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n")
}

/// As it goes over the wire: every line ends with CRLF, and a dot that begins one is doubled.
fn stuffed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 50 + 2);
    let mut begins = true;
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'\r' | b'\n' => {
                if byte == b'\r' {
                    rest.next_if_eq(&b'\n');
                }
                out.extend_from_slice(b"\r\n");
                begins = true;
                continue;
            }
            b'.' if begins => out.extend_from_slice(b".."),
            _ => out.push(byte),
        }
        begins = false;
    }
    if !begins {
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g2_no_text_ends_a_mail_early() {
        for (text, wire) in [
            ("a\r\n.\r\nb", "a\r\n..\r\nb\r\n"),
            ("a\n.\nb\n", "a\r\n..\r\nb\r\n"),
            ("a\r.\rb", "a\r\n..\r\nb\r\n"),
            ("a\r\r\n.", "a\r\n\r\n..\r\n"),
            (".", "..\r\n"),
            ("...a.", "....a.\r\n"),
            ("", ""),
        ] {
            assert_eq!(stuffed(text.as_bytes()), wire.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn g2_every_address_is_written_in_ascii() {
        for (whole, written) in [
            ("Taro@Example.jp", "taro@example.jp"),
            ("a..b.@docomo.ne.jp", "\"a..b.\"@docomo.ne.jp"),
            (".a@docomo.ne.jp", "\".a\"@docomo.ne.jp"),
            ("a@日本.jp", "a@xn--wgv71a.jp"),
        ] {
            assert_eq!(address(&whole.parse().unwrap()).unwrap().to_string(), written);
        }
    }
}
