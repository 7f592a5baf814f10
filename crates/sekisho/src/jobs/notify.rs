//! Working out who is told what: the notices that a rule makes of an event, a day's reminders of one office, and what a
//! bounce or a complaint changes. All of it can be done again from the beginning: what was written down before is known
//! by its name and left as it is.

use std::sync::Arc;

use sekisho_core::change::ChangeSet;
use sekisho_core::event::Stored;
use sekisho_core::job::{End, Notify, Outcome};
use sekisho_core::notification::{Notice, NotifyRule, To, awaits_receipt, compose, feedback};
use sekisho_core::queue::Failure;

use super::{unavailable, unwritten};
use crate::acts::{self, Refusal};
use crate::config::{Config, Notifications};
use crate::engine::{Engine, Ran, Work};
use crate::queries;
use crate::transact::transact;

/// How often it is looked for what an event needs, a customer's address, a receipt or a mail's notice, before it is done
/// without: half a minute.
const PATIENCE: i32 = 6;
/// Events, or offices, of which it is worked out at once who is told.
pub const AT_ONCE: usize = 4;

pub struct Notifier {
    rules: Vec<NotifyRule>,
    notifications: Notifications,
}

impl Notifier {
    pub fn new(config: &Config) -> Self {
        Self { rules: config.rules(), notifications: config.notifications.clone() }
    }

    pub async fn run(&self, engine: &Engine, work: &Work, notify: &Notify) -> Result<Ran, Failure> {
        let job = &work.job;
        let no_event = || Failure::terminal("event_missing", "it has no event");
        let note = match notify {
            Notify::Tell(rule) => {
                self.tell(engine, rule, work, work.event.as_ref().ok_or_else(no_event)?).await?
            }
            Notify::Feedback => hear(engine, work.event.as_ref().ok_or_else(no_event)?, job.tries()).await?,
            Notify::Remind { tenant, date } => self.remind(engine, tenant, date).await?,
        };
        let end = End::Done(Outcome::Success { note: Some(note) });
        Ok(Ran::Ended(ChangeSet::end(job.lease, end, engine.node.now())))
    }

    /// Whom a rule tells of an event.
    async fn tell(
        &self,
        engine: &Engine,
        rule: &str,
        work: &Work,
        event: &Arc<Stored>,
    ) -> Result<String, Failure> {
        let tries = work.job.tries();
        let gone = || {
            Failure::terminal("rule_removed", format!("the configuration has no [[notify]] {rule} any more"))
        };
        let rule = self.rules.iter().find(|known| known.name == rule).ok_or_else(gone)?;
        let parties = queries::parties(&*engine.store, rule.to, event).await.map_err(unavailable)?;
        if rule.to == To::Customer && parties.customer.address.is_none() && tries < PATIENCE {
            // The event that names the address may be on its way.
            return Err(Failure::transient("no_address_yet", "no mail address of the customer is known yet"));
        }
        if rule.to == To::Customer && awaits_receipt(event, &parties) && tries < PATIENCE {
            return Err(Failure::transient(
                "no_receipt_yet",
                "the charge that brings the receipt is not known yet",
            ));
        }
        if tries < PATIENCE && is_raising(engine, rule, event).await? {
            let error = "what the case was raised by is not told yet";
            return Err(Failure::transient("not_raised_yet", error));
        }
        let mut notices = compose(rule, event, &parties, &self.notifications.house, engine.node.now());
        if let Some(trace) = work.traceparent(&engine.tracer) {
            notices.iter_mut().for_each(|notice| notice.trace = Some(trace.to_string()));
        }
        let posted = post(engine, &notices).await?;
        Ok(format!("{posted} of {} notices are new", notices.len()))
    }

    /// A day's reminders of one office.
    async fn remind(&self, engine: &Engine, tenant: &str, date: &str) -> Result<String, Failure> {
        let wrong = || Failure::terminal("unknown_task", format!("{date} is no day"));
        let today = date.parse().map_err(|_| wrong())?;
        let at = engine.node.now();
        let notices = queries::reminders(&*engine.store, &self.notifications, tenant, today, at);
        let notices = match notices.await {
            Err(Refusal::Missing(_)) => return Ok("the tenant is gone".into()),
            notices => notices.map_err(refused)?,
        };
        let posted = post(engine, &notices).await?;
        Ok(format!("{posted} of {} reminders are new", notices.len()))
    }
}

/// Whether the end of a case would overtake its beginning at whoever is told by this rule: then nobody would end it there.
async fn is_raising(engine: &Engine, rule: &NotifyRule, event: &Stored) -> Result<bool, Failure> {
    let raised = rule.raised_before(event);
    if raised.is_empty() {
        return Ok(false);
    }
    let loaded = engine.store.load(raised.clone(), Vec::new()).await.map_err(unavailable)?;
    Ok(raised.iter().any(|name| !loaded.names.contains_key(name)))
}

async fn post(engine: &Engine, notices: &[Notice]) -> Result<usize, Failure> {
    let at = engine.node.now();
    acts::post_notices(&*engine.store, notices, at, || engine.node.next_seq(at)).await.map_err(refused)
}

/// What the mail service says became of a mail: its notice hears of it, and an address that does not work, or does
/// not want us, gets nothing more from now on, whether that notice is known yet or not, if we ever wrote to it.
async fn hear(engine: &Engine, event: &Stored, tries: i32) -> Result<String, Failure> {
    let feedback = match feedback::read(&event.body) {
        None => return Ok("it says nothing of a mail".into()),
        Some(Err(error)) => return Err(Failure::terminal("unreadable_event", error.to_string())),
        Some(Ok(feedback)) => feedback.received(event.received_at),
    };
    if !feedback.is_news() {
        return Ok("it changes nothing".into());
    }
    if !feedback.is_own {
        return Ok("it changes nothing: the mail was not sent by the AWS account that owns the topic".into());
    }
    let mailed = queries::mailed(&*engine.store, &feedback.addresses).await.map_err(unavailable)?;
    let heard = transact(&*engine.store, feedback.asks_for(), |known| {
        let at = engine.node.now();
        let set = feedback.heard(event.seq, known, &mailed, at, || engine.node.next_seq(at));
        let count = set.writes.len();
        let set = if count > 0 { set } else { ChangeSet::nothing(at) };
        Ok((set, (count, feedback.is_known(known))))
    });
    let contended = |error| unwritten(error, "others changed the same things all the time");
    let (count, is_known) = heard.await.map_err(contended)?;
    if !is_known && tries < PATIENCE {
        // It may be older than the word that it was sent.
        return Err(Failure::transient("no_notice_yet", "the mail it speaks of is not known yet"));
    }
    Ok(match count {
        0 => "it changes nothing".into(),
        count => format!("{count} records were updated"),
    })
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Store(error) => unavailable(error),
        Refusal::Conflict(error) | Refusal::RetryLater { detail: error, .. } => {
            Failure::transient("contended", error)
        }
        Refusal::Invalid(_)
        | Refusal::Fields(_)
        | Refusal::Missing(_)
        | Refusal::Forbidden(_)
        | Refusal::Full { .. } => Failure::terminal("refused", refusal.to_string()),
    }
}
