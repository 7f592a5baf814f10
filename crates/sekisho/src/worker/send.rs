//! One notice on its way out: every try of it, and what is written down before and after each.
//!
//! Order matters: that a try begins is committed before the first byte goes out, so that whoever finds a notice still
//! `sending` knows that nobody knows. What follows a try is decided by [`Tries`](sekisho_core::notification::Tries); a
//! notice whose channel is shut goes back to the queue as it was.

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::change::{ChangeSet, Committed, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{DeadReason, End, Job, Outcome};
use sekisho_core::mail_address::{MailAddress, mask_text};
use sekisho_core::notification::alert::News;
use sekisho_core::notification::notice::HANDED_BACK;
use sekisho_core::notification::post::{self, reference_name};
use sekisho_core::notification::recipient::{RATE_LIMITED, Recent};
use sekisho_core::notification::tries::UNCERTAIN;
use sekisho_core::notification::{
    Alert, Doubt, Message, Notice, Receipt, Status, Step, Suppression, Then, message,
};
use sekisho_core::queue::Failure;
use sekisho_core::state::{self, Index, Key, Naming, Write};
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::Worker;
use super::desk::Work;
use super::outlet::{Outlet, Paced};
use crate::telemetry::NoticeLabels;
use crate::token;

/// How long a channel is left alone that did not say how long: then one message tries whether it was mended.
const SHUT_MS: i64 = 15 * 60_000;
/// A channel keeps to its time by itself; this is for one that does not.
const GRACE: Duration = Duration::from_secs(1);
/// How long a store that does not answer is asked to keep a step, and how often.
const INSIST: Duration = Duration::from_secs(30);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How often others may be faster who count mails to the same address.
const COUNT_TRIES: usize = 50;
/// Most letters kept of what the other side said.
const NOTE_MAX: usize = 500;

/// A notice in hand.
struct Letter {
    id: String,
    version: i64,
    notice: Notice,
}

/// How it went with waiting for a try's turn.
enum Turn<'o> {
    Now(SemaphorePermit<'o>),
    UsedUp {
        until: Time,
    },
    /// The message's own time is up.
    TooLate,
}

impl Letter {
    fn key(&self) -> Key {
        Key::new(state::Kind::Notice, &self.id)
    }
}

impl Worker {
    /// Sends a notice; `None` when it goes back to the queue untried.
    pub(super) async fn send(self: &Arc<Self>, work: &Work) -> Result<Option<ChangeSet>, Failure> {
        let job = &work.job;
        let letter = self.letter(&job.payload).await?;
        if letter.notice.message.as_deref() != Some(&*job.lease.job.as_message().to_string()) {
            // Somebody asked for it to be sent again: that message does it, whatever becomes of this one.
            return Ok(Some(self.skipped(job, "another message sends this notice")));
        }
        let removed =
            || Failure::terminal("channel_removed", "the configuration has no such channel any more");
        let outlet =
            self.outlets.iter().find(|outlet| outlet.name == letter.notice.channel).ok_or_else(removed)?;
        let doubt = outlet.doubt.unwrap_or(Doubt::of(letter.notice.audience));
        match letter.notice.status() {
            Status::Sending if doubt == Doubt::Hold => {
                let failure = Failure::terminal(
                    "cut_off",
                    "the server stopped while it was being sent: it is unknown whether it arrived",
                );
                return Ok(Some(self.held(job, letter, &failure)));
            }
            // Whoever finds a failed or uncertain one in the queue was sent by a person.
            Status::Sending | Status::Queued | Status::Retrying | Status::Failed | Status::Uncertain => {}
            Status::Sent
            | Status::Suppressed
            | Status::RateLimited
            | Status::Off
            | Status::Bounced
            | Status::Complained => {
                let note = format!("it was {} already", letter.notice.status().name());
                self.desk.unjudged(&outlet.lane, self.node.now());
                return Ok(Some(self.skipped(job, &note)));
            }
        }
        if let Some((reason, note)) = self.suppressed(&letter).await? {
            self.desk.unjudged(&outlet.lane, self.node.now());
            return Ok(Some(self.suppress(job, letter, reason, note)));
        }
        if outlet.is_mail && self.is_over_limit(&letter).await? {
            self.desk.unjudged(&outlet.lane, self.node.now());
            return Ok(Some(self.hold_back(job, letter)));
        }
        let message = match self.message(outlet, &letter) {
            Ok(message) => message,
            Err(failure) => {
                self.desk.unjudged(&outlet.lane, self.node.now());
                return Ok(Some(self.failed_letter(job, letter, &failure)));
            }
        };
        self.try_all(work, outlet, letter, &message, doubt).await
    }

    /// Try after try, until it is known what became of it.
    async fn try_all(
        self: &Arc<Self>,
        work: &Work,
        outlet: &Outlet,
        mut letter: Letter,
        message: &Message,
        doubt: Doubt,
    ) -> Result<Option<ChangeSet>, Failure> {
        let job = &work.job;
        // What an earlier run used up stays used up.
        let before = letter.notice.round();
        if before.tries >= outlet.tries.most {
            let error = "the server stopped during its last attempt: it is unknown whether it arrived";
            return Ok(Some(self.held(job, letter, &Failure::terminal("cut_off", error))));
        }
        let mut began = (before.tries > 0).then(Instant::now);
        let mut last: Option<Failure> = None;
        let spent_ms = |began: Option<Instant>| {
            before.spent_ms + began.map_or(0, |began| began.elapsed().as_millis() as i64)
        };
        for n in before.tries + 1.. {
            let left = (n > 1).then(|| outlet.tries.within_ms - spent_ms(began));
            let room = match (self.turn(outlet, left).await?, last.take()) {
                (Turn::Now(room), _) => room,
                (Turn::UsedUp { until }, _) => {
                    let failure =
                        Failure::transient("quota_used_up", "the day's quota of this channel is used up");
                    let for_ms = until.ms() - self.node.now().ms();
                    return self.wait_for_channel(work, outlet, letter, &failure, Some(for_ms)).await;
                }
                (Turn::TooLate, failure) => {
                    let failure = failure.unwrap_or_else(|| Failure::transient("timeout", "its time is up"));
                    return Ok(Some(self.failed_letter(job, letter, &failure)));
                }
            };
            if !self.may_start(job) {
                return self.put_back(work);
            }
            let step = Step::new(self.node.now(), Status::Sending).noting(format!("try {n}"));
            self.note_step(&mut letter, step).await?;
            if !self.may_start(job) {
                // Nothing went out: whoever has it now finds it `sending`, and must not take our word for it.
                let step =
                    Step::new(self.node.now(), Status::Queued).because(HANDED_BACK, "handed back untried");
                self.note_step(&mut letter, step).await?;
                return self.put_back(work);
            }
            let (try_began, _) = (Instant::now(), began.get_or_insert_with(Instant::now));
            let within = Duration::from_millis(outlet.tries.time_left_ms(spent_ms(began)) as u64);
            let sent = tokio::time::timeout(within + GRACE, outlet.channel.send(message, within)).await;
            drop(room);
            let sent = sent.unwrap_or_else(|_| {
                message::Sent::Uncertain(
                    Failure::transient("timeout", "no answer in time").blaming_destination(),
                )
            });
            let took = try_began.elapsed();
            self.metrics.delivery_seconds.observe(took.as_secs_f64());
            match outlet.tries.after(sent, doubt, n, spent_ms(began)) {
                Then::Done(receipt) => {
                    self.judge_channel(outlet, true);
                    return Ok(Some(self.sent(job, letter, &receipt).await));
                }
                Then::Failed(failure) => {
                    self.judge_channel(outlet, !failure.blames_destination);
                    return Ok(Some(self.failed_letter(job, letter, &failure)));
                }
                Then::Hold(failure) => {
                    self.judge_channel(outlet, !failure.blames_destination);
                    return Ok(Some(self.held(job, letter, &failure)));
                }
                Then::Wait { failure, for_ms } => {
                    return self.wait_for_channel(work, outlet, letter, &failure, for_ms).await;
                }
                Then::Again { after_ms, failure } => {
                    let step = Step::new(self.node.now(), Status::Retrying)
                        .because(failure.reason, clipped(&failure.error));
                    self.note_step(&mut letter, step).await?;
                    tracing::warn!(
                        notice = letter.id,
                        channel = outlet.name,
                        error_type = failure.reason,
                        error = mask_text(&failure.error),
                        attempt = n,
                        wait_ms = after_ms,
                        "notice not accepted; it will be retried"
                    );
                    if !self.pause(Duration::from_millis(after_ms as u64)).await {
                        return self.put_back(work);
                    }
                    last = Some(failure);
                }
            }
        }
        unreachable!("tries end")
    }

    /// Waits for room and for a moment to send at; with `left_ms`, not longer.
    async fn turn<'o>(&self, outlet: &'o Outlet, left_ms: Option<i64>) -> Result<Turn<'o>, Failure> {
        let come = async {
            let room = outlet.room.acquire().await.expect("nobody closes it");
            Ok(match outlet.pace(&self.store, &self.node).await.map_err(unavailable)? {
                Paced::Now => Turn::Now(room),
                Paced::UsedUp { until } => Turn::UsedUp { until },
            })
        };
        let Some(left_ms) = left_ms else { return come.await };
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
        tokio::time::timeout(left, come).await.unwrap_or(Ok(Turn::TooLate))
    }

    // --- what is known ---------------------------------------------------------------------------------------

    async fn letter(&self, id: &str) -> Result<Letter, Failure> {
        let key = Key::new(state::Kind::Notice, id);
        let loaded = self.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
        let missing = || Failure::terminal("notice_missing", format!("there is no notice {id}"));
        let state = loaded.states.get(&key).ok_or_else(missing)?;
        let notice = serde_json::from_str(&state.facts)
            .map_err(|error| Failure::terminal("unreadable_state", format!("the notice {id}: {error}")))?;
        Ok(Letter { id: id.to_owned(), version: state.version, notice })
    }

    /// Why nothing may be sent to its address, if that is so.
    async fn suppressed(&self, letter: &Letter) -> Result<Option<(&'static str, String)>, Failure> {
        let Some(address) = &letter.notice.to else { return Ok(None) };
        let key = Suppression::key(address);
        let loaded = self.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
        let known = loaded.states.get(&key).and_then(Suppression::read);
        Ok(known.and_then(|known| {
            let turn = known.cause()?;
            let note = turn.note.clone().unwrap_or_else(|| "the address is on the suppression list".into());
            Some((turn.cause.name(), note))
        }))
    }

    /// Whether its recipient had enough mails within an hour; if not, this one counts from now on.
    async fn is_over_limit(&self, letter: &Letter) -> Result<bool, Failure> {
        let most = self.notifications.hourly_per_customer;
        let Some(to) = letter.notice.to.as_ref().filter(|_| most > 0 && letter.notice.is_counted()) else {
            return Ok(false);
        };
        let key = Key::new(state::Kind::Quota, format!("to/{}", token::hash(to.whole())));
        for _ in 0..COUNT_TRIES {
            let loaded = self.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
            let state = loaded.states.get(&key);
            let recent: Recent =
                state.and_then(|state| serde_json::from_str(&state.facts).ok()).unwrap_or_default();
            let Some(next) = recent.with(&letter.id, most, self.node.now()) else { return Ok(true) };
            if next == recent {
                return Ok(false);
            }
            let facts = serde_json::to_string(&next).expect("plain data serialises");
            let version = state.map_or(0, |state| state.version);
            let write = Write { key: key.clone(), version, facts, index: Index::default() };
            let set = ChangeSet { writes: vec![write], ..ChangeSet::nothing(self.node.now()) };
            let written = self.store.commit(vec![set]).await.map_err(unavailable)?;
            if matches!(&*written, [Committed::Applied { .. }]) {
                return Ok(false);
            }
            tokio::time::sleep(AGAIN_AFTER / 10).await;
        }
        Err(Failure::transient("contended", "many mails to one address at once"))
    }

    fn message(&self, outlet: &Outlet, letter: &Letter) -> Result<Message, Failure> {
        let notice = &letter.notice;
        let to = notice.to.clone().map(|address| message::Recipient { address, name: notice.name.clone() });
        if outlet.is_mail && to.is_none() {
            return Err(Failure::terminal("no_address", "no mail address is known; resend it with `--to`"));
        }
        let rendered = self.templates.render(&notice.template, notice.language, &notice.data);
        let rendered = rendered.map_err(|flaw| {
            Failure::terminal(
                "template_error",
                format!("the template can't be filled in: {flaw}; correct the template, then resend"),
            )
        })?;
        Ok(Message {
            id: Notice::message_id(&letter.id, notice.again),
            key: notice.key.clone(),
            to,
            language: notice.language,
            subject: rendered.subject,
            text: rendered.text,
            html: rendered.html,
            template: notice.template.clone(),
            data: notice.data.clone(),
        })
    }

    // --- what is written down --------------------------------------------------------------------------------

    /// Commits a step now, however often the store must be asked. If somebody else wrote meanwhile, this run is not the
    /// one to go on.
    async fn note_step(&self, letter: &mut Letter, step: Step) -> Result<(), Failure> {
        let next = letter.notice.clone().with(step);
        let write = post::write(&letter.id, letter.version, &next);
        let set = ChangeSet { writes: vec![write], ..ChangeSet::nothing(self.node.now()) };
        let deadline = Instant::now() + INSIST;
        let mut is_unsure = false;
        loop {
            let answer = self.store.commit(vec![set.clone()]).await;
            // After an answer that was lost, what was written shows whether it was ours.
            let is_ours = match answer {
                Ok(answers) if matches!(&*answers, [Committed::Applied { .. }]) => true,
                Ok(_) if is_unsure => self.letter(&letter.id).await.is_ok_and(|stored| stored.notice == next),
                Ok(_) => false,
                Err(error) if Instant::now() > deadline => return Err(unavailable(error)),
                Err(error) => {
                    self.health.store_failed(&error);
                    is_unsure = true;
                    tokio::time::sleep(AGAIN_AFTER).await;
                    continue;
                }
            };
            if !is_ours {
                return Err(Failure::transient("contended", "the notice was changed by another meanwhile"));
            }
            letter.notice = next;
            letter.version += 1;
            return Ok(());
        }
    }

    /// The end of a run: the notice with its last step, what the log says of it, and the end of its job.
    fn ended(&self, job: &Job, letter: Letter, step: Step, end: End) -> ChangeSet {
        let at = self.node.now();
        let notice = letter.notice.with(step);
        let about = About { payment: notice.payment.clone(), billing: None, tenant: notice.tenant.clone() };
        // Outcomes say what an event was about; a notice says so itself.
        let about = if matches!(end, End::Dead(_)) { about } else { About::default() };
        let ends = vec![Ended { about, ..Ended::new(job.lease, end) }];
        let mut set = ChangeSet { ends, ..ChangeSet::nothing(at) };
        set.writes.push(post::write(&letter.id, letter.version, &notice));
        set.audit.push(post::entry(&letter.id, &notice, at));
        let status = notice.status();
        let labels = NoticeLabels { channel: notice.channel.clone(), status: status.name() };
        self.metrics.notices.get_or_create(&labels).inc();
        tracing::info!(
            notice = letter.id,
            channel = notice.channel,
            template = notice.template,
            to = notice.to.as_ref().map(MailAddress::masked),
            status = status.name(),
            "a notice came to its end"
        );
        let alert = Alert::of_notice(&letter.id, &notice);
        set.events.extend(alert.map(|alert| alert.announcement(at).arrival(self.node.next_seq(at))));
        set
    }

    async fn sent(&self, job: &Job, letter: Letter, receipt: &Receipt) -> ChangeSet {
        self.name_letter(letter.key(), receipt).await;
        let step = Step::new(self.node.now(), Status::Sent).noting(clipped(&receipt.answer));
        let note = Some(clipped(&receipt.answer)).filter(|note| !note.is_empty());
        self.ended(job, letter, step, End::Done(Outcome::Success { note }))
    }

    /// Keeps under what name bounces come back. As well as it goes: a server that gives one name twice, or a store that
    /// does not answer now, is no reason to doubt what was sent.
    async fn name_letter(&self, key: Key, receipt: &Receipt) {
        let Some(name) = receipt.reference.as_deref().map(reference_name) else { return };
        let names = vec![Naming { name, key, was: None }];
        let set = ChangeSet { names, ..ChangeSet::nothing(self.node.now()) };
        if let Err(error) = self.store.commit(vec![set]).await {
            self.health.store_failed(&error);
        }
    }

    fn failed_letter(&self, job: &Job, letter: Letter, failure: &Failure) -> ChangeSet {
        let error = clipped(&failure.error);
        let step = Step::new(self.node.now(), Status::Failed).because(failure.reason, error.clone());
        let death =
            DeadReason { class: failure.class, reason: failure.reason.to_owned(), error: mask_text(&error) };
        self.ended(job, letter, step, End::Dead(death))
    }

    /// Nobody knows whether it arrived: a person decides.
    fn held(&self, job: &Job, letter: Letter, failure: &Failure) -> ChangeSet {
        let error = clipped(&failure.error);
        let step = Step::new(self.node.now(), Status::Uncertain).because(failure.reason, error.clone());
        let error = format!("it may or may not have arrived: {}", mask_text(&error));
        self.ended(job, letter, step, End::Dead(DeadReason::terminal(UNCERTAIN, error)))
    }

    /// There is nothing to do for this job.
    fn skipped(&self, job: &Job, note: &str) -> ChangeSet {
        let end = End::Done(Outcome::Skipped { note: note.to_owned() });
        ChangeSet::end(job.lease, end, self.node.now())
    }

    /// The end of a job that goes before a person without having been tried to its end: its notice must not wait for it.
    pub(super) async fn abandoned(&self, job: &Job, death: DeadReason) -> ChangeSet {
        let at = self.node.now();
        let letter = self.letter(&job.payload).await.ok();
        let own = job.lease.job.as_message().to_string();
        let letter = letter.filter(|letter| {
            !letter.notice.status().is_over() && letter.notice.message.as_deref() == Some(&*own)
        });
        let Some(letter) = letter else { return ChangeSet::end(job.lease, End::Dead(death), at) };
        let in_doubt = letter.notice.status() == Status::Sending;
        let status = if in_doubt { Status::Uncertain } else { Status::Failed };
        let step = Step::new(at, status).because(&death.reason, clipped(&death.error));
        self.ended(job, letter, step, End::Dead(death))
    }

    fn suppress(&self, job: &Job, letter: Letter, reason: &str, note: String) -> ChangeSet {
        let step = Step::new(self.node.now(), Status::Suppressed).because(reason, note);
        let note = "the address is suppressed; release it, then resend".to_owned();
        self.ended(job, letter, step, End::Done(Outcome::Skipped { note }))
    }

    fn hold_back(&self, job: &Job, letter: Letter) -> ChangeSet {
        let most = self.notifications.hourly_per_customer;
        let note = format!("the address had {most} mails within an hour (notifications.hourly_per_customer)");
        tracing::warn!(
            notice = letter.id,
            to = letter.notice.to.as_ref().map(MailAddress::masked),
            error_type = RATE_LIMITED,
            "notice rate limited: its recipient had too many within an hour"
        );
        let step = Step::new(self.node.now(), Status::RateLimited).because(RATE_LIMITED, note.clone());
        self.ended(job, letter, step, End::Done(Outcome::Skipped { note }))
    }

    // --- the channel -----------------------------------------------------------------------------------------

    /// The channel is shut: the notice waits for it, and operators hear of it.
    async fn wait_for_channel(
        self: &Arc<Self>,
        work: &Work,
        outlet: &Outlet,
        mut letter: Letter,
        failure: &Failure,
        for_ms: Option<i64>,
    ) -> Result<Option<ChangeSet>, Failure> {
        let now = self.node.now();
        let until = now.plus_ms(for_ms.unwrap_or(SHUT_MS));
        if letter.notice.status() != Status::Queued {
            let step = Step::new(now, Status::Queued).because(failure.reason, clipped(&failure.error));
            self.note_step(&mut letter, step).await?;
        }
        let error = mask_text(&clipped(&failure.error));
        if let Some(breaker) =
            self.desk.shut(&outlet.lane, &format!("{}: {error}", failure.reason), until, now)
        {
            tracing::error!(channel = outlet.name, error_type = failure.reason, error, until = %until,
                "channel paused; its messages wait");
            self.write_breaker(&outlet.lane, &breaker).await;
            self.announce(Alert::of_channel(&outlet.name, News::Paused, failure.reason, &error, now)).await;
        }
        if work.job.lane != outlet.lane {
            // Elsewhere no breaker keeps it from being tried again at once.
            return Ok(Some(ChangeSet::end(work.job.lease, End::Retry { due_at: until }, now)));
        }
        self.put_back(work)
    }

    /// Tells the channel's breaker how it went, and operators if that changed anything.
    fn judge_channel(self: &Arc<Self>, outlet: &Outlet, well: bool) {
        let Some(breaker) = self.desk.judge(&outlet.lane, well, self.node.now()) else { return };
        tracing::warn!(channel = outlet.name, state = breaker.state(), "the breaker of a channel changed");
        let (worker, lane, name) = (Arc::clone(self), outlet.lane.clone(), outlet.name.clone());
        tokio::spawn(async move {
            worker.write_breaker(&lane, &breaker).await;
            let (news, detail) = if breaker.is_open() {
                (News::Paused, "too many failures in a row; its messages wait")
            } else {
                (News::Resumed, "it takes messages again")
            };
            let at = worker.node.now();
            worker.announce(Alert::of_channel(&name, news, "unreachable", detail, at)).await;
        });
    }

    pub(super) async fn announce(&self, alert: Alert) {
        let at = self.node.now();
        let event = alert.announcement(at).arrival(self.node.next_seq(at));
        if let Err(error) = self.store.admit(Arc::new([event]), None).await {
            self.health.store_failed(&error);
        }
    }

    // --- going back ------------------------------------------------------------------------------------------

    /// Is this run still the one to send it?
    fn may_start(&self, job: &Job) -> bool {
        !self.is_leaving() && self.node.may_work() && job.lease.epoch == self.node.epoch()
    }

    /// Waits; false when this node is about to stop.
    async fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.is_leaving() {
            tokio::time::sleep(Duration::from_millis(50).min(until - Instant::now())).await;
        }
        !self.is_leaving()
    }

    /// Goes back to the queue without a spent try.
    fn put_back(&self, work: &Work) -> Result<Option<ChangeSet>, Failure> {
        self.desk.unjudged(&work.job.lane, self.node.now());
        Ok(None)
    }
}

fn clipped(text: &str) -> String {
    text.chars().take(NOTE_MAX).collect()
}

fn unavailable(error: sekisho_store::Error) -> Failure {
    Failure::transient("store_unavailable", error.chain())
}
