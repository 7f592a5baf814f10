//! Notices as they are written down: the record, the name that keeps it single, the job that sends it.

use serde_json::{Value, json};

use super::{Alert, Notice, NoticeStatus};
use crate::audit::{Entry, Role};
use crate::change::ChangeSet;
use crate::id::Seq;
use crate::job::{Lane, NewJob, Task};
use crate::mail_address::MailAddress;
use crate::state::{self, Key, Loaded, Naming, Write};
use crate::time::Time;

/// What a notice's name begins with.
const NAME: &str = "n:";

/// The name that keeps a notice single.
pub fn name(notice: &Notice) -> String {
    named(&notice.key)
}

/// The name of the notice that has a key.
pub fn named(key: &str) -> String {
    format!("{NAME}{key}")
}

/// Adds to a set the notices that were not written down before; says how many. Those that wait have a job each.
pub fn post(
    set: &mut ChangeSet,
    notices: &[Notice],
    known: &Loaded,
    mut next_id: impl FnMut() -> Seq,
) -> usize {
    let at = set.at;
    let mut posted = 0;
    for notice in notices.iter().filter(|notice| !known.names.contains_key(&name(notice))) {
        if set.names.iter().any(|naming| naming.name == name(notice)) {
            continue;
        }
        let job = next_id();
        let id = job.tagged("ntc_");
        let key = Key::new(state::Kind::Notice, &id);
        set.names.push(Naming { name: name(notice), key, was: None });
        if notice.status() == NoticeStatus::Queued {
            let notice = Notice { message: Some(job.as_message().to_string()), ..notice.clone() };
            set.writes.push(write(&id, 0, &notice));
            set.jobs.push(send_job(&id, &notice, job, at));
        } else {
            set.writes.push(write(&id, 0, notice));
            set.audit.push(entry(&id, notice, at));
            let alert = Alert::of_notice(&id, notice);
            set.events.extend(alert.map(|alert| alert.announcement(at).arrival(next_id())));
        }
        posted += 1;
    }
    posted
}

/// The notice as it now is.
pub fn write(id: &str, version: i64, notice: &Notice) -> Write {
    Write {
        key: Key::new(state::Kind::Notice, id),
        version,
        facts: serde_json::to_string(notice).expect("a notice is plain data"),
        index: notice.index(),
    }
}

/// The job that sends it. A second job of the same notice is another fact: somebody asked for it.
pub fn send_job(id: &str, notice: &Notice, job: Seq, due_at: Time) -> NewJob {
    NewJob {
        id: job,
        key: Some(format!("notice/{}", Notice::message_id(id, notice.again))),
        lane: Lane::by_channel(&notice.channel),
        // What ends an incident goes out after what began it.
        fifo: notice.incident().map(|incident| format!("incident/{}/{}", notice.channel, incident.key)),
        due_at,
        event: None,
        task: Task::Send { notice: id.to_owned() },
        owner: None,
    }
}

/// What the audit log says of a notice that came to its end.
pub fn entry(id: &str, notice: &Notice, at: Time) -> Entry {
    let status = notice.status();
    let action = match (&notice.batch, status) {
        (Some(_), NoticeStatus::Sent) => "deadline_notification_sent".to_owned(),
        _ => format!("notice.{}", status.name()),
    };
    let mut details = json!({
        "recipient_email": notice.to.as_ref().map(MailAddress::masked),
        "channel": notice.channel,
        "template": notice.template,
        "language": notice.language,
        "payment": notice.payment,
        "event": notice.event,
    });
    if let (Some(all), Value::Object(more)) = (details.as_object_mut(), &notice.details) {
        all.extend(more.clone());
    }
    let last = notice.steps.last();
    if let Some(reason) = last.and_then(|step| step.reason.as_deref()) {
        details["reason"] = json!(reason);
    }
    Entry {
        at,
        actor: None,
        role: Role::System.of_entry(),
        action,
        target: ("notice".into(), id.to_owned()),
        tenant: notice.tenant.clone(),
        event: None,
        details: details.to_string(),
    }
}

/// A name under which the mail server knows a notice, so that bounces find it.
pub fn reference_name(reference: &str) -> String {
    format!("mail:{reference}")
}

/// The notice a Message-ID of ours speaks of: `ntc_….2@example.jp` is `ntc_…`.
pub fn notice_of(message_id: &str) -> Option<&str> {
    let local = message_id.split('@').next()?;
    let id = local.split('.').next()?;
    id.starts_with("ntc_").then_some(id)
}
