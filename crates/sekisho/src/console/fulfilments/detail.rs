//! One fulfilment: its runs with their errors, the next deadline, when the money goes back; trying again, and saying by hand
//! what became of a run.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::fulfilment::{FulfilmentFacts, FulfilmentStatus, RunResult};
use sekisho_core::language::Language;
use sekisho_core::settlement::follow::{OrderPolicy, view};

use super::address;
use crate::acts;
use crate::console::frame::Frame;
use crate::console::order_parts::{self, CaseRow, CompensationRow};
use crate::console::page::{Answer, Reply, Visit};
use crate::console::trouble::{Resource, Trouble};
use crate::queries::{self, OrderRecords};
use crate::types::{FulfilmentResult, FulfilmentRun};

#[expect(clippy::struct_excessive_bools, reason = "a page asks each by itself")]
#[derive(Template)]
#[template(path = "console/fulfilment.html")]
struct FulfilmentPage {
    f: Frame,
    id: String,
    called: String,
    kind: String,
    status: &'static str,
    tier: &'static str,
    tone: &'static str,
    standing: String,
    moment: Option<Time>,
    refund_by: Option<Time>,
    is_downgraded: bool,
    expires_at: Option<Time>,
    url: String,
    input: String,
    customer: String,
    tenant: String,
    is_test: bool,
    created_at: Time,
    attempts: u32,
    /// The reservation and the payment, with their pages.
    parts: Vec<(&'static str, String, String)>,
    /// The newest first.
    runs: Vec<FulfilmentRun>,
    cases: Vec<CaseRow>,
    compensations: Vec<CompensationRow>,
    may_retry: bool,
    may_report: bool,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let (store, policy, lang) = (&*visit.console.store, &visit.console.known.orders, visit.lang);
    let id = visit.id.clone();
    let unknown = || Trouble::unknown(Resource::Fulfilment, &visit.id);
    let mut records = queries::order_records(store, policy, &id).await?.ok_or_else(unknown)?;
    let facts = records.order.fulfilments.remove(&id).ok_or_else(unknown)?;
    let payment = records.order.payment.as_ref().map(|(_, facts)| facts);
    let tier = view::tier(&facts, payment);
    let shown: crate::types::Fulfilment = serde_json::from_value(view::fulfilment(&id, &facts, tier, policy))
        .map_err(sekisho_store::Error::corrupt)?;
    let refund_by = refund_by(&records, &facts, policy);
    let (tone, standing, moment) = standing(&facts, policy, lang);
    let status = facts.status(policy.attempts);
    let f = visit.frame("fulfilments", lang.t("Fulfilment", "制作"));
    let is_stopped = facts.downgraded_at.is_some() || facts.stopped_at.is_some();
    let parts =
        [(lang.t("Reservation", "予約"), shown.reservation), (lang.t("Payment", "決済"), shown.payment)];
    let parts = parts.into_iter().filter_map(|(label, id)| {
        let id = id?;
        Some((label, order_parts::address(&id)?, id))
    });
    let input = shown.input.as_ref().map(|input| serde_json::to_string_pretty(input).unwrap_or_default());
    Reply::page(&FulfilmentPage {
        called: shown.name.unwrap_or_default(),
        kind: shown.kind,
        status: status.name(),
        tier: tier.name(),
        tone,
        standing,
        moment,
        refund_by,
        is_downgraded: shown.downgraded,
        expires_at: shown.expires_at,
        url: shown.url.unwrap_or_default(),
        input: input.unwrap_or_default(),
        customer: shown.customer.unwrap_or_default(),
        tenant: shown.tenant.unwrap_or_default(),
        is_test: !shown.livemode,
        created_at: shown.created_at,
        attempts: policy.attempts.saturating_add(facts.more_runs),
        parts: parts.collect(),
        runs: shown.runs.into_iter().rev().collect(),
        cases: CaseRow::all(&records, policy, lang, visit.at)?,
        compensations: CompensationRow::all(records, lang),
        may_retry: f.may_operate() && status == FulfilmentStatus::Failed && !is_stopped,
        may_report: f.may_operate() && !facts.runs.is_empty(),
        id,
        f,
    })
}

/// When a rule gives the money back, if nothing changes.
fn refund_by(records: &OrderRecords, facts: &FulfilmentFacts, policy: &OrderPolicy) -> Option<Time> {
    let cases = facts.cases.iter().filter_map(|id| records.order.cases.get(id));
    cases.filter_map(|case| view::refund_at(case, &policy.rules)).min()
}

/// One sentence, and the moment it speaks of: when something happens by itself.
fn standing(
    facts: &FulfilmentFacts,
    policy: &OrderPolicy,
    lang: Language,
) -> (&'static str, String, Option<Time>) {
    let newest = facts.newest();
    let ended_at = newest.and_then(|(_, run)| run.ended_at);
    let (tone, en, ja, moment) = match facts.status(policy.attempts) {
        _ if facts.stopped_at.is_some() => (
            "plain",
            "Nothing more is asked for: its reservation was cancelled.",
            "予約がキャンセルされたため、制作は停止しています。",
            facts.stopped_at,
        ),
        FulfilmentStatus::Waiting => (
            "wait",
            "It is asked for once it is paid for, or its reservation is confirmed.",
            "入金または予約の確定後に、制作を依頼します。",
            None,
        ),
        FulfilmentStatus::Processing if newest.is_some_and(|(_, run)| run.result == RunResult::Failed) => (
            "wait",
            "The last run failed; the next one is asked for by itself.",
            "前回の制作に失敗しました。自動的に再依頼します。",
            ended_at,
        ),
        FulfilmentStatus::Processing => (
            "wait",
            "It is being made. Without a result, the run counts as failed at:",
            "制作中です。結果が届かない場合、次の時刻に失敗とみなします：",
            newest.and_then(|(_, run)| run.requested_at).map(|at| at.plus_ms(policy.timeout_ms)),
        ),
        FulfilmentStatus::Done => ("good", "It was made.", "制作は完了しています。", ended_at),
        FulfilmentStatus::Failed => (
            "bad",
            "It failed as often as is allowed. Nothing more is tried by itself.",
            "規定の回数失敗しました。自動では再試行しません。",
            ended_at,
        ),
    };
    (tone, lang.t(en, ja).to_owned(), moment)
}

pub(super) async fn retry(visit: Visit) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let reason = visit.field("reason").unwrap_or_default();
    let retried =
        acts::retry_fulfilment(store, visit.console.env(), policy, &visit.id, reason, &visit.actor()).await;
    visit.after(&address(&visit.id), retried, ("One more run is asked for.", "もう一度制作を依頼しました。"))
}

