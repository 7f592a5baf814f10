//! Who is told what, by which channel, and what became of it.
//!
//! A [`Notice`] is one message to one recipient by one channel: it is written down before anything is sent, under a key
//! that names the fact it tells, so that the same thing is told once. [`template`] puts it into words; [`message`] is
//! what a channel is handed and what it says of it. Mail, chat and phone know no dedupe: a send whose end nobody saw is
//! *uncertain*, and a policy decides.

pub mod address;
pub mod advice;
pub mod alert;
pub mod compose;
pub mod directory;
pub mod feedback;
mod hear;
pub mod message;
pub mod notice;
pub mod post;
pub mod quota;
pub mod reminder;
pub mod rule;
pub mod suppression;
pub mod template;
pub mod tries;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use address::MailAddress;
pub use advice::Advice;
pub use alert::Alert;
pub use compose::{House, Named, Parties, Person, Place, awaits_receipt, compose};
pub use message::{Message, Receipt, Sent};
pub use notice::{Audience, Notice, Status, Step};
pub use quota::{Limits, Quota, Reserved};
pub use rule::{Rule, Task, To, tasks};
pub use suppression::Suppression;
pub use template::{Flaw, Rendered, Templates};
pub use tries::{Doubt, Then, Tries};

/// What a person reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    #[default]
    Ja,
    En,
}

impl Language {
    pub const ALL: [Self; 2] = [Self::Ja, Self::En];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ja => "ja",
            Self::En => "en",
        }
    }

    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Ja => Self::En,
            Self::En => Self::Ja,
        }
    }

    /// The text in this language.
    pub const fn t<'a>(self, en: &'a str, ja: &'a str) -> &'a str {
        match self {
            Self::Ja => ja,
            Self::En => en,
        }
    }
}

impl FromStr for Language {
    type Err = NotALanguage;

    fn from_str(text: &str) -> Result<Self, NotALanguage> {
        Self::ALL.into_iter().find(|language| language.name() == text).ok_or(NotALanguage)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no language that is spoken here; expected {}", Language::ALL.map(Language::name).join(" or "))]
pub struct NotALanguage;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g3_a_language_reads_back_and_another_is_refused_with_those_there_are() {
        for language in Language::ALL {
            assert_eq!(language.name().parse(), Ok(language));
        }
        for bad in ["", "fr", "JA", " ja"] {
            assert_eq!(bad.parse::<Language>(), Err(NotALanguage), "{bad}");
        }
        assert!(NotALanguage.to_string().ends_with("expected ja or en"));
    }
}
