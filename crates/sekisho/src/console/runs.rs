//! Work on many things, carried out in the background while a page says how far it is.
//!
//! Runs are kept in this process alone, the newest [`KEPT_MAX`]. That loses nothing: each piece is one order of
//! [`crate::acts`], done whole or not at all. If the server stops in the middle, what was done is done, and the
//! rest is still where it was.

mod aftermath;
mod order;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use askama::Template;
use futures_util::FutureExt;
use sekisho_core::user::Rank;
use sekisho_core::{Seq, Time};

use super::Console;
use super::frame::Frame;
use super::page::{Answer, BUSY_SECONDS, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit, Who};
use super::trouble::Trouble;
use crate::acts::{self, Actor, DeadLetterSelection, DeliverySelection, Refusal, Replay};
use crate::queries;
use crate::token;
use aftermath::Aftermath;
pub use order::{BulkOrder, RunKind};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/runs/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/runs/{id}/stop",
        needs: OPERATOR,
        run: |visit| Box::pin(async move { stop(&visit) }),
    },
];

/// Runs that are remembered, and under way at once.
const KEPT_MAX: usize = 50;
const ID_BYTES: usize = 8;
const AT_ONCE_MAX: usize = 4;
/// Things in one piece.
const PIECE: usize = 100;
/// How often a piece is tried while the store is away, and how long is waited in between.
const TRIES: u32 = 5;
const WAIT: Duration = Duration::from_secs(2);

pub struct Run {
    pub id: String,
    pub kind: RunKind,
    pub who: Who,
    pub reason: String,
    pub started: Time,
    /// The list it was started from.
    pub back: String,
    progress: Mutex<RunProgress>,
    /// What became of what was queued again.
    aftermath: Mutex<Aftermath>,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// Unknown until everything was found.
    pub total: Option<usize>,
    pub done: usize,
    /// Somebody was faster, or its work is under way: left as it is.
    pub skipped: usize,
    /// Not touched, because nobody knows whether it arrived.
    pub in_doubt: usize,
    /// More fit than one order may touch.
    pub more: bool,
    /// Who said that it should not go on.
    pub stopped_by: Option<String>,
    pub ended: Option<Time>,
    pub error: Option<String>,
}

impl RunProgress {
    /// Done, or not to be done.
    pub fn passed(&self) -> usize {
        self.done + self.skipped
    }

    pub fn left(&self) -> usize {
        self.total.unwrap_or_default().saturating_sub(self.passed())
    }

    /// Over before everything was done.
    pub fn is_cut_short(&self) -> bool {
        let is_unfinished = self.total.is_none() || self.left() > 0;
        self.error.is_some() || (self.ended.is_some() && self.stopped_by.is_some() && is_unfinished)
    }
}

/// What came of one piece.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    done: usize,
    skipped: usize,
}

impl Run {
    pub fn progress(&self) -> RunProgress {
        self.lock().clone()
    }

    fn is_over(&self) -> bool {
        self.lock().ended.is_some()
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped_by.is_some()
    }

    fn actor(&self, at: Time) -> Actor<'_> {
        Actor { name: &self.who.name, role: self.who.rank.role(), tenant: None, at }
    }

    fn lock(&self) -> MutexGuard<'_, RunProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything was found.
    fn begin(&self, total: usize, in_doubt: usize, more: bool) {
        let mut progress = self.lock();
        (progress.total, progress.in_doubt, progress.more) = (Some(total), in_doubt, more);
    }

    fn add(&self, piece: Piece) {
        let mut progress = self.lock();
        progress.done += piece.done;
        progress.skipped += piece.skipped;
    }

    fn end(&self, at: Time, result: Result<(), Refusal>) {
        let mut progress = self.lock();
        progress.ended = Some(at);
        progress.error = result.err().map(|refusal| match &refusal {
            Refusal::Store(error) => {
                tracing::error!(
                    error_type = "store_unavailable",
                    error = error.chain(),
                    run = self.id,
                    "a bulk operation of the console stopped halfway"
                );
                "the database does not respond".to_owned()
            }
            _ => refusal.to_string(),
        });
    }
}

/// Those of this process, the newest first.
#[derive(Default)]
pub struct Runs(Mutex<VecDeque<Arc<Run>>>);

