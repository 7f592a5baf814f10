//! Payments: where each stands, which facts say so, and where they came from.

mod detail;
mod list;
mod proof;
mod refund;
mod timeline;
mod why;

use super::page::{OPERATOR, Page, PageMethod, VIEWER};

pub(super) use timeline::{TimelineItem, decided};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/payments",
        needs: VIEWER,
        run: |visit| Box::pin(list::show(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/payments/export",
        needs: VIEWER,
        run: |visit| Box::pin(list::export(visit)),
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

fn address(id: &str) -> String {
    format!("/console/payments/{id}")
}
