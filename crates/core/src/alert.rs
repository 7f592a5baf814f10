//! When operators are called: what is wrong now, for how long, and when it is told. Pure: a reading, a state and the time
//! give the next state and what is to be told.
//!
//! [`table`] has every alert with its window, sample, hold and words; [`read`] turns figures into readings; [`unusual`] and
//! [`silent`] know what is usual; [`announce`] puts a step into words. It knows no store and no channel.

pub mod announce;
pub mod policy;
pub mod read;
pub mod silent;
pub mod table;
pub mod unusual;
pub mod usual;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::state::{Key, Kind};
use crate::time::{DAY_MS, HOUR_MS, Time};
pub use policy::AlertPolicy;
pub use table::{ALERTS, AlertName, AlertRule};

/// Told again after so long while it fires and grew, and after so long in any case.
const REPEAT_GROWN_MS: i64 = 4 * HOUR_MS;
const REPEAT_MS: i64 = DAY_MS;

/// What is known of one alert and subject now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertReading {
    pub alert: AlertName,
    /// What it is about: a lane, a source, a channel; empty for the whole installation.
    pub subject: String,
    pub sight: Sight,
    /// How bad it is: grows with it.
    pub measure: i64,
    /// The same and the limit, as people read them.
    pub value: String,
    pub threshold: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Beyond its threshold.
    Over,
    /// Neither beyond its threshold nor below the one at which it clears.
    Between,
    Clear,
    /// Too few samples to say anything: the state stays as it is.
    TooLittle,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertPhase {
    #[default]
    Ok,
    /// Beyond its threshold, for less than its hold time.
    Pending,
    Firing,
}

impl AlertPhase {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Pending => "pending",
            Self::Firing => "firing",
        }
    }
}

/// What is remembered of one alert and subject. What a newer version adds is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertState {
    pub phase: AlertPhase,
    /// Incidents so far: each has its number.
    pub incidents: u64,
    /// Since when it is in its phase.
    pub since: Option<Time>,
    /// While it fires: since when it looks well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear_since: Option<Time>,
    /// When operators were last told of this incident, how often, and how bad it was then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Time>,
    pub told: u64,
    pub told_measure: i64,
    pub measure: i64,
    pub value: String,
    pub threshold: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<AlertSilence>,
    #[serde(flatten)]
    pub newer: BTreeMap<String, Value>,
}

/// Nobody is told until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertSilence {
    pub until: Time,
    pub by: String,
    pub reason: String,
}

/// How long it must be so before it fires, and before it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertPace {
    pub hold_ms: i64,
    pub clear_ms: i64,
    /// Told again as soon as it is twice as bad; otherwise after hours, if it grew.
    pub repeats_when_doubled: bool,
}

/// What is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertStep {
    Fired,
    Repeated,
    Resolved,
}

impl AlertState {
    pub fn key(alert: AlertName, subject: &str) -> Key {
        Key::new(Kind::Alert, alert_id(alert, subject))
    }

    pub fn is_silenced(&self, now: Time) -> bool {
        self.silence.as_ref().is_some_and(|silence| now < silence.until)
    }

    /// The next state, and what is to be told.
    #[must_use]
    pub fn step(&self, reading: &AlertReading, pace: AlertPace, now: Time) -> (Self, Option<AlertStep>) {
        let mut next = self.clone();
        next.silence.take_if(|silence| silence.until <= now);
        if reading.sight == Sight::TooLittle {
            let told = next.tell(pace, now);
            return (next, told);
        }
        if next.phase != AlertPhase::Ok || reading.sight == Sight::Over {
            next.measure = reading.measure;
            next.value.clone_from(&reading.value);
            next.threshold.clone_from(&reading.threshold);
        }
        let told = match (next.phase, reading.sight) {
            (_, Sight::TooLittle) | (AlertPhase::Ok, Sight::Between | Sight::Clear) => None,
            (AlertPhase::Pending, Sight::Between | Sight::Clear) => {
                next.phase = AlertPhase::Ok;
                next.since = Some(now);
                None
            }
            (AlertPhase::Ok, Sight::Over) => {
                next.phase = AlertPhase::Pending;
                next.since = Some(now);
                next.fire_after(pace, now)
            }
            (AlertPhase::Pending, Sight::Over) => next.fire_after(pace, now),
            (AlertPhase::Firing, Sight::Over | Sight::Between) => {
                next.clear_since = None;
                next.tell(pace, now)
            }
            (AlertPhase::Firing, Sight::Clear) => next.resolve_after(pace, now),
        };
        (next, told)
    }

