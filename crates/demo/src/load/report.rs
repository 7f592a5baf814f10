//! What came of a load: counts, latencies, and the ledger against which the database is checked afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::measure::{millis, thousands};

/// Counts and latencies are of the measured time, the ledger of all.
#[derive(Clone, Debug)]
pub struct Report {
    pub statuses: BTreeMap<u16, u64>,
    /// Connections that ended before their answer came: the event may or may not be stored.
    pub unknown: u64,
    /// Requests that were due and could not be sent before the end: no free connection, or none to be had.
    pub unsent: u64,
    pub connects: u64,
    pub connects_refused: u64,
    pub elapsed: Duration,
    /// Microseconds until a 2xx, and until any other answer.
    pub accepted: Histogram<u64>,
    pub refused: Histogram<u64>,
    pub ledger: SentLedger,
    /// Number of the first request that was not sent: where the next load goes on.
    pub next: u64,
}

/// Which events the server has answered for. Empty unless recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentLedger {
    /// Answered 2xx: these must never be lost. In order of the answers; repeated events appear repeatedly.
    pub acknowledged: Vec<String>,
    /// Neither acknowledged nor refused: any outcome is right.
    pub unknown: Vec<String>,
    /// Answered, and not 2xx.
    pub refused: Vec<String>,
    /// Acknowledged, but not at the first try.
    pub resent: Vec<String>,
}

impl Report {
    /// Events answered 2xx.
    pub fn acknowledged(&self) -> u64 {
        self.statuses.range(200..300).map(|(_, count)| count).sum()
    }

    /// Answers that were not 2xx.
    pub fn refusals(&self) -> u64 {
        self.statuses.values().sum::<u64>() - self.acknowledged()
    }

    /// Acknowledged events per second.
    pub fn per_second(&self) -> f64 {
        self.acknowledged() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Latency of acknowledged events in microseconds, `0.99` for p99; `1.0` for the slowest.
    pub fn latency_us(&self, quantile: f64) -> u64 {
        self.accepted.value_at_quantile(quantile)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} events/s acknowledged ({} in {:.1} s)",
            thousands(self.per_second() as u64),
            thousands(self.acknowledged()),
            self.elapsed.as_secs_f64()
        )?;
        writeln!(f, "latency   {}", quantiles(&self.accepted))?;
        if !self.refused.is_empty() {
            writeln!(f, "refused   {}", quantiles(&self.refused))?;
        }
        write!(f, "answers  ")?;
        for (status, count) in &self.statuses {
            write!(f, " {status}: {}", thousands(*count))?;
        }
        write!(f, "; unknown {}, unsent {}, connects {}", self.unknown, self.unsent, self.connects)?;
        if self.connects_refused > 0 {
            write!(f, " ({} refused)", self.connects_refused)?;
        }
        Ok(())
    }
}

fn quantiles(histogram: &Histogram<u64>) -> String {
    let at = |quantile| millis(histogram.value_at_quantile(quantile));
    format!("p50 {}, p99 {}, p99.9 {}, max {}", at(0.5), at(0.99), at(0.999), millis(histogram.max()))
}
