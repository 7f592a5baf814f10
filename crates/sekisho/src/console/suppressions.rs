//! Addresses that nothing is sent to: why, since when, and letting mail go there again.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::mail_address::{MailAddress, mask_text};
use sekisho_core::notification::Suppression;
use serde_json::{Map, Value};

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::acts::{self, SuppressionOrder};
use crate::queries;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/suppressions",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/suppressions/add",
        needs: OPERATOR,
        run: |visit| Box::pin(add(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/suppressions/release",
        needs: OPERATOR,
        run: |visit| Box::pin(release(visit)),
    },
];

const HOME: &str = "/console/suppressions";
/// Addresses on a page.
const PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/suppressions.html")]
struct SuppressionsPage {
    f: Frame,
    address: String,
    /// Also those that were released.
    all: bool,
    rows: Vec<SuppressionRow>,
    next: Option<String>,
    reason_max: usize,
}

struct SuppressionRow {
    address: String,
    is_suppressed: bool,
    history: Vec<TurnRow>,
    cause: &'static str,
    at: Option<Time>,
    note: String,
    by: String,
}

struct TurnRow {
    at: Time,
    cause: &'static str,
    note: String,
    by: String,
}

impl SuppressionRow {
    fn of(one: &Suppression, whole: bool) -> Self {
        let text = |text: &str| if whole { text.to_owned() } else { mask_text(text) };
        let history = one.history.iter().rev().map(|turn| TurnRow {
            at: turn.at,
            cause: turn.cause.name(),
            note: turn.note.as_deref().map(text).unwrap_or_default(),
            by: turn.by.clone().unwrap_or_default(),
        });
        let last = one.history.last();
        Self {
            address: if whole { one.address.whole().to_owned() } else { one.address.masked() },
            is_suppressed: one.cause().is_some(),
            cause: last.map(|turn| turn.cause.name()).unwrap_or_default(),
            at: last.map(|turn| turn.at),
            note: last.and_then(|turn| turn.note.as_deref()).map(text).unwrap_or_default(),
            by: last.and_then(|turn| turn.by.clone()).unwrap_or_default(),
            history: history.skip(1).collect(),
        }
    }
}

async fn list(visit: Visit) -> Answer {
    let f = visit.frame("suppressions", visit.lang.t("Suppression list", "配信停止リスト"));
    let (store, whole) = (&*visit.console.store, f.may_operate());
    let all = visit.param("all").is_some();
    let (found, next) = match visit.param("address") {
        Some(text) => {
            let address: MailAddress =
                text.parse().map_err(|error| Trouble::wrong(format!("{text:?}: {error}")))?;
            (queries::suppression(store, &address).await?.into_iter().collect(), None)
        }
        None => page(store, all, visit.param("before")).await?,
    };
    Reply::page(&SuppressionsPage {
        f,
        address: visit.param("address").unwrap_or_default().to_owned(),
        all,
        rows: found.iter().map(|one: &Suppression| SuppressionRow::of(one, whole)).collect(),
        next,
        reason_max: acts::REASON_MAX,
    })
}

/// The page, and the name of its last under which the next begins.
async fn page(
    store: &dyn sekisho_store::Store,
    all: bool,
    before: Option<&str>,
) -> acts::Result<(Vec<Suppression>, Option<String>)> {
    let found = queries::suppressions(store, all, before, PAGE).await?;
    let last = found.last().filter(|_| found.len() == PAGE);
    let next = last.map(|last| queries::suppression_view(last, false).id);
    Ok((found, next))
}

async fn add(visit: Visit) -> Answer {
    let done = match order(&visit) {
        Ok(SuppressionOrder { address, reason }) => {
            acts::suppress(&*visit.console.store, &address, &reason, &visit.actor()).await.map(drop)
        }
        Err(refusal) => Err(refusal),
    };
    visit.after(
        HOME,
        done,
        ("Nothing is sent to this address any more.", "このアドレスへの送信を停止しました。"),
    )
}

async fn release(visit: Visit) -> Answer {
    let done = match order(&visit) {
        Ok(SuppressionOrder { address, reason }) => {
            acts::release(&*visit.console.store, &address, &reason, &visit.actor()).await.map(drop)
        }
        Err(refusal) => Err(refusal),
    };
    visit.after(
        HOME,
        done,
        (
            "Mail to this address was resumed. Suppressed notifications can be resent from their pages.",
            "このアドレスへの送信を再開しました。停止中の通知は、各通知の画面から再送できます。",
        ),
    )
}

fn order(visit: &Visit) -> acts::Result<SuppressionOrder> {
    let field = |name: &str| visit.field(name).map(|text| (name.to_owned(), Value::from(text)));
    SuppressionOrder::parse(["address", "reason"].into_iter().filter_map(field).collect::<Map<_, _>>())
}
