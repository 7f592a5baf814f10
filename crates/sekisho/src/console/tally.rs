//! The open hour, counted while somebody looks. Closed hours are counted by a timer; what came in since has to be
//! counted in between, and counting takes its time.
//!
//! So nobody waits for it, except for a moment the very first time; only one count is under way; and counting takes no
//! more than a fiftieth of the time, however many look and however much there is.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::env::Env;
use sekisho_core::Time;
use sekisho_core::time::{HOUR_MS, hour_of};
use sekisho_store::{Result, Store};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A count is good for so long, and for so many times as long as it took.
const FRESH_FOR: Duration = Duration::from_secs(5);
const FRESH_TIMES: u32 = 50;
/// How long the very first look waits for figures.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The timer counts an hour within so long of its end; until then it is ours.
const CLOSED_AFTER_MS: i64 = 6 * 60_000;

#[derive(Clone)]
pub struct HourTally(Arc<Shared>);

struct Shared {
    env: Env,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Clone, Copy, Default)]
struct State {
    is_counting: bool,
    /// When the last count ended, well or not, and how long it took.
    last: Option<(Instant, Duration)>,
    /// How things stood when the last good count began.
    as_of: Option<Time>,
}

impl State {
    fn is_due(&self) -> bool {
        let is_old = |(ended, took): (Instant, Duration)| ended.elapsed() > FRESH_FOR.max(took * FRESH_TIMES);
        !self.is_counting && self.last.is_none_or(is_old)
    }
}

impl HourTally {
    pub fn new(env: Env) -> Self {
        Self(Arc::new(Shared { env, state: Mutex::default(), ended: Notify::new() }))
    }

    /// Somebody looks: has the open hours counted if it is time, and says as of when the stored counts are.
    pub async fn look(&self, store: &Arc<dyn Store>, now: Time) -> Option<Time> {
        let store = Arc::clone(store);
        self.look_with(now, async move {
            for hour in open_hours(now) {
                store.count_hour(hour).await?;
            }
            Ok(())
        })
        .await
    }

    async fn look_with(
        &self,
        now: Time,
        count: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Option<Time> {
        // Heard from before the count can end.
        let mut ended = pin!(self.0.ended.notified());
        ended.as_mut().enable();
        if let Some(mut run) = self.begin() {
            self.0.env.spawn(async move {
                match count.await {
                    Ok(()) => run.succeed(now),
                    Err(error) => tracing::warn!(
                        error_type = "store_unavailable",
                        error = error.chain(),
                        "events of the current hour could not be counted"
                    ),
                }
            });
        }
        let state = self.state();
        if state.as_of.is_none() && state.is_counting {
            let _ = tokio::time::timeout(FIRST_WAIT, ended).await;
        }
        self.state().as_of
    }

    fn begin(&self) -> Option<Run> {
        let mut state = self.0.state.lock().expect("no code panics here");
        if !state.is_due() {
            return None;
        }
        state.is_counting = true;
        Some(Run { tally: self.clone(), began: Instant::now(), as_of: None })
    }

    fn state(&self) -> State {
        *self.0.state.lock().expect("no code panics here")
    }
}

/// A count under way. However it ends, another may follow.
struct Run {
    tally: HourTally,
    began: Instant,
    as_of: Option<Time>,
}

impl Run {
    fn succeed(&mut self, as_of: Time) {
        self.as_of = Some(as_of);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let shared = &self.tally.0;
        let mut state = shared.state.lock().expect("no code panics here");
        state.is_counting = false;
        state.last = Some((Instant::now(), self.began.elapsed()));
        state.as_of = self.as_of.or(state.as_of);
        drop(state);
        shared.ended.notify_waiters();
    }
}

/// The hours that no timer has counted yet, the older first.
fn open_hours(now: Time) -> impl Iterator<Item = Time> {
    let this = hour_of(now);
    let is_new = now.ms() - this.ms() < CLOSED_AFTER_MS;
    is_new.then(|| this.plus_ms(-HOUR_MS)).into_iter().chain([this])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    /// Counts how often it was counted, each time taking so long.
    fn count(counts: &Arc<AtomicUsize>, takes: Duration) -> impl Future<Output = Result<()>> + use<> {
        let counts = Arc::clone(counts);
        async move {
            counts.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(takes).await;
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn h1_many_who_look_at_once_cause_one_count_and_do_not_wait_for_it() {
        let (tally, counts) = (HourTally::new(Env::system()), Arc::new(AtomicUsize::new(0)));
        let began = Instant::now();
        for _ in 0..10 {
            assert_eq!(tally.look_with(NOW, count(&counts, Duration::from_secs(20))).await, None);
        }
        assert_eq!(began.elapsed(), FIRST_WAIT * 10, "a moment, while there are no figures at all");
        assert_eq!(counts.load(Ordering::Relaxed), 1);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let began = Instant::now();
        assert_eq!(tally.look_with(NOW, count(&counts, Duration::ZERO)).await, Some(NOW));
        assert_eq!((began.elapsed(), counts.load(Ordering::Relaxed)), (Duration::ZERO, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn h1_a_count_is_good_for_five_seconds_and_for_fifty_times_as_long_as_it_took() {
        for (takes_ms, fresh_s) in [(0, 5), (100, 5), (400, 20), (2_000, 100)] {
            let (tally, counts) = (HourTally::new(Env::system()), Arc::new(AtomicUsize::new(0)));
            let takes = Duration::from_millis(takes_ms);
            tally.look_with(NOW, count(&counts, takes)).await;
            tokio::time::sleep(takes).await;
            let counted = async |after: Duration| {
                tokio::time::sleep(after).await;
                tally.look_with(NOW, count(&counts, takes)).await;
                tokio::task::yield_now().await;
                counts.load(Ordering::Relaxed)
            };
            // Each look finds the same figures, so none of them makes them last.
            assert_eq!(counted(Duration::from_millis(fresh_s * 500)).await, 1, "{takes_ms} ms");
            assert_eq!(counted(Duration::from_millis(fresh_s * 400)).await, 1, "{takes_ms} ms");
            assert_eq!(counted(Duration::from_millis(fresh_s * 200)).await, 2, "{takes_ms} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn h1_a_count_that_failed_or_died_is_tried_again_and_keeps_the_figures() {
        let (tally, counts) = (HourTally::new(Env::system()), Arc::new(AtomicUsize::new(0)));
        tally.look_with(NOW, count(&counts, Duration::ZERO)).await;
        let later = NOW.plus_ms(60_000);
        for fails in [true, false] {
            tokio::time::sleep(FRESH_FOR * 2).await;
            let seen = tally.look_with(later, async move {
                assert!(!fails, "a count that dies");
                Err(sekisho_store::Error::corrupt("no"))
            });
            assert_eq!(seen.await, Some(NOW));
            tokio::task::yield_now().await;
            assert!(!tally.state().is_counting);
        }
        tokio::time::sleep(FRESH_FOR * 2).await;
        tally.look_with(later, count(&counts, Duration::ZERO)).await;
        tokio::task::yield_now().await;
        assert_eq!((tally.state().as_of, counts.load(Ordering::Relaxed)), (Some(later), 2));
    }

    #[test]
    fn h1_an_hour_is_ours_until_the_timer_has_counted_it() {
        let hour = hour_of(NOW);
        let open = |minutes: i64| open_hours(hour.plus_ms(minutes * 60_000)).collect::<Vec<_>>();
        assert_eq!(open(5), [hour.plus_ms(-HOUR_MS), hour]);
        assert_eq!(open(6), [hour]);
        assert_eq!(open(59), [hour]);
    }
}
