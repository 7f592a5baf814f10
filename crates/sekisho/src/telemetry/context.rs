//! What a log line is about, without its being said in every line: set around each request and each run, and put into words
//! only when a line is written.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use sekisho_core::announcement::about_own;
use sekisho_core::event::Stored;
use sekisho_core::job::{Job, Lane};
use sekisho_core::source_name::OWN;
use sekisho_core::traceparent::TraceId;
use sekisho_core::{Epoch, Seq};
use serde::Deserialize;
use serde_json::Value;

use super::fields::LineFields;
use crate::token;

tokio::task_local! {
    static CONTEXT: LineContext;
}

/// The number of this process among the nodes; negative before it joined.
static NODE: AtomicI64 = AtomicI64::new(-1);
static BOOT: OnceLock<String> = OnceLock::new();

#[derive(Clone, Debug)]
pub struct LineContext {
    subject: LineSubject,
    trace: Option<TraceId>,
}

#[derive(Clone, Debug)]
enum LineSubject {
    Request { id: Seq, source: Option<Arc<str>> },
    Run { job: Seq, lane: Lane, attempt: i32, event: Option<Arc<Stored>> },
}

impl LineContext {
    pub const fn of_request(id: Seq, source: Option<Arc<str>>, trace: Option<TraceId>) -> Self {
        Self { subject: LineSubject::Request { id, source }, trace }
    }

    pub fn of_run(job: &Job, event: Option<&Arc<Stored>>, trace: Option<TraceId>) -> Self {
        let (lane, event) = (job.lane.clone(), event.cloned());
        let subject = LineSubject::Run { job: job.lease.job, lane, attempt: job.lease.attempt, event };
        Self { subject, trace }
    }

    /// Whatever is logged by this future is about it.
    pub fn around<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CONTEXT.scope(self, future)
    }

    fn fill(&self, fields: &mut LineFields) {
        if let Some(trace) = self.trace {
            fields.add("trace_id", || trace.to_string().into());
        }
        match &self.subject {
            LineSubject::Request { id, source } => {
                fields.add("correlation_id", || id.as_request().to_string().into());
                if let Some(source) = source {
                    fields.add("source", || source.to_string().into());
                }
            }
            LineSubject::Run { job, lane, attempt, event } => {
                let id = job.as_message().to_string();
                fields.add("correlation_id", || id.clone().into());
                fields.add("message_id", || id.into());
                fields.add("lane", || lane.0.to_string().into());
                fields.add("attempt", || (*attempt).into());
                if let Some(event) = event {
                    fill_event(event, fields);
                }
            }
        }
    }
}

/// Fills in what the line did not say itself. Every line has a correlation id: the request's, the job's, or else this
/// process's own.
pub fn fill(fields: &mut LineFields) {
    let _ = CONTEXT.try_with(|context| context.fill(fields));
    for own in ["request_id", "message_id"] {
        if let Some(Value::String(id)) = fields.get(own) {
            let id = id.clone();
            fields.add("correlation_id", || id.into());
        }
    }
    fields.add("correlation_id", || boot_id().into());
    let node = NODE.load(Ordering::Relaxed);
    if node >= 0 {
        fields.add("node", || node.into());
    }
}

/// This process, from now on, is this node.
pub fn set_node(epoch: Epoch) {
    NODE.store(epoch.number(), Ordering::Relaxed);
}

/// What lines have in common that belong to no request and no job.
pub fn boot_id() -> &'static str {
    BOOT.get_or_init(|| format!("boot_{}", token::generate::<8>()))
}

fn fill_event(event: &Stored, fields: &mut LineFields) {
    #[derive(Deserialize)]
    struct Body {
        data: Option<Data>,
    }
    #[derive(Deserialize)]
    struct Data {
        customer: Option<String>,
    }

    fields.add("event_id", || event.event_id.clone().into());
    fields.add("source", || event.source.to_string().into());
    if &*event.source != OWN {
        return;
    }
    let about = about_own(&event.source, event.object.as_ref(), &event.body);
    let customer = serde_json::from_slice::<Body>(&event.body).ok().and_then(|body| body.data?.customer);
    for (name, value) in [("payment_id", about.payment), ("tenant", about.tenant), ("customer_id", customer)]
    {
        if let Some(value) = value {
            fields.add(name, || value.into());
        }
    }
}
