//! The thresholds of all alerts, as the operator set them.

use super::table::{AlertName, AlertRule};
use super::{AlertPace, alert_id};
use crate::pattern::Pattern;
use crate::target::percent;
use crate::time::{DAY_MS, HOUR_MS};

/// When operators hear that nothing comes from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silent {
    /// When chance does not explain it.
    Auto,
    /// When nothing came for so long.
    AfterMs(i64),
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertPolicy {
    /// How often it is looked.
    pub every_ms: i64,
    /// Windows, holds and times of recovery are divided by this.
    pub divisor: i64,
    /// `NAME/SUBJECT` that are never looked at.
    pub off: Vec<Pattern>,
    /// In millionths.
    pub publish_failures: u64,
    pub worker_errors: u64,
    pub mail_failures: u64,
    pub dead_letters: u64,
    pub dead_letters_old_ms: i64,
    pub slow_ms: i64,
    pub rejections: u64,
    pub wrong_secret: u64,
    /// In standard deviations.
    pub unusual: u64,
    pub silent: Silent,
    pub late_ms: i64,
    pub stalled_ms: i64,
    pub destination_down_ms: i64,
    /// Intervals without a good run.
    pub reconciliation: i64,
}

impl Default for AlertPolicy {
    fn default() -> Self {
        Self {
            every_ms: 60_000,
            divisor: 1,
            off: Vec::new(),
            publish_failures: 10_000,
            worker_errors: 5_000,
            mail_failures: 20_000,
            dead_letters: 0,
            dead_letters_old_ms: DAY_MS,
            slow_ms: 10_000,
            rejections: 20,
            wrong_secret: 5,
            unusual: 5,
            silent: Silent::Auto,
            late_ms: 5 * 60_000,
            stalled_ms: 10 * 60_000,
            destination_down_ms: 5 * 60_000,
            reconciliation: 2,
        }
    }
}

impl AlertPolicy {
    pub fn is_off(&self, alert: AlertName, subject: &str) -> bool {
        let id = alert_id(alert, subject);
        self.off.iter().any(|pattern| pattern.matches(&id) || pattern.matches(alert.name()))
    }

    /// A time of the table, as short as it is wanted.
    pub fn scaled(&self, ms: i64) -> i64 {
        ms / self.divisor.max(1)
    }

    /// How long it must be so, with the interval in which sources are compared.
    pub fn pace(&self, rule: &AlertRule, reconcile_every_ms: i64) -> AlertPace {
        let hold_ms = match rule.name {
            // What is open or stands still is seen anew each time: how long it lasts is its threshold.
            AlertName::DestinationDown => self.destination_down_ms,
            AlertName::Stalled => self.stalled_ms,
            AlertName::Reconciliation => reconcile_every_ms,
            AlertName::PublishFailures
            | AlertName::WorkerErrors
            | AlertName::DeadLetters
            | AlertName::DeadLettersOld
            | AlertName::Slow
            | AlertName::Rejections
            | AlertName::WrongSecret
            | AlertName::Unusual
            | AlertName::Silent
            | AlertName::MailFailures
            | AlertName::Late => self.scaled(rule.hold_ms),
        };
        AlertPace {
            hold_ms,
            clear_ms: self.scaled(rule.clear_ms),
            repeats_when_doubled: rule.name == AlertName::DeadLetters,
        }
    }

    /// The limit as people read it.
    pub fn threshold(&self, alert: AlertName) -> String {
        match alert {
            AlertName::PublishFailures => percent(self.publish_failures),
            AlertName::WorkerErrors => percent(self.worker_errors),
            AlertName::MailFailures => percent(self.mail_failures),
            AlertName::DeadLetters => self.dead_letters.to_string(),
            AlertName::DeadLettersOld => duration(self.dead_letters_old_ms),
            AlertName::Slow => duration(self.slow_ms),
            AlertName::Rejections => self.rejections.to_string(),
            AlertName::WrongSecret => self.wrong_secret.to_string(),
            AlertName::Unusual => format!("{} σ", self.unusual),
            AlertName::Silent => match self.silent {
                Silent::Auto => "auto".into(),
                Silent::AfterMs(ms) => duration(ms),
                Silent::Off => "off".into(),
            },
            AlertName::Late => duration(self.late_ms),
            AlertName::Stalled => duration(self.stalled_ms),
            AlertName::DestinationDown => duration(self.destination_down_ms),
            AlertName::Reconciliation => self.reconciliation.to_string(),
        }
    }
}

/// A time as people read it, rounded down: `90s`, `25h`, `3d`.
pub fn duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms}ms"),
        1_000..120_000 => format!("{}s", ms / 1_000),
        120_000..7_200_000 => format!("{}m", ms / 60_000),
        7_200_000..172_800_000 => format!("{}h", ms / HOUR_MS),
        _ => format!("{}d", ms / DAY_MS),
    }
}
