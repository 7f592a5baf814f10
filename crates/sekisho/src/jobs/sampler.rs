//! Takes a sample of what there is over all nodes, every quarter of a minute, for `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::job::Lane;
use sekisho_core::target::TargetPolicy;

use crate::engine::Engine;
use crate::queries;
use crate::stop::Stop;

const EVERY: Duration = Duration::from_secs(15);

/// Until told to stop. A sample that fails is left out: the one before grows old, and says so.
pub async fn run(engine: Arc<Engine>, targets: TargetPolicy, stop: Stop) {
    let lanes: Vec<_> = engine.lanes.names.iter().cloned().chain([Lane::settle()]).collect();
    while !stop.is_told() {
        match queries::sample(&*engine.store, &lanes, &targets, engine.node.now()).await {
            Ok(sample) => engine.metrics.stock.set(&sample),
            Err(error) => engine.health.store_failed(&error),
        }
        tokio::select! {
            biased;
            () = stop.told() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
