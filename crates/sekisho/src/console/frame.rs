//! What every page is framed by: the menu, who is here, and what is said once.

use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::user::Rank;

use super::page::{Flash, Visit, Who};
use super::value_format::ValueFormat;
use super::waiting::{self, Waiting};
use super::{ROOT, assets, session};
use crate::view::show::Html;

pub struct Frame {
    pub lang: Language,
    pub who: Who,
    pub title: String,
    pub section: &'static str,
    pub flash: Option<Flash>,
    pub here: String,
    /// How values are written.
    pub show: ValueFormat,
    /// Whether somebody chose by whose clock times are shown.
    pub is_zone_chosen: bool,
    office: Zone,
    /// What waits for a person.
    pub waiting: Waiting,
    csrf: String,
}

/// A place in the menu.
pub struct Item {
    pub section: &'static str,
    pub path: &'static str,
    pub label: &'static str,
    /// How much waits there for a person; empty, if nothing does.
    pub count: String,
    /// Whether some of it is overdue.
    pub is_late: bool,
}

/// Section, path, and what it is called; a line without a path begins a group.
const MENU: &[(&str, &str, &str, &str)] = &[
    ("overview", "/console", "Overview", "概要"),
    ("alerts", "/console/alerts", "Alerts", "警報"),
    ("targets", "/console/targets", "Targets", "目標"),
    ("", "", "Money", "お金"),
    ("payments", "/console/payments", "Payments", "決済"),
    ("billing", "/console/billing", "Billing", "定期課金"),
    ("balances", "/console/balances", "Balances", "残高"),
    ("", "", "Orders", "注文"),
    ("reservations", "/console/reservations", "Reservations", "予約"),
    ("slots", "/console/slots", "Slots", "枠"),
    ("fulfilments", "/console/fulfilments", "Fulfilments", "制作"),
    ("cases", "/console/cases", "Cases", "対応案件"),
    ("compensations", "/console/compensations", "Compensation", "補償履歴"),
    ("inquiries", "/console/inquiries", "Inquiries", "お問い合わせ"),
    ("", "", "Traffic", "イベント"),
    ("events", "/console/events", "Events", "イベント"),
    ("deliveries", "/console/deliveries", "Deliveries", "配送"),
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
            show: ValueFormat {
                lang: visit.lang,
                zone: visit.zone.clone(),
                now: visit.at,
                shows_addresses: may_operate(&visit.who),
            },
            is_zone_chosen: visit.is_zone_chosen,
            office: visit.console.zone.clone(),
            waiting: visit.waiting,
            csrf: visit.csrf.clone(),
        }
    }

    pub fn t<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.lang.t(en, ja)
    }

    pub fn menu(&self) -> impl Iterator<Item = Item> {
        let (lang, waiting) = (self.lang, self.waiting);
        let is_admin = self.is_admin();
        let shown = MENU.iter().filter(move |item| is_admin || item.0 != "users");
        shown.map(move |&(section, path, en, ja)| {
            let (count, is_late) = match section {
                "cases" => (waiting.cases, waiting.overdue > 0),
                "inquiries" => (waiting.inquiries, false),
                _ => (0, false),
            };
            let count = if count == 0 { String::new() } else { waiting::shown(count) };
            Item { section, path, label: lang.t(en, ja), count, is_late }
        })
    }

    /// Whether whoever looks may act.
    pub fn may_operate(&self) -> bool {
        may_operate(&self.who)
    }

    pub fn is_admin(&self) -> bool {
        self.who.is_somebody() && self.who.rank >= Rank::Admin
    }

    /// Stands in every form.
    pub fn csrf(&self) -> Html {
        Html::new(format!("<input type=\"hidden\" name=\"{}\" value=\"{}\">", session::CSRF, self.csrf))
    }

    /// The address of a file of ours; it changes when the file does.
    #[expect(clippy::unused_self, reason = "templates find it at the frame")]
    pub fn asset(&self, name: &str) -> String {
        assets::address(name)
    }

    /// Whose clock times are shown by.
    pub fn zone(&self) -> &str {
        self.show.zone.name()
    }

    /// By whose clock they could be shown as well: the office's and UTC. A script adds the browser's.
    pub fn other_zones(&self) -> Vec<&str> {
        let mut others = vec![self.office.name(), "UTC"];
        others.dedup();
        others.retain(|zone| *zone != self.zone());
        others
    }

    /// The switch to another clock, and back to this page.
    pub fn zone_switch(&self, zone: &str) -> String {
        let pairs = [("to", &*self.here), ("zone", zone)];
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("{ROOT}/zone?{query}")
    }

    /// Cases that wait, in words of the overview.
    pub fn cases_waiting(&self) -> String {
        waiting::shown(self.waiting.cases)
    }

    /// The switch to the other language, and back to this page.
    pub fn language_switch(&self) -> String {
        let to: String = form_urlencoded::byte_serialize(self.here.as_bytes()).collect();
        format!("{ROOT}/language/{}?to={to}", self.lang.other().name())
    }
}

fn may_operate(who: &Who) -> bool {
    who.is_somebody() && who.rank >= Rank::Operator
}
