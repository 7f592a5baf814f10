//! Events that Sekisho makes itself: when the next ones are due, when the last one was, and how today's reminders stand.

use std::time::Duration;

use askama::Template;
use futures_util::future::try_join_all;
use sekisho_core::calendar::local_date;
use sekisho_core::notification::reminder;
use sekisho_core::{Time, source_name};
use sekisho_store::{EventFilter, Store};

use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use crate::acts::Refusal;
use crate::config::Schedule;
use crate::queries;

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/schedules",
    needs: VIEWER,
    run: |visit| Box::pin(list(visit)),
}];

/// Times to come that are shown of each.
const NEXT: usize = 3;
/// Events of a type that are looked at for the last of one schedule: several may make the same type.
const LOOKED: usize = 20;
/// How long today's reminders are counted; beyond that the command does it.
const COUNT_WITHIN: Duration = Duration::from_millis(500);

#[derive(Template)]
#[template(path = "console/schedules.html")]
struct SchedulesPage {
    f: Frame,
    rows: Vec<ScheduleRow>,
    reminders: Option<Reminders>,
}

struct ScheduleRow {
    name: String,
    event_type: String,
    cron: String,
    zone: String,
    next: Vec<Time>,
    last: Option<(String, Time, &'static str)>,
}

struct Reminders {
    channel: String,
    at: String,
    date: String,
    batch: String,
    /// How many there are of each status; `None` when there are too many to count here.
    counts: Option<Vec<(String, usize)>>,
}

async fn list(visit: Visit) -> Answer {
    let console = &visit.console;
    let rows = console.schedules.iter().map(|schedule| row(&*console.store, schedule, visit.at));
    Reply::page(&SchedulesPage {
        rows: try_join_all(rows).await?,
        reminders: reminders(&visit).await?,
        f: visit.frame("schedules", visit.lang.t("Schedules", "スケジュール")),
    })
}

async fn row(store: &dyn Store, schedule: &Schedule, at: Time) -> sekisho_store::Result<ScheduleRow> {
    let filter = EventFilter {
        source: Some(source_name::SCHEDULE.to_owned()),
        event_type: Some(schedule.event_type.clone()),
        limit: LOOKED,
        ..EventFilter::default()
    };
    let events = store.find_events(filter).await?.events;
    let own = format!("{}@", schedule.name);
    let last = events.into_iter().find(|event| event.event_id.starts_with(&own));
    let next = std::iter::successors(schedule.times.next_after(at), |last| schedule.times.next_after(*last));
    Ok(ScheduleRow {
        name: schedule.name.clone(),
        event_type: schedule.event_type.clone(),
        cron: schedule.cron.clone(),
        zone: schedule.timezone.clone(),
        next: next.take(NEXT).collect(),
        last: last.map(|event| (event.seq.as_event().to_string(), event.received_at, event.status.name())),
    })
}

async fn reminders(visit: &Visit) -> Result<Option<Reminders>, Refusal> {
    let notifications = &visit.console.notifications;
    let today = local_date(&notifications.house.time_zone, visit.at);
    let Some((channel, today)) = notifications.reminders.clone().zip(today) else { return Ok(None) };
    let date = today.to_string();
    let summary = queries::reminders_summary(&*visit.console.store, &date, None, visit.at);
    let counts = match tokio::time::timeout(COUNT_WITHIN, summary).await {
        Ok(summary) => Some(summary?.by_status.into_iter().collect()),
        Err(_) => None,
    };
    let minutes = notifications.remind_at;
    let at = format!("{:02}:{:02}", minutes / 60, minutes % 60);
    let batch = reminder::batch(today);
    Ok(Some(Reminders { channel, at, date, batch, counts }))
}
