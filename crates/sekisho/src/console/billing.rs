//! What tenants subscribed to, and until when it is paid.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::settlement::billing::{Attention, Status};
use sekisho_core::state::{Key, Kind, State};
use serde_json::Value;

use super::frame::Frame;
use super::page::{Answer, Method, Page, Reply, VIEWER, Visit};
use super::payments::{Item, decided};
use super::trouble::{Thing, Trouble};
use crate::acts;
use crate::view::{self, show};

pub const PAGES: &[Page] = &[
    Page { method: Method::Get, path: "/console/billing", needs: VIEWER, run: |visit| Box::pin(list(visit)) },
    Page {
        method: Method::Get,
        path: "/console/billing/{tenant}",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
];

/// Tenants on a page.
const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/billing.html")]
struct BillingPage {
    f: Frame,
    status: String,
    attention: String,
    tenant: String,
    mode: String,
    statuses: [&'static str; 8],
    attentions: [&'static str; 3],
    rows: Vec<BillingRow>,
    next: Option<String>,
}

/// One tenant's, in a list and at the top of its own page.
struct BillingRow {
    id: String,
    tenant: String,
    status: String,
    has_access: bool,
    attention: String,
    is_test: bool,
    entitled_until: Option<Time>,
    paid_through: Option<Time>,
    trial_end: Option<Time>,
    cancel_at: Option<Time>,
    ended_at: Option<Time>,
    paid_invoices: i64,
    paid_total: String,
    changed_at: Time,
}

impl BillingRow {
    fn of(state: &State, shown: &Value) -> Self {
        Self {
            id: state.key.id.clone(),
            tenant: text(&shown["tenant"]),
            status: text(&shown["status"]),
            has_access: shown["access"] == true,
            attention: text(&shown["attention"]),
            is_test: shown["livemode"] == false,
            entitled_until: time(&shown["entitled_until"]),
            paid_through: time(&shown["paid_through"]),
            trial_end: time(&shown["trial_end"]),
            cancel_at: time(&shown["cancel_at"]),
            ended_at: time(&shown["ended_at"]),
            paid_invoices: shown["paid_invoices"].as_i64().unwrap_or_default(),
            paid_total: money(&shown["amount_paid_total"], &shown["currency"]),
            changed_at: state.changed_at,
        }
    }

    /// What leads to its page: the tenant, or its own id where none is known.
    fn name(&self) -> &str {
        if self.tenant.is_empty() { &self.id } else { &self.tenant }
    }
}

#[derive(Template)]
#[template(path = "console/billing_one.html")]
struct TenantPage {
    f: Frame,
    one: BillingRow,
    subscriptions: Vec<SubscriptionRow>,
    invoices: Vec<InvoiceRow>,
    customers: Vec<String>,
    timeline: Vec<Item>,
}

struct SubscriptionRow {
    id: String,
    status: String,
    period_start: Option<Time>,
    period_end: Option<Time>,
    paid_through: Option<Time>,
    cancel_at: Option<Time>,
}

struct InvoiceRow {
    id: String,
    status: String,
    due: String,
    paid: String,
    paid_at: Option<Time>,
    paid_through: Option<Time>,
    intents: Vec<String>,
}

async fn list(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let statuses = Status::ALL.map(Status::name);
    let states = store.find_states(visit.things(Kind::Billing, &statuses, PAGE)?).await?;
    let next = states.last().filter(|_| states.len() == PAGE).map(|last| last.key.id.clone());
    let states: Vec<_> = states.into_iter().filter(State::is_shown).collect();
    let shown: Result<Vec<_>, _> =
        states.iter().map(|state| view::billing(state, visit.at, visit.console.grace)).collect();
    let mut shown = shown?;
    view::unlink(store, &mut shown).await?;
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&BillingPage {
        f: visit.frame("billing", visit.lang.t("Billing", "定期課金")),
        status: text("status"),
        attention: text("attention"),
        tenant: text("tenant"),
        mode: text("mode"),
        statuses,
        attentions: Attention::ALL.map(Attention::name),
        rows: states.iter().zip(&shown).map(|(state, shown)| BillingRow::of(state, shown)).collect(),
        next,
    })
}

async fn show(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let name = &*visit.id;
    let key = Key::new(Kind::Billing, name);
    let by_id = store.load(Vec::new(), vec![key.clone()]).await?.states.remove(&key).filter(State::is_shown);
    let state = if let Some(state) = by_id {
        state
    } else {
        let found = acts::billing_state(store, name, visit.livemode()).await?;
        found.ok_or_else(|| Trouble::unknown(Thing::Billing, name))?
    };
    let mut shown = view::billing(&state, visit.at, visit.console.grace)?;
    view::unlink(store, [&mut shown]).await?;
    let history = acts::history(store, &state.key.id).await?;
    let f = visit.frame("billing", visit.lang.t("Billing", "定期課金"));
    let currency = text(&shown["currency"]);
    let rows = |name: &str| shown[name].as_array().into_iter().flatten();
    let customers = shown["references"]["customers"].as_array().into_iter().flatten();
    Reply::page(&TenantPage {
        one: BillingRow::of(&state, &shown),
        subscriptions: rows("subscriptions").map(subscription).collect(),
        invoices: rows("invoices").map(invoice).collect(),
        customers: customers.map(text).collect(),
        timeline: history.entries.iter().map(|entry| decided(entry, &currency, &f)).collect(),
        f,
    })
}

fn subscription(shown: &Value) -> SubscriptionRow {
    SubscriptionRow {
        id: text(&shown["id"]),
        status: text(&shown["status"]),
        period_start: time(&shown["current_period"]["start"]),
        period_end: time(&shown["current_period"]["end"]),
        paid_through: time(&shown["paid_through"]),
        cancel_at: time(&shown["cancel_at"]),
    }
}

fn invoice(shown: &Value) -> InvoiceRow {
    let status = text(&shown["status"]);
    InvoiceRow {
        id: text(&shown["id"]),
        status: if status == "open" { "invoice_open".into() } else { status },
        due: money(&shown["amount_due"], &shown["currency"]),
        paid: money(&shown["amount_paid"], &shown["currency"]),
        paid_at: time(&shown["paid_at"]),
        paid_through: time(&shown["paid_through"]),
        intents: shown["payment_intents"].as_array().into_iter().flatten().map(text).collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(value: &Value) -> Option<Time> {
    value.as_str().and_then(Time::parse_rfc3339)
}

fn money(amount: &Value, currency: &Value) -> String {
    show::money(amount.as_i64().unwrap_or_default(), currency.as_str().unwrap_or_default())
}
