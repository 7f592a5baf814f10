//! What a reply means (G2): done, another try, no use trying, or nothing goes by this server for now. Every failure
//! that no retry can help says the cure. No text here carries a whole mail address or a login.

use std::io;

use sekisho_core::mail_address::{mask, mask_text};
use sekisho_core::notification::{Receipt, Sent};
use sekisho_core::queue::Failure;
use sekisho_core::text::without_hidden;

use super::reply::SmtpReply;
use super::session::SmtpStage;

/// The server ends the conversation.
pub const GOING_AWAY: u16 = 421;

/// When a quota per day may have room again. Amazon's counts the last 24 hours, so that some comes back every hour.
const QUOTA_AGAIN_MS: i64 = 3_600_000;
/// When a server that wants nobody may have changed its mind.
const REFUSAL_AGAIN_MS: i64 = 900_000;
/// As much of what was said as a person reads.
const SAID_LETTERS: usize = 500;

/// Who speaks with whom.
pub struct MailParties<'a> {
    pub host: &'a str,
    /// The envelope's addresses.
    pub from: &'a str,
    pub to: &'a str,
}

/// Something other than the go-ahead, at a stage before the server could have the mail.
pub fn of_a_refusal(stage: SmtpStage, parties: &MailParties<'_>, reply: &SmtpReply) -> Sent {
    if reply.is(4) || reply.is(5) {
        return refusal(Some(stage), parties, reply);
    }
    let error =
        format!("{} said {}, which is no answer to {}", parties.host, said(stage, reply), asked(stage));
    Sent::Failed(Failure::transient("broken", error).blaming_destination())
}

/// The last word about a mail.
pub fn of_the_end(parties: &MailParties<'_>, reply: &SmtpReply) -> Sent {
    match reply.code {
        200..=299 => Sent::Accepted(receipt(reply)),
        400..=599 => refusal(None, parties, reply),
        _ => lost(parties, &format!("it said {}, which is no answer to a mail", shown(reply))),
    }
}

