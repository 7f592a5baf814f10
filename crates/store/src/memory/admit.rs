//! What arrives: whether it is known, and if not, its event and its job.

use sekisho_core::change::{Admission, Arrival};
use sekisho_core::event::{FirstBody, OtherBody};
use sekisho_core::job::Task;
use sekisho_core::{Epoch, Seq};

use super::{JobRow, Tables};

impl Tables {
    pub(super) fn admit(&mut self, arrival: &Arrival, keep: Option<Epoch>) -> Admission {
        let refuses = |first: &FirstBody| first.other == OtherBody::Refused;
        if arrival.first_body.filter(refuses).is_some_and(|first| self.is_other_body(first, arrival.seq)) {
            return Admission::OtherBody;
        }
        let stored = self.dedupe.get(&arrival.key).copied();
        if let Some(seq) = stored.filter(|seq| *seq != arrival.seq) {
            return Admission::Duplicate(seq);
        }
        let noted = arrival.first_body.filter(|first| !refuses(first));
        let id_reused = noted.is_some_and(|first| self.is_other_body(first, arrival.seq));
        let admission = if id_reused { Admission::IdReused } else { Admission::Admitted };
        if stored.is_some() {
            return admission;
        }
        if id_reused {
            self.reused.insert(arrival.seq);
        }
        self.dedupe.insert(arrival.key, arrival.seq);
        self.events.insert(arrival.seq, arrival.clone());
        let job = JobRow {
            owner: keep,
            attempt: i32::from(keep.is_some()),
            task: Task::Settle(arrival.settle()),
            ..JobRow::settle(arrival.seq, arrival.received_at)
        };
        self.jobs.insert(arrival.seq, job);
        admission
    }

    /// Whether another body came under its id before. The first is remembered.
    fn is_other_body(&mut self, first: FirstBody, seq: Seq) -> bool {
        self.first_bodies.entry(first.id).or_insert((first.digest, seq)).0 != first.digest
    }
}
