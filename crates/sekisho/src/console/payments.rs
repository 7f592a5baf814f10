//! Payments: where each stands, which facts say so, and where they came from.

mod detail;
mod proof;
mod refund;
mod timeline;
mod why;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::settlement::payment::{Attention, Derived, Facts, PaymentStatus};
use sekisho_core::state::{Kind, State};
use sekisho_store::StateFilter;

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use crate::types::Owner;
use crate::{queries, view};

pub(super) use timeline::{TimelineItem, decided};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/payments",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/payments/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(detail::show(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/payments/{id}/refund",
        needs: OPERATOR,
        run: |visit| Box::pin(refund::ask(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/payments/{id}/refund",
        needs: OPERATOR,
        run: |visit| Box::pin(refund::order(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/payments/{id}/release",
        needs: OPERATOR,
        run: |visit| Box::pin(refund::release(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/payments/{id}/proof.html",
        needs: VIEWER,
        run: |visit| Box::pin(proof::html(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/payments/{id}/proof.json",
        needs: VIEWER,
        run: |visit| Box::pin(proof::json(visit)),
    },
];

/// Payments on a page.
const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/payments.html")]
struct PaymentsPage {
    f: Frame,
    q: String,
    status: String,
    attention: String,
    tenant: String,
    customer: String,
    mode: String,
    statuses: [&'static str; 9],
    attentions: [&'static str; 12],
    rows: Vec<PaymentRow>,
    /// Where the next page begins.
    next: Option<String>,
}

struct PaymentRow {
    id: String,
    reference: String,
    status: String,
    amount: Option<i64>,
    currency: String,
    attention: Option<String>,
    tenant: String,
    customer: String,
    is_test: bool,
    created_at: Time,
    changed_at: Time,
}

impl PaymentRow {
    fn of(state: &State, owner: Owner) -> Self {
        let facts = Facts::parse(&state.facts).ok();
        let reference = facts.as_ref().and_then(|facts| Derived::of(facts).reference);
        Self {
            id: state.key.id.clone(),
            reference: reference.unwrap_or_default(),
            status: state.index.status.clone().unwrap_or_default(),
            amount: state.index.amount,
            currency: state.index.currency.clone().unwrap_or_default(),
            attention: state.index.attention.clone(),
            tenant: owner.tenant.unwrap_or_default(),
            customer: owner.customer.unwrap_or_default(),
            is_test: state.index.livemode == Some(false),
            created_at: state.created_at,
            changed_at: state.changed_at,
        }
    }
}

async fn list(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let statuses = PaymentStatus::ALL.map(PaymentStatus::name);
    let things = visit.things(Kind::Payment, &statuses, PAGE)?;
    let (q, filter) = (visit.text("q"), StateFilter { customer: visit.text("customer"), ..things });
    let states = match &q {
        Some(q) => {
            let found = queries::payments_by_reference(store, q, None).await?;
            if let [only] = &found[..] {
                return Ok(Reply::Go { to: address(&only.key.id), flash: None });
            }
            found
        }
        None => store.find_states(filter).await?,
    };
    let next = states.last().filter(|_| q.is_none() && states.len() == PAGE).map(|last| last.key.id.clone());
    let shown: Vec<_> = states.iter().filter(|state| state.is_shown()).collect();
    let owner =
        |state: &&State| Owner { tenant: state.index.tenant.clone(), customer: state.index.customer.clone() };
    let mut owners: Vec<_> = shown.iter().map(owner).collect();
    view::unlink(store, &mut owners).await?;
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&PaymentsPage {
        f: visit.frame("payments", visit.lang.t("Payments", "決済")),
        q: q.unwrap_or_default(),
        status: text("status"),
        attention: text("attention"),
        tenant: text("tenant"),
        customer: text("customer"),
        mode: text("mode"),
        statuses,
        attentions: Attention::ALL.map(Attention::name),
        rows: shown.iter().zip(owners).map(|(state, owner)| PaymentRow::of(state, owner)).collect(),
        next,
    })
}

fn address(id: &str) -> String {
    format!("/console/payments/{id}")
}
