//! Working out who is told what: for an event, or for a tenant and a date.

use serde::{Deserialize, Serialize};

use super::{Lane, NewJob, Task, effect_prefix};
use crate::id::Seq;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// Whom a rule tells of an event.
    Tell(String),
    /// What a bounce or a complaint changes.
    Feedback,
    /// Who of a tenant is reminded of what, on a date.
    Remind { tenant: String, date: String },
}

impl Notify {
    /// What makes it single: it is worked out once for its event, or for its tenant and date.
    pub fn key(&self, event: Option<Seq>) -> String {
        let of_event = event.map(effect_prefix).unwrap_or_default();
        match self {
            Self::Tell(rule) => format!("{of_event}tell/{rule}"),
            Self::Feedback => format!("{of_event}feedback"),
            Self::Remind { tenant, date } => format!("remind/{date}/{tenant}"),
        }
    }

    /// The job that works it out.
    pub fn job(&self, id: Seq, event: Option<Seq>, due_at: Time) -> NewJob {
        NewJob {
            id,
            key: Some(self.key(event)),
            lane: Lane::notify(),
            fifo: None,
            due_at,
            event,
            task: Task::Notify(self.clone()),
            owner: None,
        }
    }
}