pub(super) async fn result(visit: Visit) -> Answer {
    let (store, policy, lang) = (&*visit.console.store, &visit.console.known.orders, visit.lang);
    let home = address(&visit.id);
    let text = |name: &str| visit.field(name).map(str::to_owned);
    let body = FulfilmentResult {
        run: visit.field("run").and_then(|run| run.parse().ok()).unwrap_or_default(),
        status: text("status").unwrap_or_default(),
        error: text("error"),
        url: text("url"),
    };
    let taken = acts::take_result(store, visit.console.env(), policy, &visit.id, body, &visit.actor()).await;
    match taken {
        Err(refusal) => visit.refused(&home, refusal),
        Ok(taken) if taken.counted => {
            Reply::done(home, lang.t("The result was recorded.", "結果を記録しました。"))
        }
        Ok(taken) => {
            let why = match taken.why.as_deref() {
                Some("older_run") => {
                    lang.t("another run was asked for since", "より新しい制作が依頼されています")
                }
                Some("done") => lang.t("the run is done already", "この回はすでに完了しています"),
                _ => lang.t("it was said before", "同じ結果がすでに記録されています"),
            };
            let text = lang.t("The result does not count:", "この結果は反映されません：");
            Reply::failed(home, format!("{text} {why}"))
        }
    }
}
