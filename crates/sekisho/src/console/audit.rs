//! The audit log: who changed what, when, from what to what; and whether the log itself is whole.

mod check;
mod said;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_store::{AuditEntry, AuditFilter};

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::view::show;
use check::Checked;
use said::Detail;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/audit",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/audit/verify",
        // Changes nothing; but it is work, and no link should start it.
        needs: VIEWER,
        run: |visit| Box::pin(verify(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/audit/export",
        needs: OPERATOR,
        run: |visit| Box::pin(export(visit)),
    },
];

/// Entries on a page.
const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage {
    f: Frame,
    zone: String,
    actor: String,
    action: String,
    target: String,
    tenant: String,
    since: String,
    until: String,
    rows: Vec<EntryRow>,
    next: Option<i64>,
    checked: Option<Checked>,
}

struct EntryRow {
    number: i64,
    at: Time,
    actor: String,
    role: String,
    code: String,
    action: String,
    target: String,
    link: Option<String>,
    tenant: String,
    event: Option<String>,
    details: Vec<Detail>,
}

impl EntryRow {
    fn of(AuditEntry { number, entry }: AuditEntry, lang: Language) -> Self {
        let (kind, id) = entry.target;
        Self {
            number,
            at: entry.at,
            actor: entry.actor.unwrap_or_default(),
            role: entry.role.unwrap_or_default(),
            action: said::action(&entry.action, lang).to_owned(),
            code: entry.action,
            link: said::link(&kind, &id, entry.tenant.as_deref()),
            target: id,
            tenant: entry.tenant.unwrap_or_default(),
            event: entry.event.map(|event| event.as_event().to_string()),
            details: said::details(&entry.details),
        }
    }
}

async fn list(visit: Visit) -> Answer {
    page(&visit, None).await
}

async fn page(visit: &Visit, checked: Option<Checked>) -> Answer {
    let text = |name: &str| visit.param(name).map(str::to_owned);
    let before = visit.param("before").map(|text| {
        text.parse().map_err(|_| Trouble::wrong("before: expected the end of a page, a number".into()))
    });
    let (since, until) = range(visit)?;
    let filter = AuditFilter {
        tenant: text("tenant"),
        action: text("action"),
        target: text("target"),
        actor: text("actor"),
        since,
        until,
        before: before.transpose()?,
        limit: PAGE,
    };
    let found = visit.console.store.find_audit(filter).await?;
    let given = |name: &str| text(name).unwrap_or_default();
    Reply::page(&AuditPage {
        f: visit.frame("audit", visit.lang.t("Audit log", "監査ログ")),
        zone: visit.zone.name().to_owned(),
        actor: given("actor"),
        action: given("action"),
        target: given("target"),
        tenant: given("tenant"),
        since: given("since"),
        until: given("until"),
        rows: found.entries.into_iter().map(|entry| EntryRow::of(entry, visit.lang)).collect(),
        next: found.next,
        checked,
    })
}

/// Between which moments, by the house's clock.
fn range(visit: &Visit) -> Result<(Option<Time>, Option<Time>), Trouble> {
    let moment = |name: &str| {
        let read = |text: &str| {
            let wrong = || Trouble::wrong(format!("{name}: expected a time such as 2026-11-16T09:00"));
            show::moment(text, &visit.zone).ok_or_else(wrong)
        };
        visit.param(name).map(read).transpose()
    };
    Ok((moment("since")?, moment("until")?))
}

async fn verify(visit: Visit) -> Answer {
    let checked = check::verify(&*visit.console.store, visit.lang).await?;
    page(&visit, Some(checked)).await
}

async fn export(visit: Visit) -> Answer {
    let (since, until) = range(&visit)?;
    check::export(&visit, since, until).await
}
