//! The languages that people read.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
