//! What people do with what failed or is long done.

use sekisho_core::Seq;
use sekisho_core::change::{Act, Replayed};
use sekisho_core::event::About;
use sekisho_core::job::{JobKind, Outcome, Settle, Task};

use super::{Ended, JobRow, Tables};
use crate::audit;

impl Tables {
    pub(super) fn retry(&mut self, job: Seq, act: &Act) -> bool {
        let Some(letter) = self.dead.remove(&job) else { return false };
        let row = JobRow {
            task: letter.task.retried(),
            lane: letter.lane,
            home: None,
            fifo: letter.fifo,
            due_at: act.at,
            event: letter.event,
            owner: None,
            attempt: letter.attempts,
            base: letter.attempts,
            crashes: 0,
            started: false,
        };
        self.jobs.insert(job, row);
        self.note(audit::of_message(act, audit::RETRIED, job));
        true
    }

    pub(super) fn discard(&mut self, job: Seq, act: &Act) -> bool {
        let Some(letter) = self.dead.remove(&job) else { return false };
        let note = format!("discarded by {}: {}", act.actor, act.reason);
        let ended = Ended {
            outcome: Outcome::Discarded { note },
            at: act.at,
            attempts: letter.attempts,
            lane: letter.lane,
            event: letter.event,
            about: About::default(),
        };
        self.outcomes.insert(job, ended);
        self.note(audit::of_message(act, audit::DISCARDED, job));
        true
    }

    pub(super) fn cancel(&mut self, job: Seq, act: &Act) -> bool {
        let is_free = |row: &JobRow| row.owner.is_none() && row.task.kind() == JobKind::Deliver;
        if !self.jobs.get(&job).is_some_and(is_free) {
            return false;
        }
        let row = self.jobs.remove(&job).expect("it is there");
        let ended = Ended {
            outcome: Outcome::Discarded { note: audit::cancelled_note(act) },
            at: act.at,
            attempts: row.attempt,
            lane: row.home.unwrap_or(row.lane),
            event: row.event,
            about: About::default(),
        };
        self.outcomes.insert(job, ended);
        self.note(audit::of_message(act, audit::CANCELLED, job));
        true
    }

    pub(super) fn replay(&mut self, event: Seq, settle: &Settle, act: &Act) -> Replayed {
        if !self.events.contains_key(&event) {
            return Replayed::Unknown;
        }
        if self.jobs.contains_key(&event) {
            return Replayed::Unfinished;
        }
        let dead = self.dead.remove(&event).map(|letter| letter.attempts);
        let done = self.outcomes.remove(&event).map(|ended| ended.attempts);
        let attempt = dead.or(done).unwrap_or_default();
        let row = JobRow::settle(event, act.at);
        self.jobs.insert(event, JobRow { task: Task::Settle(settle.clone()), attempt, base: attempt, ..row });
        self.note(audit::of_event(act, audit::REPLAYED, event));
        Replayed::Queued
    }
}
