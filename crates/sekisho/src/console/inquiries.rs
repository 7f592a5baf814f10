//! What customers ask by the form of their order's page: the open ones first, each with its order, closed by an operator.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::inquiry::InquiryStatus;
use sekisho_core::state::{Key, Kind};
use sekisho_store::StateFilter;

use super::frame::Frame;
use super::order_parts::{self, PartRow};
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::{Resource, Trouble};
use crate::types::Inquiry;
use crate::{acts, queries};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/inquiries",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/inquiries/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/inquiries/{id}/close",
        needs: OPERATOR,
        run: |visit| Box::pin(close(visit)),
    },
];

/// Inquiries on a page.
const PAGE: usize = 50;
/// Letters of each that a list shows.
const BEGINNING: usize = 80;

#[derive(Template)]
#[template(path = "console/inquiries.html")]
struct InquiriesPage {
    f: Frame,
    status: String,
    tenant: String,
    mode: String,
    statuses: [(&'static str, &'static str); 2],
    rows: Vec<InquiryRow>,
    next: Option<String>,
}

struct InquiryRow {
    id: String,
    beginning: String,
    status: &'static str,
    name: String,
    order: String,
    order_href: Option<String>,
    tenant: String,
    is_test: bool,
    created_at: Time,
}

impl InquiryRow {
    fn of(one: Inquiry) -> Self {
        let mut beginning: String = one.text.chars().take(BEGINNING).collect();
        if one.text.chars().count() > BEGINNING {
            beginning.push('…');
        }
        Self {
            beginning,
            status: word(&one.status),
            name: one.name,
            order_href: order_parts::address(&one.order),
            order: one.order,
            tenant: one.tenant.unwrap_or_default(),
            is_test: !one.livemode,
            created_at: one.created_at,
            id: one.id,
        }
    }
}

fn word(status: &str) -> &'static str {
    if status == InquiryStatus::Open.name() { "inquiry_open" } else { "answered" }
}

#[derive(Template)]
#[template(path = "console/inquiry.html")]
struct InquiryPage {
    f: Frame,
    id: String,
    status: &'static str,
    is_open: bool,
    name: String,
    email: String,
    /// What a mail program opens, for those who see the address.
    mailto: String,
    text: String,
    language: String,
    tenant: String,
    is_test: bool,
    created_at: Time,
    closed_at: Option<Time>,
    closed_by: String,
    payment: String,
    parts: Vec<PartRow>,
}

async fn list(visit: Visit) -> Answer {
    let (store, lang) = (&*visit.console.store, visit.lang);
    let names = InquiryStatus::ALL.map(InquiryStatus::name);
    let filter = StateFilter { attention: None, ..visit.things(Kind::Inquiry, &names, PAGE)? };
    let is_operator = visit.who.rank >= sekisho_core::user::Rank::Operator;
    // The open ones first: those that are closed only fill the page.
    let (mut states, mut next) = (Vec::new(), None);
    let wanted = match &filter.status {
        Some(status) => vec![status.clone()],
        None => names.map(str::to_owned).to_vec(),
    };
    for status in wanted {
        let left = PAGE - states.len();
        if left == 0 {
            break;
        }
        let found = store
            .find_states(StateFilter { status: Some(status.clone()), limit: left, ..filter.clone() })
            .await?;
        if found.len() == left {
            next = found.last().map(|last| format!("status={status}&before={}", last.key.id));
        }
        states.extend(found);
    }
    let mut rows = Vec::new();
    for state in &states {
        rows.push(InquiryRow::of(queries::inquiry_view(state, is_operator)?));
    }
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&InquiriesPage {
        f: visit.frame("inquiries", lang.t("Inquiries", "お問い合わせ")),
        status: text("status"),
        tenant: text("tenant"),
        mode: text("mode"),
        statuses: [("open", lang.t("open", "未対応")), ("closed", lang.t("closed", "対応済み"))],
        rows,
        next,
    })
}

async fn show(visit: Visit) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let state = queries::load(store, &Key::new(Kind::Inquiry, &*visit.id)).await?;
    let state = state.ok_or_else(|| Trouble::unknown(Resource::Inquiry, &visit.id))?;
    let f = visit.frame("inquiries", visit.lang.t("Inquiry", "お問い合わせ"));
    let shown = queries::inquiry_view(&state, f.may_operate())?;
    let parts = order_parts::parts(store, policy, &shown.order, visit.lang, visit.at).await?;
    Reply::page(&InquiryPage {
        status: word(&shown.status),
        is_open: shown.status == InquiryStatus::Open.name(),
        name: shown.name,
        mailto: if f.may_operate() { shown.email.clone() } else { String::new() },
        email: shown.email,
        text: shown.text,
        language: shown.language,
        tenant: shown.tenant.unwrap_or_default(),
        is_test: !shown.livemode,
        created_at: shown.created_at,
        closed_at: shown.closed_at,
        closed_by: shown
            .closed_by
            .map(|by| crate::view::order_words::by(&by, visit.lang))
            .unwrap_or_default(),
        payment: shown.payment.unwrap_or_default(),
        parts,
        id: shown.id,
        f,
    })
}

async fn close(visit: Visit) -> Answer {
    let closed = acts::close_inquiry(&*visit.console.store, &visit.id, &visit.actor()).await;
    visit.after(
        "/console/inquiries",
        closed,
        ("The inquiry is closed.", "お問い合わせを対応済みにしました。"),
    )
}
