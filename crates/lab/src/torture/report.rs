//! What a torture found, for people: a table of figures, then every violation with examples.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use super::faults::TortureFault;
use crate::measure::thousands;

/// Examples shown of each kind of violation.
const SHOWN: usize = 5;

/// What the checker found. Each list is empty when all is well.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub acknowledged: u64,
    pub stored: u64,
    /// Different effects that happened: an event at a route.
    pub effects: u64,
    pub lost: Vec<String>,
    pub doubled: Vec<String>,
    pub invented: Vec<String>,
    pub stale: Vec<String>,
    pub disordered: Vec<String>,
    pub buried: Vec<String>,
    pub left: Vec<String>,
    /// 2xx answers for a message beyond its first, and how many of them kills and pauses explain.
    pub repeats: u64,
    pub repeats_allowed: u64,
    /// Requests the application processed and then dropped on purpose.
    pub repeats_of_drops: u64,
    /// Events at a route whose order was checked.
    pub ordered: u64,
    /// An event of a key that came after a later one which another node took in or settled: allowed, since nodes
    /// settle each in its own time.
    pub overtaken_across_nodes: u64,
}

impl Findings {
    pub fn violations(&self) -> Vec<(&'static str, Vec<String>)> {
        let beyond = self.repeats.saturating_sub(self.repeats_allowed);
        let repeats = if beyond > 0 {
            vec![format!("{} repeats, of which faults explain {}", self.repeats, self.repeats_allowed)]
        } else {
            Vec::new()
        };
        let all = [
            ("lost", self.lost.clone()),
            ("doubled effects", self.doubled.clone()),
            ("invented", self.invented.clone()),
            ("stale writes", self.stale.clone()),
            ("disordered", self.disordered.clone()),
            ("wrongly buried", self.buried.clone()),
            ("unfinished", self.left.clone()),
            ("unexplained repeats", repeats),
        ];
        all.into_iter().filter(|(_, examples)| !examples.is_empty()).collect()
    }
}

/// All that came of a torture.
#[derive(Debug)]
pub struct TortureVerdict {
    pub seed: u64,
    pub lasted: Duration,
    /// How often each fault struck, and how long until events were acknowledged again.
    pub faults: Vec<(TortureFault, u64, Times)>,
    /// From a kill, or the last fault after it, until work the killed node had in hand was taken up again.
    pub orphans: Times,
    /// Its limit.
    pub orphans_within: Duration,
    /// Nodes that ended though nobody ended them: which, when, and their last words.
    pub deaths: Vec<String>,
    /// What did not recover by itself when all faults were over.
    pub stuck: Vec<String>,
    pub notes: Vec<String>,
    pub answers: String,
    pub forgeries: u64,
    pub drained_in: Option<Duration>,
    pub integrity: String,
    pub findings: Findings,
    /// Kept for inspection when something is wrong.
    pub dir: PathBuf,
}

/// A few durations.
#[derive(Clone, Debug, Default)]
pub struct Times(pub Vec<Duration>);

impl Times {
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = ((sorted.len() as f64 * quantile) as usize).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied()
    }

    pub fn max(&self) -> Option<Duration> {
        self.0.iter().max().copied()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |time: Option<Duration>| time.map_or("-".into(), |time| format!("{:.2} s", time.as_secs_f64()));
        write!(
            f,
            "p50 {}, p99 {}, max {}",
            text(self.quantile(0.5)),
            text(self.quantile(0.99)),
            text(self.max())
        )
    }
}

impl TortureVerdict {
    /// What is wrong, each with examples; empty when nothing is.
    pub fn violations(&self) -> Vec<String> {
        let mut wrong: Vec<String> = self
            .findings
            .violations()
            .into_iter()
            .map(|(kind, examples)| {
                let mut text = format!("{kind}: {}", examples.len());
                for example in examples.iter().take(SHOWN) {
                    write!(text, "\n    {example}").expect("a string takes everything");
                }
                text
            })
            .collect();
        wrong.extend(self.stuck.iter().map(|stuck| format!("stuck: {stuck}")));
        if !self.deaths.is_empty() {
            let shown: Vec<_> =
                self.deaths.iter().take(SHOWN).map(|death| format!("\n    {death}")).collect();
            wrong.push(format!("ended by themselves: {}{}", self.deaths.len(), shown.concat()));
        }
        if let Some(longest) = self.orphans.max().filter(|longest| *longest > self.orphans_within) {
            let late = self.orphans.0.iter().filter(|time| **time > self.orphans_within).count();
            let (longest, limit) = (longest.as_secs_f64(), self.orphans_within.as_secs_f64());
            wrong
                .push(format!("orphans: {late} waited longer than {limit:.0} s, the longest {longest:.2} s"));
        }
        if self.integrity != "ok" {
            wrong.push(format!("integrity: {}", self.integrity));
        }
        if self.findings.acknowledged == 0 {
            wrong.push("nothing was acknowledged: the torture tried nothing".into());
        }
        wrong
    }
}

