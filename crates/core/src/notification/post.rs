//! Notices as they are written down: the record, the name that keeps it single, the job that sends it.

use serde_json::{Value, json};

use super::{Alert, MailAddress, Notice, Status};
use crate::audit::Entry;
use crate::change::{ChangeSet, Kind, Lane, NewJob};
use crate::id::Seq;
use crate::state::{self, Key, Loaded, Naming, Write};
use crate::time::Time;

/// What a notice's name begins with.
const NAME: &str = "n:";

/// The name that keeps a notice single.
pub fn name(notice: &Notice) -> String {
    format!("{NAME}{}", notice.key)
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
        if notice.status() == Status::Queued {
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
        kind: Kind::Send,
        lane: Lane::by_channel(&notice.channel),
        fifo: None,
        due_at,
        event: None,
        payload: id.to_owned(),
        owner: None,
    }
}

/// What the audit log says of a notice that came to its end.
pub fn entry(id: &str, notice: &Notice, at: Time) -> Entry {
    let status = notice.status();
    let action = match (&notice.batch, status) {
        (Some(_), Status::Sent) => "deadline_notification_sent".to_owned(),
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
        role: None,
        action,
        target: ("notice".into(), id.to_owned()),
        tenant: notice.tenant.clone(),
        event: None,
        details: details.to_string(),
    }
}

/// A notice as people and programs read it.
pub fn view(id: &str, notice: &Notice, whole: bool) -> Value {
    let shown = |address: &MailAddress| if whole { address.whole().to_owned() } else { address.masked() };
    let last = notice.steps.last();
    json!({
        "id": id,
        "object": "notice",
        "status": notice.status(),
        "to": notice.to.as_ref().map(shown),
        "name": notice.name,
        "channel": notice.channel,
        "audience": notice.audience,
        "template": notice.template,
        "language": notice.language,
        "tenant": notice.tenant,
        "payment": notice.payment,
        "event": notice.event,
        "batch": notice.batch,
        "message": notice.message,
        "reason": last.and_then(|step| step.reason.as_ref()),
        "note": last.and_then(|step| step.note.as_ref()),
        "advice": notice.status().advice(last.and_then(|step| step.reason.as_deref())),
        "details": notice.details,
        "created_at": notice.steps.first().map(|step| step.at),
        "changed_at": last.map(|step| step.at),
        "steps": notice.steps,
    })
}

impl Status {
    /// The next step, for whoever asks why nothing came.
    pub fn advice(self, reason: Option<&str>) -> Option<&'static str> {
        match (self, reason) {
            (Self::Queued | Self::Sending | Self::Retrying, _) => {
                Some("it is on its way; look again in a minute")
            }
            (Self::Sent, _) => Some("the mail server took it: look in the spam folder, or resend it"),
            (Self::Failed, Some("no_address")) => Some("enter a mail address, then resend it with --to"),
            (Self::Failed, Some("bad_recipient")) => {
                Some("the address is wrong: correct it, then resend it with --to")
            }
            (Self::Failed, _) => Some("mend what the note says, then resend it"),
            (Self::Uncertain, _) => Some("nobody knows whether it arrived: ask the recipient, or resend it"),
            (Self::Suppressed, _) => {
                Some("the address bounced or complained before: release it, then resend")
            }
            (Self::Off, _) => Some("notifications are switched off for this person: switch them on"),
            (Self::Bounced, Some("bounced_for_now")) => {
                Some("the mailbox took no mail then, perhaps it is full: resend it later")
            }
            (Self::Bounced, _) => Some("the address does not work: correct it, then resend it with --to"),
            (Self::Complained, _) => Some("the recipient called it spam: do not resend without asking"),
        }
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
