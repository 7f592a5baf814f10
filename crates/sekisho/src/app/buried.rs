//! The traces of dead letters that were not sampled: put together from what is stored, and exported all the same. One a second
//! at most.

use std::sync::Arc;
use std::time::Duration;

use sekisho_core::trace::Attribute;
use sekisho_store::{Standing, Store};

use crate::queries;
use crate::stop::Stop;
use crate::telemetry::Tracer;

/// Between two, and before each: what a run ended with is committed a moment after it is known.
const EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether it is.
const LOOKS: usize = 10;

pub async fn run(store: Arc<dyn Store>, tracer: Arc<Tracer>, stop: Stop) {
    while !stop.is_told() {
        tokio::select! {
            biased;
            () = stop.told() => return,
            () = export_next(&*store, &tracer) => {}
        }
    }
}

async fn export_next(store: &dyn Store, tracer: &Tracer) {
    let (event, job) = tracer.next_buried().await;
    for _ in 0..LOOKS {
        tokio::time::sleep(EVERY).await;
        let is_written = match store.find_message(job).await {
            Ok(message) => message.is_some_and(|message| matches!(message.standing, Standing::Dead(..))),
            Err(_) => false,
        };
        let spans = if is_written { queries::trace(store, &tracer.sampler, event).await.ok() } else { None };
        if let Some(spans) = spans {
            for mut span in spans {
                span.attributes.push(("sekisho.rebuilt", Attribute::Text("true".to_owned())));
                tracer.record(span);
            }
            return;
        }
    }
}
