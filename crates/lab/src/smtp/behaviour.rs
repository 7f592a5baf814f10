//! What goes wrong with a mail, and where. Decided from the recipient and how often it was tried before, never from
//! the clock: the same mails meet the same fate, in whatever order they arrive.

use std::time::Duration;

use crate::rng::Rng;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmtpBehaviour {
    /// Takes everything.
    Accept,
    At(Point, SmtpFault),
    /// The first tries of each recipient go like this, the others well. For a point before the recipient is named,
    /// the first times that it is reached.
    First(u32, Box<SmtpBehaviour>),
    /// By the beginning of the recipient's address; the last one for all others, and for every point before it.
    To(Vec<(String, SmtpBehaviour)>, Box<SmtpBehaviour>),
    /// Per cent of the tries, by seed; the rest goes well.
    Mix {
        seed: u64,
        parts: Vec<(u8, SmtpBehaviour)>,
    },
}

/// Where in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    Greeting,
    Hello,
    Starttls,
    Login,
    Sender,
    Recipient,
    /// Asked for the mail.
    Data,
    /// A part of the mail has come.
    Body,
    /// The final dot has come; nothing is kept.
    End,
    /// The mail is kept, and the sender does not know yet.
    Taken,
    /// The sender was told.
    Told,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmtpFault {
    /// Says this instead: `550 5.1.1 no such user`.
    Say(String),
    /// Closes the connection without a word.
    Drop,
    /// Says nothing until the client leaves.
    Silence,
    /// Says nothing, and does not listen either.
    Deafness,
    /// Says the usual, byte by byte with this pause.
    Trickle(Duration),
    /// Says lines of one answer for ever.
    EndlessLines,
    /// Says one line that never ends.
    EndlessLine,
}

impl SmtpBehaviour {
    /// Says this at that point.
    pub fn say(point: Point, text: &str) -> Self {
        Self::At(point, SmtpFault::Say(text.to_owned()))
    }

    pub fn drop_at(point: Point) -> Self {
        Self::At(point, SmtpFault::Drop)
    }

    /// `seen` counts the tries before this one.
    pub(super) fn fault(&self, point: Point, recipient: Option<&str>, seen: u32) -> Option<SmtpFault> {
        match self {
            Self::Accept => None,
            Self::At(own, fault) => (*own == point).then(|| fault.clone()),
            Self::First(tries, then) => {
                if seen < *tries {
                    then.fault(point, recipient, seen)
                } else {
                    None
                }
            }
            Self::To(some, others) => {
                let own = recipient.and_then(|to| some.iter().find(|(start, _)| to.starts_with(start)));
                own.map_or(&**others, |(_, behaviour)| behaviour).fault(point, recipient, seen)
            }
            Self::Mix { seed, parts } => {
                let mut left = Rng::new(seed ^ fingerprint(recipient.unwrap_or_default(), seen)).below(100);
                for (percent, part) in parts {
                    match left.checked_sub(u64::from(*percent)) {
                        Some(rest) => left = rest,
                        None => return part.fault(point, recipient, seen),
                    }
                }
                None
            }
        }
    }
}

/// FNV-1a: the same on every machine.
fn fingerprint(recipient: &str, seen: u32) -> u64 {
    let bytes = recipient.bytes().chain(seen.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
