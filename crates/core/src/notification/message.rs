//! What a channel is handed, and what it says became of it.

use serde_json::Value;

use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::queue::Failure;

/// One message, ready to go out.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The same for every try; another one when a person asks for it to be sent once more. ASCII without spaces.
    pub id: String,
    /// Names the fact it tells: pagers fold what has the same key into one incident.
    pub key: String,
    /// The incident of that key is over.
    pub closes: bool,
    /// Whom it is for, by mail. Chat, webhook and pager have their place by configuration.
    pub to: Option<Recipient>,
    pub language: Language,
    /// One line.
    pub subject: String,
    pub text: String,
    pub html: Option<String>,
    /// The template it was made from, and what went into it: for receivers that are programs.
    pub template: String,
    pub data: Value,
    /// The trace of this try, while traces are kept: a `traceparent` for receivers that are programs.
    pub trace: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    pub address: MailAddress,
    pub name: Option<String>,
}

/// What became of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The other side has it.
    Accepted(Receipt),
    /// The other side does not have it, for certain.
    Failed(Failure),
    /// It may or may not have it: the answer was lost after it could have been taken.
    Uncertain(Failure),
    /// Nothing goes by this channel until somebody changes something, or until later: bad credentials, a used-up quota.
    /// The message is not to blame, and waits.
    Closed {
        failure: Failure,
        /// How long, if the other side said so; otherwise until a person opens it again.
        for_ms: Option<i64>,
    },
}

/// What the other side said when it took it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// As it was said, cut to what a person reads.
    pub answer: String,
    /// The other side's own id of it, under which bounces come back.
    pub reference: Option<String>,
}
