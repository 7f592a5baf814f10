//! What the pages of orders have in common: links between the parts of one, its cases, and what was done for it.

use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::settlement::follow::{OrderPolicy, view};
use sekisho_core::state::{Key, Kind};
use sekisho_core::{case, fulfilment, inquiry, reservation};
use sekisho_store::{Error, Store};

use super::trouble::Trouble;
use crate::queries::{self, OrderRecords};
use crate::types::{Case, Compensation};
use crate::view::{order_words, show};

/// Parts of an order that are shown.
const PARTS_MAX: usize = 50;

/// The page of a part of an order, by its id.
pub fn address(id: &str) -> Option<String> {
    let kinds = [
        (reservation::TAG, "reservations"),
        (fulfilment::TAG, "fulfilments"),
        (case::TAG, "cases"),
        (inquiry::TAG, "inquiries"),
        ("pay_", "payments"),
    ];
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let kind = kinds.iter().find(|(tag, _)| id.starts_with(tag)).filter(|_| is_plain);
    kind.map(|(_, kind)| format!("/console/{kind}/{id}"))
}

/// A part of an order as others show it.
pub struct PartRow {
    pub label: &'static str,
    pub id: String,
    pub href: String,
    /// A word for a badge.
    pub status: String,
}

/// The reservations, fulfilments and cases of the order that this payment, reservation or fulfilment belongs to, with where
/// each stands.
pub async fn parts(
    store: &dyn Store,
    policy: &OrderPolicy,
    id: &str,
    lang: Language,
    at: Time,
) -> Result<Vec<PartRow>, Trouble> {
    let Some(OrderRecords { order, .. }) = queries::order_records(store, policy, id).await? else {
        return Ok(Vec::new());
    };
    let reserved = order.reservations.into_keys().map(|id| Key::new(Kind::Reservation, id));
    let made = order.fulfilments.into_keys().map(|id| Key::new(Kind::Fulfilment, id));
    let cases = order.cases.into_keys().map(|id| Key::new(Kind::Case, id));
    let keys: Vec<Key> = reserved.chain(made).chain(cases).take(PARTS_MAX).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let loaded = store.load(Vec::new(), keys).await?;
    let mut rows = Vec::new();
    for (key, state) in loaded.states {
        let (label, status) = match key.kind {
            Kind::Reservation => {
                let shown = queries::reservation_view(&state, policy, at)?;
                (lang.t("Reservation", "予約"), shown.status)
            }
            Kind::Fulfilment => {
                (lang.t("Fulfilment", "制作"), state.index.status.clone().unwrap_or_default())
            }
            _ => (lang.t("Case", "対応案件"), case_word(state.index.status.as_deref().unwrap_or_default())),
        };
        let href = address(&key.id).unwrap_or_default();
        rows.push(PartRow { label, id: key.id, href, status });
    }
    Ok(rows)
}

/// The word of a case's status for a badge: a breaker is open, too, and that is something else.
pub fn case_word(status: &str) -> String {
    if status == "open" { "case_open".to_owned() } else { status.to_owned() }
}

/// A case in a list.
pub struct CaseRow {
    pub id: String,
    pub trigger: String,
    pub subject: String,
    pub subject_href: Option<String>,
    pub status: String,
    pub is_overdue: bool,
    pub level: u8,
    pub since: Option<Time>,
    /// Only while nobody has answered.
    pub respond_by: Option<Time>,
    pub refund_at: Option<Time>,
    pub resolved_at: Option<Time>,
    pub tenant: String,
    pub is_test: bool,
}

impl CaseRow {
    pub fn of(case: Case, lang: Language) -> Self {
        let is_open = case.status == "open";
        Self {
            trigger: order_words::trigger(&case.trigger, lang).to_owned(),
            subject_href: address(&case.subject),
            subject: case.subject,
            status: case_word(&case.status),
            is_overdue: case.overdue,
            level: case.level,
            since: case.since,
            respond_by: case.respond_by.filter(|_| is_open),
            refund_at: case.refund_at,
            resolved_at: case.resolved.map(|word| word.at),
            tenant: case.tenant.unwrap_or_default(),
            is_test: case.livemode == Some(false),
            id: case.id,
        }
    }

    /// The cases of an order, those that wait first.
    pub fn all(
        records: &OrderRecords,
        policy: &OrderPolicy,
        lang: Language,
        at: Time,
    ) -> Result<Vec<Self>, Trouble> {
        let mut cases: Vec<Case> = Vec::new();
        for (id, facts) in &records.order.cases {
            let shown = view::case(id, facts, &policy.rules, at);
            cases.push(serde_json::from_value(shown).map_err(Error::corrupt)?);
        }
        cases.sort_by_key(|case| (case.status == "resolved", !case.overdue, case.since));
        Ok(cases.into_iter().map(|case| Self::of(case, lang)).collect())
    }
}

/// An entry of the compensation log.
pub struct CompensationRow {
    pub kind: String,
    pub trigger: String,
    pub amount: String,
    pub by: String,
    pub notes: String,
    pub at: Time,
    /// The parts of its order, with their pages.
    pub parts: Vec<(String, String)>,
    pub tenant: String,
    pub is_test: bool,
}

impl CompensationRow {
    pub fn of(entry: Compensation, lang: Language) -> Self {
        let money =
            entry.amount.map(|amount| show::money(amount, entry.currency.as_deref().unwrap_or_default()));
        let parts = [entry.reservation, entry.payment, entry.fulfilment].into_iter().flatten();
        Self {
            kind: order_words::compensation(&entry.kind, lang).to_owned(),
            trigger: order_words::trigger(&entry.trigger, lang).to_owned(),
            amount: money.unwrap_or_default(),
            by: order_words::by(&entry.resolved_by, lang),
            notes: entry.notes.unwrap_or_default(),
            at: entry.at,
            parts: parts.filter_map(|id| Some((address(&id)?, id))).collect(),
            tenant: entry.tenant.unwrap_or_default(),
            is_test: entry.livemode == Some(false),
        }
    }

    pub fn all(records: OrderRecords, lang: Language) -> Vec<Self> {
        records.compensations.into_iter().map(|entry| Self::of(entry, lang)).collect()
    }
}
