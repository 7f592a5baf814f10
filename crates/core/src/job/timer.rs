//! What is due when. A timer is a job with a key that names the moment, so that however many nodes plan it, it is
//! one job; it fires late rather than never, and never early, because a job is not claimed before it is due.

use serde::{Deserialize, Serialize};

use super::{Lane, NewJob, Task, Wave};
use crate::id::Seq;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// An occurrence of a configured schedule: puts an event in.
    Schedule(String),
    /// Counts the events of the hour that ended before it was due.
    Count,
    /// Lets go of what was kept long enough.
    Forget,
    /// Writes down where the audit log ends.
    Anchor,
    /// Looks at the figures of all nodes, and tells of what is wrong.
    Watch,
    /// Looks whose morning it is, and has their reminders worked out.
    Remind,
    /// Compares what a source's provider lists with what came. How far back is decided when it runs.
    Reconcile { source: String },
    /// Looks whether the clock changes something of an order; what locks it, by kind and id.
    Deadline { kind: String, id: String },
    /// Tries dead letters of a route again: a wave begins, or goes on.
    RetryDead {
        route: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wave: Option<Wave>,
    },
}

impl Timer {
    /// The job that does it at `due_at`.
    pub fn job(&self, id: Seq, due_at: Time) -> NewJob {
        let name = match self {
            Self::Schedule(name) => format!("schedule/{name}"),
            Self::Count => "count".into(),
            Self::Forget => "forget".into(),
            Self::Anchor => "anchor".into(),
            Self::Remind => "remind".into(),
            Self::Watch => "watch".into(),
            Self::Reconcile { source } => format!("reconcile/{source}"),
            Self::Deadline { kind, id } => format!("deadline/{kind}/{id}"),
            Self::RetryDead { route, wave: None } => format!("retry_dead/{route}"),
            Self::RetryDead { route, wave: Some(wave) } => format!("retry_dead/{route}/{}", wave.batches),
        };
        let fifo = match self {
            // Of one source, one at a time.
            Self::Reconcile { .. } => Some(name.clone()),
            // A wave that began must not wait for the one of the next hour.
            Self::Schedule(_)
            | Self::Count
            | Self::Forget
            | Self::Anchor
            | Self::Remind
            | Self::Watch
            | Self::Deadline { .. }
            | Self::RetryDead { .. } => None,
        };
        NewJob {
            id,
            // The moment first: what is long past is one range.
            key: Some(format!("timer/{due_at}/{name}")),
            lane: match self {
                Self::Reconcile { .. } => Lane::reconcile(),
                Self::Deadline { .. } => Lane::deadline(),
                Self::Schedule(_)
                | Self::Count
                | Self::Forget
                | Self::Anchor
                | Self::Remind
                | Self::Watch
                | Self::RetryDead { .. } => Lane::timer(),
            },
            fifo,
            due_at,
            event: None,
            task: Task::Timer(self.clone()),
            owner: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b1_a_timer_is_one_job_however_often_it_is_planned() {
        let due_at = Time::parse_rfc3339("2026-05-28T09:00:00Z").unwrap();
        let timer = Timer::Schedule("daily".into());
        let (one, two) = (timer.job(Seq::from_i64(1), due_at), timer.job(Seq::from_i64(2), due_at));
        assert_eq!(one.key, two.key);
        assert_ne!(one.key, timer.job(Seq::from_i64(1), due_at.plus_ms(1)).key);
        assert_ne!(one.key, Timer::Schedule("daily2".into()).job(Seq::from_i64(1), due_at).key);
    }
}
