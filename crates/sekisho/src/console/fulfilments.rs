//! Fulfilments: what was paid for and must be made, what became of each run, and when something happens by itself.

mod detail;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::fulfilment::FulfilmentStatus;
use sekisho_core::state::Kind;
use sekisho_store::StateFilter;

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use crate::queries;
use crate::types::Fulfilment;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/fulfilments",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/fulfilments/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(detail::show(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/fulfilments/{id}/retry",
        needs: OPERATOR,
        run: |visit| Box::pin(detail::retry(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/fulfilments/{id}/result",
        needs: OPERATOR,
        run: |visit| Box::pin(detail::result(visit)),
    },
];

/// Fulfilments on a page.
const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/fulfilments.html")]
struct FulfilmentsPage {
    f: Frame,
    status: String,
    customer: String,
    tenant: String,
    mode: String,
    statuses: [&'static str; 4],
    rows: Vec<FulfilmentRow>,
    next: Option<String>,
}

struct FulfilmentRow {
    id: String,
    called: String,
    kind: String,
    status: String,
    tier: String,
    failed: u32,
    last_error: String,
    customer: String,
    tenant: String,
    is_test: bool,
    created_at: Time,
}

impl FulfilmentRow {
    fn of(one: Fulfilment) -> Self {
        Self {
            called: one.name.unwrap_or_default(),
            kind: one.kind,
            status: one.status,
            tier: one.tier,
            failed: one.retry_count,
            last_error: one.last_error.unwrap_or_default(),
            customer: one.customer.unwrap_or_default(),
            tenant: one.tenant.unwrap_or_default(),
            is_test: !one.livemode,
            created_at: one.created_at,
            id: one.id,
        }
    }
}

async fn list(visit: Visit) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let statuses = FulfilmentStatus::ALL.map(FulfilmentStatus::name);
    let things = visit.things(Kind::Fulfilment, &statuses, PAGE)?;
    let filter = StateFilter { attention: None, customer: visit.text("customer"), ..things };
    let states = store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == PAGE).map(|last| last.key.id.clone());
    let shown = queries::fulfilments(store, policy, &states).await?;
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&FulfilmentsPage {
        f: visit.frame("fulfilments", visit.lang.t("Fulfilments", "制作")),
        status: text("status"),
        customer: text("customer"),
        tenant: text("tenant"),
        mode: text("mode"),
        statuses,
        rows: shown.into_iter().map(FulfilmentRow::of).collect(),
        next,
    })
}

fn address(id: &str) -> String {
    format!("/console/fulfilments/{id}")
}
