//! What every page is framed by: the menu, who is here, what is said once, and how things are written down.

use std::fmt;

use sekisho_core::Time;
use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::mail_address::mask_text;
use sekisho_core::user::Rank;

use super::page::{Flash, Visit, Who};
use super::{ROOT, assets, session};
use crate::view::{
    show::{self, Html},
    words,
};

pub struct Frame {
    pub lang: Language,
    pub who: Who,
    pub title: String,
    pub section: &'static str,
    pub flash: Option<Flash>,
    pub here: String,
    pub now: Time,
    csrf: String,
    zone: Zone,
}

/// A place in the menu.
pub struct Item {
    pub section: &'static str,
    pub path: &'static str,
    pub label: &'static str,
}

/// Section, path, and what it is called; a line without a path begins a group.
const MENU: &[(&str, &str, &str, &str)] = &[
    ("overview", "/console", "Overview", "概要"),
    ("", "", "Money", "お金"),
    ("payments", "/console/payments", "Payments", "決済"),
    ("billing", "/console/billing", "Billing", "定期課金"),
    ("balances", "/console/balances", "Balances", "残高"),
    ("", "", "Traffic", "イベント"),
    ("events", "/console/events", "Events", "イベント"),
    ("dead", "/console/dead", "Dead letters", "デッドレター"),
    ("sources", "/console/sources", "Sources and routes", "送信元と配送先"),
    ("reconciliation", "/console/reconciliation", "Reconciliation", "照合"),
    ("schedules", "/console/schedules", "Schedules", "スケジュール"),
    ("", "", "People", "連絡"),
    ("notices", "/console/notices", "Notifications", "通知"),
    ("suppressions", "/console/suppressions", "Suppression list", "配信停止リスト"),
    ("", "", "Safety", "安全"),
    ("rejections", "/console/rejections", "Rejected requests", "拒否したリクエスト"),
    ("audit", "/console/audit", "Audit log", "監査ログ"),
    ("users", "/console/users", "Users and keys", "利用者とキー"),
];

impl Frame {
    pub fn new(visit: &Visit, section: &'static str, title: String) -> Self {
        Self {
            lang: visit.lang,
            who: visit.who.clone(),
            title,
            section,
            flash: visit.flash.clone(),
            here: visit.here.clone(),
            now: visit.at,
            csrf: visit.csrf.clone(),
            zone: visit.console.zone.clone(),
        }
    }

    pub fn t<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.lang.t(en, ja)
    }

    pub fn menu(&self) -> impl Iterator<Item = Item> {
        let lang = self.lang;
        let is_admin = self.is_admin();
        let shown = MENU.iter().filter(move |item| is_admin || item.0 != "users");
        shown.map(move |&(section, path, en, ja)| Item { section, path, label: lang.t(en, ja) })
    }

    /// Whether whoever looks may act.
    pub fn may_operate(&self) -> bool {
        self.who.is_somebody() && self.who.rank >= Rank::Operator
    }

    pub fn is_admin(&self) -> bool {
        self.who.is_somebody() && self.who.rank >= Rank::Admin
    }

    /// Stands in every form.
    pub fn csrf(&self) -> Html {
        Html::new(format!("<input type=\"hidden\" name=\"{}\" value=\"{}\">", session::CSRF, self.csrf))
    }
}

/// How things are written down.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    clippy::unused_self,
    reason = "templates hand over fields by reference, and find all of these at the frame"
)]
impl Frame {
    /// The address of a file of ours; it changes when the file does.
    pub fn asset(&self, name: &str) -> String {
        assets::address(name)
    }

    /// Whose clock times are shown by.
    pub fn zone(&self) -> &str {
        self.zone.name()
    }

    /// The switch to the other language, and back to this page.
    pub fn language_switch(&self) -> String {
        let to: String = form_urlencoded::byte_serialize(self.here.as_bytes()).collect();
        format!("{ROOT}/language/{}?to={to}", self.lang.other().name())
    }

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
        if self.may_operate() { text.to_owned() } else { mask_text(text) }
    }

    /// A status in words alone.
    pub fn label<'a>(&self, word: &'a str) -> &'a str {
        words::status(word, self.lang).1
    }

    /// Why, in words.
    pub fn reason<'a>(&self, code: &'a str) -> &'a str {
        words::reason(code, self.lang)
    }

    /// A status as a badge.
    pub fn badge(&self, word: impl fmt::Display) -> Html {
        let word = word.to_string();
        let (tone, text) = words::status(&word, self.lang);
        Html::new(format!("<span class=\"badge {}\">{}</span>", tone.class(), show::escape(text)))
    }
}
