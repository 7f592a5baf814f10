//! Payments: where each stands, which facts say so, and where they came from.

mod detail;
mod proof;
mod timeline;
mod why;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::settlement::payment::{Derived, Facts, Status};
use sekisho_core::state::{Kind, State};
use sekisho_store::StateFilter;
use serde_json::{Value, json};

use super::frame::Frame;
use super::page::{Answer, Method, Page, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::{transition, view};

pub use proof::proof_page;
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

/// Why a person should look at one, in the order of the derivation.
const ATTENTIONS: [&str; 8] = [
    "currency_mismatch",
    "mode_mismatch",
    "conflict",
    "refund_failed",
    "overpaid",
    "underpaid",
    "over_refunded",
    "unlinked",
];

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
    statuses: Vec<&'static str>,
    attentions: [&'static str; 8],
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
        let facts: Option<Facts> = serde_json::from_str(&state.facts).ok();
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
    let (q, filter) = (visit.text("q"), filter(&visit)?);
    let states = match &q {
        Some(q) => {
            let found = transition::payments_by_reference(store, q, None).await?;
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
        statuses: Status::ALL.map(Status::name).to_vec(),
        attentions: ATTENTIONS,
        rows: shown.iter().zip(&links).map(|(state, links)| PaymentRow::of(state, links)).collect(),
        next,
    })
}

fn filter(visit: &Visit) -> Result<StateFilter, Trouble> {
    let status = visit.text("status");
    if status.as_deref().is_some_and(|status| Status::parse(status).is_none()) {
        let names = Status::ALL.map(Status::name).join(", ");
        return Err(Trouble::wrong(format!("status: expected one of {names}")));
    }
    // `any` stands for every reason: an empty field is no filter here.
    let attention = visit.text("attention").map(|word| if word == "any" { String::new() } else { word });
    Ok(StateFilter {
        status,
        tenant: visit.text("tenant"),
        customer: visit.text("customer"),
        livemode: visit.livemode(),
        attention,
        before: visit.text("before"),
        ..StateFilter::all(Kind::Payment, PAGE)
    })
}

fn address(id: &str) -> String {
    format!("/console/payments/{id}")
}
