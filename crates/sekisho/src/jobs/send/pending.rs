//! A notice in hand: its steps as they are committed, and every way it can end together with its job.

use std::time::Duration;

use sekisho_core::change::{ChangeSet, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{DeadReason, End, Job, Outcome};
use sekisho_core::mail_address::{MailAddress, mask_text};
use sekisho_core::notification::post::{self, reference_name};
use sekisho_core::notification::recipient::RATE_LIMITED;
use sekisho_core::notification::tries::UNCERTAIN;
use sekisho_core::notification::{Alert, Notice, NoticeStatus, Receipt, Step};
use sekisho_core::queue::Failure;
use sekisho_core::state::{self, Key, Naming, Wanted};
use tokio::time::Instant;

use super::traced;
use crate::engine::Engine;
use crate::jobs::unavailable;
use crate::telemetry::NoticeLabels;
use crate::transact::{TransactError, transact};

/// How long a store that does not answer is asked to keep a step, and how often.
const INSIST: Duration = Duration::from_secs(30);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Most characters kept of what the other side said.
const NOTE_MAX: usize = 500;

pub struct PendingNotice {
    pub id: String,
    version: i64,
    pub notice: Notice,
}

impl PendingNotice {
    pub async fn load(engine: &Engine, id: &str) -> Result<Self, Failure> {
        let key = Key::new(state::Kind::Notice, id);
        let loaded = engine.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
        let missing = || Failure::terminal("notice_missing", format!("there is no notice {id}"));
        let state = loaded.states.get(&key).ok_or_else(missing)?;
        let notice = serde_json::from_str(&state.facts)
            .map_err(|error| Failure::terminal("unreadable_state", format!("the notice {id}: {error}")))?;
        Ok(Self { id: id.to_owned(), version: state.version, notice })
    }

    /// Whether this job is the one that sends it.
    pub fn is_sent_by(&self, job: &Job) -> bool {
        self.notice.message.as_deref() == Some(&*job.lease.job.as_message().to_string())
    }

    /// Commits a step now, however often the store must be asked. If somebody else wrote meanwhile, or was given the job,
    /// this run is not the one to go on.
    pub async fn note_step(&mut self, engine: &Engine, job: &Job, step: Step) -> Result<(), Failure> {
        let key = Key::new(state::Kind::Notice, &self.id);
        let next = self.notice.clone().with(step);
        let set = ChangeSet {
            writes: vec![post::write(&self.id, self.version, &next)],
            ..ChangeSet::end(job.lease, End::NotYet, engine.node.now())
        };
        let deadline = Instant::now() + INSIST;
        let mut is_unsure = false;
        loop {
            let written = transact(&*engine.store, Wanted::keys([key.clone()]), |loaded| {
                if loaded.version(&key) == self.version {
                    return Ok((set.clone(), ()));
                }
                // After an answer that was lost, what was written shows whether it was ours.
                let stored = loaded.read::<Notice>(&key).ok().flatten();
                let is_ours = is_unsure && stored.is_some_and(|stored| stored.value == next);
                if is_ours { Ok((ChangeSet::nothing(set.at), ())) } else { Err(()) }
            });
            match written.await {
                Ok(()) => break,
                Err(TransactError::Store(error)) if Instant::now() > deadline => {
                    return Err(unavailable(error));
                }
                Err(TransactError::Store(error)) => engine.health.store_failed(&error),
                Err(TransactError::Refused(()) | TransactError::Contended | TransactError::Lost) => {
                    let error = "the notice was changed by another meanwhile";
                    return Err(Failure::transient("contended", error));
                }
            }
            is_unsure = true;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        self.notice = next;
        self.version += 1;
        Ok(())
    }

    pub async fn sent(self, engine: &Engine, job: &Job, receipt: &Receipt) -> ChangeSet {
        self.name(engine, receipt).await;
        let step = Step::new(engine.node.now(), NoticeStatus::Sent).noting(clipped(&receipt.answer));
        let note = Some(clipped(&receipt.answer)).filter(|note| !note.is_empty());
        self.ended(engine, job, step, End::Done(Outcome::Success { note }))
    }

    /// Keeps under what name bounces come back. As well as it goes: a server that gives one name twice, or a store that
    /// does not answer now, is no reason to doubt what was sent.
    async fn name(&self, engine: &Engine, receipt: &Receipt) {
        let Some(name) = receipt.reference.as_deref().map(reference_name) else { return };
        let key = Key::new(state::Kind::Notice, &self.id);
        let named = transact(&*engine.store, Wanted::names([name.clone()]), |loaded| -> Result<_, ()> {
            let mut set = ChangeSet::nothing(engine.node.now());
            if !loaded.names.contains_key(&name) {
                set.names.push(Naming { name: name.clone(), key: key.clone(), was: None });
            }
            Ok((set, ()))
        });
        if let Err(TransactError::Store(error)) = named.await {
            engine.health.store_failed(&error);
        }
    }

    pub fn failed(self, engine: &Engine, job: &Job, failure: &Failure) -> ChangeSet {
        let error = clipped(&failure.error);
        let step = Step::new(engine.node.now(), NoticeStatus::Failed).because(failure.reason, error.clone());
        let death =
            DeadReason { class: failure.class, reason: failure.reason.to_owned(), error: mask_text(&error) };
        self.ended(engine, job, step, End::Dead(death))
    }

    /// Nobody knows whether it arrived: a person decides.
    pub fn uncertain(self, engine: &Engine, job: &Job, failure: &Failure) -> ChangeSet {
        let error = clipped(&failure.error);
        let step =
            Step::new(engine.node.now(), NoticeStatus::Uncertain).because(failure.reason, error.clone());
        let error = format!("it may or may not have arrived: {}", mask_text(&error));
        self.ended(engine, job, step, End::Dead(DeadReason::terminal(UNCERTAIN, error)))
    }

    /// Its job became a dead letter before it was tried to its end.
    pub fn abandoned(self, engine: &Engine, job: &Job, death: DeadReason) -> ChangeSet {
        let in_doubt = self.notice.status() == NoticeStatus::Sending;
        let status = if in_doubt { NoticeStatus::Uncertain } else { NoticeStatus::Failed };
        let step = Step::new(engine.node.now(), status).because(&death.reason, clipped(&death.error));
        self.ended(engine, job, step, End::Dead(death))
    }

    pub fn suppressed(self, engine: &Engine, job: &Job, reason: &str, note: String) -> ChangeSet {
        let step = Step::new(engine.node.now(), NoticeStatus::Suppressed).because(reason, note);
        let note = "the address is suppressed; release it, then resend".to_owned();
        self.ended(engine, job, step, End::Done(Outcome::Skipped { note }))
    }

    pub fn rate_limited(self, engine: &Engine, job: &Job, most: u32) -> ChangeSet {
        let note = format!("the address had {most} mails within an hour (notifications.hourly_per_customer)");
        tracing::warn!(
            notice = self.id,
            to = self.notice.to.as_ref().map(MailAddress::masked),
            error_type = RATE_LIMITED,
            "notice rate limited: its recipient had too many within an hour"
        );
        let step =
            Step::new(engine.node.now(), NoticeStatus::RateLimited).because(RATE_LIMITED, note.clone());
        self.ended(engine, job, step, End::Done(Outcome::Skipped { note }))
    }

    /// The end of a run: the notice with its last step, what the log says of it, and the end of its job.
    fn ended(self, engine: &Engine, job: &Job, step: Step, end: End) -> ChangeSet {
        let at = engine.node.now();
        let notice = self.notice.with(step);
        let about = About { payment: notice.payment.clone(), billing: None, tenant: notice.tenant.clone() };
        // Outcomes say what an event was about; a notice says so itself.
        let is_dead = matches!(end, End::Dead(_));
        let about = if is_dead { about } else { About::default() };
        if is_dead {
            traced::bury(engine, job, &notice);
        }
        let ends = vec![Ended { about, ..Ended::new(job.lease, end) }];
        let mut set = ChangeSet { ends, ..ChangeSet::nothing(at) };
        set.writes.push(post::write(&self.id, self.version, &notice));
        set.audit.push(post::entry(&self.id, &notice, at));
        let status = notice.status();
        let labels = NoticeLabels { channel: notice.channel.clone(), status: status.name() };
        engine.metrics.notices.get_or_create(&labels).inc();
        // Only a mail has an address.
        if notice.to.is_some()
            && matches!(status, NoticeStatus::Sent | NoticeStatus::Failed | NoticeStatus::Uncertain)
        {
            engine.metrics.meters.mailed(&notice.channel, status == NoticeStatus::Sent);
        }
        tracing::info!(
            notice = self.id,
            channel = notice.channel,
            template = notice.template,
            to = notice.to.as_ref().map(MailAddress::masked),
            status = status.name(),
            "a notice came to its end"
        );
        let alert = Alert::of_notice(&self.id, &notice);
        set.events.extend(alert.map(|alert| alert.announcement(at).arrival(engine.node.next_seq(at))));
        set
    }
}

pub fn clipped(text: &str) -> String {
    text.chars().take(NOTE_MAX).collect()
}