/// No stage: the whole mail was there.
fn refusal(stage: Option<SmtpStage>, parties: &MailParties<'_>, reply: &SmtpReply) -> Sent {
    let text = reply.text().to_lowercase();
    let words = stage.map_or_else(|| shown(reply), |stage| said(stage, reply));
    let to = mask(parties.to);
    let to_what = match stage {
        None => format!("the mail to {to}"),
        Some(SmtpStage::Recipient | SmtpStage::Data | SmtpStage::Body) => format!("the recipient {to}"),
        Some(stage) => asked(stage).to_owned(),
    };
    let tell = |cure: &str| format!("{} said to {to_what}: {words}; {cure}", parties.host);
    let again = |reason, cure: &str| Sent::Failed(Failure::transient(reason, tell(cure)));
    let never = |reason, cure: &str| Sent::Failed(Failure::terminal(reason, tell(cure)));
    let closed =
        |reason, cure: &str| Sent::Closed { failure: Failure::terminal(reason, tell(cure)), for_ms: None };
    let closed_for = |reason, for_ms, cure: &str| Sent::Closed {
        failure: Failure::transient(reason, tell(cure)).blaming_destination(),
        for_ms: Some(for_ms),
    };
    let busy =
        |reason, cure: &str| Sent::Failed(Failure::transient(reason, tell(cure)).blaming_destination());

    if is_daily_quota(&text) {
        return closed_for(
            "quota_used_up",
            QUOTA_AGAIN_MS,
            "the day's quota is used up: mail waits until there is room, or ask for a larger quota",
        );
    }
    if reply.is(4) || says_temporary(stage, &text) {
        return match (reply.code, stage) {
            (_, Some(SmtpStage::Tls)) => busy("tls", "it can't encrypt at the moment; it will be retried"),
            _ if is_throttling(&text) => busy("throttled", "too fast for the server; it will be retried"),
            (GOING_AWAY, _)
            | (_, Some(SmtpStage::Greeting | SmtpStage::Hello | SmtpStage::Login | SmtpStage::Sender)) => {
                busy("unavailable", "it will be retried")
            }
            _ => again("deferred", "it will be retried"),
        };
    }
    match (reply.code, stage) {
        (530, _) if text.contains("starttls") || text.contains("tls command") => closed(
            "no_tls",
            "it wants encryption: set `tls` to \"starttls\", or to \"implicit\" for port 465",
        ),
        (530 | 534 | 535 | 538, _) | (_, Some(SmtpStage::Login)) => closed(
            "bad_credentials",
            "check the mail server's user name and password, then resume the channel",
        ),
        _ if text.contains("not authorized to perform") => {
            closed("bad_credentials", "give this login the right to send, then resume the channel")
        }
        (_, Some(SmtpStage::Tls)) => closed(
            "no_tls",
            "nothing is sent in clear: use the server's port for STARTTLS (587), or \"implicit\" with port 465",
        ),
        (_, Some(SmtpStage::Greeting | SmtpStage::Hello | SmtpStage::Connect)) => closed_for(
            "server_refused",
            REFUSAL_AGAIN_MS,
            "it takes no mail from this machine: check host and port, and whether this machine's address is blocked",
        ),
        (523 | 552, Some(SmtpStage::Sender | SmtpStage::Data | SmtpStage::Body) | None) => {
            never("too_big", "make its template or what is filled in shorter, then resend it")
        }
        _ if text.contains("address is not verified") || text.contains("address not verified") => {
            // In Amazon's sandbox recipients must be verified too: one of them is no reason to stop all the others.
            if text.contains(parties.to) && !text.contains(parties.from) {
                never(
                    "bad_recipient",
                    "verify this address at Amazon SES, or ask for the account to leave the sandbox",
                )
            } else {
                closed(
                    "sender_refused",
                    "verify the sender's address or domain at Amazon SES, then resume the channel",
                )
            }
        }
        _ if text.contains("sending suspended") || text.contains("sending paused") => closed(
            "sender_refused",
            "the account may not send: see the mail service's console, then resume the channel",
        ),
        (_, Some(SmtpStage::Sender)) => closed(
            "sender_refused",
            "it does not send for this sender: correct `from`, or allow it at the server, then resume the channel",
        ),
        (_, Some(SmtpStage::Recipient)) if text.contains("relay") => never(
            "refused",
            "it takes no mail for this domain from us: give it a login, or allow this machine to relay",
        ),
        (_, Some(SmtpStage::Recipient)) => {
            never("bad_recipient", "correct the recipient's address, then resend it")
        }
        (_, Some(SmtpStage::Data | SmtpStage::Body) | None) => {
            never("refused", "change what it objects to (template, links, sender), then resend it")
        }
    }
}

/// Amazon's, Google's and others' words for it.
fn is_daily_quota(text: &str) -> bool {
    text.contains("daily") && (text.contains("quota") || text.contains("limit")) && text.contains("exceed")
}

fn is_throttling(text: &str) -> bool {
    ["throttl", "sending rate", "rate limit", "too many", "too fast"].iter().any(|word| text.contains(word))
}

/// A 5xx whose text says that it passes. "Check it and try again" does not.
fn says_temporary(stage: Option<SmtpStage>, text: &str) -> bool {
    let passes = ["temporar", "throttl", "later", "greylist", "graylist", "in a few minutes"];
    let asks_again = text.contains("try again") && stage != Some(SmtpStage::Login);
    passes.iter().any(|word| text.contains(word))
        || (asks_again && !text.contains("check") && !text.contains("correct"))
}

fn receipt(reply: &SmtpReply) -> Receipt {
    Receipt { answer: plain(&reply.text()), reference: reference(&reply.text()) }
}

/// Amazon: `Ok 0106…-000000`. Postfix: `2.0.0 Ok: queued as 4F1`. Exim: `OK id=1u8…`.
fn reference(text: &str) -> Option<String> {
    let after = |mark: &str| text.split_once(mark).and_then(|(_, rest)| rest.split_whitespace().next());
    let word = after("queued as ").or_else(|| after("id=")).or_else(|| {
        let mut words = text.split_whitespace().skip_while(|word| is_status(word));
        match (words.next(), words.next(), words.next()) {
            (Some(ok), Some(id), None) if ok.eq_ignore_ascii_case("ok") => Some(id),
            _ => None,
        }
    });
    word.map(|word| cut(word.trim_matches(['<', '>', '.', ',', ';'])))
        .filter(|word| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_graphic()))
}

