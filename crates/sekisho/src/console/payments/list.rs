//! The list of payments: filtered, page by page, and as a file.

use askama::Template;
use sekisho_core::settlement::payment::{Attention, Derived, Facts, PaymentStatus};
use sekisho_core::state::{Kind, State};
use sekisho_core::{Seq, Time};
use sekisho_store::{FIND_MAX, StateFilter, Store};

use super::address;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit, time};
use crate::console::sheet::{CsvFile, ROWS_MAX};
use crate::console::trouble::Trouble;
use crate::types::Owner;
use crate::{queries, view};

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
    from: String,
    to: String,
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

pub async fn show(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let filter = PaymentFilter::of(&visit, PAGE)?;
    let q = visit.text("q");
    let states = match &q {
        Some(q) => {
            let found = queries::payments_by_reference(store, q, None).await?;
            if let [only] = &found[..] {
                return Ok(Reply::Go { to: address(&only.key.id), flash: None });
            }
            found
        }
        None => store.find_states(filter.states.clone()).await?,
    };
    let is_last = q.is_some() || states.len() < PAGE || states.last().is_none_or(|last| !filter.holds(last));
    let next = states.last().filter(|_| !is_last).map(|last| last.key.id.clone());
    let rows = rows(store, states.iter().filter(|state| q.is_some() || filter.holds(state))).await?;
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&PaymentsPage {
        f: visit.frame("payments", visit.lang.t("Payments", "決済")),
        q: q.unwrap_or_default(),
        status: text("status"),
        attention: text("attention"),
        tenant: text("tenant"),
        customer: text("customer"),
        mode: text("mode"),
        from: text("from"),
        to: text("to"),
        statuses: PaymentStatus::ALL.map(PaymentStatus::name),
        attentions: Attention::ALL.map(Attention::name),
        rows,
        next,
    })
}

/// The same list as a file, as far as [`ROWS_MAX`] goes.
pub async fn export(visit: Visit) -> Answer {
    let _alone = visit.alone()?;
    let store = &*visit.console.store;
    let mut filter = PaymentFilter::of(&visit, FIND_MAX)?;
    let mut sheet = CsvFile::new([
        "id",
        "reference",
        "status",
        "mode",
        "amount",
        "currency",
        "attention",
        "tenant",
        "customer",
        "created_at",
        "changed_at",
    ])?;
    let mut written = 0;
    while written < ROWS_MAX {
        let states = store.find_states(filter.states.clone()).await?;
        let rows = rows(store, states.iter().filter(|state| filter.holds(state))).await?;
        for row in rows.into_iter().take(ROWS_MAX - written) {
            written += 1;
            sheet.row([
                row.id,
                row.reference,
                row.status,
                if row.is_test { "test" } else { "live" }.to_owned(),
                row.amount.map(|amount| amount.to_string()).unwrap_or_default(),
                row.currency,
                row.attention.unwrap_or_default(),
                row.tenant,
                row.customer,
                row.created_at.to_string(),
                row.changed_at.to_string(),
            ])?;
        }
        match states.last() {
            Some(last) if states.len() == FIND_MAX && filter.holds(last) => {
                filter.states.before = Some(last.key.id.clone());
            }
            _ => break,
        }
    }
    sheet.reply("payments")
}

/// What the list is narrowed to. Ids rise with time, so a list ends where the range does.
struct PaymentFilter {
    states: StateFilter,
    since: Option<Time>,
}

impl PaymentFilter {
    fn of(visit: &Visit, limit: usize) -> Result<Self, Trouble> {
        let statuses = PaymentStatus::ALL.map(PaymentStatus::name);
        let things = visit.things(Kind::Payment, &statuses, limit)?;
        let since = time("from", visit.param("from"), &visit.zone)?;
        let until = time("to", visit.param("to"), &visit.zone)?;
        let end = until.map(|until| Seq::floor_of(until).tagged("pay_"));
        let before = [things.before.clone(), end].into_iter().flatten().min();
        Ok(Self { states: StateFilter { customer: visit.text("customer"), before, ..things }, since })
    }

    fn holds(&self, state: &State) -> bool {
        self.since.is_none_or(|since| state.created_at >= since)
    }
}

/// What is shown of them; tombstones are not.
async fn rows(
    store: &dyn Store,
    states: impl Iterator<Item = &State> + Send,
) -> Result<Vec<PaymentRow>, Trouble> {
    let shown: Vec<_> = states.filter(|state| state.is_shown()).collect();
    let owner =
        |state: &&State| Owner { tenant: state.index.tenant.clone(), customer: state.index.customer.clone() };
    let mut owners: Vec<_> = shown.iter().map(owner).collect();
    view::unlink(store, &mut owners).await?;
    Ok(shown.iter().zip(owners).map(|(state, owner)| PaymentRow::of(state, owner)).collect())
}
