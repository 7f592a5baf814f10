//! How many cases and questions wait for a person: for the menu and the overview. Counted now and then, not for every page;
//! after an act, anew.

use std::sync::Mutex;

use sekisho_core::Time;
use sekisho_core::case::CaseStatus;
use sekisho_core::inquiry::InquiryStatus;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::state::Kind;
use sekisho_store::{Result, StateFilter, Store};

use crate::queries;

/// Cases and questions that are looked at; more are told as so many and more.
pub const LOOKED_MAX: usize = 200;
/// How long a count is good.
const FRESH_MS: i64 = 15_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Cases that are not acknowledged, and of those the overdue ones.
    pub cases: usize,
    pub overdue: usize,
    pub inquiries: usize,
}

#[derive(Default)]
pub struct WaitingTally(Mutex<Option<(Time, Waiting)>>);

impl WaitingTally {
    /// What waits, as of a few seconds ago. A store that does not answer is told by the page itself.
    pub async fn look(&self, store: &dyn Store, policy: &OrderPolicy, at: Time) -> Waiting {
        let known = *self.0.lock().expect("no code panics here");
        if let Some((when, known)) = known
            && (0..FRESH_MS).contains(&(at.ms() - when.ms()))
        {
            return known;
        }
        let Ok(counted) = count(store, policy, at).await else { return Waiting::default() };
        *self.0.lock().expect("no code panics here") = Some((at, counted));
        counted
    }

    /// Somebody acts: what was counted may not hold any more.
    pub fn forget(&self) {
        *self.0.lock().expect("no code panics here") = None;
    }
}

async fn count(store: &dyn Store, policy: &OrderPolicy, at: Time) -> Result<Waiting> {
    let of = |kind: Kind, status: &str| StateFilter {
        status: Some(status.to_owned()),
        ..StateFilter::all(kind, LOOKED_MAX)
    };
    let (cases, inquiries) = tokio::try_join!(
        store.find_states(of(Kind::Case, CaseStatus::Open.name())),
        store.find_states(of(Kind::Inquiry, InquiryStatus::Open.name())),
    )?;
    let mut overdue = 0;
    for state in &cases {
        overdue += usize::from(queries::case_view(state, policy, at)?.overdue);
    }
    Ok(Waiting { cases: cases.len(), overdue, inquiries: inquiries.len() })
}

/// `3`, or `200+`.
pub fn shown(count: usize) -> String {
    if count >= LOOKED_MAX { format!("{count}+") } else { count.to_string() }
}