impl fmt::Display for TortureVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let findings = &self.findings;
        let mut line = |name: &str, text: String| writeln!(f, "{name:<22} {text}");
        line("seed", self.seed.to_string())?;
        line("lasted", format!("{:.0} s", self.lasted.as_secs_f64()))?;
        for (fault, times, recovery) in &self.faults {
            line(
                &format!("fault {}", fault.name()),
                format!("{times} times; acknowledged again: {recovery}"),
            )?;
        }
        let (jobs, limit) = (self.orphans.0.len(), self.orphans_within.as_secs_f64());
        line("orphans taken up", format!("{} ({jobs} jobs; limit {limit:.0} s)", self.orphans))?;
        line("ended by themselves", self.deaths.len().to_string())?;
        line("answers", self.answers.clone())?;
        line("forgeries", format!("{} sent", self.forgeries))?;
        let drained =
            self.drained_in.map_or("not in time".into(), |time| format!("{:.1} s", time.as_secs_f64()));
        line("drained in", drained)?;
        line("acknowledged", thousands(findings.acknowledged))?;
        line("stored", thousands(findings.stored))?;
        line("effects", thousands(findings.effects))?;
        line("lost", findings.lost.len().to_string())?;
        line("doubled effects", findings.doubled.len().to_string())?;
        line("invented", findings.invented.len().to_string())?;
        line("stale writes", findings.stale.len().to_string())?;
        line("wrongly buried", findings.buried.len().to_string())?;
        line("unfinished", findings.left.len().to_string())?;
        line("disordered", format!("{} of {}", findings.disordered.len(), thousands(findings.ordered)))?;
        line("overtaken across nodes", findings.overtaken_across_nodes.to_string())?;
        let bound =
            format!("{} (bound: {} leased at kills and pauses)", findings.repeats, findings.repeats_allowed);
        line("repeats by faults", bound)?;
        line("dropped by the app", findings.repeats_of_drops.to_string())?;
        line("integrity", self.integrity.clone())?;
        for note in &self.notes {
            line("note", note.clone())?;
        }
        let wrong = self.violations();
        if wrong.is_empty() {
            return write!(f, "all promises kept");
        }
        for violation in wrong {
            writeln!(f, "VIOLATION {violation}")?;
        }
        write!(f, "everything is kept in {}; replay with --seed {}", self.dir.display(), self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_times_are_some_of_them() {
        assert_eq!(Times::default().quantile(0.5), None);
        let times = Times([5, 1, 3].map(Duration::from_secs).to_vec());
        assert_eq!(times.quantile(0.5), Some(Duration::from_secs(3)));
        assert_eq!((times.quantile(0.99), times.max()), (times.max(), Some(Duration::from_secs(5))));
        assert_eq!(times.to_string(), "p50 3.00 s, p99 5.00 s, max 5.00 s");
    }

    fn verdict(orphans: Vec<Duration>) -> TortureVerdict {
        TortureVerdict {
            seed: 1,
            lasted: Duration::ZERO,
            faults: Vec::new(),
            orphans: Times(orphans),
            orphans_within: Duration::from_secs(12),
            deaths: Vec::new(),
            stuck: Vec::new(),
            notes: Vec::new(),
            answers: String::new(),
            forgeries: 0,
            drained_in: None,
            integrity: "ok".into(),
            findings: Findings { acknowledged: 1, ..Findings::default() },
            dir: PathBuf::new(),
        }
    }

    #[test]
    fn r3_a_node_that_ended_by_itself_is_a_violation() {
        let deaths = vec!["node 1 after 8 s, exit status: 1: error: the store is not available".to_owned()];
        let wrong = TortureVerdict { deaths, ..verdict(Vec::new()) }.violations();
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].starts_with("ended by themselves: 1\n    node 1 after 8 s"), "{wrong:?}");
    }

    #[test]
    fn r2_orphans_that_wait_beyond_their_limit_are_a_violation() {
        let in_time = verdict(vec![Duration::from_secs(3), Duration::from_secs(12)]);
        assert!(in_time.violations().is_empty(), "{in_time}");
        assert!(in_time.to_string().contains("max 12.00 s (2 jobs; limit 12 s)"), "{in_time}");
        let late = verdict(vec![Duration::from_secs(3), Duration::from_millis(12_500)]).violations();
        assert_eq!(late, ["orphans: 1 waited longer than 12 s, the longest 12.50 s"]);
    }
}
