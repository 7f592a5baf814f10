//! All that happened to a payment, one below the other: what came in, what was decided, what was announced, where it
//! went, who was told.

use sekisho_core::Time;
use sekisho_core::source_name::OWN;
use sekisho_store::{AuditEntry, EventSummary, Standing, StoredMessage};
use serde_json::Value;

use crate::console::frame::Frame;
use crate::queries::Dossier;
use crate::view::words;

pub struct TimelineItem {
    pub at: Time,
    pub tone: &'static str,
    pub title: String,
    /// What it leads to.
    pub href: String,
    /// A status word for a badge; may be empty.
    pub status: String,
    /// What is said beside it, a line each.
    pub lines: Vec<String>,
}

pub fn of(dossier: &Dossier, f: &Frame) -> Vec<TimelineItem> {
    let currency = dossier.state.index.currency.clone().unwrap_or_default();
    let (own, others): (Vec<_>, Vec<_>) = dossier.events.iter().partition(|event| is_own(event));
    let mut items: Vec<_> = others.into_iter().map(|event| received(event, f)).collect();
    let entries = dossier.entries.iter().filter(|entry| {
        let told_of = details(entry)["id"].as_str().map(str::to_owned);
        told_of.is_none_or(|id| !own.iter().any(|event| event.event_id == id))
    });
    items.extend(entries.map(|entry| decided(entry, &currency, f)));
    items.extend(own.iter().map(|event| announced(event, f)));
    let deliveries = dossier.messages.values().flatten();
    items.extend(deliveries.filter_map(|message| delivered(message, dossier, f)));
    items.extend(dossier.notices.iter().map(|(id, notice)| {
        let last = notice.steps.last();
        let status = notice.status().name();
        TimelineItem {
            at: last.map_or(dossier.state.changed_at, |step| step.at),
            tone: tone(status, f),
            title: format!("{} {}", f.t("Notice", "通知"), notice.template),
            href: format!("/console/notices/{id}"),
            status: status.to_owned(),
            lines: last
                .and_then(|step| step.reason.as_deref())
                .map(|why| f.show.reason(why).to_owned())
                .into_iter()
                .collect(),
        }
    }));
    // What happened at one moment stays in the order above: came in, decided, went out.
    items.sort_by_key(|item| item.at);
    items
}

/// Announced by Sekisho itself.
fn is_own(event: &EventSummary) -> bool {
    event.source == OWN
}

fn received(event: &EventSummary, f: &Frame) -> TimelineItem {
    let note = event.note.iter().map(|note| f.show.reason(note).to_owned());
    TimelineItem {
        at: event.received_at,
        tone: tone(event.status.name(), f),
        title: format!("{} {}", f.t("Event", "イベント"), event.event_type),
        href: format!("/console/events/{}", event.seq.as_event()),
        status: event.status.name().to_owned(),
        lines: std::iter::once(event.source.clone()).chain(note).collect(),
    }
}

/// What became of it is said by its deliveries.
fn announced(event: &EventSummary, f: &Frame) -> TimelineItem {
    TimelineItem {
        tone: "plain",
        title: format!("{} {}", f.t("Event emitted", "イベントを発行"), event.event_type),
        status: String::new(),
        lines: Vec::new(),
        ..received(event, f)
    }
}

/// An entry of the log, with what it changed.
pub fn decided(one: &AuditEntry, currency: &str, f: &Frame) -> TimelineItem {
    let (entry, details) = (&one.entry, details(one));
    let title = match entry.action.rsplit('.').next().unwrap_or_default() {
        "found" => f.t("Created", "記録を開始").to_owned(),
        "changed" => f.t("Status changed", "状態の変化").to_owned(),
        "merged" => f.t("Merged", "別の記録と統合").to_owned(),
        "parted" => f.t("Split", "一部を別の記録へ移動").to_owned(),
        _ => entry.action.clone(),
    };
    let who = entry.actor.as_ref().map(|actor| format!("{} {actor}", f.t("by", "操作者")));
    let event = entry.event.map(|event| format!("/console/events/{}", event.as_event()));
    let mut lines = words::changes(&details["before"], &details["after"], currency, f.lang);
    let merged = details["merged"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.extend(merged.map(str::to_owned));
    lines.extend(details["moved"].as_str().map(str::to_owned));
    lines.extend(who);
    let after = details["after"]["status"].as_str().unwrap_or_default().to_owned();
    TimelineItem {
        at: entry.at,
        tone: tone(&after, f),
        title,
        href: event.unwrap_or_default(),
        status: after,
        lines,
    }
}

fn delivered(message: &StoredMessage, dossier: &Dossier, f: &Frame) -> Option<TimelineItem> {
    let route = message.lane.route()?;
    let event = dossier.events.iter().find(|event| Some(event.seq) == message.event);
    let (status, at, note) = match &message.standing {
        Standing::Waiting(due) => ("waiting", *due, None),
        Standing::Running => ("running", event?.received_at, None),
        Standing::Done(outcome, at) => (outcome.name(), *at, None),
        Standing::Dead(death, at) => ("dead", *at, Some(f.show.reason(&death.reason).to_owned())),
    };
    let of = event.map(|event| event.event_type.clone());
    let tries =
        (message.attempts > 1).then(|| format!("{} {}", f.t("attempts:", "試行回数:"), message.attempts));
    Some(TimelineItem {
        at,
        tone: tone(status, f),
        title: format!("{} {route}", f.t("Delivery to", "配送先")),
        href: event.map(|event| format!("/console/events/{}", event.seq.as_event())).unwrap_or_default(),
        status: if status == "success" { "delivered".into() } else { status.to_owned() },
        lines: of.into_iter().chain(tries).chain(note).collect(),
    })
}

fn tone(status: &str, f: &Frame) -> &'static str {
    words::status(status, f.lang).0.class()
}

fn details(entry: &AuditEntry) -> Value {
    serde_json::from_str(&entry.entry.details).unwrap_or_default()
}
