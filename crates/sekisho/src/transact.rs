//! Load → decide → commit, and again when others were faster: the one loop in which something that is kept is changed.
//!
//! What is decided is handed in. It sees what was loaded and nothing else, and may be asked several times: only the last
//! answer counts. A set that changes nothing is not committed.

use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::job::NewJob;
use sekisho_core::state::{Loaded, Wanted};
use sekisho_store::Store;

/// Pause before the third try; each one after it is longer by that, so that those who met once part.
const PAUSE: Duration = Duration::from_millis(5);
/// How often what was loaded may lead to more, within one try.
const LOADS_MAX: usize = 1_000;

/// How often others may be faster before it is given up, and the longest pause between two tries.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    tries: u32,
    pause_max: Duration,
}

impl Patience {
    /// For what one person or one run changes: a fifth of a second.
    pub const USUAL: Self = Self { tries: 10, pause_max: Duration::from_millis(50) };
    /// For counters that all nodes share: ten seconds.
    pub const SHARED: Self = Self { tries: 500, pause_max: Duration::from_millis(20) };
}

/// What is to be done next.
#[derive(Debug)]
pub enum Decision<T> {
    /// Write this whole, then answer.
    Write(ChangeSet, T),
    /// Load this too, then ask again.
    Load(Wanted),
}

/// Why nothing was written.
#[derive(Debug)]
pub enum TransactError<R> {
    /// It was decided that it may not be.
    Refused(R),
    /// Others were faster too often.
    Contended,
    /// A lease was no longer held: the work is another node's.
    Lost,
    Store(sekisho_store::Error),
}

impl<R> From<sekisho_store::Error> for TransactError<R> {
    fn from(error: sekisho_store::Error) -> Self {
        Self::Store(error)
    }
}

/// Loads what is wanted, decides, and commits.
pub async fn transact<T, R>(
    store: &dyn Store,
    wanted: Wanted,
    decide: impl FnMut(&Loaded) -> Result<(ChangeSet, T), R>,
) -> Result<T, TransactError<R>> {
    transact_patiently(store, Patience::USUAL, wanted, decide).await
}

/// The same, where many change one thing.
pub async fn transact_patiently<T, R>(
    store: &dyn Store,
    patience: Patience,
    wanted: Wanted,
    mut decide: impl FnMut(&Loaded) -> Result<(ChangeSet, T), R>,
) -> Result<T, TransactError<R>> {
    let decide = |loaded: &Loaded| decide(loaded).map(|(set, answer)| Decision::Write(set, answer));
    repeat(store, patience, wanted, decide).await
}

/// The same, where what was loaded may lead to more that must be known.
pub async fn transact_in_steps<T, R>(
    store: &dyn Store,
    wanted: Wanted,
    decide: impl FnMut(&Loaded) -> Result<Decision<T>, R>,
) -> Result<T, TransactError<R>> {
    repeat(store, Patience::USUAL, wanted, decide).await
}

