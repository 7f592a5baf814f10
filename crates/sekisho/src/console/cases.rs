//! Cases: what went wrong with orders, by when somebody must answer, when the money goes back, and who sees to it.

mod detail;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::case::CaseStatus;
use sekisho_core::compensation::CompensationRule;
use sekisho_core::language::Language;
use sekisho_core::state::Kind;
use sekisho_store::{FIND_MAX, StateFilter};

use super::frame::Frame;
use super::order_parts::CaseRow;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::queries;
use crate::types::Case;
use crate::view::order_words;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/cases",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/cases/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(detail::show(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/cases/{id}/acknowledge",
        needs: OPERATOR,
        run: |visit| Box::pin(detail::acknowledge(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/cases/{id}/resolve",
        needs: OPERATOR,
        run: |visit| Box::pin(detail::resolve(visit)),
    },
];

/// Cases on a page.
const PAGE: usize = 50;
/// What is shown if no status is chosen: all that is not over.
const UNRESOLVED: &str = "unresolved";

#[derive(Template)]
#[template(path = "console/cases.html")]
struct CasesPage {
    f: Frame,
    status: String,
    trigger: String,
    tenant: String,
    mode: String,
    statuses: Vec<(&'static str, &'static str)>,
    triggers: Vec<(String, String)>,
    rows: Vec<CaseRow>,
    /// The number of the next page.
    next: Option<usize>,
    /// More match than were sorted.
    is_cut: bool,
    sorted_max: usize,
}

/// The triggers of all rules, with their words.
pub fn triggers(rules: &[CompensationRule], lang: Language) -> Vec<(String, String)> {
    let mut all: Vec<&String> = rules.iter().map(|rule| &rule.trigger).collect();
    all.sort();
    all.dedup();
    let named = |code: &String| (code.clone(), order_words::trigger(code, lang).to_owned());
    all.into_iter().map(named).collect()
}

/// What operators must see to comes first: overdue, then by the next deadline; what is over, the newest first.
fn urgency(case: &Case) -> (bool, Time, Time) {
    let never = Time::from_ms(i64::MAX);
    if let Some(word) = &case.resolved {
        return (true, Time::from_ms(-word.at.ms()), never);
    }
    let answer_by = case.respond_by.filter(|_| case.status == CaseStatus::Open.name());
    let first = answer_by.into_iter().chain(case.refund_at).min().unwrap_or(never);
    (!case.overdue, first, case.since.unwrap_or(never))
}

async fn list(visit: Visit) -> Answer {
    let (store, policy, lang) = (&*visit.console.store, &visit.console.known.orders, visit.lang);
    let chosen = visit.param("status").unwrap_or(UNRESOLVED).to_owned();
    let wanted: Vec<CaseStatus> = match CaseStatus::parse(&chosen) {
        Some(status) => vec![status],
        None if chosen == UNRESOLVED => vec![CaseStatus::Open, CaseStatus::Acknowledged],
        None => {
            let names = CaseStatus::ALL.map(CaseStatus::name).join(", ");
            return Err(Trouble::wrong(format!("status: expected one of {names}")));
        }
    };
    let (mut cases, mut is_cut) = (Vec::new(), false);
    for status in wanted {
        let filter = StateFilter {
            status: Some(status.name().to_owned()),
            attention: visit.text("trigger"),
            tenant: visit.text("tenant"),
            livemode: visit.livemode(),
            ..StateFilter::all(Kind::Case, FIND_MAX)
        };
        let states = store.find_states(filter).await?;
        is_cut |= states.len() == FIND_MAX;
        for state in &states {
            cases.push(queries::case_view(state, policy, visit.at)?);
        }
    }
    cases.sort_by_key(urgency);
    let page: usize = visit.param("page").and_then(|page| page.parse().ok()).unwrap_or(1).max(1);
    let begin = (page - 1).saturating_mul(PAGE).min(cases.len());
    let next = (cases.len() > begin + PAGE).then_some(page + 1);
    let rows = cases.into_iter().skip(begin).take(PAGE).map(|case| CaseRow::of(case, lang)).collect();
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&CasesPage {
        f: visit.frame("cases", lang.t("Cases", "対応案件")),
        status: chosen,
        trigger: text("trigger"),
        tenant: text("tenant"),
        mode: text("mode"),
        statuses: vec![
            (UNRESOLVED, lang.t("not resolved", "未解決")),
            ("open", lang.t("open", "未対応")),
            ("acknowledged", lang.t("acknowledged", "対応中")),
            ("resolved", lang.t("resolved", "解決済み")),
        ],
        triggers: triggers(&policy.rules, lang),
        rows,
        next,
        is_cut,
        sorted_max: FIND_MAX,
    })
}

fn address(id: &str) -> String {
    format!("/console/cases/{id}")
}
