//! A day's reminders, run by hand: for every office or one, for real or only to see. Whoever was written down for that day
//! before is not written down again, so that a run that broke off is simply started once more.

use sekisho_core::Seq;
use sekisho_core::actor::Actor;
use sekisho_core::calendar::{Day, local_date};
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::{Notice, NoticeStatus, post, reminder};
use sekisho_store::{FIND_MAX, Store};
use serde_json::json;

use super::note::note;
use super::notices::post_notices;
use crate::config::Notifications;
use crate::queries::{no_channel, offices, reminders};
use crate::refusal::{Refusal, Result};
use crate::types::{Remind, RemindReport, Reminded};

/// Recipients that a report names.
const NAMED_MAX: usize = 1_000;

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
    if let Some(date) = date {
        reminder::check_day(date, actor, &notifications.house.time_zone)?;
    }
    let mut report = RemindReport { dry_run: order.dry_run, channel, ..RemindReport::default() };
    if !order.dry_run {
        // Before anybody is told: a run that breaks off was run by somebody, too.
        let which = order.date.as_deref().unwrap_or("today");
        let details = json!({ "date": order.date, "tenant": order.tenant });
        let tenant = order.tenant.as_deref();
        note(store, &actor.entry(tenant, "reminders.run", ("reminders", which), &details)).await?;
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
            if notice.status() == NoticeStatus::Off {
                self.off += 1;
            } else {
                self.queued += 1;
            }
            if self.recipients.len() < NAMED_MAX {
                self.recipients.push(Reminded {
                    to: notice.to.as_ref().map(MailAddress::masked),
                    tenant: notice.tenant.clone(),
                    status: notice.status().name().to_owned(),
                    language: notice.language.name().to_owned(),
                    details: notice.details.clone(),
                });
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