impl Runs {
    /// Enters one. Too many at once are refused: each holds a list of what it works on.
    fn enter(&self, visit: &Visit, order: &BulkOrder, back: String) -> Result<Arc<Run>, Trouble> {
        let mut runs = self.lock();
        if runs.iter().filter(|run| !run.is_over()).count() >= AT_ONCE_MAX {
            let detail = format!("{AT_ONCE_MAX} runs are under way already");
            return Err(Trouble::Later { detail, seconds: BUSY_SECONDS });
        }
        let run = Arc::new(Run {
            id: form_id(visit).unwrap_or_else(fresh_id),
            kind: order.kind(),
            who: visit.who.clone(),
            reason: order.reason().to_owned(),
            started: visit.at,
            back,
            progress: Mutex::default(),
            aftermath: Mutex::default(),
        });
        runs.push_front(Arc::clone(&run));
        runs.truncate(KEPT_MAX);
        Ok(run)
    }

    pub fn find(&self, id: &str) -> Option<Arc<Run>> {
        self.lock().iter().find(|run| run.id == id).cloned()
    }

    /// The newest of some kinds.
    pub fn newest(&self, kinds: &[RunKind], most: usize) -> Vec<Arc<Run>> {
        let runs = self.lock();
        runs.iter().filter(|run| kinds.contains(&run.kind)).take(most).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Run>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a form carries that begins a run: sent twice, it begins one.
pub fn fresh_id() -> String {
    token::generate::<ID_BYTES>()
}

fn form_id(visit: &Visit) -> Option<String> {
    let id = visit.field("run")?;
    (id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// Begins one, and leads to its page.
pub fn start(visit: &Visit, order: BulkOrder, back: String) -> Answer {
    // The same form, sent again: it is under way or done already.
    if let Some(run) = form_id(visit).and_then(|id| visit.console.runs.find(&id)) {
        return Ok(Reply::Go { to: format!("/console/runs/{}", run.id), flash: None });
    }
    let run = visit.console.runs.enter(visit, &order, back)?;
    let to = format!("/console/runs/{}", run.id);
    let work = carry_out(Arc::clone(&visit.console), Arc::clone(&run), order);
    let env = visit.console.env().clone();
    visit.console.env().spawn(async move {
        // One that fails badly ends as well.
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        run.end(env.wall(), ended.unwrap_or_else(|_| Err(Refusal::Conflict("internal error".into()))));
    });
    Ok(Reply::Go { to, flash: None })
}

/// Finds all of them before anything is done, then goes on piece by piece.
async fn carry_out(console: Arc<Console>, run: Arc<Run>, order: BulkOrder) -> Result<(), Refusal> {
    let store = &*console.store;
    let found = match &order {
        BulkOrder::Retry(redo) => {
            let (report, found) = acts::to_retry(store, redo).await?;
            run.begin(found.len(), report.in_doubt, report.more);
            found
        }
        BulkOrder::Discard(redo) => {
            let (report, found) = acts::to_discard(store, redo).await?;
            run.begin(found.len(), report.in_doubt, report.more);
            found
        }
        BulkOrder::Replay(replay) => {
            let (report, found) = acts::to_replay(store, &console.known, replay).await?;
            run.begin(found.len(), 0, report.more);
            found
        }
        BulkOrder::Cancel(cancel) => {
            let (report, found) = acts::to_cancel(store, cancel).await?;
            run.begin(found.len(), 0, report.more);
            found
        }
    };
    for seqs in found.chunks(PIECE) {
        if run.is_stopped() {
            return Ok(());
        }
        check_who(&console, &run).await?;
        let mut tries = 0;
        let piece = loop {
            tries += 1;
            match carry_out_piece(&console, &run, &order, seqs).await {
                Err(Refusal::Store(_)) if tries < TRIES => tokio::time::sleep(WAIT).await,
                other => break other?,
            }
        };
        run.add(piece);
        if run.kind == RunKind::Retry {
            run.aftermath.lock().unwrap_or_else(PoisonError::into_inner).expect(seqs);
        }
    }
    Ok(())
}

/// Whether whoever began it may still act. For whom a proxy vouches, only being shut out here counts.
async fn check_who(console: &Console, run: &Run) -> Result<(), Refusal> {
    let users = queries::users(&*console.store).await?;
    let user = users.iter().find(|(name, _)| *name == run.who.name).map(|(_, user)| user);
    let may = user.is_none_or(|user| {
        user.disabled_at.is_none() && (run.who.session.is_none() || user.rank >= Rank::Operator)
    });
    if may { Ok(()) } else { Err(Refusal::Conflict(format!("{} may not act any more", run.who.name))) }
}

async fn carry_out_piece(
    console: &Console,
    run: &Run,
    order: &BulkOrder,
    seqs: &[Seq],
) -> Result<Piece, Refusal> {
    let (store, at) = (&*console.store, console.env().wall());
    let messages = || seqs.iter().map(|seq| seq.as_message().to_string()).collect();
    let redo = |order: &DeadLetterSelection| DeadLetterSelection {
        ids: messages(),
        reason: order.reason.clone(),
        ..DeadLetterSelection::default()
    };
    let done = match order {
        BulkOrder::Retry(order) => {
            acts::retry(store, &redo(order), &run.actor(at)).await.map(|report| report.done)
        }
        BulkOrder::Discard(order) => {
            acts::discard(store, &redo(order), &run.actor(at)).await.map(|report| report.done)
        }
        BulkOrder::Replay(order) => {
            let ids = seqs.iter().map(|seq| seq.as_event().to_string()).collect();
            let (again, reason) = (order.again, order.reason.clone());
            let order = Replay { ids, again, reason, ..Replay::default() };
            acts::replay(store, &console.known, &order, &run.actor(at)).await.map(|report| report.queued)
        }
        BulkOrder::Cancel(order) => {
            let order = DeliverySelection {
                ids: messages(),
                reason: order.reason.clone(),
                ..DeliverySelection::default()
            };
            acts::cancel(store, &order, &run.actor(at)).await.map(|report| report.done)
        }
    };
    let done = match done {
        // None of them is there any more: somebody was faster.
        Err(Refusal::Missing(_)) => 0,
        other => other?,
    };
    Ok(Piece { done, skipped: seqs.len().saturating_sub(done) })
}

#[derive(Template)]
#[template(path = "console/run.html")]
struct RunPage {
    f: Frame,
    run: Arc<Run>,
    now: RunProgress,
    aftermath: Aftermath,
}

impl RunPage {
    fn total(&self) -> usize {
        self.now.total.unwrap_or_default()
    }

    /// Something may still change.
    fn is_moving(&self) -> bool {
        self.now.ended.is_none() || !self.aftermath.is_known()
    }
}

fn find(visit: &Visit) -> Result<Arc<Run>, Trouble> {
    visit.console.runs.find(&visit.id).ok_or_else(|| {
        let text = visit.lang.t(
            "this server has no such run: it was started on another server, or before a restart. What was processed stays done; the rest is still in the list",
            "このサーバーには該当する一括処理の記録がありません。別のサーバーで開始されたか、再起動前のものです。処理済みの分は完了しており、残りは一覧に残っています",
        );
        Trouble::missing(text.to_owned())
    })
}

/// The piece that is under way is still done; no further one is begun.
fn stop(visit: &Visit) -> Answer {
    let run = find(visit)?;
    let mut progress = run.lock();
    if progress.ended.is_none() && progress.stopped_by.is_none() {
        tracing::info!(run = run.id, by = visit.who.name, "stopping a bulk operation of the console");
        progress.stopped_by = Some(visit.who.name.clone());
    }
    Ok(Reply::Go { to: format!("/console/runs/{}", run.id), flash: None })
}

async fn show(visit: Visit) -> Answer {
    let run = find(&visit)?;
    let (section, title) = match run.kind {
        RunKind::Retry => ("dead", visit.lang.t("Retrying dead letters", "デッドレターの一括再試行")),
        RunKind::Discard => ("dead", visit.lang.t("Discarding dead letters", "デッドレターの一括破棄")),
        RunKind::Replay => ("events", visit.lang.t("Replaying events", "イベントの一括リプレイ")),
        RunKind::Cancel => ("deliveries", visit.lang.t("Cancelling deliveries", "配送の一括取り消し")),
    };
    let now = run.progress();
    // While pieces are still queued, nothing is looked up: what is added meanwhile must not be lost.
    let known = || run.aftermath.lock().unwrap_or_else(PoisonError::into_inner);
    let mut aftermath = known().clone();
    if now.ended.is_some() && !aftermath.is_known() {
        aftermath = aftermath.looked_up(&*visit.console.store).await?;
        known().clone_from(&aftermath);
    }
    Reply::page(&RunPage { f: visit.frame(section, title), run: Arc::clone(&run), now, aftermath })
}
