//! A mail address that prints masked, so that no log line or list can carry a whole one by accident.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Kept in lower case: nobody gets two mails for a capital letter, and a suppressed address stays suppressed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MailAddress(String);

/// What SMTP allows (RFC 5321).
const ADDRESS_MAX: usize = 254;
const LOCAL_MAX: usize = 64;

impl MailAddress {
    /// The only way to the whole address. Search for this word to see every place that reads one.
    pub fn whole(&self) -> &str {
        &self.0
    }

    /// `t***@example.com`.
    pub fn masked(&self) -> String {
        mask(&self.0)
    }
}

/// Hides all but the first letter of what stands before the `@`; without one, all but the first letter.
pub fn mask(address: &str) -> String {
    let (local, domain) =
        address.rsplit_once('@').map_or((address, None), |(local, rest)| (local, Some(rest)));
    let first: String = local.chars().take(1).collect();
    domain.map_or_else(|| format!("{first}***"), |domain| format!("{first}***@{domain}"))
}

/// Hides every address in a text that others wrote, as [`mask`] does. Whatever stands before an `@` without a break may
/// belong to the address and is hidden with it: `rcpt=taro@example.jp` is `r***@example.jp`.
pub fn mask_text(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends_a_word) {
        let (before, word) = piece.split_at(piece.len() - piece.trim_start_matches(QUOTES).len());
        masked.push_str(before);
        if word.contains('@') {
            masked.push_str(&mask(word));
        } else {
            masked.push_str(word);
        }
    }
    masked
}

/// May stand inside an address as well (`o'neil@example.ie`), so that they end nothing.
const QUOTES: [char; 7] = ['"', '\'', '`', '“', '”', '‘', '’'];

/// None of these is part of an address.
fn ends_a_word(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || "<>()[],;:、。，；：「」『』（）［］【】＜＞".contains(letter)
}

impl FromStr for MailAddress {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@').ok_or(NotAnAddress)?;
        let is_local =
            |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(letter);
        let is_label = |label: &str| {
            let inner = |letter: char| letter.is_alphanumeric() || letter == '-';
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let fits = text.len() <= ADDRESS_MAX && (1..=LOCAL_MAX).contains(&local.len());
        if !fits || !local.chars().all(is_local) || !domain.contains('.') || !domain.split('.').all(is_label)
        {
            return Err(NotAnAddress);
        }
        Ok(Self(text.to_lowercase()))
    }
}

impl TryFrom<String> for MailAddress {
    type Error = NotAnAddress;

    fn try_from(text: String) -> Result<Self, NotAnAddress> {
        text.parse()
    }
}

impl From<MailAddress> for String {
    fn from(address: MailAddress) -> Self {
        address.0
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl fmt::Debug for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no mail address; expected one such as taro@example.jp")]
pub struct NotAnAddress;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::mail_address::*;

    #[test]
    fn g5_an_address_prints_masked_and_keeps_its_whole() {
        let address: MailAddress = " Taro.Yamada@Example.JP ".parse().unwrap();
        assert_eq!(
            (address.to_string().as_str(), address.whole()),
            ("t***@example.jp", "taro.yamada@example.jp")
        );
        assert_eq!(format!("{address:?}"), "t***@example.jp");
        assert_eq!(mask("+81 90"), "+***");
    }

    #[test]
    fn g2_what_is_no_address_is_refused() {
        // Docomo gave out addresses with dots anywhere, and people still use them.
        for good in
            ["a@b.jp", "x+tag@mail.example.com", "o'neil@example.ie", "a..b.@docomo.ne.jp", "a@日本.jp"]
        {
            assert!(good.parse::<MailAddress>().is_ok(), "{good}");
        }
        let long = format!("{}@example.jp", "a".repeat(65));
        for bad in [
            "",
            "a",
            "@b.jp",
            "a@",
            "a@b",
            "a b@c.jp",
            "a@b..jp",
            "a@-b.jp",
            "a@b.jp\r\nBcc: c@d.jp",
            "<a@b.jp>",
            &long,
        ] {
            assert_eq!(bad.parse::<MailAddress>(), Err(NotAnAddress), "{bad}");
        }
    }

    #[test]
    fn g5_an_address_is_hidden_wherever_it_stands_in_a_text() {
        let cases = [
            ("", ""),
            ("250 2.0.0 Ok: queued as 4F1", "250 2.0.0 Ok: queued as 4F1"),
            ("535 for taro@example.jp", "535 for t***@example.jp"),
            ("for <taro@example.jp>: いい", "for <t***@example.jp>: いい"),
            (
                "smtp; 550 5.1.1 <TARO@example.jp>... no taro@example.jp here",
                "smtp; 550 5.1.1 <T***@example.jp>... no t***@example.jp here",
            ),
            ("rcpt=taro@example.jp;", "r***@example.jp;"),
            ("'taro@example.jp' \"taro@example.jp\"", "'t***@example.jp' \"t***@example.jp\""),
            ("{\"to\":\"taro@example.jp\"}", "{\"to\":\"t***@example.jp\"}"),
            ("mailto:taro@example.jp,hanako@example.jp", "mailto:t***@example.jp,h***@example.jp"),
            ("o'neil@example.ie", "o***@example.ie"),
            ("\"taro.yamada\"@example.jp", "\"t***@example.jp"),
            ("a@b.jp/taro@example.jp", "a***@example.jp"),
            ("「taro@example.jp」、太郎@example.jp", "「t***@example.jp」、太***@example.jp"),
            (
                "one\r\ntaro@example.jp\ttaro@example.jp\u{3000}\0taro@example.jp",
                "one\r\nt***@example.jp\tt***@example.jp\u{3000}\0t***@example.jp",
            ),
            ("@ @@ taro@", "***@ @***@ t***@"),
        ];
        for (text, expected) in cases {
            assert_eq!(mask_text(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn g5_no_text_shows_a_whole_address(before in "(?s).{0,20}", after in "(?s).{0,20}", upper in any::<bool>()) {
            let written = if upper { "TARO@example.JP" } else { "taro@example.jp" };
            let shown = mask_text(&format!("{before}{written}{after}"));
            prop_assert!(!shown.to_ascii_lowercase().contains("taro@"), "{}", shown);
            // The one letter that stays may be an `@` itself.
            let shown = shown.replace("@***@", "***@");
            let mut pieces: Vec<_> = shown.split('@').collect();
            pieces.pop();
            prop_assert!(pieces.iter().all(|piece| piece.ends_with("***")), "{}", shown);
        }
    }
}
