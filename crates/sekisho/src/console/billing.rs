//! What tenants subscribed to, and until when it is paid.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::settlement::billing::{BillingAttention, BillingStatus};
use sekisho_core::state::{Key, Kind, State};

use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::payments::{TimelineItem, decided};
use super::trouble::{Resource, Trouble};
use crate::queries;
use crate::types::{Billing, Dated, Invoice, Subscription};
use crate::view::{self, show};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/billing",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
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
    paid_invoices: usize,
    paid_total: String,
    changed_at: Time,
}

impl BillingRow {
    fn of(shown: &Dated<Billing>) -> Self {
        let one = &shown.thing;
        Self {
            id: one.id.clone(),
            tenant: one.tenant.clone().unwrap_or_default(),
            status: one.status.clone(),
            has_access: one.access,
            attention: one.attention.clone().unwrap_or_default(),
            is_test: one.livemode == Some(false),
            entitled_until: one.entitled_until,
            paid_through: one.paid_through,
            trial_end: one.trial_end,
            cancel_at: one.cancel_at,
            ended_at: one.ended_at,
            paid_invoices: one.paid_invoices,
            paid_total: money(one.amount_paid_total, one.currency.as_deref()),
            changed_at: shown.changed_at,
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
    timeline: Vec<TimelineItem>,
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
    let statuses = BillingStatus::ALL.map(BillingStatus::name);
    let states = store.find_states(visit.things(Kind::Billing, &statuses, PAGE)?).await?;
    let next = states.last().filter(|_| states.len() == PAGE).map(|last| last.key.id.clone());
    let shown = states.iter().filter(|state| state.is_shown());
    let shown: Result<Vec<_>, _> =
        shown.map(|state| view::billing(state, visit.at, visit.console.grace)).collect();
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
        attentions: BillingAttention::ALL.map(BillingAttention::name),
        rows: shown.iter().map(BillingRow::of).collect(),
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
        let found = queries::billing_state(store, name, visit.livemode()).await?;
        found.ok_or_else(|| Trouble::unknown(Resource::Billing, name))?
    };
    let mut shown = view::billing(&state, visit.at, visit.console.grace)?;
    view::unlink(store, [&mut shown]).await?;
    let history = queries::history(store, &state.key.id).await?;
    let f = visit.frame("billing", visit.lang.t("Billing", "定期課金"));
    let one = &shown.thing;
    let currency = one.currency.as_deref().unwrap_or_default();
    Reply::page(&TenantPage {
        one: BillingRow::of(&shown),
        subscriptions: one.subscriptions.iter().map(subscription).collect(),
        invoices: one.invoices.iter().map(invoice).collect(),
        customers: one.references.customers.clone(),
        timeline: history.entries.iter().map(|entry| decided(entry, currency, &f)).collect(),
        f,
    })
}

fn subscription(one: &Subscription) -> SubscriptionRow {
    SubscriptionRow {
        id: one.id.clone(),
        status: one.status.clone(),
        period_start: one.current_period.start,
        period_end: one.current_period.end,
        paid_through: one.paid_through,
        cancel_at: one.cancel_at,
    }
}

fn invoice(one: &Invoice) -> InvoiceRow {
    let currency = one.currency.as_deref();
    InvoiceRow {
        id: one.id.clone(),
        status: if one.status == "open" { "invoice_open".into() } else { one.status.clone() },
        due: money(one.amount_due, currency),
        paid: money(one.amount_paid, currency),
        paid_at: one.paid_at,
        paid_through: one.paid_through,
        intents: one.payment_intents.clone(),
    }
}

fn money(amount: i64, currency: Option<&str>) -> String {
    show::money(amount, currency.unwrap_or_default())
}