    fn fire_after(&mut self, pace: AlertPace, now: Time) -> Option<AlertStep> {
        let lasts_ms = self.since.map_or(0, |since| now.ms() - since.ms());
        if lasts_ms < pace.hold_ms {
            return None;
        }
        self.phase = AlertPhase::Firing;
        self.incidents += 1;
        (self.told_at, self.told, self.clear_since) = (None, 0, None);
        self.tell(pace, now)
    }

    /// Of an incident that fires: told the first time, or again.
    fn tell(&mut self, pace: AlertPace, now: Time) -> Option<AlertStep> {
        if self.phase != AlertPhase::Firing || self.is_silenced(now) {
            return None;
        }
        let step = match self.told_at {
            None => AlertStep::Fired,
            Some(told_at) => {
                let ago_ms = now.ms() - told_at.ms();
                let has_grown = if pace.repeats_when_doubled {
                    self.measure >= self.told_measure.saturating_mul(2)
                } else {
                    self.measure > self.told_measure && ago_ms >= REPEAT_GROWN_MS
                };
                if !has_grown && ago_ms < REPEAT_MS {
                    return None;
                }
                AlertStep::Repeated
            }
        };
        self.told_at = Some(now);
        self.told += 1;
        self.told_measure = self.measure;
        Some(step)
    }

    fn resolve_after(&mut self, pace: AlertPace, now: Time) -> Option<AlertStep> {
        let since = *self.clear_since.get_or_insert(now);
        if now.ms() - since.ms() < pace.clear_ms {
            return self.tell(pace, now);
        }
        self.phase = AlertPhase::Ok;
        self.since = Some(now);
        self.clear_since = None;
        // Of what nobody heard, nobody hears that it is over.
        self.told_at.take().map(|_| AlertStep::Resolved)
    }
}

/// `NAME/SUBJECT`, or only the name.
pub fn alert_id(alert: AlertName, subject: &str) -> String {
    if subject.is_empty() { alert.name().to_owned() } else { format!("{}/{subject}", alert.name()) }
}

/// The alert and the subject that an id names.
pub fn parse_alert_id(id: &str) -> Option<(AlertName, &str)> {
    let (name, subject) = id.split_once('/').unwrap_or((id, ""));
    AlertName::parse(name).map(|alert| (alert, subject))
}

/// A state that was looked at and changed, with what is to be told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated {
    pub alert: AlertName,
    pub subject: String,
    pub state: AlertState,
    pub step: Option<AlertStep>,
}

/// Looks at everything once: those states that change, and what is told. What is no longer read of is clear, but for those
/// alerts of which nothing could be read now. A silence of an alert without a subject is one of all its subjects.
pub fn evaluate(
    states: &BTreeMap<(AlertName, String), AlertState>,
    mut readings: Vec<AlertReading>,
    unread: &[AlertName],
    policy: &AlertPolicy,
    reconcile_every_ms: i64,
    now: Time,
) -> Vec<Evaluated> {
    readings.retain(|reading| !policy.is_off(reading.alert, &reading.subject));
    for (alert, subject) in states.keys().filter(|(alert, _)| !unread.contains(alert)) {
        if !readings.iter().any(|one| one.alert == *alert && one.subject == *subject) {
            readings.push(AlertReading {
                alert: *alert,
                subject: subject.clone(),
                sight: Sight::Clear,
                measure: 0,
                value: "–".into(),
                threshold: policy.threshold(*alert),
            });
        }
    }
    let of = |alert: AlertName, subject: &str| states.get(&(alert, subject.to_owned()));
    let all = readings.into_iter().filter_map(|reading| {
        let before = of(reading.alert, &reading.subject).cloned().unwrap_or_default();
        let general = of(reading.alert, "").and_then(|state| state.silence.clone());
        let mut silenced = before.clone();
        if general.as_ref().map(|one| one.until) > silenced.silence.as_ref().map(|one| one.until) {
            silenced.silence = general;
        }
        let pace = policy.pace(reading.alert.rule(), reconcile_every_ms);
        let (state, step) = silenced.step(&reading, pace, now);
        let AlertReading { alert, subject, .. } = reading;
        (state != before).then_some(Evaluated { alert, subject, state, step })
    });
    all.collect()
}

#[cfg(test)]
mod tests;
