//! A piece of work and the calls it made, as people read them.

use sekisho_core::job::{Attempt, Lane, Outcome};
use sekisho_core::language::Language;
use sekisho_core::{Seq, Time, mail_address};
use sekisho_store::{Standing, Store, StoredMessage};

use crate::console::payload::{self, Bound, Eyes, Shown};
use crate::types::Outage;
use crate::view::{Outages, words};

/// Calls of one message that are shown, the newest of them.
const CALLS_MAX: usize = 30;

pub struct MessageView {
    pub id: String,
    pub title: String,
    /// A word that badges know.
    pub standing: &'static str,
    /// When it ended.
    pub at: Option<Time>,
    /// When it is tried next.
    pub due_at: Option<Time>,
    pub reason: String,
    /// What went wrong, or what was noted.
    pub note: String,
    pub attempts: i32,
    pub calls: Vec<CallView>,
    /// Why it waits, if its destination does not answer.
    pub outage: Option<Outage>,
}

impl MessageView {
    pub async fn of(
        store: &dyn Store,
        message: &StoredMessage,
        eyes: Eyes,
        lang: Language,
    ) -> sekisho_store::Result<Self> {
        let mut view = Self {
            id: message.job.as_message().to_string(),
            title: words::lane(&message.lane, lang),
            standing: "running",
            at: None,
            due_at: None,
            reason: String::new(),
            note: String::new(),
            attempts: message.attempts,
            calls: calls_of(store, message.job, eyes).await?,
            outage: None,
        };
        match &message.standing {
            Standing::Running => {}
            Standing::Waiting(due_at) => {
                let has_failed = view.calls.last().is_some_and(|call| !call.is_good());
                view.standing = if has_failed { "retrying" } else { "waiting" };
                view.due_at = Some(*due_at);
                if message.lane.route().is_some() {
                    view.outage = Outages::find(store).await?.of(&message.lane);
                }
            }
            Standing::Done(outcome, at) => {
                view.standing = done_word(outcome, &message.lane);
                view.note = veiled(outcome.note().unwrap_or_default(), eyes);
                view.at = Some(*at);
            }
            Standing::Dead(death, at) => {
                view.standing = "dead";
                view.reason.clone_from(&death.reason);
                view.note = veiled(&death.error, eyes);
                view.at = Some(*at);
            }
        }
        Ok(view)
    }

    pub fn is_dead(&self) -> bool {
        self.standing == "dead"
    }

    pub fn tone(&self) -> &'static str {
        words::status(self.standing, Language::En).0.class()
    }
}

fn done_word(outcome: &Outcome, lane: &Lane) -> &'static str {
    match outcome {
        Outcome::Success { .. } if lane.route().is_some() => "delivered",
        Outcome::Success { .. } if lane.channel().is_some() => "sent",
        Outcome::Success { .. } if *lane == Lane::settle() => "success",
        Outcome::Success { .. } => "done",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Discarded { .. } => "discarded",
    }
}

/// One call to somebody outside.
pub struct CallView {
    pub attempt: i32,
    pub at: Time,
    pub took_ms: i64,
    pub status: Option<i32>,
    pub reason: String,
    pub error: String,
    pub headers: Vec<(String, String)>,
    pub answer: Option<Shown>,
}

impl CallView {
    fn of(attempt: i32, call: &Attempt, eyes: Eyes) -> Self {
        Self {
            attempt,
            at: call.at,
            took_ms: call.took_ms,
            status: call.status,
            reason: call.reason.clone().unwrap_or_default(),
            error: veiled(call.error.as_deref().unwrap_or_default(), eyes),
            headers: super::headers(call.headers.as_deref().unwrap_or("[]"), eyes),
            answer: call.body.as_ref().map(|body| payload::show(body, eyes, Bound::ANSWER)),
        }
    }

    pub fn is_good(&self) -> bool {
        self.reason.is_empty()
    }
}

/// The newest calls of a job, in order.
pub async fn calls_of(store: &dyn Store, job: Seq, eyes: Eyes) -> sekisho_store::Result<Vec<CallView>> {
    let calls = store.find_attempts(job).await?;
    let newest = calls.len().saturating_sub(CALLS_MAX);
    Ok(calls[newest..].iter().map(|(attempt, call)| CallView::of(*attempt, call, eyes)).collect())
}

/// A text in which others may have written an address.
pub fn veiled(text: &str, eyes: Eyes) -> String {
    match eyes {
        Eyes::Viewer => mail_address::mask_text(text),
        Eyes::Operator => text.to_owned(),
    }
}
