//! Writes down what this node counted, a row for each minute, and folds the rows of all nodes into one for each closed hour.
//!
//! A row is this node's own and written whole, so an answer that was lost costs nothing. What the store does not take is
//! kept until it does; a crash loses some seconds of figures, never facts.

use std::collections::BTreeMap;
use std::time::Duration;

use sekisho_core::change::ChangeSet;
use sekisho_core::meter::{self, HOURS_KEPT_MS, MINUTES_KEPT_MS, Meter, hour_key, period_key, period_prefix};
use sekisho_core::state::{Key, Wanted, Write};
use sekisho_core::time::HOUR_MS;
use sekisho_core::{Epoch, Time};
use sekisho_store::Store;

use crate::engine::Base;
use crate::queries;
use crate::stop::Stop;
use crate::transact::{TransactError, transact};

/// What one row covers, and how often it is written.
const PERIOD_MS: i64 = 60_000;
const FLUSH: Duration = Duration::from_secs(10);
/// Rows kept while the store takes none; older ones become one.
const UNWRITTEN_MAX: usize = 60;
/// Rows let go in one step.
const FORGET_MAX: usize = 1_000;

pub struct MeterWriter {
    base: Base,
    period_ms: i64,
    every: Duration,
    epoch: Epoch,
    /// By when their period began; whether all of it is in the store.
    rows: BTreeMap<Time, (Meter, bool)>,
}

impl MeterWriter {
    /// Alerts that are looked at more often need shorter rows.
    pub fn new(base: Base, watched_every_ms: i64) -> Self {
        let epoch = base.node.epoch();
        let every = Duration::from_millis(u64::try_from(watched_every_ms).unwrap_or(1_000).max(100));
        let period_ms = watched_every_ms.clamp(1_000, PERIOD_MS);
        Self { base, period_ms, every: every.min(FLUSH), epoch, rows: BTreeMap::new() }
    }

    /// Until told to stop; then once more.
    pub async fn run(mut self, stop: Stop) {
        while !stop.is_told() {
            tokio::select! {
                biased;
                () = stop.told() => {}
                () = tokio::time::sleep(self.every) => {}
            }
            self.flush().await;
        }
    }

    async fn flush(&mut self) {
        let now = self.base.node.now();
        if self.epoch != self.base.node.epoch() {
            // Rows of an earlier life stay as they are; what was not written of them counts from now on.
            self.epoch = self.base.node.epoch();
            let unwritten =
                std::mem::take(&mut self.rows).into_values().filter(|(_, is_written)| !is_written);
            unwritten.for_each(|(meter, _)| self.count(now, &meter));
        }
        self.count(now, &self.base.metrics.meters.take());
        while self.rows.len() > UNWRITTEN_MAX {
            let Some((_, (oldest, _))) = self.rows.pop_first() else { break };
            if let Some(mut next) = self.rows.first_entry() {
                next.get_mut().0.add(&oldest);
                next.get_mut().1 = false;
            }
        }
        for (start, (meter, is_written)) in &mut self.rows {
            if *is_written {
                continue;
            }
            match write(&*self.base.store, &period_key(*start, self.epoch), meter, now).await {
                Ok(()) => *is_written = true,
                // The next flush tries again.
                Err(()) => return,
            }
        }
        let current = self.period_of(now);
        self.rows.retain(|start, (_, is_written)| !*is_written || *start >= current);
    }

    fn period_of(&self, at: Time) -> Time {
        Time::from_ms(at.ms().div_euclid(self.period_ms) * self.period_ms)
    }

    fn count(&mut self, now: Time, meter: &Meter) {
        if meter.is_empty() {
            return;
        }
        let row = self.rows.entry(self.period_of(now)).or_default();
        row.0.add(meter);
        row.1 = false;
    }
}

/// Writes a row as it now is.
async fn write(store: &dyn Store, key: &Key, meter: &Meter, at: Time) -> Result<(), ()> {
    let written = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_, ()> {
        let writes = vec![Write::of(key, loaded.version(key), meter)];
        Ok((ChangeSet { writes, ..ChangeSet::nothing(at) }, ()))
    });
    written.await.map_err(drop)
}

