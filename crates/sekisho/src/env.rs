//! What a node takes from the world around it: the wall clock, chance, tasks that go on by themselves, the end of the
//! process, requests and messages to others, and the times of the protocol. It is handed in once, so that a test can hand in
//! its own; `clippy.toml` keeps everything but commands from asking the system elsewhere.
//!
//! Monotonic time is `tokio::time::Instant`, which a paused runtime moves. Keys, passwords and sessions are not drawn here:
//! they must not be guessable, whatever a test hands in (`token.rs`). Retries need no chance: a hash of the job's id spreads
//! them.

mod outside;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use sekisho_core::{Seq, Time};
use tokio::task::JoinHandle;

use crate::token;
pub use outside::{Channel, Exchange, Outside};

type Fill = dyn Fn(&mut [u8]) + Send + Sync;
type Spawn = dyn Fn(BoxFuture<'static, ()>) -> JoinHandle<()> + Send + Sync;

#[derive(Clone)]
pub struct Env {
    /// The system's own, where none was given.
    wall: Option<Arc<dyn Fn() -> Time + Send + Sync>>,
    chance: Option<Arc<Fill>>,
    spawn: Option<Arc<Spawn>>,
    exit: Option<Arc<dyn Fn(i32) + Send + Sync>>,
    pub outside: Outside,
    pub timing: Timing,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

impl Env {
    /// As the operating system has it.
    pub const fn system() -> Self {
        Self {
            wall: None,
            chance: None,
            spawn: None,
            exit: None,
            outside: Outside::network(),
            timing: Timing::DEFAULT,
        }
    }

    #[must_use]
    pub fn with_wall(self, wall: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self { wall: Some(Arc::new(wall)), ..self }
    }

    /// What fills bytes that the system would fill at random.
    #[must_use]
    pub fn with_chance(self, fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        Self { chance: Some(Arc::new(fill)), ..self }
    }

    #[must_use]
    pub fn with_spawn(
        self,
        spawn: impl Fn(BoxFuture<'static, ()>) -> JoinHandle<()> + Send + Sync + 'static,
    ) -> Self {
        Self { spawn: Some(Arc::new(spawn)), ..self }
    }

    #[must_use]
    pub fn with_exit(self, exit: impl Fn(i32) + Send + Sync + 'static) -> Self {
        Self { exit: Some(Arc::new(exit)), ..self }
    }

    #[must_use]
    pub fn with_outside(self, outside: Outside) -> Self {
        Self { outside, ..self }
    }

    /// What the clock on the wall shows. By which time work is due, the node says.
    pub fn wall(&self) -> Time {
        self.wall.as_ref().map_or_else(now, |wall| wall())
    }

    /// Bytes that nobody else has drawn.
    pub fn chance<const N: usize>(&self) -> [u8; N] {
        let Some(fill) = &self.chance else { return token::bytes() };
        let mut bytes = [0; N];
        fill(&mut bytes);
        bytes
    }

    /// An id nobody has: the moment, then chance. Two that meet all the same find each other's version in the way.
    pub fn fresh_seq(&self, at: Time) -> Seq {
        let chance = u32::from_be_bytes(self.chance());
        Seq::from_i64(Seq::floor_of(at).as_i64() | i64::from(chance >> 10))
    }

    /// Goes on by itself.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> JoinHandle<()> {
        match &self.spawn {
            None => tokio::spawn(task),
            Some(spawn) => spawn(Box::pin(task)),
        }
    }

    /// Ends the process, here and now. It returns only where a test stands in for the system.
    pub fn exit(&self, code: i32) {
        match &self.exit {
            None => std::process::exit(code),
            Some(exit) => exit(code),
        }
    }
}

/// The wall clock of this machine, for commands and pages.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_ms(since.as_millis() as i64)
}

/// The times of the protocol between nodes, store and memory. They hang together: a node starts nothing long before
/// others may give it up.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long the dispatcher looks away when nobody called.
    pub poll: Duration,
    /// How often what is ours in the store is compared with what is held, even when nothing seems lost.
    pub adopt: Duration,
    /// After a lost answer the store may still be at work on the question: it is looked after once more.
    pub adopt_again: Duration,
    /// Pause before it is tried again, where even that failed: somebody may be waiting for what is found.
    pub adopt_failed: Duration,
    /// How often breakers of other nodes are read, and schedules planned.
    pub glance: Duration,
    /// How often lanes are looked for that nobody serves any more. They are a day old by then.
    pub unserved: Duration,
    /// How long a process must have lived before it tries a suspect.
    pub suspects_after: Duration,
    /// So long may a doubt hold everything up; then order is given up before delivery is.
    pub doubt_max: Duration,
    pub beat: Duration,
    /// While the store does not answer, it is asked this often.
    pub beat_while_down: Duration,
    /// A node whose beat stood still for so long is dead.
    pub dead_after: Duration,
    /// Who has not looked for so long can't say that others stood still.
    pub blind_after: Duration,
    /// A node that could not beat for so long starts nothing: others may be about to give it up.
    pub fresh_for: Duration,
    /// Work of dead nodes is freed when a node goes, and this often in any case.
    pub sweep_every: Duration,
}

impl Timing {
    pub const DEFAULT: Self = Self {
        poll: Duration::from_millis(200),
        adopt: Duration::from_mins(1),
        adopt_again: Duration::from_secs(10),
        adopt_failed: Duration::from_secs(2),
        glance: Duration::from_secs(2),
        unserved: Duration::from_mins(1),
        suspects_after: Duration::from_secs(5),
        doubt_max: Duration::from_secs(30),
        beat: Duration::from_secs(2),
        beat_while_down: Duration::from_millis(250),
        dead_after: Duration::from_secs(10),
        blind_after: Duration::from_secs(5),
        fresh_for: Duration::from_secs(6),
        sweep_every: Duration::from_secs(30),
    };
}

impl Default for Timing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn r12_a_node_lives_in_the_world_it_was_given() {
        let (left, spawned) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicUsize::new(0)));
        let (exit, count) = (Arc::clone(&left), Arc::clone(&spawned));
        let env = Env::system()
            .with_wall(|| Time::from_ms(7))
            .with_chance(|bytes| bytes.fill(0xab))
            .with_exit(move |code| exit.store(code, Ordering::Relaxed))
            .with_spawn(move |task| {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(task)
            });
        assert_eq!(env.wall(), Time::from_ms(7));
        assert_eq!(env.chance(), [0xab; 3]);
        assert_eq!(env.fresh_seq(env.wall()), env.fresh_seq(env.wall()), "the same chance, the same id");
        assert_ne!(Env::system().chance::<16>(), Env::system().chance::<16>());
        env.spawn(async {}).await.unwrap();
        env.exit(70);
        assert_eq!((left.load(Ordering::Relaxed), spawned.load(Ordering::Relaxed)), (70, 1));
        let off = Env::system().wall().ms() - now().ms();
        assert!(off.abs() < 1_000, "the system's own clock");
    }

    #[test]
    fn b2_nobody_is_given_up_who_may_still_start_something() {
        let Timing { beat, dead_after, blind_after, fresh_for, .. } = Timing::DEFAULT;
        assert!(fresh_for + beat < dead_after && beat < blind_after && blind_after < dead_after);
    }
}
