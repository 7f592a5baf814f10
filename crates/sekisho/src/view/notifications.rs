//! What was told to whom, and the ways it goes by. Addresses are masked unless whoever looks may see them whole.

use sekisho_core::Time;
use sekisho_core::job::Lane;
use sekisho_core::mail_address::{MailAddress, mask_text};
use sekisho_core::notification::advice::{Advice, Known};
use sekisho_core::notification::{Limits, Notice, NoticeStatus, Quota, Step};
use sekisho_core::state::{Key, Kind};
use sekisho_core::time::DAY_MS;
use sekisho_store::{AuditFilter, FIND_MAX, Result, StateFilter, Store};

use super::{audit, breaker_of};
use crate::config::Config;
use crate::types;

/// Entries of the audit log that are shown with a notice: the newest.
const AUDIT_MAX: usize = 100;

/// A notice as people and programs read it; `whole`: with addresses unmasked, also where the other side names them.
pub fn notice(id: &str, notice: &Notice, whole: bool) -> types::Notice {
    let address = |address: &MailAddress| if whole { address.whole().to_owned() } else { address.masked() };
    let last = notice.steps.last();
    types::Notice {
        id: id.to_owned(),
        object: "notice".to_owned(),
        status: notice.status().name().to_owned(),
        to: notice.to.as_ref().map(address),
        name: notice.name.clone(),
        channel: notice.channel.clone(),
        audience: notice.audience.name().to_owned(),
        template: notice.template.clone(),
        language: notice.language.name().to_owned(),
        tenant: notice.tenant.clone(),
        payment: notice.payment.clone(),
        event: notice.event.clone(),
        batch: notice.batch.clone(),
        message: notice.message.clone(),
        reason: last.and_then(|step| step.reason.clone()),
        note: last.and_then(|step| said(step, whole)),
        advice: Some(next_step(notice).to_owned()),
        details: notice.details.clone(),
        attempts: notice.steps.iter().filter(|step| step.status == NoticeStatus::Sending).count(),
        resent: notice.again,
        created_at: notice.steps.first().map(|step| step.at),
        changed_at: last.map(|step| step.at),
    }
}

/// For whoever asks at a terminal, knowing no more than the record says: what was suppressed counts as suppressed still.
fn next_step(notice: &Notice) -> &'static str {
    let is_suppressed = notice.status() == NoticeStatus::Suppressed;
    match notice.advice(Known { is_mail: notice.to.is_some(), is_shut: false, is_suppressed }) {
        Advice::Wait => "it is on its way; look again in a minute",
        Advice::ResumeChannel => {
            "correct the channel, then resume it: waiting messages are sent automatically"
        }
        Advice::LookInSpam => "the mail server accepted it: look in the spam folder, or resend it",
        Advice::LookThere => "it was accepted: look there, or resend it",
        Advice::EnterAddress => "enter a mail address, then resend it with --to",
        Advice::CorrectAddress => "the address is wrong: correct it, then resend it with --to",
        Advice::CorrectTemplate => "correct the template, then resend it",
        Advice::RestoreChannel => "put the channel back into the configuration, then resend it",
        Advice::CorrectLogin => "correct the channel's login or sender in the configuration, then resend it",
        Advice::ReachServer => "check that the other side can be reached again, then resend it",
        Advice::MendWhatIsSaid => "correct the cause in the note, then resend it",
        Advice::AskFirst => "it is unknown whether it arrived: ask the recipient, or resend it",
        Advice::Resend => "the address was released meanwhile: resend it",
        Advice::ResendIfMeant => {
            "the address had too many mails within an hour: see what caused them, then resend the legitimate ones"
        }
        Advice::ReleaseFirst | Advice::CorrectOrRelease => {
            "the address bounced or complained before: release it, then resend"
        }
        Advice::ReleaseIfTheyAsk => {
            "the recipient reported mail as spam before: release it, then resend, only if they ask"
        }
        Advice::SwitchOn => "notifications are switched off for this person: switch them on",
        Advice::ResendLater => "the mailbox did not accept mail then, it may be full: resend it later",
        Advice::ReplaceAddress => "the address does not work: correct it, then resend it with --to",
        Advice::LeaveThemAlone => "the recipient reported it as spam: do not resend without asking",
    }
}

fn said(step: &Step, whole: bool) -> Option<String> {
    step.note.as_deref().map(|note| if whole { note.to_owned() } else { mask_text(note) })
}

/// A notice with every step, and with what the audit log says of it, the oldest first.
pub async fn notice_with_all(
    store: &dyn Store,
    id: &str,
    notice: &Notice,
    whole: bool,
) -> Result<types::NoticeDetail> {
    let filter = AuditFilter { target: Some(id.to_owned()), limit: AUDIT_MAX, ..AuditFilter::default() };
    let entries = store.find_audit(filter).await?.entries;
    let steps = notice.steps.iter().map(|step| types::Step {
        at: step.at,
        status: step.status.name().to_owned(),
        reason: step.reason.clone(),
        note: said(step, whole),
    });
    Ok(types::NoticeDetail {
        notice: self::notice(id, notice, whole),
        steps: steps.collect(),
        audit: entries.iter().rev().map(audit).collect(),
    })
}

/// A channel as configured, before the store is asked how it fares.
#[derive(Clone, Debug)]
pub struct ConfiguredChannel {
    pub name: String,
    pub kind: &'static str,
    pub limits: Limits,
}

impl ConfiguredChannel {
    pub fn all(config: &Config) -> Vec<Self> {
        let channels = config.channels.iter().map(|channel| Self {
            name: channel.name.clone(),
            kind: channel.kind.name(),
            limits: channel.limits,
        });
        channels.collect()
    }
}

/// Every channel with its breaker, its day's quota, and its oldest notice that waits.
pub async fn channels(
    channels: &[ConfiguredChannel],
    store: &dyn Store,
    now: Time,
) -> Result<Vec<types::Channel>> {
    let breakers = store.find_states(StateFilter::all(Kind::Breaker, FIND_MAX)).await?;
    let quota_key = |configured: &ConfiguredChannel| Key::new(Kind::Quota, &configured.name);
    let quotas = store.load(Vec::new(), channels.iter().map(quota_key).collect()).await?.states;
    let lanes = store.lanes().await?;
    let channel = |configured: &ConfiguredChannel| {
        let lane = Lane::by_channel(&configured.name);
        let waiting = lanes.iter().find(|(own, _)| *own == lane).map(|(_, due_at)| *due_at);
        let breaker = breaker_of(&breakers, &lane);
        let quota = quotas.get(&quota_key(configured));
        let quota: Option<Quota> = quota.and_then(|state| serde_json::from_str(&state.facts).ok());
        let today = now.ms().div_euclid(DAY_MS);
        let used = quota.filter(|quota| quota.day == today).map_or(0, |quota| quota.used);
        types::Channel {
            name: configured.name.clone(),
            kind: configured.kind.to_owned(),
            breaker: breaker.state().to_owned(),
            why: breaker.why().map(str::to_owned),
            open_since: breaker.since(),
            open_until: breaker.next_probe(),
            used_today: (!configured.limits.is_free()).then_some(used),
            daily: configured.limits.daily,
            oldest_due_at: waiting,
        }
    };
    Ok(channels.iter().map(channel).collect())
}
