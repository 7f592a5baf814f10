//! What the figures say of every alert: each subject beyond its threshold, clear, between the two, or not to be judged.

use std::collections::{BTreeMap, BTreeSet};

use super::policy::{AlertPolicy, duration};
use super::silent::SilentBecause;
use super::table::AlertName;
use super::unusual::HourScore;
use super::{AlertReading, Sight};
use crate::meter::{LatencyCounts, Meter, MeterLog, MeterTally};
use crate::reconcile::SourceRegister;
use crate::target::{MILLION, percent};
use crate::time::{DAY_MS, Time};

/// Everything that is known now.
#[derive(Clone, Debug)]
pub struct Sighting<'s> {
    pub now: Time,
    pub meters: &'s MeterLog,
    pub work: Vec<LaneWork>,
    pub dead: BTreeMap<String, DeadCount>,
    /// Lanes whose breaker is open.
    pub open: BTreeSet<String>,
    pub sources: Vec<SourceSight>,
    /// Of the closed hour; `None` while it was not counted yet.
    pub types: Option<&'s [TypeScore]>,
    /// Lanes of the configured routes, and names of the channels by mail.
    pub routes: Vec<String>,
    pub mail: Vec<String>,
    pub reconcile_every_ms: i64,
}

/// The unfinished work of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneWork {
    pub lane: String,
    pub running: i64,
    /// When the oldest that no node works on is due.
    pub oldest_due: Option<Time>,
}

/// The dead letters of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadCount {
    pub count: usize,
    pub oldest: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SourceSight {
    pub name: String,
    pub silent: Option<SilentBecause>,
    /// Whether anything came by itself since Sekisho listens without a break.
    pub is_heard: bool,
    /// What comparing it with its provider found, where that is done.
    pub register: Option<SourceRegister>,
}

/// How the closed hour of one type looks.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeScore {
    /// `SOURCE/TYPE`.
    pub subject: String,
    pub score: HourScore,
    pub is_unusual: bool,
}

/// A number as people read it: none of these reaches what a float can't hold.
fn whole(number: f64) -> i64 {
    number.round() as i64
}

/// Of every alert and every subject that is known.
pub fn read(sighting: &Sighting<'_>, policy: &AlertPolicy) -> Vec<AlertReading> {
    let reader = Reader { sighting, policy };
    let mut all = vec![reader.publish_failures(), reader.dead_letters_old()];
    all.extend(reader.worker_errors());
    all.extend(reader.dead_letters());
    all.extend(reader.slow());
    for source in &sighting.sources {
        all.push(reader.rejections(&source.name));
        all.push(reader.wrong_secret(&source.name));
        all.push(reader.silent(source));
        all.extend(reader.reconciliation(source));
    }
    all.extend(sighting.mail.iter().map(|channel| reader.mail_failures(channel)));
    all.extend(sighting.work.iter().flat_map(|lane| [reader.late(lane), reader.stalled(lane)]));
    all.extend(
        sighting.open.iter().map(|lane| reader.is(AlertName::DestinationDown, lane, 1, "open".into())),
    );
    all.extend(reader.unusual());
    all
}

/// Alerts of which nothing can be said now: their states stay.
pub fn unread(sighting: &Sighting<'_>) -> Vec<AlertName> {
    if sighting.types.is_none() { vec![AlertName::Unusual] } else { Vec::new() }
}

struct Reader<'r> {
    sighting: &'r Sighting<'r>,
    policy: &'r AlertPolicy,
}

