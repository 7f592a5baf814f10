//! A day's reminders, run by hand: for every office or one, for real or only to see. Whoever was written down for that day
//! before is not written down again, so that a run that broke off is simply started once more.

use std::collections::BTreeMap;

use sekisho_core::calendar::{Day, local_date};
use sekisho_core::change::ChangeSet;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::{Notice, Status, post, reminder};
use sekisho_core::state::Kind;
use sekisho_core::timer::DAY_MS;
use sekisho_core::{Seq, Time};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::notices::{no_channel, offices, post_notices, reminders};
use super::{Actor, Refusal, Result};
use crate::config::Notifications;

/// What is to be run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Remind {
    /// The day, for all; otherwise the one that each office has now.
    pub date: Option<String>,
    /// One office; otherwise all.
    pub tenant: Option<String>,
    pub dry_run: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RemindReport {
    pub dry_run: bool,
    /// The channel they go by.
    pub channel: String,
    /// The days that were run, each with the name under which its notices are found.
    pub days: Vec<String>,
    pub offices: usize,
    /// Reminders that are due, and those of them that were not written down before.
    pub due: usize,
    pub new: usize,
    /// Of the new ones: to be sent, and not, because notifications are switched off.
    pub queued: usize,
    pub off: usize,
    /// Whom they go to, masked; the first of them.
    pub recipients: Vec<Value>,
}

/// Days that a tenant's key can run, seen from today.
const DAYS_BACK: i32 = 7;
const DAYS_AHEAD: i32 = 1;
/// Recipients that a report names.
const NAMED_MAX: usize = 1_000;
/// Notices that are looked through for a summary.
const LOOKED_MAX: usize = 1_000_000;

pub async fn run_reminders(
    store: &dyn Store,
    notifications: &Notifications,
    order: &Remind,
    actor: &Actor<'_>,
    mut next_seq: impl FnMut() -> Seq,
) -> Result<RemindReport> {
    let wrong = || Refusal::Invalid("date: expected a day such as 2026-11-16".into());
    let date = order.date.as_deref().map(|text| text.parse::<Day>().map_err(|_| wrong())).transpose()?;
    let channel = notifications.reminders.clone().ok_or_else(no_channel)?;
    let is_near = |day: Day| {
        let today = local_date(&notifications.house.time_zone, actor.at);
        today.is_none_or(|today| (-DAYS_BACK..=DAYS_AHEAD).contains(&today.days_until(day)))
    };
    // Each day is another mail for everybody, and the day's quota is everybody's.
    if actor.tenant.is_some() && date.is_some_and(|date| !is_near(date)) {
        let limits = format!("up to {DAYS_BACK} days back and {DAYS_AHEAD} ahead");
        return Err(Refusal::Invalid(format!("date: a tenant's key runs days near today, {limits}")));
    }
    let mut report = RemindReport { dry_run: order.dry_run, channel, ..RemindReport::default() };
    if !order.dry_run {
        // Before anybody is told: a run that breaks off was run by somebody, too.
        let which = order.date.as_deref().unwrap_or("today");
        let details = json!({ "date": order.date, "tenant": order.tenant });
        let entry = actor.entry(order.tenant.as_deref(), "reminders.run", ("reminders", which), details);
        store.commit(vec![ChangeSet { audit: vec![entry], ..ChangeSet::nothing(actor.at) }]).await?;
    }
    for (id, tenant) in offices(store, order.tenant.as_deref()).await? {
        let zone = tenant.zone(&notifications.house.time_zone);
        let Some(day) = date.or_else(|| local_date(zone, actor.at)) else { continue };
        let notices = reminders(store, notifications, &id, day, actor.at).await?;
        report.offices += 1;
        if !report.days.contains(&day.to_string()) {
            report.days.push(day.to_string());
        }
        let fresh = unknown(store, notices, &mut report).await?;
        if !order.dry_run {
            post_notices(store, &fresh, actor.at, &mut next_seq).await?;
        }
        report.count(&fresh);
    }
    Ok(report)
}

impl RemindReport {
    fn count(&mut self, fresh: &[Notice]) {
        self.new += fresh.len();
        for notice in fresh {
            if notice.status() == Status::Off {
                self.off += 1;
            } else {
                self.queued += 1;
            }
            if self.recipients.len() < NAMED_MAX {
                self.recipients.push(json!({
                    "to": notice.to.as_ref().map(MailAddress::masked),
                    "tenant": notice.tenant,
                    "status": notice.status(),
                    "language": notice.language,
                    "details": notice.details,
                }));
            }
        }
    }
}

/// Those that were not written down before.
async fn unknown(store: &dyn Store, notices: Vec<Notice>, report: &mut RemindReport) -> Result<Vec<Notice>> {
    report.due += notices.len();
    let mut fresh = Vec::new();
    for piece in notices.chunks(FIND_MAX) {
        let known = store.load(piece.iter().map(post::name).collect(), Vec::new()).await?;
        fresh.extend(piece.iter().filter(|notice| !known.names.contains_key(&post::name(notice))).cloned());
    }
    Ok(fresh)
}

/// All that a summary needs of a notice; its status stands in the index.
#[derive(Deserialize)]
struct OfBatch {
    #[serde(default)]
    batch: Option<String>,
}

/// How a day's reminders stand, of one office or all: how many there are of each status.
pub async fn summary(store: &dyn Store, date: &str, tenant: Option<&str>, now: Time) -> Result<Value> {
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
            let status = state.index.status.as_deref().and_then(Status::parse);
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
    let waiting = Status::ALL.into_iter().filter(|status| !status.is_over());
    let waiting: usize = waiting.filter_map(|status| counts.get(status.name())).sum();
    Ok(json!({ "object": "reminders", "date": day, "total": total, "waiting": waiting, "by_status": counts }))
}
