//! What Sekisho promises to reach, and whether it does: each figure against its target, from the meters of all nodes.
//!
//! Too few samples are no success: then nothing is said.

use crate::meter::Meter;

/// Shares, in millionths.
pub const MILLION: u64 = 1_000_000;

/// What is to be reached, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetPolicy {
    pub publish: u64,
    pub worker: u64,
    /// At most.
    pub retry: u64,
    /// At most, as a number.
    pub dead_letters: u64,
    pub mail: u64,
}

impl Default for TargetPolicy {
    fn default() -> Self {
        Self { publish: 999_000, worker: 995_000, retry: 10_000, dead_letters: 0, mail: 980_000 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetName {
    Publish,
    Worker,
    Retry,
    DeadLetters,
    Mail,
}

impl TargetName {
    pub const ALL: [Self; 5] = [Self::Publish, Self::Worker, Self::Retry, Self::DeadLetters, Self::Mail];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Worker => "worker",
            Self::Retry => "retry",
            Self::DeadLetters => "dead_letters",
            Self::Mail => "mail",
        }
    }

    /// What is counted, in English and in Japanese.
    pub const fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Publish => ("Events stored when they came", "受信イベントの保存成功率"),
            Self::Worker => ("Runs of workers that ended well", "処理の成功率"),
            Self::Retry => ("Runs that were retries", "再試行の割合"),
            Self::DeadLetters => ("New dead letters", "新しいデッドレター"),
            Self::Mail => ("Mails that the mail server took", "メールの送信成功率"),
        }
    }

    /// Where what failed is shown.
    pub const fn page(self) -> &'static str {
        match self {
            Self::Publish => "/console/rejections",
            Self::Worker | Self::DeadLetters | Self::Retry => "/console/dead",
            Self::Mail => "/console/notices?status=failed",
        }
    }

    /// Fewer samples say nothing of a share.
    const fn sample(self) -> u64 {
        match self {
            Self::Publish | Self::Worker | Self::Retry => 100,
            Self::Mail => 20,
            // A number, no share: none at all is good news if anything ran.
            Self::DeadLetters => 1,
        }
    }

    pub const fn wanted(self, policy: &TargetPolicy) -> u64 {
        match self {
            Self::Publish => policy.publish,
            Self::Worker => policy.worker,
            Self::Retry => policy.retry,
            Self::DeadLetters => policy.dead_letters,
            Self::Mail => policy.mail,
        }
    }

    /// Whether the figure should be small.
    pub const fn is_limit(self) -> bool {
        matches!(self, Self::Retry | Self::DeadLetters)
    }

    /// How it stands over the time that a meter covers.
    pub fn figure(self, meter: &Meter, policy: &TargetPolicy) -> TargetFigure {
        let (worker, lanes) = (meter.worker(), meter.all_lanes());
        let (bad, all) = match self {
            Self::Publish => (meter.published.bad, meter.published.all()),
            Self::Worker => (worker.failed, worker.runs()),
            Self::Retry => (lanes.retries, lanes.runs()),
            Self::DeadLetters => (lanes.dead, lanes.runs()),
            Self::Mail => (meter.all_mail().bad, meter.all_mail().all()),
        };
        let wanted = self.wanted(policy);
        let allowed = match self {
            Self::Publish | Self::Worker | Self::Mail => MILLION - wanted.min(MILLION),
            Self::Retry | Self::DeadLetters => wanted,
        };
        let verdict = if all < self.sample() {
            TargetVerdict::TooLittle
        } else if self == Self::DeadLetters {
            if bad <= allowed { TargetVerdict::Met } else { TargetVerdict::Missed }
        } else if u128::from(bad) * u128::from(MILLION) < u128::from(allowed) * u128::from(all)
            || (bad == 0 && allowed == 0)
            // The budget may be spent to its last part; a share of retries must stay below its limit.
            || (!self.is_limit() && u128::from(bad) * u128::from(MILLION) == u128::from(allowed) * u128::from(all))
        {
            TargetVerdict::Met
        } else {
            TargetVerdict::Missed
        };
        TargetFigure { bad, all, allowed, verdict }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetVerdict {
    Met,
    Missed,
    TooLittle,
}

impl TargetVerdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::TooLittle => "too_little",
        }
    }
}

/// What was counted over some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetFigure {
    pub bad: u64,
    pub all: u64,
    /// How many of a million may be bad; of dead letters, how many.
    pub allowed: u64,
    pub verdict: TargetVerdict,
}

impl TargetFigure {
    /// Of a million, how many were bad.
    pub fn share(&self) -> Option<u64> {
        (self.all > 0).then(|| (u128::from(self.bad) * u128::from(MILLION) / u128::from(self.all)) as u64)
    }

    /// How much of what may go wrong went wrong, in percent; beyond 100 the target is missed.
    pub fn budget_spent(&self) -> Option<u64> {
        let share = self.share()?;
        (self.allowed > 0).then(|| share * 100 / self.allowed)
    }
}

/// A share as people read it: `99.95 %`.
pub fn percent(millionths: u64) -> String {
    let (whole, rest) = (millionths / 10_000, millionths % 10_000);
    let text = format!("{whole}.{rest:04}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::meter::{LaneMeter, MeterTally};

    fn published(good: u64, bad: u64) -> Meter {
        Meter { published: MeterTally { good, bad, bad_in_a_row: 0 }, ..Meter::default() }
    }

    #[test]
    fn h3_too_few_samples_are_never_good_news() {
        let policy = TargetPolicy::default();
        let verdict = |meter: &Meter, target: TargetName| target.figure(meter, &policy).verdict;
        for target in TargetName::ALL {
            assert_eq!(verdict(&Meter::default(), target), TargetVerdict::TooLittle, "{}", target.name());
        }
        assert_eq!(verdict(&published(99, 0), TargetName::Publish), TargetVerdict::TooLittle);
        assert_eq!(verdict(&published(100, 0), TargetName::Publish), TargetVerdict::Met);
    }

    #[test]
    fn h3_a_target_is_met_up_to_its_last_part_and_a_limit_stays_below() {
        let policy = TargetPolicy::default();
        for (good, bad, met) in [(999, 1, true), (998, 2, false), (1_000, 0, true)] {
            let figure = TargetName::Publish.figure(&published(good, bad), &policy);
            assert_eq!(figure.verdict == TargetVerdict::Met, met, "{good} {bad}");
        }
        let runs = |retries, dead| {
            let lane = LaneMeter { good: 1_000 - dead, failed: dead, retries, dead };
            Meter { lanes: BTreeMap::from([("settle".into(), lane)]), ..Meter::default() }
        };
        for (retries, met) in [(9, true), (10, false)] {
            let figure = TargetName::Retry.figure(&runs(retries, 0), &policy);
            assert_eq!(figure.verdict == TargetVerdict::Met, met, "{retries}");
        }
        assert_eq!(TargetName::DeadLetters.figure(&runs(0, 0), &policy).verdict, TargetVerdict::Met);
        assert_eq!(TargetName::DeadLetters.figure(&runs(0, 1), &policy).verdict, TargetVerdict::Missed);
        let half = TargetName::Publish.figure(&published(1_999, 1), &policy);
        assert_eq!((half.share(), half.budget_spent()), (Some(500), Some(50)));
    }

    #[test]
    fn h3_shares_are_read_as_people_write_them() {
        for (millionths, text) in [(999_000, "99.9 %"), (1_000_000, "100 %"), (5_000, "0.5 %"), (0, "0 %")] {
            assert_eq!(percent(millionths), text);
        }
    }
}