/// Decides several things at once, and commits each by itself; once, because those who were too slow may be decided anew with
/// others. Says of each set what became of it.
pub async fn transact_apart<T>(
    store: &dyn Store,
    mut wanted: Wanted,
    mut decide: impl FnMut(&Wanted, &Loaded) -> Result<Vec<(ChangeSet, T)>, Wanted>,
) -> sekisho_store::Result<Vec<(T, Committed)>> {
    let decided = loop {
        match decide(&wanted, &load(store, &wanted).await?) {
            Ok(decided) => break decided,
            Err(more) => wanted.extend(more),
        }
    };
    let (mut sets, mut written, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
    for (set, of) in decided {
        if set.is_empty() {
            unchanged.push((of, Committed::Applied { repeated: Vec::new() }));
        } else {
            sets.push(set);
            written.push(of);
        }
    }
    let answers = if sets.is_empty() { Vec::new() } else { store.commit(sets).await? };
    Ok(written.into_iter().zip(answers).chain(unchanged).collect())
}

/// Queues jobs that depend on nothing in the store. One whose key is known already is left out.
pub async fn queue(store: &dyn Store, jobs: Vec<NewJob>, at: Time) -> sekisho_store::Result<()> {
    store.commit(vec![ChangeSet::queue(jobs, at)]).await.map(drop)
}

async fn repeat<T, R>(
    store: &dyn Store,
    patience: Patience,
    mut wanted: Wanted,
    mut decide: impl FnMut(&Loaded) -> Result<Decision<T>, R>,
) -> Result<T, TransactError<R>> {
    for n in 0..patience.tries {
        if n > 1 {
            tokio::time::sleep((PAUSE * (n - 1)).min(patience.pause_max)).await;
        }
        let mut loads = 0..LOADS_MAX;
        let (set, answer) = loop {
            if loads.next().is_none() {
                return Err(TransactError::Contended);
            }
            match decide(&load(store, &wanted).await?).map_err(TransactError::Refused)? {
                Decision::Write(set, answer) => break (set, answer),
                Decision::Load(more) => wanted.extend(more),
            }
        };
        if set.is_empty() {
            return Ok(answer);
        }
        match &*store.commit(vec![set]).await? {
            [Committed::Applied { .. }] => return Ok(answer),
            [Committed::Lost] => return Err(TransactError::Lost),
            _ => {}
        }
    }
    Err(TransactError::Contended)
}

async fn load(store: &dyn Store, wanted: &Wanted) -> sekisho_store::Result<Loaded> {
    if wanted.is_empty() {
        return Ok(Loaded::default());
    }
    store.load(wanted.names.iter().cloned().collect(), wanted.keys.iter().cloned().collect()).await
}

#[cfg(test)]
mod tests {
    use sekisho_core::state::{Key, Kind, Write};
    use sekisho_store::memory::MemoryStore;

    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn key(id: &str) -> Key {
        Key::new(Kind::Quota, id)
    }

    fn count(id: &str, loaded: &Loaded) -> u32 {
        loaded.read::<u32>(&key(id)).unwrap().map_or(0, |kept| kept.value)
    }

    fn set(id: &str, version: i64, value: u32) -> ChangeSet {
        ChangeSet { writes: vec![Write::of(&key(id), version, &value)], ..ChangeSet::nothing(NOW) }
    }

    /// Somebody else counts, between our load and our commit.
    fn overtake(store: &MemoryStore, loaded: &Loaded) {
        let (before, version) = (count("a", loaded), loaded.version(&key("a")));
        let commit = store.commit(vec![set("a", version, before + 100)]);
        futures_util::FutureExt::now_or_never(commit).expect("memory never waits").unwrap();
    }

    async fn kept(store: &MemoryStore) -> u32 {
        count("a", &store.load(Vec::new(), vec![key("a")]).await.unwrap())
    }

    #[tokio::test]
    async fn d1_who_was_overtaken_decides_again_on_what_is_there_now() {
        let store = MemoryStore::default();
        let mut rounds = 0;
        let counted = transact(&store, Wanted::keys([key("a")]), |loaded| -> Result<_, ()> {
            rounds += 1;
            if rounds < 3 {
                overtake(&store, loaded);
            }
            let next = count("a", loaded) + 1;
            Ok((set("a", loaded.version(&key("a")), next), next))
        });
        assert_eq!(counted.await.unwrap(), 201);
        assert_eq!((kept(&store).await, rounds), (201, 3));
    }

    #[tokio::test]
    async fn d1_contention_ends() {
        let store = MemoryStore::default();
        let mut rounds = 0;
        let counted = transact(&store, Wanted::keys([key("a")]), |loaded| -> Result<_, ()> {
            rounds += 1;
            overtake(&store, loaded);
            Ok((set("a", loaded.version(&key("a")), 1), ()))
        });
        assert!(matches!(counted.await, Err(TransactError::Contended)));
        let tries = Patience::USUAL.tries;
        assert_eq!((rounds, kept(&store).await), (tries, 100 * tries), "nothing of ours is there");
    }

    #[tokio::test(start_paused = true)]
    async fn d1_a_counter_that_all_nodes_share_is_waited_for_longer() {
        let store = MemoryStore::default();
        let (began, mut rounds) = (tokio::time::Instant::now(), 0);
        let counted = transact_patiently(
            &store,
            Patience::SHARED,
            Wanted::keys([key("a")]),
            |loaded| -> Result<_, ()> {
                rounds += 1;
                overtake(&store, loaded);
                Ok((set("a", loaded.version(&key("a")), 1), ()))
            },
        );
        assert!(matches!(counted.await, Err(TransactError::Contended)));
        assert_eq!(rounds, 500);
        assert_eq!(began.elapsed().as_secs(), 9, "about ten seconds");
    }

    #[tokio::test]
    async fn d1_a_refusal_and_a_set_that_changes_nothing_write_nothing() {
        let store = MemoryStore::default();
        let refused = transact(&store, Wanted::default(), |_| Err::<(ChangeSet, ()), _>("no")).await;
        assert!(matches!(refused, Err(TransactError::Refused("no"))));
        let answer = transact(&store, Wanted::keys([key("a")]), |loaded| -> Result<_, ()> {
            Ok((ChangeSet::nothing(NOW), loaded.states.len()))
        });
        assert_eq!(answer.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn d1_what_was_loaded_may_lead_to_more_but_not_for_ever() {
        let store = MemoryStore::default();
        store.commit(vec![set("a", 0, 7), set("b", 0, 8)]).await.unwrap();
        let sum = transact_in_steps(&store, Wanted::keys([key("a")]), |loaded| -> Result<_, ()> {
            Ok(match count("b", loaded) {
                0 => Decision::Load(Wanted::keys([key("b")])),
                b => Decision::Write(ChangeSet::nothing(NOW), count("a", loaded) + b),
            })
        });
        assert_eq!(sum.await.unwrap(), 15);
        let endless = transact_in_steps(&store, Wanted::default(), |_| -> Result<Decision<()>, ()> {
            Ok(Decision::Load(Wanted::default()))
        });
        assert!(matches!(endless.await, Err(TransactError::Contended)));
    }
}
