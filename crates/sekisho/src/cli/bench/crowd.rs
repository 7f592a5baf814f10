//! `bench crowd`: whether a destination with many waiting jobs costs the others. The store is driven as the server
//! drives it, for one lane, with nothing else and then with a crowd in another lane; what is measured is CPU.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use sekisho_core::change::ChangeSet;
use sekisho_core::id::Sequence;
use sekisho_core::job::{End, Lane, NewJob, Outcome, Task};
use sekisho_core::{Epoch, Seq};
use sekisho_demo::measure::{cpu_time, thousands};
use sekisho_store::{Access, Store};
use serde_json::json;

use super::fill::write_sets;
use super::{Stage, figure_out, per_thousand, row_out};
use crate::cli::output::{Progress, line_out};
use crate::now;

#[derive(clap::Args)]
pub struct Args {
    /// Jobs that wait for the other destination
    #[arg(long, default_value_t = 100_000)]
    waiting: usize,
    /// Jobs of each measurement
    #[arg(long, default_value_t = 20_000)]
    sample: usize,
    /// One JSON object for each row and each ratio
    #[arg(long)]
    json: bool,
    /// Where the temporary data goes
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

const BATCH: usize = 50;
const ROUNDS: usize = 3;

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(args, stage))
}

async fn measure(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let url = stage.fresh_store("crowd")?.parse().map_err(anyhow::Error::msg)?;
    let store = sekisho_store::open(&url, Access::Serve { allow_unsafe_durability: false }).await?;
    let epoch = store.join(now()).await?.epoch;
    let mut lane = Jobs { store: Arc::clone(&store), sequence: Sequence::new(epoch, Seq::ZERO), epoch };
    let (alone, crowd) = (Lane::to_route("well"), Lane::to_route("broken"));
    let progress = Progress::new();
    let mut costs = [f64::INFINITY; 2];
    for (n, cost) in costs.iter_mut().enumerate() {
        if n == 1 {
            progress.show(&format!("{} jobs begin to wait", thousands(args.waiting as u64)));
            for _ in 0..args.waiting.div_ceil(1_000) {
                lane.queue(&crowd, 1_000).await?;
            }
        }
        // The best of a few: what the machine did besides is not ours.
        for _ in 0..ROUNDS {
            let cpu = || cpu_time(std::process::id()).unwrap_or_default() + stage.database_cpu();
            let before = cpu();
            for _ in 0..args.sample / BATCH {
                lane.queue(&alone, BATCH).await?;
                lane.work_off(&alone).await?;
            }
            *cost = cost.min(per_thousand(cpu().saturating_sub(before), args.sample as u64));
        }
    }
    drop(progress);
    if args.json {
        row_out(stage, "alone", json!({ "cpu_s_per_1000": costs[0] }));
        row_out(stage, "beside a crowd", json!({ "waiting": args.waiting, "cpu_s_per_1000": costs[1] }));
        figure_out(stage, "beside a crowd / alone", costs[1] / costs[0], None);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!(
        "{}: CPU for 1,000 jobs of one destination, queued, claimed and ended",
        stage.kind.name()
    ));
    line_out(&format!("alone                                  {:.4} s", costs[0]));
    line_out(&format!("beside {:>9} waiting for another  {:.4} s", thousands(args.waiting as u64), costs[1]));
    line_out(&format!("ratio                                  {:.2}", costs[1] / costs[0]));
    Ok(ExitCode::SUCCESS)
}

struct Jobs {
    store: Arc<dyn Store>,
    sequence: Sequence,
    epoch: Epoch,
}

impl Jobs {
    async fn queue(&mut self, lane: &Lane, count: usize) -> anyhow::Result<()> {
        let at = now();
        let job = |id: Seq| NewJob {
            id,
            key: Some(id.as_message().to_string()),
            task: Task::Deliver { route: "bench".into() },
            lane: lane.clone(),
            fifo: None,
            due_at: at,
            event: None,
            owner: None,
        };
        let jobs = (0..count).map(|_| job(self.sequence.next(at))).collect();
        Ok(write_sets(&*self.store, vec![ChangeSet::queue(jobs, at)]).await?)
    }

    async fn work_off(&self, lane: &Lane) -> anyhow::Result<()> {
        let jobs = self.store.claim(self.epoch, vec![(lane.clone(), BATCH)], now()).await?;
        let end = |lease| ChangeSet::end(lease, End::Done(Outcome::SUCCESS), now());
        Ok(write_sets(&*self.store, jobs.into_iter().map(|job| end(job.lease)).collect()).await?)
    }
}
