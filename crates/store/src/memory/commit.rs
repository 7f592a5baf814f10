//! A change set: first every guard is looked at, then everything is written.

use sekisho_core::change::{ChangeSet, Committed, Ended};
use sekisho_core::job::{End, NewJob};
use sekisho_core::state::{Key, Naming, State, Write};
use sekisho_core::{Seq, Time};

use super::{JobRow, Tables};
use crate::{BookedLine, guard};

impl Tables {
    pub fn commit(&mut self, set: ChangeSet) -> Committed {
        if let Some(refusal) = guard::refusal(&set).or_else(|| self.refusal(&set)) {
            return refusal;
        }
        for naming in set.names {
            self.names.insert(naming.name, naming.key);
        }
        for ended in set.ends {
            self.end(ended, set.at);
        }
        for write in set.writes {
            self.write(write, set.at);
        }
        for posting in set.postings {
            let number = self.lines.last().map_or(0, |line| line.number) + 1;
            self.lines.push(BookedLine { number, at: set.at, posting });
        }
        for entry in set.audit {
            self.note(entry);
        }
        let mut repeated: Vec<Seq> = set.jobs.into_iter().filter_map(|job| self.queue(job)).collect();
        for event in set.events {
            if self.dedupe.contains_key(&event.key) {
                repeated.push(event.seq);
            } else {
                self.admit(&event, set.keep);
            }
        }
        Committed::Applied { repeated }
    }

    fn refusal(&mut self, set: &ChangeSet) -> Option<Committed> {
        if !set.ends.iter().all(|ended| self.held(ended.lease).is_some()) {
            return Some(Committed::Lost);
        }
        let current =
            |write: &Write| write.version == self.states.get(&write.key).map_or(0, |state| state.version);
        let free = |naming: &Naming| match (self.names.get(&naming.name), &naming.was) {
            (found, Some(was)) => found == Some(was),
            (found, None) => found.is_none_or(|key: &Key| *key == naming.key),
        };
        let holds = set.writes.iter().all(current) && set.names.iter().all(free);
        (!holds).then_some(Committed::Stale)
    }

    fn end(&mut self, ended: Ended, at: Time) {
        let Ended { lease, end, attempt, about } = ended;
        match end {
            End::Retry { due_at } | End::Wait { due_at } => {
                let job = self.held(lease).expect("it was just seen");
                job.base += i32::from(matches!(end, End::Wait { .. }));
                job.owner = None;
                job.started = false;
                job.due_at = due_at;
                // It ran and nobody died: it is no suspect any more.
                if let Some(home) = job.home.take() {
                    job.lane = home;
                    job.crashes = 0;
                }
            }
            End::Done(outcome) => {
                let job = self.jobs.remove(&lease.job).expect("it is held");
                self.outcomes.insert(lease.job, job.ended(outcome, about, at));
            }
            End::Dead(death) => {
                let job = self.jobs.remove(&lease.job).expect("it is held");
                self.dead.insert(lease.job, job.letter(lease.job, death, at));
            }
            End::NotYet => {}
        }
        if let Some(attempt) = attempt {
            self.attempts.insert((lease.job, lease.attempt), attempt);
        }
    }

    fn write(&mut self, write: Write, at: Time) {
        let Write { key, version, facts, index } = write;
        let created_at = self.states.get(&key).map_or(at, |state| state.created_at);
        let state = State { key, version: version + 1, facts, index, created_at, changed_at: at };
        self.states.insert(state.key.clone(), state);
    }

    /// Gives the id back when the key had been there before.
    fn queue(&mut self, new: NewJob) -> Option<Seq> {
        if let Some(key) = &new.key {
            if self.effects.contains_key(key) {
                return Some(new.id);
            }
            self.effects.insert(key.clone(), new.id);
        }
        let row = JobRow {
            task: new.task,
            lane: new.lane,
            home: None,
            fifo: new.fifo,
            due_at: new.due_at,
            event: new.event,
            owner: new.owner,
            attempt: i32::from(new.owner.is_some()),
            base: 0,
            crashes: 0,
            started: false,
        };
        self.jobs.insert(new.id, row);
        None
    }
}
