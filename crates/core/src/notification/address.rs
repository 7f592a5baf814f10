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
    use super::*;

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
}
