//! Reservations: whose places are held, confirmed, over or given back; and what operators do with one.

mod change;
mod detail;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::reservation::{ReservationFacts, ReservationStatus};
use sekisho_core::slot::SlotName;
use sekisho_core::state::{Kind, State};
use sekisho_store::{FIND_MAX, SCAN_MAX, StateFilter};

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::slots;
use super::trouble::Trouble;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/reservations",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/reservations/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(detail::show(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/reservations/{id}/confirm",
        needs: OPERATOR,
        run: |visit| Box::pin(change::ask(visit, change::ChangeKind::Confirm)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/reservations/{id}/confirm",
        needs: OPERATOR,
        run: |visit| Box::pin(change::run(visit, change::ChangeKind::Confirm)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/reservations/{id}/extend",
        needs: OPERATOR,
        run: |visit| Box::pin(change::ask(visit, change::ChangeKind::Extend)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/reservations/{id}/extend",
        needs: OPERATOR,
        run: |visit| Box::pin(change::run(visit, change::ChangeKind::Extend)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/reservations/{id}/cancel",
        needs: OPERATOR,
        run: |visit| Box::pin(change::ask(visit, change::ChangeKind::Cancel)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/reservations/{id}/cancel",
        needs: OPERATOR,
        run: |visit| Box::pin(change::run(visit, change::ChangeKind::Cancel)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/reservations/{id}/revoke_links",
        needs: OPERATOR,
        run: |visit| Box::pin(detail::revoke_links(visit)),
    },
];

/// Reservations on a page.
const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/reservations.html")]
struct ReservationsPage {
    f: Frame,
    status: String,
    slot: String,
    customer: String,
    tenant: String,
    mode: String,
    statuses: [&'static str; 4],
    rows: Vec<ReservationRow>,
    /// Where the next page begins.
    next: Option<String>,
    /// It stopped looking before it had a full page.
    is_cut: bool,
}

struct ReservationRow {
    id: String,
    reference: String,
    status: &'static str,
    slot: String,
    slot_href: String,
    quantity: u32,
    starts_at: Option<Time>,
    /// While it is held.
    until: Option<Time>,
    customer: String,
    tenant: String,
    is_test: bool,
    created_at: Time,
}

impl ReservationRow {
    fn of(id: String, facts: ReservationFacts, status: ReservationStatus) -> Self {
        let ours = facts.ours;
        let name = SlotName::parse(&ours.slot);
        Self {
            id,
            reference: ours.reference.unwrap_or_default(),
            status: status.name(),
            slot_href: name.as_ref().map(slots::address).unwrap_or_default(),
            slot: name.map_or(ours.slot, |name| name.id),
            quantity: ours.quantity,
            starts_at: ours.starts_at,
            until: (status == ReservationStatus::Hold).then_some(facts.until),
            customer: ours.customer.unwrap_or_default(),
            tenant: ours.tenant.unwrap_or_default(),
            is_test: !ours.livemode,
            created_at: ours.at,
        }
    }
}

/// A page of those that match, after at most [`SCAN_MAX`] that were looked at: neither the slot nor whether a hold is over is
/// something that they are kept by.
struct Found {
    rows: Vec<ReservationRow>,
    next: Option<String>,
}

async fn find(visit: &Visit, wanted: Option<ReservationStatus>) -> Result<Found, Trouble> {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let slot = visit.param("slot");
    let is_narrowed =
        slot.is_some() || matches!(wanted, Some(ReservationStatus::Hold | ReservationStatus::Expired));
    // A hold that is over may be kept as one until it is looked at.
    let kept = wanted.filter(|status| *status != ReservationStatus::Expired);
    let filter = StateFilter {
        status: kept.map(|status| status.name().to_owned()),
        tenant: visit.text("tenant"),
        customer: visit.text("customer"),
        livemode: visit.livemode(),
        ..StateFilter::all(Kind::Reservation, if is_narrowed { FIND_MAX } else { PAGE })
    };
    let (mut before, mut rows, mut looked) = (visit.text("before"), Vec::new(), 0);
    loop {
        let states: Vec<State> =
            store.find_states(StateFilter { before: before.clone(), ..filter.clone() }).await?;
        let is_last = states.len() < filter.limit;
        for state in &states {
            before = Some(state.key.id.clone());
            looked += 1;
            let facts: ReservationFacts =
                serde_json::from_str(&state.facts).map_err(sekisho_store::Error::corrupt)?;
            let status = facts.status(visit.at, policy.grace_ms);
            let is_of_slot = slot.is_none_or(|slot| {
                facts.ours.slot == slot || facts.ours.slot.rsplit_once('/').is_some_and(|(_, id)| id == slot)
            });
            if is_of_slot && wanted.is_none_or(|wanted| wanted == status) {
                rows.push(ReservationRow::of(state.key.id.clone(), facts, status));
            }
            if rows.len() == PAGE {
                return Ok(Found { rows, next: before });
            }
        }
        if is_last {
            return Ok(Found { rows, next: None });
        }
        if looked >= SCAN_MAX {
            return Ok(Found { rows, next: before });
        }
    }
}

async fn list(visit: Visit) -> Answer {
    let statuses = ReservationStatus::ALL.map(ReservationStatus::name);
    let wanted = visit.param("status").map(|word| {
        let wrong = || Trouble::wrong(format!("status: expected one of {}", statuses.join(", ")));
        ReservationStatus::parse(word).ok_or_else(wrong)
    });
    let Found { rows, next } = find(&visit, wanted.transpose()?).await?;
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&ReservationsPage {
        f: visit.frame("reservations", visit.lang.t("Reservations", "予約")),
        status: text("status"),
        slot: text("slot"),
        customer: text("customer"),
        tenant: text("tenant"),
        mode: text("mode"),
        statuses,
        is_cut: next.is_some() && rows.len() < PAGE,
        rows,
        next,
    })
}

fn address(id: &str) -> String {
    format!("/console/reservations/{id}")
}
