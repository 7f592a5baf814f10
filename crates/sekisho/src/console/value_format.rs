//! How values are written on a page: times by the house's clock, words in the reader's language, mail addresses only for
//! readers who may see them.

use std::fmt;

use sekisho_core::Time;
use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::mail_address::mask_text;

use crate::types::Outage;
use crate::view::{
    show::{self, Html},
    words,
};

pub struct ValueFormat {
    pub lang: Language,
    pub zone: Zone,
    pub now: Time,
    /// Whether mail addresses in texts from outside are left whole.
    pub shows_addresses: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    clippy::unused_self,
    reason = "templates hand over fields by reference, and find all of these in one place"
)]
impl ValueFormat {
    pub fn time(&self, at: &Time) -> Html {
        show::time(*at, &self.zone)
    }

    pub fn time_or_none(&self, at: &Option<Time>) -> Html {
        at.as_ref().map_or_else(|| Html::new("<span class=\"none\">–</span>".into()), |at| self.time(at))
    }

    /// `3 min ago`, with the time itself behind it.
    pub fn ago(&self, at: &Time) -> Html {
        show::ago(*at, self.now, &self.zone, self.lang)
    }

    pub fn money(&self, amount: &i64, currency: &str) -> String {
        show::money(*amount, currency)
    }

    /// A whole number, also by reference: so templates hand it over.
    pub fn number(&self, number: impl fmt::Display) -> String {
        show::grouped(&number.to_string())
    }

    /// A text that somebody outside wrote: whoever may only look sees no whole mail address in it.
    pub fn text(&self, text: &str) -> String {
        if self.shows_addresses { text.to_owned() } else { mask_text(text) }
    }

    /// A status in words alone.
    pub fn label<'a>(&self, word: &'a str) -> &'a str {
        words::status(word, self.lang).1
    }

    /// Why, in words.
    pub fn reason<'a>(&self, code: &'a str) -> &'a str {
        words::reason(code, self.lang)
    }

    /// What waits for a destination that does not answer.
    pub fn outage(&self, outage: &Outage) -> String {
        words::outage(outage, self.now, self.lang)
    }

    /// A status as a badge.
    pub fn badge(&self, word: impl fmt::Display) -> Html {
        let word = word.to_string();
        let (tone, text) = words::status(&word, self.lang);
        Html::new(format!("<span class=\"badge {}\">{}</span>", tone.class(), show::escape(text)))
    }
}
