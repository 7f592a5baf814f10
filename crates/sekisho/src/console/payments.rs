//! Payments: where each stands, which facts say so, and where they came from.

mod detail;
mod proof;
mod timeline;
mod why;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::settlement::payment::{Attention, Derived, Facts, Status};
use sekisho_core::state::{Kind, State};
use sekisho_store::StateFilter;
use serde_json::{Value, json};

use super::frame::Frame;
use super::page::{Answer, Method, Page, Reply, VIEWER, Visit};
use crate::{acts, view};

pub(super) use timeline::{Item, decided};

pub const PAGES: &[Page] = &[
    Page {
        method: Method::Get,
        path: "/console/payments",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: Method::Get,
        path: "/console/payments/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(detail::show(visit)),
    },
    Page {
        method: Method::Get,
        path: "/console/payments/{id}/proof.html",
        needs: VIEWER,
        run: |visit| Box::pin(proof::html(visit)),
    },
    Page {
        method: Method::Get,
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
    attentions: [&'static str; 9],
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
    fn of(state: &State, links: &Value) -> Self {
        let facts = Facts::parse(&state.facts).ok();
        let reference = facts.as_ref().and_then(|facts| Derived::of(facts).reference);
        let text = |name: &str| links[name].as_str().unwrap_or_default().to_owned();
        Self {
            id: state.key.id.clone(),
            reference: reference.unwrap_or_default(),
            status: state.index.status.clone().unwrap_or_default(),
            amount: state.index.amount,
            currency: state.index.currency.clone().unwrap_or_default(),
            attention: state.index.attention.clone(),
            tenant: text("tenant"),
            customer: text("customer"),
            is_test: state.index.livemode == Some(false),
            created_at: state.created_at,
            changed_at: state.changed_at,
        }
    }
}

async fn list(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let statuses = Status::ALL.map(Status::name);
    let things = visit.things(Kind::Payment, &statuses, PAGE)?;
    let (q, filter) = (visit.text("q"), StateFilter { customer: visit.text("customer"), ..things });
    let states = match &q {
        Some(q) => {
            let found = acts::payments_by_reference(store, q, None).await?;
            if let [only] = &found[..] {
                return Ok(Reply::Go { to: address(&only.key.id), flash: None });
            }
            found
        }
        None => store.find_states(filter).await?,
    };
    let next = states.last().filter(|_| q.is_none() && states.len() == PAGE).map(|last| last.key.id.clone());
    let shown: Vec<_> = states.iter().filter(|state| state.is_shown()).collect();
    let mut links: Vec<_> = shown
        .iter()
        .map(|state| json!({ "tenant": state.index.tenant, "customer": state.index.customer }))
        .collect();
    view::unlink(store, &mut links).await?;
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
        rows: shown.iter().zip(&links).map(|(state, links)| PaymentRow::of(state, links)).collect(),
        next,
    })
}

fn address(id: &str) -> String {
    format!("/console/payments/{id}")
}