impl Reader<'_> {
    fn of(&self, alert: AlertName, subject: &str, sight: Sight, measure: i64, value: String) -> AlertReading {
        let threshold = self.policy.threshold(alert);
        AlertReading { alert, subject: subject.to_owned(), sight, measure, value, threshold }
    }

    /// Beyond its threshold, as it is listed.
    fn is(&self, alert: AlertName, subject: &str, measure: i64, value: String) -> AlertReading {
        self.of(alert, subject, Sight::Over, measure, value)
    }

    fn clear(&self, alert: AlertName, subject: &str) -> AlertReading {
        self.of(alert, subject, Sight::Clear, 0, "0".into())
    }

    fn window(&self, ms: i64) -> Meter {
        self.sighting.meters.periods_since(self.sighting.now.plus_ms(-self.policy.scaled(ms)))
    }

    /// A share of bad ones, over the shortest window that has enough of them.
    fn share(
        &self,
        alert: AlertName,
        subject: &str,
        limit: u64,
        of: impl Fn(&Meter) -> (u64, u64),
    ) -> AlertReading {
        let rule = alert.rule();
        let counts = rule.windows.iter().map(|(window, sample)| (of(&self.window(*window)), *sample));
        let Some(((bad, all), _)) = counts.into_iter().find(|((_, all), sample)| *all >= (*sample).max(1))
        else {
            return self.of(alert, subject, Sight::TooLittle, 0, String::new());
        };
        let share = u128::from(bad) * u128::from(MILLION) * 1_000;
        let limit = u128::from(limit) * u128::from(all);
        let sight = if share > limit * 1_000 {
            Sight::Over
        } else if share < limit * u128::from(rule.clear_below) || bad == 0 {
            Sight::Clear
        } else {
            Sight::Between
        };
        let millionths = bad * MILLION / all;
        self.of(alert, subject, sight, millionths as i64, format!("{} ({bad} / {all})", percent(millionths)))
    }

    fn publish_failures(&self) -> AlertReading {
        self.share(AlertName::PublishFailures, "", self.policy.publish_failures, |meter| {
            (meter.published.bad, meter.published.all())
        })
    }

    fn worker_errors(&self) -> Vec<AlertReading> {
        let (alert, limit) = (AlertName::WorkerErrors, self.policy.worker_errors);
        let inside =
            self.share(alert, "inside", limit, |meter| (meter.inside().failed, meter.inside().runs()));
        let route = |lane: &String| {
            self.share(alert, lane, limit, |meter| (meter.lane(lane).failed, meter.lane(lane).runs()))
        };
        self.sighting.routes.iter().map(route).chain([inside]).collect()
    }

    fn dead_letters(&self) -> Vec<AlertReading> {
        let over = |(lane, dead): (&String, &DeadCount)| {
            let sight = if dead.count as u64 > self.policy.dead_letters { Sight::Over } else { Sight::Clear };
            self.of(AlertName::DeadLetters, lane, sight, dead.count as i64, dead.count.to_string())
        };
        self.sighting.dead.iter().map(over).collect()
    }

    fn dead_letters_old(&self) -> AlertReading {
        let alert = AlertName::DeadLettersOld;
        let Some(oldest) = self.sighting.dead.values().map(|dead| dead.oldest).min() else {
            return self.clear(alert, "");
        };
        let age_ms = self.sighting.now.ms() - oldest.ms();
        let sight = if age_ms > self.policy.dead_letters_old_ms { Sight::Over } else { Sight::Clear };
        self.of(alert, "", sight, age_ms, duration(age_ms))
    }

    fn slow(&self) -> Vec<AlertReading> {
        let rule = AlertName::Slow.rule();
        let (window, sample) = rule.windows[0];
        let meter = self.window(window);
        let stage = |subject: &str, times: &LatencyCounts| {
            let (all, limit) = (times.all(), self.policy.slow_ms);
            let is_beyond = |limit_ms: i64| times.above(limit_ms) * 100 > all * 5;
            let clear_ms = limit * rule.clear_below as i64 / 1_000;
            let sight = match all {
                all if all < sample => Sight::TooLittle,
                _ if is_beyond(limit) => Sight::Over,
                _ if is_beyond(clear_ms) => Sight::Between,
                _ => Sight::Clear,
            };
            let p95 = times.p95_ms();
            let value = p95.map_or_else(|| "p95 > 1h".to_owned(), |ms| format!("p95 ≤ {}", duration(ms)));
            self.of(AlertName::Slow, subject, sight, p95.unwrap_or(i64::MAX), value)
        };
        vec![stage("settled", &meter.settled), stage("delivered", &meter.delivered)]
    }

    fn rejections(&self, source: &str) -> AlertReading {
        let rule = AlertName::Rejections.rule();
        let (window, _) = rule.windows[0];
        let refused = self.window(window).source(source).refused;
        let day = self.sighting.meters.since(self.sighting.now.plus_ms(-self.policy.scaled(DAY_MS)));
        let windows = (DAY_MS / window) as u64;
        // Five times the mean and one, kept whole by multiplying both sides.
        let usual = 5 * (day.source(source).refused + windows);
        let limit = (self.policy.rejections * windows).max(usual);
        let sight = match refused * windows {
            refused if refused >= limit => Sight::Over,
            refused if refused * 1_000 < limit * rule.clear_below => Sight::Clear,
            _ => Sight::Between,
        };
        self.of(AlertName::Rejections, source, sight, refused as i64, refused.to_string())
    }

    fn wrong_secret(&self, source: &str) -> AlertReading {
        let (window, _) = AlertName::WrongSecret.rule().windows[0];
        let meter = self.window(window).source(source);
        let sight = match meter.accepted {
            0 if meter.wrong_signature >= self.policy.wrong_secret => Sight::Over,
            // Only one that is right shows that it was mended.
            0 => Sight::Between,
            _ => Sight::Clear,
        };
        let wrong = meter.wrong_signature;
        self.of(AlertName::WrongSecret, source, sight, wrong as i64, wrong.to_string())
    }

    fn silent(&self, source: &SourceSight) -> AlertReading {
        let alert = AlertName::Silent;
        match source.silent {
            Some(SilentBecause::Deaf) => self.is(
                alert,
                &source.name,
                i64::MAX,
                "the provider lists newer events that never came".into(),
            ),
            Some(SilentBecause::Quiet { ms }) => self.is(alert, &source.name, ms, duration(ms)),
            None if source.is_heard => self.clear(alert, &source.name),
            None => self.of(alert, &source.name, Sight::Between, 0, "–".into()),
        }
    }

    fn reconciliation(&self, source: &SourceSight) -> Option<AlertReading> {
        let (alert, register) = (AlertName::Reconciliation, source.register.as_ref()?);
        let age_ms = self.sighting.now.ms() - register.last_good.or(register.born)?.ms();
        let has_gap = register.last.missing > register.last.closed;
        // Held for one interval more.
        let is_stale = age_ms > self.sighting.reconcile_every_ms * (self.policy.reconciliation - 1).max(1);
        let open = register.last.missing.saturating_sub(register.last.closed);
        Some(if has_gap {
            self.is(alert, &source.name, open as i64, format!("{open} missing"))
        } else if is_stale {
            self.is(alert, &source.name, age_ms, duration(age_ms))
        } else {
            self.clear(alert, &source.name)
        })
    }

    fn mail_failures(&self, channel: &str) -> AlertReading {
        const IN_A_ROW: u64 = 5;
        let rule = AlertName::MailFailures.rule();
        let (window, sample) = rule.windows[0];
        let tally = self.window(window).mail.get(channel).copied().unwrap_or_default();
        let MeterTally { bad, bad_in_a_row, .. } = tally;
        let all = tally.all();
        let by_share = self.share(AlertName::MailFailures, channel, self.policy.mail_failures, |meter| {
            let tally = meter.mail.get(channel).copied().unwrap_or_default();
            (tally.bad, tally.all())
        });
        let sight = match by_share.sight {
            _ if bad_in_a_row >= IN_A_ROW => Sight::Over,
            Sight::TooLittle if all == 0 || all >= sample => Sight::TooLittle,
            Sight::TooLittle if bad_in_a_row == 0 => Sight::Clear,
            Sight::TooLittle => Sight::Between,
            Sight::Clear if bad_in_a_row > 0 => Sight::Between,
            sight => sight,
        };
        self.of(AlertName::MailFailures, channel, sight, bad as i64, format!("{bad} / {all}"))
    }

    fn late(&self, work: &LaneWork) -> AlertReading {
        let (alert, limit_ms) = (AlertName::Late, self.policy.late_ms);
        let age_ms = work.oldest_due.map_or(0, |due| self.sighting.now.ms() - due.ms());
        let clear_ms = limit_ms * alert.rule().clear_below as i64 / 1_000;
        let sight = match age_ms {
            // What waits for a destination that is down is told as that.
            _ if self.sighting.open.contains(&work.lane) => Sight::Clear,
            age_ms if age_ms > limit_ms => Sight::Over,
            age_ms if age_ms < clear_ms => Sight::Clear,
            _ => Sight::Between,
        };
        self.of(alert, &work.lane, sight, age_ms, duration(age_ms.max(0)))
    }

    fn stalled(&self, work: &LaneWork) -> AlertReading {
        let now = self.sighting.now;
        let ended =
            self.sighting.meters.periods_since(now.plus_ms(-self.policy.stalled_ms)).lane(&work.lane).runs();
        let waits = work.oldest_due.is_some_and(|due| due <= now);
        let sight = if work.running > 0 && waits && ended == 0 { Sight::Over } else { Sight::Clear };
        self.of(
            AlertName::Stalled,
            &work.lane,
            sight,
            work.running,
            format!("{} running, {ended} ended", work.running),
        )
    }

    fn unusual(&self) -> Vec<AlertReading> {
        let each = |one: &TypeScore| {
            let HourScore { count, expected, z, .. } = one.score;
            let sight = if one.is_unusual { Sight::Over } else { Sight::Clear };
            let value = format!("{} / h, usually {} ({} σ)", whole(count), whole(expected), whole(z));
            self.of(AlertName::Unusual, &one.subject, sight, whole(z.abs() * 100.0), value)
        };
        self.sighting.types.unwrap_or_default().iter().map(each).collect()
    }
}

#[cfg(test)]
mod tests;
