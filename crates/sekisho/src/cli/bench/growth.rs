//! `bench growth`: whether an event costs more when many are stored already. The store is driven directly, as the
//! server drives it: admitted in batches, born leased, ended. What is measured is CPU, of this process and of the
//! database; a large store and a small one take turns, so that what else the machine does falls on both. The small one
//! grows too while it is measured.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::event::{Created, DedupeKey, Trust};
use sekisho_core::id::Sequence;
use sekisho_core::job::{End, Lease, Outcome};
use sekisho_core::{Epoch, Time};
use sekisho_demo::measure::{cpu_time, thousands};
use sekisho_store::{Access, Store};
use serde_json::json;

use super::fill::write_sets;
use super::{Stage, per_thousand, row_out};
use crate::cli::output::{Progress, line_out, table};
use crate::now;

#[derive(clap::Args)]
pub struct Args {
    /// Events in the large store when the measurement begins
    #[arg(long, value_delimiter = ',', default_value = "200000", value_name = "EVENTS")]
    sizes: Vec<u64>,
    /// Events in the small one then
    #[arg(long, default_value_t = 10_000, value_name = "EVENTS")]
    small: u64,
    /// Events of each measurement: enough to hold what a store does only now and then
    #[arg(long, default_value_t = 240_000)]
    sample: u64,
    /// Only keys that rise with time, or only scattered ones
    #[arg(long)]
    keys: Option<Keys>,
    /// One JSON object for each row and each ratio
    #[arg(long)]
    json: bool,
    /// Where the temporary data goes
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Keys {
    Rising,
    Scattered,
}

/// Events in one commit while measuring, as under load; while filling, more.
const BATCH: u64 = 32;
const FILLING_BATCH: u64 = 1_000;
/// Events of one turn: enough for a clock that counts hundredths of a second.
const TURN: u64 = 8_000;
/// For what a store still does after its last answer: that is its own turn.
const AFTERWARDS: Duration = Duration::from_millis(100);
/// How much more an event may cost in the large one.
const LIMIT: f64 = 1.2;

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for keys in [Keys::Rising, Keys::Scattered] {
        if args.keys.is_none_or(|only| only == keys) {
            runtime.block_on(measure(args, stage, keys, &mut rows))?;
        }
    }
    if args.json {
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!(
        "{}: CPU for 1,000 events, received and ended, in a store that held many before and in one that held {}",
        stage.kind.name(),
        thousands(args.small)
    ));
    table(&["KEYS", "HELD", "CPU/1000", "IN THE SMALL ONE", "RATIO (LIMIT 1.20)"], &rows);
    Ok(ExitCode::SUCCESS)
}

async fn measure(args: &Args, stage: &Stage, keys: Keys, rows: &mut Vec<Vec<String>>) -> anyhow::Result<()> {
    let (rising, keys) = match keys {
        Keys::Rising => (true, "rising"),
        Keys::Scattered => (false, "scattered"),
    };
    let progress = Progress::new();
    let mut large = Subject::new(stage, keys, rising).await?;
    for &size in &args.sizes {
        let filled =
            |made| progress.show(&format!("{keys} keys: {} of {}", thousands(made), thousands(size)));
        large.fill(size, filled).await?;
        let held = large.events.made;
        let mut small = Subject::new(stage, &format!("{keys}-beside-{size}"), rising).await?;
        small.fill(args.small, |_| ()).await?;
        progress.show(&format!("{keys} keys: measuring at {}", thousands(held)));
        let (mut in_large, mut in_small) = (Duration::ZERO, Duration::ZERO);
        let turns = args.sample.div_ceil(TURN);
        for _ in 0..turns {
            in_large += large.take_turn(stage).await?;
            in_small += small.take_turn(stage).await?;
        }
        let cost = |spent| per_thousand(spent, turns * TURN);
        if args.json {
            let figures = json!({
                "held": held,
                "cpu_s_per_1000": cost(in_large),
                "small_cpu_s_per_1000": cost(in_small),
                "ratio": cost(in_large) / cost(in_small),
                "limit": LIMIT,
            });
            row_out(stage, &format!("{keys} keys"), figures);
        }
        rows.push(vec![
            keys.to_owned(),
            thousands(held),
            format!("{:.4} s", cost(in_large)),
            format!("{:.4} s", cost(in_small)),
            format!("{:.2}", cost(in_large) / cost(in_small)),
        ]);
    }
    Ok(())
}

/// A store, and the events that come to it.
struct Subject {
    store: Arc<dyn Store>,
    epoch: Epoch,
    events: Events,
}

impl Subject {
    async fn new(stage: &Stage, name: &str, rising: bool) -> anyhow::Result<Self> {
        let url = stage.fresh_store(name)?.parse().map_err(anyhow::Error::msg)?;
        let store = sekisho_store::open(&url, Access::Serve { allow_unsafe_durability: false }).await?;
        let epoch = store.join(now()).await?.epoch;
        let events = Events { sequence: Sequence::new(epoch, sekisho_core::Seq::ZERO), made: 0, rising };
        Ok(Self { store, epoch, events })
    }

    async fn fill(&mut self, size: u64, filled: impl Fn(u64)) -> anyhow::Result<()> {
        while self.events.made < size {
            filled(self.events.made);
            self.pass(FILLING_BATCH.min(size - self.events.made)).await?;
        }
        Ok(())
    }

    async fn take_turn(&mut self, stage: &Stage) -> anyhow::Result<Duration> {
        let own = || cpu_time(std::process::id()).context("the CPU time of this process can't be read");
        let before = own()? + stage.database_cpu();
        for _ in 0..TURN / BATCH {
            self.pass(BATCH).await?;
        }
        tokio::time::sleep(AFTERWARDS).await;
        Ok((own()? + stage.database_cpu()).saturating_sub(before))
    }

    /// Receives and ends a batch.
    async fn pass(&mut self, count: u64) -> anyhow::Result<()> {
        let batch = self.events.batch(count);
        let end = |arrival: &Arrival| {
            let lease = Lease { job: arrival.seq, epoch: self.epoch, attempt: 1 };
            ChangeSet::end(lease, End::Done(Outcome::SUCCESS), arrival.received_at)
        };
        let ends = batch.iter().map(end).collect();
        self.store.admit(Arc::from(batch), Some(self.epoch)).await?;
        Ok(write_sets(&*self.store, ends).await?)
    }
}

/// Small events, so that the disk is not what is measured.
struct Events {
    sequence: Sequence,
    made: u64,
    /// Keys rise with the provider's clock; else they are hashes.
    rising: bool,
}

impl Events {
    fn batch(&mut self, count: u64) -> Vec<Arrival> {
        (0..count).map(|_| self.next()).collect()
    }

    fn next(&mut self) -> Arrival {
        self.made += 1;
        let at = now();
        let event_id = format!("evt_{:016x}", self.made);
        // As if fifty came every second.
        let created = Time::from_seconds(1_790_000_000 + (self.made / 50) as i64);
        let created = Created { at: created, immutable: self.rising };
        Arrival {
            key: DedupeKey::new("bench", &event_id, Some(created)),
            first_body: None,
            seq: self.sequence.next(at),
            received_at: at,
            source: "bench".into(),
            event_id,
            event_type: "payment_intent.succeeded".into(),
            created_at: Some(created.at),
            object: None,
            account: None,
            livemode: Some(true),
            trust: Trust::Signed,
            headers: "[]".into(),
            body: Bytes::from_static(b"{}"),
            held: None,
        }
    }
}
