//! Sending one notice: every try of it, and what is written down before and after each.
//!
//! Order matters: that a try begins is committed before the first byte goes out, so that whoever finds a notice still
//! `sending` knows that nobody knows. What follows a try is decided by [`Tries`](sekisho_core::notification::Tries); a
//! notice whose channel is shut goes back to the queue as it was.

mod limit;
mod paced_channel;
mod pending;
mod traced;

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::job::{DeadReason, End, Job, Lane, Outcome};
use sekisho_core::mail_address::mask_text;
use sekisho_core::notification::alert::News;
use sekisho_core::notification::notice::HANDED_BACK;
use sekisho_core::notification::template::Templates;
use sekisho_core::notification::{
    Alert, Audience, Doubt, Message, Notice, NoticeStatus, OrderPage, Step, Then, message,
};
use sekisho_core::queue::Failure;
use sekisho_core::settlement::follow::LinkPolicy;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::announce;
use crate::config::Config;
use crate::engine::lane::LanePolicy;
use crate::engine::{Engine, Ran, Work};
use crate::env::Env;
use crate::telemetry::SendLabels;
use paced_channel::{Paced, PacedChannel};
use pending::{PendingNotice, clipped};
use traced::NoticeTry;

/// How long a channel is left alone that did not say how long: then one message tries whether it was mended.
const SHUT_MS: i64 = 15 * 60_000;
/// A channel keeps to its time by itself; this is for one that does not.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked, during a pause, whether this node is about to stop.
const LOOK: Duration = Duration::from_millis(50);

pub struct Sender {
    channels: Vec<PacedChannel>,
    templates: Templates,
    /// Mails within an hour to one address, and no more.
    hourly_max: u32,
    /// Customers' links are made when a mail goes out, and kept nowhere.
    links: LinkPolicy,
}

/// How it went with waiting for a try's turn.
enum Turn<'c> {
    Now(SemaphorePermit<'c>),
    UsedUp {
        until: Time,
    },
    /// The message's own time is up.
    TooLate,
}

impl Sender {
    pub fn new(config: &Config, env: &Env) -> anyhow::Result<Self> {
        let channels = config.channels.iter().map(|channel| PacedChannel::new(channel, env));
        Ok(Self {
            channels: channels.collect::<anyhow::Result<_>>()?,
            templates: config.templates.clone(),
            hourly_max: config.notifications.hourly_per_customer,
            links: config.orders.links.clone(),
        })
    }

    pub fn lanes(&self) -> impl Iterator<Item = (Lane, LanePolicy)> {
        self.channels.iter().map(|channel| (channel.lane.clone(), channel.policy()))
    }

    pub fn serves(&self, lane: &Lane) -> bool {
        self.channels.iter().any(|channel| channel.lane == *lane)
    }

    pub async fn run(&self, engine: &Arc<Engine>, work: &Work, notice: &str) -> Result<Ran, Failure> {
        let job = &work.job;
        let pending = PendingNotice::load(engine, notice).await?;
        if !pending.is_sent_by(job) {
            // Somebody asked for it to be sent again: that message does it, whatever becomes of this one.
            return Ok(skipped(engine, job, "another message sends this notice"));
        }
        let removed =
            || Failure::terminal("channel_removed", "the configuration has no such channel any more");
        let named = |channel: &&PacedChannel| channel.name == pending.notice.channel;
        let channel = self.channels.iter().find(named).ok_or_else(removed)?;
        let doubt = channel.doubt.unwrap_or(Doubt::of(pending.notice.audience));
        match pending.notice.status() {
            NoticeStatus::Sending if doubt == Doubt::Hold => {
                let failure = Failure::terminal(
                    "cut_off",
                    "the server stopped while it was being sent: it is unknown whether it arrived",
                );
                return Ok(Ran::Ended(pending.uncertain(engine, job, &failure)));
            }
            // Whoever finds a failed or uncertain one in the queue was sent by a person.
            NoticeStatus::Sending
            | NoticeStatus::Queued
            | NoticeStatus::Retrying
            | NoticeStatus::Failed
            | NoticeStatus::Uncertain => {}
            NoticeStatus::Sent
            | NoticeStatus::Suppressed
            | NoticeStatus::RateLimited
            | NoticeStatus::Off
            | NoticeStatus::Bounced
            | NoticeStatus::Complained => {
                let note = format!("it was {} already", pending.notice.status().name());
                unjudged(engine, &channel.lane);
                return Ok(skipped(engine, job, &note));
            }
        }
        if let Some((reason, note)) = limit::suppressed(engine, &pending).await? {
            unjudged(engine, &channel.lane);
            return Ok(Ran::Ended(pending.suppressed(engine, job, reason, note)));
        }
        if channel.is_mail && limit::is_over(engine, &pending, self.hourly_max).await? {
            unjudged(engine, &channel.lane);
            return Ok(Ran::Ended(pending.rate_limited(engine, job, self.hourly_max)));
        }
        let message = match self.message(channel, &pending) {
            Ok(message) => message,
            Err(failure) => {
                unjudged(engine, &channel.lane);
                return Ok(Ran::Ended(pending.failed(engine, job, &failure)));
            }
        };
        try_all(engine, work, channel, pending, &message, doubt).await
    }

