//! `bench growth`: whether an event costs more when many are stored already. The store is driven directly, as the
//! server drives it: admitted in batches, born leased, ended; what is measured is CPU, of this process and of the
//! database, so that a busy machine does not decide.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sekisho_core::change::{Arrival, ChangeSet, End, Lease, Outcome};
use sekisho_core::event::{Created, DedupeKey, Trust};
use sekisho_core::id::Sequence;
use sekisho_core::{Epoch, Time};
use sekisho_lab::measure::{cpu_time, thousands};
use sekisho_store::{Access, Store};

use super::{Stage, per_thousand};
use crate::cli::output::{Progress, line_out, table};
use crate::now;

#[derive(clap::Args)]
pub struct Args {
    /// Stored events at which the cost is measured
    #[arg(long, value_delimiter = ',', default_value = "10000,200000", value_name = "EVENTS")]
    sizes: Vec<u64>,
    /// Events of each measurement: enough to hold what a store does only now and then
    #[arg(long, default_value_t = 240_000)]
    sample: u64,
    /// Where the temporary data goes
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Events in one commit while measuring, as under load; while filling, more.
const BATCH: u64 = 32;
const FILLING_BATCH: u64 = 1_000;

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for rising in [true, false] {
        let name = if rising { "rising" } else { "scattered" };
        let costs = runtime.block_on(measure(args, stage, name, rising))?;
        let first = costs.first().map_or(f64::NAN, |(_, cost)| *cost);
        rows.extend(costs.iter().map(|(size, cost)| {
            let ratio = cost / first;
            vec![name.to_owned(), thousands(*size), format!("{cost:.4} s"), format!("{ratio:.2}")]
        }));
    }
    line_out(&format!(
        "{}: CPU for 1,000 events, received and ended, at sizes of the store",
        stage.kind.name()
    ));
    table(&["KEYS", "STORED", "CPU/1000", "RATIO (LIMIT 1.20)"], &rows);
    Ok(ExitCode::SUCCESS)
}

async fn measure(args: &Args, stage: &Stage, name: &str, rising: bool) -> anyhow::Result<Vec<(u64, f64)>> {
    let url = stage.fresh_store(name)?.parse().map_err(anyhow::Error::msg)?;
    let store = sekisho_store::open(&url, Access::Serve { allow_unsafe_durability: false }).await?;
    let epoch = store.join(now()).await?.epoch;
    let mut events = Events { sequence: Sequence::new(epoch, sekisho_core::Seq::ZERO), made: 0, rising };
    let progress = Progress::new();
    let mut costs = Vec::new();
    for &size in &args.sizes {
        while events.made < size {
            progress.show(&format!("{name} keys: {} of {}", thousands(events.made), thousands(size)));
            let batch = FILLING_BATCH.min(size - events.made);
            pass(&*store, epoch, events.batch(batch)).await?;
        }
        progress.show(&format!("{name} keys: measuring at {}", thousands(size)));
        let cpu = || cpu_time(std::process::id()).unwrap_or_default() + stage.database_cpu();
        let before = cpu();
        for _ in 0..args.sample / BATCH {
            pass(&*store, epoch, events.batch(BATCH)).await?;
        }
        let spent: Duration = cpu().saturating_sub(before);
        costs.push((size, per_thousand(spent, args.sample / BATCH * BATCH)));
    }
    Ok(costs)
}

/// Receives and ends a batch.
async fn pass(store: &dyn Store, epoch: Epoch, batch: Vec<Arrival>) -> anyhow::Result<()> {
    let end = |arrival: &Arrival| {
        let lease = Lease { job: arrival.seq, epoch, attempt: 1 };
        ChangeSet::end(lease, End::Done(Outcome::SUCCESS), arrival.received_at)
    };
    let ends = batch.iter().map(end).collect();
    store.admit(Arc::from(batch), Some(epoch)).await?;
    store.commit(ends).await?;
    Ok(())
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
