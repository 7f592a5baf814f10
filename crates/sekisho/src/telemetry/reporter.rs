//! ERROR lines and panics on their way to Sentry. Bounded, a few a minute of each kind, and nobody waits for it: what does not
//! fit is dropped and counted.
//!
//! Only named fields are sent, and the error's sentence with mail addresses masked: no body, header, peer or panic's
//! own words.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::mail_address::mask_text;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::fields::LineFields;
use super::{Metrics, ResultLabels};
use crate::effects::sentry::{ErrorReport, Reported, Sentry};
use crate::stop::Stop;
use crate::token;

/// Reports that may wait.
const WAITING_MAX: usize = 256;
/// Of one fingerprint in a minute.
const ALIKE_MAX: u32 = 10;
/// Fingerprints that are counted; beyond that all are one.
const KINDS_MAX: usize = 1_000;
const SEND_WITHIN: Duration = Duration::from_secs(10);
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
/// After an answer that never came.
const PAUSE: Duration = Duration::from_secs(5);
/// Why a program panicked may be anything that it held.
const PANICKED: &str = "panicked";

/// What is sent of a line, besides its sentence and its error.
const TAGS: [&str; 10] = [
    "correlation_id",
    "node",
    "event_id",
    "source",
    "message_id",
    "lane",
    "attempt",
    "payment_id",
    "tenant",
    "error_type",
];

#[derive(Default)]
pub struct Reporter {
    state: Mutex<Waiting>,
    filled: Notify,
}

#[derive(Default)]
struct Waiting {
    reports: VecDeque<ErrorReport>,
    minute: i64,
    alike: BTreeMap<Vec<String>, u32>,
    dropped: u64,
}

/// The part of the log that hands errors over.
pub struct ReportLayer(pub Arc<Reporter>);

impl<S: Subscriber> Layer<S> for ReportLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::ERROR {
            self.0.take(&LineFields::of(event), now());
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a report is stamped by the machine's own clock")]
fn now() -> Time {
    crate::env::now()
}

impl Reporter {
    fn take(&self, fields: &LineFields, at: Time) {
        let text = |name: &str| fields.text(name).unwrap_or_default().to_owned();
        let fingerprint = vec![fields.message.clone(), text("error_type"), text("lane")];
        let mut state = self.state.lock().expect("no code panics here");
        let minute = at.seconds().div_euclid(60);
        if state.minute != minute {
            state.minute = minute;
            state.alike.clear();
        }
        let is_known = state.alike.contains_key(&fingerprint) || state.alike.len() < KINDS_MAX;
        let kind = if is_known { fingerprint.clone() } else { Vec::new() };
        let alike = state.alike.entry(kind).or_default();
        *alike += 1;
        if *alike > ALIKE_MAX || state.reports.len() >= WAITING_MAX {
            state.dropped += 1;
            return;
        }
        let shown = |name: &&'static str| {
            let value = fields.get(name)?;
            Some((*name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        };
        let error = fields.text("error").filter(|_| fields.text("error_type") != Some(PANICKED));
        state.reports.push_back(ErrorReport {
            id: token::generate::<16>(),
            at,
            message: fields.message.clone(),
            error: error.map(mask_text),
            tags: TAGS.iter().filter_map(shown).collect(),
            trace: fields.text("trace_id").map(str::to_owned),
            fingerprint,
        });
        drop(state);
        self.filled.notify_one();
    }

    /// Sends until told to stop, then for a moment what is left.
    pub async fn run(self: Arc<Self>, sentry: Sentry, metrics: Arc<Metrics>, stop: Stop) {
        let mut closed_until: Option<Instant> = None;
        let mut last_chance: Option<Instant> = None;
        loop {
            if last_chance.is_none() && stop.is_told() {
                last_chance = Some(Instant::now() + FLUSH_WITHIN);
            }
            let Some(report) = self.next() else {
                self.count(&metrics);
                if last_chance.is_some() {
                    return;
                }
                tokio::select! {
                    biased;
                    () = stop.told() => {}
                    () = self.filled.notified() => {}
                }
                continue;
            };
            if closed_until.is_some_and(|until| Instant::now() < until) {
                // It asked for quiet: what happens meanwhile is in the log.
                self.drop_one();
                continue;
            }
            let within = last_chance.map_or(SEND_WITHIN, |end| end.saturating_duration_since(Instant::now()));
            let count = |result| metrics.reports.get_or_create(&ResultLabels { result }).inc();
            match sentry.report(&report, within).await {
                Reported::Taken => _ = count("sent"),
                Reported::Refused => _ = count("refused"),
                Reported::Closed(pause) => {
                    self.drop_one();
                    closed_until = Some(Instant::now() + pause);
                }
                Reported::Unanswered => {
                    self.drop_one();
                    closed_until = Some(Instant::now() + PAUSE);
                }
            }
        }
    }

    fn next(&self) -> Option<ErrorReport> {
        self.state.lock().expect("no code panics here").reports.pop_front()
    }

    fn drop_one(&self) {
        self.state.lock().expect("no code panics here").dropped += 1;
    }

    fn count(&self, metrics: &Metrics) {
        let dropped = std::mem::take(&mut self.state.lock().expect("no code panics here").dropped);
        if dropped > 0 {
            metrics.reports.get_or_create(&ResultLabels { result: "dropped" }).inc_by(dropped);
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn h3_of_one_kind_ten_a_minute_are_reported_and_nothing_but_named_fields() {
        let reporter = Arc::new(Reporter::default());
        let subscriber = tracing_subscriber::registry().with(ReportLayer(Arc::clone(&reporter)));
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..15 {
                tracing::error!(
                    n,
                    peer = "203.0.113.9",
                    lane = "to:app",
                    error_type = "gone",
                    error = "taro@example.jp is unknown",
                    "job failed permanently; it is a dead letter now"
                );
            }
            tracing::error!(error_type = "panicked", error = "key sk_live_1", "the program panicked");
            tracing::warn!("no error");
        });
        let state = reporter.state.lock().unwrap();
        assert_eq!((state.reports.len(), state.dropped), (11, 5));
        let all = format!("{:?}", state.reports);
        for secret in ["203.0.113.9", "taro@example.jp", "sk_live_1", "no error"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        assert!(all.contains("gone") && all.contains("to:app"));
    }
}