/// The code, and what was said with it.
fn shown(reply: &SmtpReply) -> String {
    plain(&format!("{} {}", reply.code, reply.text()))
}

/// As [`shown`]; of a login only the codes, because some servers repeat what they were told.
fn said(stage: SmtpStage, reply: &SmtpReply) -> String {
    if stage != SmtpStage::Login {
        return shown(reply);
    }
    let text = reply.text();
    let status = text.split_whitespace().next().filter(|word| is_status(word));
    status.map_or_else(|| reply.code.to_string(), |status| format!("{} {status}", reply.code))
}

/// `5.7.8`.
fn is_status(word: &str) -> bool {
    word.len() <= "5.999.999".len() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// What somebody else said, without addresses and letters that nobody sees.
fn plain(text: &str) -> String {
    cut(&mask_text(&without_hidden(text)))
}

fn cut(text: &str) -> String {
    text.trim().chars().take(SAID_LETTERS).collect()
}

const fn asked(stage: SmtpStage) -> &'static str {
    match stage {
        SmtpStage::Connect | SmtpStage::Greeting => "our connection",
        SmtpStage::Hello => "our greeting",
        SmtpStage::Tls => "STARTTLS",
        SmtpStage::Login => "the login",
        SmtpStage::Sender => "the sender",
        SmtpStage::Recipient => "the recipient",
        SmtpStage::Data => "the wish to hand over a mail",
        SmtpStage::Body => "a part of the mail",
    }
}

fn unreached(reason: &'static str, parties: &MailParties<'_>, what: &str) -> Failure {
    Failure::transient(reason, format!("the mail server {}: {what}", parties.host)).blaming_destination()
}

pub fn dns(parties: &MailParties<'_>, error: &str) -> Failure {
    unreached("dns", parties, &format!("the name can't be resolved: {error}"))
}

pub fn connect(parties: &MailParties<'_>, error: &str) -> Failure {
    unreached("connect", parties, &format!("no connection: {error}"))
}

pub fn tls(parties: &MailParties<'_>, error: &str) -> Failure {
    unreached("tls", parties, &format!("no secure connection: {error}"))
}

pub fn broken(stage: SmtpStage, parties: &MailParties<'_>, error: &io::Error) -> Failure {
    unreached("broken", parties, &format!("the conversation broke off at {}: {error}", asked(stage)))
}

pub fn too_slow(parties: &MailParties<'_>, stage: SmtpStage) -> Failure {
    unreached("timeout", parties, &format!("no answer in time to {}", asked(stage)))
}

/// The end mark is written, and nobody knows whether it arrived.
pub fn lost(parties: &MailParties<'_>, error: &str) -> Sent {
    let what = format!(
        "the whole mail to {} was sent, and its answer was lost: {error}; whether it was taken is in the server's log",
        mask(parties.to)
    );
    Sent::Uncertain(unreached("reply_lost", parties, &what))
}

pub fn no_tls(parties: &MailParties<'_>) -> Sent {
    let what = "it offers no encryption (STARTTLS), and nothing is sent in clear; use its port for STARTTLS (587), set \
                `tls` to \"implicit\" for port 465, or to \"none\" if this network is yours alone";
    Sent::Closed { failure: Failure::terminal("no_tls", at(parties, what)), for_ms: None }
}

pub fn no_login(parties: &MailParties<'_>) -> Sent {
    let what = "it offers no login that is known here (PLAIN, LOGIN); check host, port and `tls`, or leave the login out";
    Sent::Closed { failure: Failure::terminal("bad_credentials", at(parties, what)), for_ms: None }
}

pub fn too_big(parties: &MailParties<'_>, size: usize, most: usize) -> Sent {
    let what = format!(
        "it takes mails of {most} bytes, and this one has {size}; make its template or what is filled in shorter, then \
         resend it"
    );
    Sent::Failed(Failure::terminal("too_big", at(parties, &what)))
}

fn at(parties: &MailParties<'_>, what: &str) -> String {
    format!("the mail server {}: {what}", parties.host)
}

#[cfg(test)]
mod tests;
