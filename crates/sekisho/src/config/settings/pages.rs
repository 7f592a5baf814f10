//! `[pages]`: the pages on which customers see their orders.

use std::time::Duration;

use sekisho_core::Secret;

use super::super::secret::resolve;
use super::{Setting, at_least, link};

const SECTION: &str = "pages";
/// Characters that a key must have, so that nobody guesses it.
const SECRET_MIN: usize = 32;

pub const URL: Setting = Setting {
    section: SECTION,
    key: "url",
    default: "\"\"",
    help: "Where customers find the pages of their orders: https://pay.example.jp (its proxy hands on /o and /policy). Empty: no pages.",
    set: |config, given| {
        config.pages.url = link(given)?.map(|url| url.trim_end_matches('/').to_owned());
        Ok(())
    },
};

pub const SECRETS: Setting = Setting {
    section: SECTION,
    key: "secrets",
    default: "[]",
    help: "What links are signed with, as env:NAME or file:PATH, 32 characters or more; the first signs, all are believed. Empty: a key that is made at the first start and kept in the store.",
    set: |config, given| {
        let mut secrets = Vec::new();
        for written in given.list()? {
            let text = resolve(&written)?.text;
            if text.chars().count() < SECRET_MIN {
                return Err(format!("a secret is too short; expected {SECRET_MIN} characters or more"));
            }
            secrets.push(Secret::new(text));
        }
        config.pages.secrets = secrets;
        Ok(())
    },
};

pub const LINKS: Setting = Setting {
    section: SECTION,
    key: "links",
    default: "\"180d\"",
    help: "How long a link is good after the order was made, or after what it is for has begun.",
    set: |config, given| {
        config.pages.links = at_least(given.duration()?, Duration::from_hours(1))?;
        Ok(())
    },
};

pub const INQUIRIES: Setting = Setting {
    section: SECTION,
    key: "inquiries",
    default: "\"365d\"",
    help: "How long what customers ask by the form is kept; then only that they asked.",
    set: |config, given| {
        config.pages.inquiries = at_least(given.duration()?, Duration::from_secs(1))?;
        Ok(())
    },
};

pub const DATE_WORD: Setting = Setting {
    section: SECTION,
    key: "date_word",
    default: "\"投影予定日\"",
    help: "What the Japanese pages call the day that an order is for.",
    set: |config, given| {
        let text = given.text()?;
        if text.trim().is_empty() || text.chars().count() > 20 {
            return Err("expected 1 to 20 characters".into());
        }
        config.pages.date_word = text;
        Ok(())
    },
};

pub const DATE_WORD_EN: Setting = Setting {
    section: SECTION,
    key: "date_word_en",
    default: "\"the date of projection\"",
    help: "The same on the English pages.",
    set: |config, given| {
        let text = given.text()?;
        if text.trim().is_empty() || text.chars().count() > 60 {
            return Err("expected 1 to 60 characters".into());
        }
        config.pages.date_word_en = text;
        Ok(())
    },
};

pub const ACCENT: Setting = Setting {
    section: SECTION,
    key: "accent",
    default: "\"#20427f\"",
    help: "The colour of buttons, dark enough for white letters: #20427f.",
    set: |config, given| {
        let text = given.text()?;
        let is_colour = text.len() == 7
            && text.starts_with('#')
            && text[1..].bytes().all(|letter| letter.is_ascii_hexdigit());
        if !is_colour {
            return Err("expected a colour such as \"#20427f\"".into());
        }
        if contrast_with_white(&text) < CONTRAST_MIN {
            return Err(format!("white letters can't be read on {text}; expected a darker colour"));
        }
        config.pages.accent = text;
        Ok(())
    },
};

/// What WCAG 2.2 asks for of text.
const CONTRAST_MIN: f64 = 4.5;

/// The contrast of WCAG between `#rrggbb` and white.
fn contrast_with_white(colour: &str) -> f64 {
    let part = |from: usize| {
        let value = u8::from_str_radix(&colour[from..from + 2], 16).unwrap_or(u8::MAX);
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
    1.05 / (luminance + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f8_white_letters_can_be_read_on_every_accent_that_is_taken() {
        assert!((contrast_with_white("#000000") - 21.0).abs() < 0.01);
        assert!((contrast_with_white("#ffffff") - 1.0).abs() < 0.01);
        assert!(contrast_with_white("#20427f") > CONTRAST_MIN);
        assert!(
            contrast_with_white("#777777") < CONTRAST_MIN && contrast_with_white("#757575") > CONTRAST_MIN
        );
    }
}
