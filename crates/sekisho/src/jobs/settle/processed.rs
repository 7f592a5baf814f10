//! One line at `info` for a processed event: what it was, what it turned out to be about, and how it ended.

use sekisho_core::change::Ended;
use sekisho_core::job::End;
use sekisho_core::state::{Kind, Write};
use tracing::Level;

use crate::engine::{Engine, Work};

/// `writes` say whose payment it is.
pub fn tell(engine: &Engine, work: &Work, ended: &Ended, writes: &[Write]) {
    let (End::Done(outcome), Some(event)) = (&ended.end, &work.event) else { return };
    if !tracing::enabled!(Level::INFO) {
        return;
    }
    let Some(left_out) = engine.tracer.is_logged(event.seq, engine.node.now()) else { return };
    let payment_id = ended.about.payment.as_deref();
    let is_its = |write: &&Write| write.key.kind == Kind::Payment && Some(&*write.key.id) == payment_id;
    let customer_id = writes.iter().find(is_its).and_then(|write| write.index.customer.as_deref());
    let (start_us, end_us) = work.times();
    tracing::info!(
        message_id = %ended.lease.job.as_message(),
        trace_id = work.trace_id(&engine.tracer).map(|trace| trace.to_string()),
        event_id = event.event_id,
        source = &*event.source,
        lane = &*work.job.lane.0,
        attempt = ended.lease.attempt,
        payment_id,
        customer_id,
        tenant = ended.about.tenant,
        event_type = event.event_type,
        outcome = outcome.name(),
        took_us = end_us - start_us,
        left_out = (left_out > 0).then_some(left_out),
        "event processed"
    );
}