    /// The end of a job that becomes a dead letter without having been tried to its end: its notice must not wait for it.
    pub async fn abandon(&self, engine: &Engine, job: &Job, notice: &str, reason: DeadReason) -> ChangeSet {
        let pending = PendingNotice::load(engine, notice).await.ok();
        match pending.filter(|pending| !pending.notice.status().is_over() && pending.is_sent_by(job)) {
            Some(pending) => pending.abandoned(engine, job, reason),
            None => ChangeSet::end(job.lease, End::Dead(reason), engine.node.now()),
        }
    }

    fn message(&self, channel: &PacedChannel, pending: &PendingNotice) -> Result<Message, Failure> {
        let notice = &pending.notice;
        let to = notice.to.clone().map(|address| message::Recipient { address, name: notice.name.clone() });
        if channel.is_mail && to.is_none() {
            return Err(Failure::terminal("no_address", "no mail address is known; resend it with `--to`"));
        }
        let mut data = notice.data.clone();
        if notice.audience == Audience::Customer && channel.is_mail {
            OrderPage::link(&mut data, &self.links);
        }
        let incident = notice.incident();
        let rendered = self.templates.render(&notice.template, notice.language, &data);
        let rendered = rendered.map_err(|flaw| {
            Failure::terminal(
                "template_error",
                format!("the template can't be filled in: {flaw}; correct the template, then resend"),
            )
        })?;
        Ok(Message {
            id: Notice::message_id(&pending.id, notice.again),
            closes: incident.as_ref().is_some_and(|incident| incident.is_over),
            key: incident.map_or_else(|| notice.key.clone(), |incident| incident.key),
            to,
            language: notice.language,
            subject: rendered.subject,
            text: rendered.text,
            html: rendered.html,
            template: notice.template.clone(),
            data: notice.data.clone(),
            trace: None,
        })
    }
}

