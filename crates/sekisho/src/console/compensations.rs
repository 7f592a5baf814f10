//! What was done because something had gone wrong, and the rules: which are in force, which hold for an order now, and when
//! they act.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::compensation::CompensationKind;
use sekisho_core::state::Kind;
use sekisho_store::{FIND_MAX, StateFilter};

use super::cases::triggers;
use super::frame::Frame;
use super::order_parts::{self, CompensationRow};
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::queries;
use crate::types::{CheckedRule, CompensationRule};
use crate::view::order_words;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/compensations",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/compensation_rules",
        needs: VIEWER,
        run: |visit| Box::pin(rules(visit)),
    },
];

/// Entries on a page.
const PAGE: usize = 50;

/// Triggers that no rule has.
const OWN_TRIGGERS: [&str; 5] = ["WEBHOOK_DELAY", "CUSTOMER_CANCEL", "OPERATOR", "AUTOMATIC", "PROVIDER"];

#[derive(Template)]
#[template(path = "console/compensations.html")]
struct CompensationsPage {
    f: Frame,
    kind: String,
    trigger: String,
    tenant: String,
    mode: String,
    kinds: Vec<(&'static str, &'static str)>,
    triggers: Vec<(String, String)>,
    compensations: Vec<CompensationRow>,
    /// The number of the next page.
    next: Option<usize>,
    /// More match than were sorted.
    is_cut: bool,
    sorted_max: usize,
}

async fn list(visit: Visit) -> Answer {
    let lang = visit.lang;
    let kind = visit.text("type");
    if kind.as_deref().is_some_and(|kind| CompensationKind::parse(kind).is_none()) {
        let names = CompensationKind::ALL.map(CompensationKind::name).join(", ");
        return Err(Trouble::wrong(format!("type: expected one of {names}")));
    }
    // Their ids say what was done, not when: the newest first are those of what is read at once.
    let filter = StateFilter {
        status: kind,
        attention: visit.text("trigger"),
        tenant: visit.text("tenant"),
        livemode: visit.livemode(),
        ..StateFilter::all(Kind::Compensation, FIND_MAX)
    };
    let states = visit.console.store.find_states(filter).await?;
    let is_cut = states.len() == FIND_MAX;
    let mut entries = states.iter().map(queries::compensation_view).collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    let page: usize = visit.param("page").and_then(|page| page.parse().ok()).unwrap_or(1).max(1);
    let begin = (page - 1).saturating_mul(PAGE).min(entries.len());
    let next = (entries.len() > begin + PAGE).then_some(page + 1);
    let shown = entries.into_iter().skip(begin).take(PAGE);
    let mut known = triggers(&visit.console.known.orders.rules, lang);
    known.extend(OWN_TRIGGERS.map(|code| (code.to_owned(), order_words::trigger(code, lang).to_owned())));
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&CompensationsPage {
        f: visit.frame("compensations", lang.t("Compensation log", "補償履歴")),
        kind: text("type"),
        trigger: text("trigger"),
        tenant: text("tenant"),
        mode: text("mode"),
        kinds: CompensationKind::ALL
            .map(|kind| (kind.name(), order_words::compensation(kind.name(), lang)))
            .to_vec(),
        triggers: known,
        compensations: shown.map(|entry| CompensationRow::of(entry, lang)).collect(),
        next,
        is_cut,
        sorted_max: FIND_MAX,
    })
}

#[derive(Template)]
#[template(path = "console/compensation_rules.html")]
struct RulesPage {
    f: Frame,
    /// As typed.
    order: String,
    order_href: Option<String>,
    /// Those that hold first; none, if no order was named.
    checked: Option<Vec<CheckedRow>>,
    missing: bool,
    rows: Vec<RuleRow>,
}

struct CheckedRow {
    rule: String,
    status: &'static str,
    action: String,
    subject: String,
    subject_href: Option<String>,
    since: Option<Time>,
    acts_at: Option<Time>,
    /// Only one that was opened.
    case_href: Option<String>,
    error: String,
}

struct RuleRow {
    name: String,
    trigger: String,
    when: String,
    after: String,
    action: String,
    level: u8,
    tell: String,
    respond_within: String,
    is_enabled: bool,
}

impl CheckedRow {
    fn of(one: CheckedRule, visit: &Visit) -> Self {
        let status = match one.status.as_str() {
            "waiting" => "rule_waiting",
            "done" => "acted",
            "stopped" => "stopped",
            "unanswered" => "unanswered",
            _ => "idle",
        };
        let is_opened = matches!(status, "rule_waiting" | "acted" | "stopped");
        Self {
            rule: one.rule,
            status,
            action: order_words::action(&one.action, visit.lang).to_owned(),
            subject_href: order_parts::address(&one.subject),
            subject: one.subject,
            since: one.since,
            acts_at: one.acts_at,
            case_href: order_parts::address(&one.case).filter(|_| is_opened),
            error: one.error.unwrap_or_default(),
        }
    }

    const fn rank(&self) -> u8 {
        match self.status.as_bytes() {
            b"rule_waiting" => 0,
            b"acted" => 1,
            b"stopped" => 2,
            b"unanswered" => 3,
            _ => 4,
        }
    }
}

async fn rules(visit: Visit) -> Answer {
    let (store, policy, lang) = (&*visit.console.store, &visit.console.known.orders, visit.lang);
    let order = visit.text("order");
    let checked = match &order {
        Some(id) => queries::check_rules(store, policy, id, visit.at).await?,
        None => None,
    };
    let missing = order.is_some() && checked.is_none();
    let checked = checked.map(|(check, _)| {
        let mut rows: Vec<_> = check.rules.into_iter().map(|one| CheckedRow::of(one, &visit)).collect();
        rows.sort_by_key(|row| (row.rank(), row.acts_at));
        rows
    });
    let span = |seconds: i64| match seconds {
        0 => lang.t("at once", "即時").to_owned(),
        seconds if seconds % 3_600 == 0 => format!("{} {}", seconds / 3_600, lang.t("h", "時間")),
        seconds if seconds % 60 == 0 => format!("{} {}", seconds / 60, lang.t("min", "分")),
        seconds => format!("{seconds} {}", lang.t("s", "秒")),
    };
    let row = |rule: CompensationRule| RuleRow {
        trigger: order_words::trigger(&rule.trigger, lang).to_owned(),
        after: span(rule.after_seconds),
        action: order_words::action(&rule.action, lang).to_owned(),
        respond_within: if rule.respond_within_seconds == 0 {
            String::new()
        } else {
            span(rule.respond_within_seconds)
        },
        tell: rule.tell.join(", "),
        name: rule.name,
        when: rule.when,
        level: rule.level,
        is_enabled: rule.enabled,
    };
    Reply::page(&RulesPage {
        order_href: order.as_deref().and_then(order_parts::address),
        order: order.unwrap_or_default(),
        checked,
        missing,
        rows: queries::compensation_rules(policy).map(row).collect(),
        f: visit.frame("compensations", lang.t("Compensation rules", "補償ルール")),
    })
}
