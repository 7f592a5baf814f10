//! What there is right now, over all nodes: work, dead letters, breakers, alerts, targets. From one sample with its age; a
//! sample that grew old is no longer written, so that nobody takes it for the present.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

/// An older sample is not written.
const OLD: Duration = Duration::from_mins(1);

type FloatGauge = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct WorkLabels {
    pub lane: String,
    pub state: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct LaneLabels {
    pub lane: String,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct AlertLabels {
    pub alert: &'static str,
    pub subject: String,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct TargetLabels {
    pub target: &'static str,
    pub window: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct BuildLabels {
    pub version: &'static str,
}

/// One lane, as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneStock {
    pub lane: String,
    pub waiting: i64,
    pub retrying: i64,
    pub running: i64,
    /// How long the oldest that waits is due; 0 when none is.
    pub oldest_due_seconds: f64,
    pub dead_letters: i64,
    pub is_open: bool,
}

/// What is there now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StockSample {
    /// Every lane that is known, also without any work.
    pub lanes: Vec<LaneStock>,
    pub dead_letter_oldest_seconds: f64,
    /// Alert, subject, and whether it fires.
    pub alerts: Vec<(&'static str, String, bool)>,
    /// Target, window, and the share that went well; a number of dead letters.
    pub targets: Vec<(&'static str, &'static str, f64)>,
    pub nodes: i64,
}

#[derive(Default)]
pub struct Stock {
    work: Family<WorkLabels, Gauge>,
    oldest_due: Family<LaneLabels, FloatGauge>,
    dead_letters: Family<LaneLabels, Gauge>,
    dead_letter_oldest: FloatGauge,
    breaker_open: Family<LaneLabels, Gauge>,
    alert_firing: Family<AlertLabels, Gauge>,
    target_ratio: Family<TargetLabels, FloatGauge>,
    nodes: FloatGauge,
    age: FloatGauge,
    taken: Mutex<Option<Instant>>,
}

impl Stock {
    pub fn register(&self, registry: &mut Registry) {
        let build: Family<BuildLabels, Gauge> = Family::default();
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build_info", "1, with the version of this process", build);
        registry.register("work", "Unfinished jobs, over all nodes", self.work.clone());
        registry.register(
            "work_oldest_due_seconds",
            "How long the oldest job that no node works on has been due",
            self.oldest_due.clone(),
        );
        registry.register("dead_letters", "Dead letters that wait for a person", self.dead_letters.clone());
        registry.register(
            "dead_letter_oldest_seconds",
            "How long the oldest dead letter has waited",
            self.dead_letter_oldest.clone(),
        );
        registry.register("breaker_open", "1 while a breaker is open", self.breaker_open.clone());
        registry.register("alert_firing", "1 while a built-in alert fires", self.alert_firing.clone());
        registry.register(
            "target_ratio",
            "The share of a target over a window, from the meters of all nodes; of dead_letters the number",
            self.target_ratio.clone(),
        );
        registry.register("nodes", "Nodes that live", self.nodes.clone());
        registry.register(
            "sample_age_seconds",
            "How old the sample is that the figures about all nodes come from; they are left out after 60 seconds",
            self.age.clone(),
        );
    }

    pub fn set(&self, sample: &StockSample) {
        self.clear();
        for lane in &sample.lanes {
            let own = LaneLabels { lane: lane.lane.clone() };
            for (state, jobs) in
                [("waiting", lane.waiting), ("retrying", lane.retrying), ("running", lane.running)]
            {
                self.work.get_or_create(&WorkLabels { lane: lane.lane.clone(), state }).set(jobs);
            }
            self.oldest_due.get_or_create(&own).set(lane.oldest_due_seconds);
            self.dead_letters.get_or_create(&own).set(lane.dead_letters);
            self.breaker_open.get_or_create(&own).set(i64::from(lane.is_open));
        }
        for (alert, subject, fires) in &sample.alerts {
            let labels = AlertLabels { alert, subject: subject.clone() };
            self.alert_firing.get_or_create(&labels).set(i64::from(*fires));
        }
        for (target, window, ratio) in &sample.targets {
            self.target_ratio.get_or_create(&TargetLabels { target, window }).set(*ratio);
        }
        self.dead_letter_oldest.set(sample.dead_letter_oldest_seconds);
        self.nodes.set(sample.nodes as f64);
        *self.taken.lock().expect("no code panics here") = Some(Instant::now());
    }

    /// Says how old the sample is, and lets go of one that is too old.
    pub fn refresh(&self) {
        let age = self.taken.lock().expect("no code panics here").map(|taken| taken.elapsed());
        self.age.set(age.map_or(f64::NAN, |age| age.as_secs_f64()));
        if age.is_none_or(|age| age > OLD) {
            self.clear();
            self.dead_letter_oldest.set(f64::NAN);
            self.nodes.set(f64::NAN);
        }
    }

    fn clear(&self) {
        self.work.clear();
        self.oldest_due.clear();
        self.dead_letters.clear();
        self.breaker_open.clear();
        self.alert_firing.clear();
        self.target_ratio.clear();
    }

    /// With one of each, for the reference.
    pub fn set_one_of_each(&self) {
        self.set(&StockSample {
            lanes: vec![LaneStock::default()],
            alerts: vec![("", String::new(), false)],
            targets: vec![("", "", 0.0)],
            ..StockSample::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;

    #[tokio::test(start_paused = true)]
    async fn h3_a_sample_that_grew_old_is_not_written() {
        let metrics = Metrics::default();
        assert!(!metrics.encode().contains("sekisho_work{"));
        let lane = LaneStock { lane: "to:app".into(), waiting: 3, is_open: true, ..LaneStock::default() };
        metrics.stock.set(&StockSample { lanes: vec![lane], nodes: 2, ..StockSample::default() });
        let text = metrics.encode();
        for line in [
            r#"sekisho_work{lane="to:app",state="waiting"} 3"#,
            r#"sekisho_work{lane="to:app",state="running"} 0"#,
            r#"sekisho_breaker_open{lane="to:app"} 1"#,
            "sekisho_nodes 2.0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        tokio::time::advance(OLD + Duration::from_secs(1)).await;
        assert!(!metrics.encode().contains("sekisho_work{"));
    }
}