/// Try after try, until it is known what became of it.
async fn try_all(
    engine: &Arc<Engine>,
    work: &Work,
    channel: &PacedChannel,
    mut pending: PendingNotice,
    message: &Message,
    doubt: Doubt,
) -> Result<Ran, Failure> {
    let job = &work.job;
    // What an earlier run used up stays used up.
    let before = pending.notice.round();
    if before.tries >= channel.tries.most {
        let error = "the server stopped during its last attempt: it is unknown whether it arrived";
        let failure = Failure::terminal("cut_off", error);
        return Ok(Ran::Ended(pending.uncertain(engine, job, &failure)));
    }
    let mut began = (before.tries > 0).then(Instant::now);
    let mut last: Option<Failure> = None;
    let spent_ms = |began: Option<Instant>| {
        before.spent_ms + began.map_or(0, |began| began.elapsed().as_millis() as i64)
    };
    for n in before.tries + 1.. {
        let left = (n > 1).then(|| channel.tries.within_ms - spent_ms(began));
        let room = match (turn(engine, channel, left).await?, last.take()) {
            (Turn::Now(room), _) => room,
            (Turn::UsedUp { until }, _) => {
                let failure =
                    Failure::transient("quota_used_up", "the day's quota of this channel is used up");
                let for_ms = until.ms() - engine.node.now().ms();
                return wait_for_channel(engine, work, channel, pending, &failure, Some(for_ms)).await;
            }
            (Turn::TooLate, failure) => {
                let failure = failure.unwrap_or_else(|| Failure::transient("timeout", "its time is up"));
                return Ok(Ran::Ended(pending.failed(engine, job, &failure)));
            }
        };
        if !may_start(engine, job) {
            return Ok(put_back(engine, work));
        }
        let step = Step::new(engine.node.now(), NoticeStatus::Sending).noting(format!("try {n}"));
        pending.note_step(engine, job, step).await?;
        if !may_start(engine, job) {
            // Nothing went out: whoever has it now finds it `sending`, and must not take our word for it.
            let step = Step::new(engine.node.now(), NoticeStatus::Queued)
                .because(HANDED_BACK, "handed back untried");
            pending.note_step(engine, job, step).await?;
            return Ok(put_back(engine, work));
        }
        let (try_began, _) = (Instant::now(), began.get_or_insert_with(Instant::now));
        let within = Duration::from_millis(channel.tries.time_left_ms(spent_ms(began)) as u64);
        let traced = NoticeTry::begin(engine, job, &pending, n);
        let traced_message = traced.as_ref().map(|traced| traced.in_message(engine, message));
        let message = traced_message.as_ref().unwrap_or(message);
        let sent = tokio::time::timeout(within + GRACE, channel.channel.send(message, within)).await;
        drop(room);
        let sent = sent.unwrap_or_else(|_| {
            message::Sent::Uncertain(Failure::transient("timeout", "no answer in time").blaming_destination())
        });
        traced.into_iter().for_each(|traced| traced.end(engine, &channel.lane, &sent));
        engine.metrics.delivery_seconds.observe(try_began.elapsed().as_secs_f64());
        let result = match &sent {
            message::Sent::Accepted(_) => "accepted",
            message::Sent::Failed(_) => "failed",
            message::Sent::Uncertain(_) => "uncertain",
            message::Sent::Closed { .. } => "closed",
        };
        let labels = SendLabels { channel: channel.name.clone(), result };
        engine.metrics.sends.get_or_create(&labels).inc();
        match channel.tries.after(sent, doubt, n, spent_ms(began)) {
            Then::Done(receipt) => {
                judge_channel(engine, channel, true);
                return Ok(Ran::Ended(pending.sent(engine, job, &receipt).await));
            }
            Then::Failed(failure) => {
                judge_channel(engine, channel, !failure.blames_destination);
                return Ok(Ran::Ended(pending.failed(engine, job, &failure)));
            }
            Then::Hold(failure) => {
                judge_channel(engine, channel, !failure.blames_destination);
                return Ok(Ran::Ended(pending.uncertain(engine, job, &failure)));
            }
            Then::Wait { failure, for_ms } => {
                return wait_for_channel(engine, work, channel, pending, &failure, for_ms).await;
            }
            Then::Again { after_ms, failure } => {
                let step = Step::new(engine.node.now(), NoticeStatus::Retrying)
                    .because(failure.reason, clipped(&failure.error));
                pending.note_step(engine, job, step).await?;
                tracing::warn!(
                    notice = pending.id,
                    channel = channel.name,
                    error_type = failure.reason,
                    error = mask_text(&failure.error),
                    attempt = n,
                    wait_ms = after_ms,
                    "notice not accepted; it will be retried"
                );
                if !pause(engine, Duration::from_millis(after_ms as u64)).await {
                    return Ok(put_back(engine, work));
                }
                last = Some(failure);
            }
        }
    }
    unreachable!("tries end")
}