/// Adds up what all nodes counted in an hour. Also an hour without anything gets its row: it says that it was looked at.
pub async fn fold(store: &dyn Store, hour: Time, at: Time) -> sekisho_store::Result<()> {
    let rows = queries::meter_rows(store, hour, hour.plus_ms(HOUR_MS)).await?;
    let mut sum = Meter::default();
    rows.iter().for_each(|(_, one)| sum.add(one));
    let key = hour_key(hour);
    let written = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_, ()> {
        let mut set = ChangeSet::nothing(at);
        let known = loaded.read::<Meter>(&key).ok().flatten();
        // Rows that are gone by now must not empty what was folded from them.
        if known.is_none_or(|known| !rows.is_empty() && known.value != sum) {
            set.writes.push(Write::of(&key, loaded.version(&key), &sum));
        }
        Ok((set, ()))
    });
    match written.await {
        Err(TransactError::Store(error)) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Lets go of rows that were kept long enough.
pub async fn forget(store: &dyn Store, now: Time) -> sekisho_store::Result<()> {
    let ranges = [
        (String::new(), period_prefix(now.plus_ms(-MINUTES_KEPT_MS))),
        (meter::HOURS.to_owned(), meter::hour_id(now.plus_ms(-HOURS_KEPT_MS))),
    ];
    for (from, to) in ranges {
        while store.forget_meters(from.clone(), to.clone(), FORGET_MAX).await? == FORGET_MAX {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sekisho_core::meter::MeterLog;
    use sekisho_core::time::{DAY_MS, hour_of};
    use sekisho_store::memory::MemoryStore;

    use super::*;
    use crate::env::Env;
    use crate::node::{Health, Node};
    use crate::telemetry::Tracer;

    const NOW: Time = Time::from_ms(1_780_272_030_000);

    async fn base(store: &Arc<MemoryStore>) -> Base {
        let health = Arc::new(Health::default());
        let env = Env::system().with_wall(|| NOW);
        let node = Node::join(Arc::clone(store) as _, Arc::clone(&health), env).await.unwrap();
        Base {
            store: Arc::clone(store) as _,
            node: Arc::new(node),
            health,
            metrics: Arc::default(),
            tracer: Arc::new(Tracer::off()),
        }
    }

    async fn all(store: &MemoryStore) -> MeterLog {
        queries::meter_log(store, NOW.plus_ms(HOUR_MS), 2 * HOUR_MS, DAY_MS).await.unwrap()
    }

    #[tokio::test]
    async fn h3_what_nodes_count_adds_up_survives_them_and_is_folded_by_the_hour() {
        let store = Arc::new(MemoryStore::default());
        for _ in 0..3 {
            let mut writer = MeterWriter::new(base(&store).await, 60_000);
            for _ in 0..2 {
                writer.base.metrics.meters.stored();
                writer.base.metrics.meters.delivered(5);
                writer.flush().await;
            }
            writer.flush().await;
        }
        let log = all(&store).await;
        assert_eq!(log.periods.len(), 3, "one row for each node and minute");
        assert_eq!(log.since(hour_of(NOW)).published.good, 6);
        for _ in 0..2 {
            fold(&*store, hour_of(NOW), NOW).await.unwrap();
            let log = all(&store).await;
            assert_eq!(log.hours[&hour_of(NOW)].delivered.all(), 6);
            assert_eq!(log.since(hour_of(NOW)).published.good, 6, "an hour counts once");
        }
        forget(&*store, NOW.plus_ms(9 * DAY_MS)).await.unwrap();
        let log = all(&store).await;
        assert_eq!((log.periods.len(), log.hours.len()), (0, 1));
        fold(&*store, hour_of(NOW), NOW).await.unwrap();
        assert_eq!(all(&store).await.since(hour_of(NOW)).published.good, 6, "what is gone empties nothing");
        forget(&*store, NOW.plus_ms(401 * DAY_MS)).await.unwrap();
        assert_eq!(all(&store).await, MeterLog::default());
    }
}
