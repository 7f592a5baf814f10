//! The reminders of a day: who of an office gets one, and how they stand.

use std::collections::BTreeMap;

use sekisho_core::Time;
use sekisho_core::calendar::Day;
use sekisho_core::directory::{Staff, Subject};
use sekisho_core::notification::reminder::{self, ReminderRun};
use sekisho_core::notification::{Notice, NoticeStatus, TenantPlace};
use sekisho_core::state::Kind;
use sekisho_core::time::DAY_MS;
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::Deserialize;

use super::notices::{of_tenant, offices};
use crate::config::Notifications;
use crate::refusal::{Refusal, Result};
use crate::types::ReminderSummary;

/// Notices that are looked through for a summary.
const LOOKED_MAX: usize = 1_000_000;

/// The reminders of a day that one office gets.
pub async fn reminders(
    store: &dyn Store,
    notifications: &Notifications,
    tenant: &str,
    today: Day,
    at: Time,
) -> Result<Vec<Notice>> {
    let channel = notifications.reminders.as_ref().ok_or_else(no_channel)?;
    let (id, office) = offices(store, Some(tenant)).await?.remove(0);
    let office = TenantPlace::of_tenant(&id, &office);
    let staff = of_tenant::<Staff>(store, Kind::Staff, tenant).await?;
    let subjects: Vec<_> = of_tenant::<Subject>(store, Kind::Subject, tenant)
        .await?
        .into_iter()
        .map(|(_, subject)| subject)
        .collect();
    let house = &notifications.house;
    let run = ReminderRun { today, channel, dashboard_url: notifications.dashboard_url.as_deref(), house };
    Ok(run.reminders(&office, &staff, &subjects, at))
}

pub fn no_channel() -> Refusal {
    let cure = "write the name of a mail channel: [notifications] reminders = \"mail\"";
    Refusal::Invalid(format!("no channel is configured for reminders; {cure}"))
}

/// All that a summary needs of a notice; its status stands in the index.
#[derive(Deserialize)]
struct OfBatch {
    #[serde(default)]
    batch: Option<String>,
}

/// How a day's reminders stand, of one office or all: how many there are of each status.
pub async fn reminders_summary(
    store: &dyn Store,
    date: &str,
    tenant: Option<&str>,
    now: Time,
) -> Result<ReminderSummary> {
    let wrong = || Refusal::Invalid(format!("{date:?} is no day; expected one such as 2026-11-16"));
    let day: Day = date.parse().map_err(|_| wrong())?;
    let batch = reminder::batch(day);
    let midnight = Time::parse_rfc3339(&format!("{day}T00:00:00Z")).ok_or_else(wrong)?;
    // A day begins up to a day earlier elsewhere, and may be run ahead of its time.
    let oldest = midnight.min(now).plus_ms(-2 * DAY_MS);
    let (mut counts, mut before, mut looked) = (BTreeMap::<&str, usize>::new(), None, 0);
    loop {
        let tenant = tenant.map(str::to_owned);
        let filter = StateFilter { before, tenant, ..StateFilter::all(Kind::Notice, FIND_MAX) };
        let page = store.find_states(filter).await?;
        looked += page.len();
        for state in &page {
            let is_of_batch = serde_json::from_str::<OfBatch>(&state.facts)
                .is_ok_and(|notice| notice.batch.as_deref() == Some(&batch));
            let status = state.index.status.as_deref().and_then(NoticeStatus::parse);
            if let Some(status) = status.filter(|_| is_of_batch) {
                *counts.entry(status.name()).or_default() += 1;
            }
        }
        let last = page.last();
        if page.len() < FIND_MAX || looked >= LOOKED_MAX || last.is_some_and(|last| last.created_at < oldest)
        {
            break;
        }
        before = last.map(|last| last.key.id.clone());
    }
    let total: usize = counts.values().sum();
    let waiting = NoticeStatus::ALL.into_iter().filter(|status| !status.is_over());
    let waiting: usize = waiting.filter_map(|status| counts.get(status.name())).sum();
    let by_status = counts.into_iter().map(|(status, count)| (status.to_owned(), count)).collect();
    Ok(ReminderSummary { object: "reminders".to_owned(), date: day, total, waiting, by_status })
}