/// Waits for room and for a moment to send at; with `left_ms`, not longer.
async fn turn<'c>(
    engine: &Engine,
    channel: &'c PacedChannel,
    left_ms: Option<i64>,
) -> Result<Turn<'c>, Failure> {
    let come = async {
        let room = channel.room.acquire().await.expect("nobody closes it");
        Ok(match channel.pace(engine).await? {
            Paced::Now => Turn::Now(room),
            Paced::UsedUp { until } => Turn::UsedUp { until },
        })
    };
    let Some(left_ms) = left_ms else { return come.await };
    let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
    tokio::time::timeout(left, come).await.unwrap_or(Ok(Turn::TooLate))
}

// --- the channel ---------------------------------------------------------------------------------------------

/// The channel is shut: the notice waits for it, and operators hear of it.
async fn wait_for_channel(
    engine: &Engine,
    work: &Work,
    channel: &PacedChannel,
    mut pending: PendingNotice,
    failure: &Failure,
    for_ms: Option<i64>,
) -> Result<Ran, Failure> {
    let now = engine.node.now();
    let until = now.plus_ms(for_ms.unwrap_or(SHUT_MS));
    if pending.notice.status() != NoticeStatus::Queued {
        let step = Step::new(now, NoticeStatus::Queued).because(failure.reason, clipped(&failure.error));
        pending.note_step(engine, &work.job, step).await?;
    }
    let error = mask_text(&clipped(&failure.error));
    let why = format!("{}: {error}", failure.reason);
    if let Some(breaker) = engine.lanes.breaker(&channel.lane).shut(&why, until, now) {
        tracing::error!(channel = channel.name, error_type = failure.reason, error, until = %until,
            "channel paused; its messages wait");
        engine.write_breaker(&channel.lane, &breaker).await;
        let alert = Alert::of_channel(&channel.name, News::Paused, failure.reason, &error, now);
        announce(&engine.base(), alert).await;
    }
    if work.job.lane != channel.lane {
        // Elsewhere no breaker keeps it from being tried again at once.
        return Ok(Ran::Ended(ChangeSet::end(work.job.lease, End::Retry { due_at: until }, now)));
    }
    Ok(put_back(engine, work))
}

/// Tells the channel's breaker how it went, and operators if that changed anything.
fn judge_channel(engine: &Arc<Engine>, channel: &PacedChannel, well: bool) {
    let Some(breaker) = engine.lanes.breaker(&channel.lane).judge(well, engine.node.now()) else { return };
    tracing::warn!(
        error_type = "breaker_changed",
        channel = channel.name,
        state = breaker.state(),
        "the breaker of a channel changed"
    );
    let (own, lane, name) = (Arc::clone(engine), channel.lane.clone(), channel.name.clone());
    engine.spawn(async move {
        own.write_breaker(&lane, &breaker).await;
        let (news, detail) = if breaker.is_open() {
            (News::Paused, "too many failures in a row; its messages wait")
        } else {
            (News::Resumed, "it takes messages again")
        };
        let at = own.node.now();
        announce(&own.base(), Alert::of_channel(&name, news, "unreachable", detail, at)).await;
    });
}

fn unjudged(engine: &Engine, lane: &Lane) {
    engine.lanes.breaker(lane).unjudged(engine.node.now());
}

// --- going back ----------------------------------------------------------------------------------------------

/// Is this run still the one to send it?
fn may_start(engine: &Engine, job: &Job) -> bool {
    !engine.is_leaving() && engine.node.may_work() && job.lease.epoch == engine.node.epoch()
}

/// Waits; false when this node is about to stop.
async fn pause(engine: &Engine, time: Duration) -> bool {
    let until = Instant::now() + time;
    while Instant::now() < until && !engine.is_leaving() {
        tokio::time::sleep(LOOK.min(until - Instant::now())).await;
    }
    !engine.is_leaving()
}

/// Goes back to the queue without a spent try.
fn put_back(engine: &Engine, work: &Work) -> Ran {
    unjudged(engine, &work.job.lane);
    Ran::Requeue
}

/// There is nothing to do for this job.
fn skipped(engine: &Engine, job: &Job, note: &str) -> Ran {
    let end = End::Done(Outcome::Skipped { note: note.to_owned() });
    Ran::Ended(ChangeSet::end(job.lease, end, engine.node.now()))
}
