//! Waiting until a day's reminders are over: a bar at a terminal, plain lines elsewhere. Ctrl-C ends the waiting and
//! nothing else; a channel that is shut, or reminders that don't get on, end it too.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sekisho_core::Time;
use tokio::signal::unix::{SignalKind, signal};

use crate::acts::RemindReport;
use crate::cli::client::{Client, Query};
use crate::cli::output::cell;
use crate::now;
use crate::types::{Channel, ReminderSummary};

use super::summaries;

/// How often it is looked, at first; and, where looking takes long, at most a part of the time.
const LOOK_EVERY: Duration = Duration::from_millis(300);
const LOOK_PART: u32 = 5;
/// So long without anything new, and nobody waits on. Longer than all tries of one mail take.
const STUCK_AFTER: Duration = Duration::from_mins(2);
/// How often a line is written where no bar can be.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Why the waiting ended.
pub enum WaitEnded {
    /// All of them are over.
    Over,
    /// Nobody wanted to wait, or could.
    Unasked,
    Interrupted,
    /// Nothing happens until somebody acts; says why.
    Stuck(String),
}

impl WaitEnded {
    pub fn is_stuck(&self) -> bool {
        match self {
            Self::Stuck(_) => true,
            Self::Over | Self::Unasked | Self::Interrupted => false,
        }
    }

    pub fn tell(&self) {
        match self {
            Self::Over | Self::Unasked => {}
            Self::Interrupted => eprintln!("waited no longer; the server goes on sending them"),
            Self::Stuck(why) => eprintln!("waited no longer: {why}"),
        }
    }
}

/// How many there are, and how many are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    total: usize,
    over: usize,
}

impl Standing {
    fn of<'s>(days: impl Iterator<Item = &'s ReminderSummary>) -> Self {
        let (total, waiting) = days.fold((0, 0), |sum, day| (sum.0 + day.total, sum.1 + day.waiting));
        Self { total, over: total.saturating_sub(waiting) }
    }
}

pub async fn wait(client: &Client, report: &RemindReport, tenant: Option<&str>) -> anyhow::Result<WaitEnded> {
    let mut interrupted = signal(SignalKind::interrupt()).context("can't hear Ctrl-C")?;
    let mut shown = Shown::new();
    let mut last = (Instant::now(), Vec::new());
    loop {
        let began = Instant::now();
        let summaries = summaries(client, &report.days, tenant).await?;
        let standing = Standing::of(summaries.iter().map(|summary| &**summary));
        shown.show(standing);
        if standing.over == standing.total {
            return Ok(WaitEnded::Over);
        }
        // A try that begins is news, too.
        let by_status: Vec<_> = summaries.iter().map(|summary| summary.by_status.clone()).collect();
        if by_status != last.1 {
            last = (Instant::now(), by_status);
        }
        let left = standing.total - standing.over;
        let quiet = last.0.elapsed();
        // A key of one tenant may not look at channels, and waits all the same.
        let channels = client.items("/v1/channels", &Query::new()).await.unwrap_or_default();
        if let Some(why) = shut(&channels, &report.channel, now()) {
            return Ok(WaitEnded::Stuck(format!("{left} wait, and {why}")));
        }
        if quiet > STUCK_AFTER {
            return Ok(WaitEnded::Stuck(format!(
                "{left} wait, and nothing happened for {} s; `sekisho channels` and `sekisho doctor` may say why",
                quiet.as_secs()
            )));
        }
        let pause = LOOK_EVERY.max(began.elapsed() * LOOK_PART);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = interrupted.recv() => return Ok(WaitEnded::Interrupted),
        }
    }
}

/// Why nothing goes by the channel for longer than anybody would wait, if that is so.
fn shut(channels: &[Channel], name: &str, now: Time) -> Option<String> {
    let channel = channels.iter().find(|channel| channel.name == name)?;
    let until = channel.open_until?;
    let soon = now.plus_ms(STUCK_AFTER.as_millis() as i64);
    (until > soon).then(|| {
        let (until, why) = (cell(&until), cell(&channel.why));
        format!(
            "the channel {name} is paused until {until}: {why}. Correct the cause, then `sekisho channels resume {name}`"
        )
    })
}

/// The bar, or the lines in its place.
struct Shown {
    bar: ProgressBar,
    line: Option<(Instant, Standing)>,
}

impl Shown {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} are over ({elapsed})");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style.expect("the template is tested"));
        Self { bar, line: None }
    }

    fn show(&mut self, standing: Standing) {
        let Standing { total, over } = standing;
        if !self.bar.is_hidden() {
            self.bar.set_length(total as u64);
            self.bar.set_position(over as u64);
            return;
        }
        let is_new = self.line.is_none_or(|(at, before)| before != standing && at.elapsed() > LINE_EVERY);
        if is_new && over < total {
            eprintln!("{over} of {total} are over");
            self.line = Some((Instant::now(), standing));
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn g4_nobody_waits_for_a_channel_that_is_shut_for_long() {
        let now = Time::from_ms(1_780_000_000_000);
        let channel = |ms: Option<i64>| {
            let until = ms.map(|ms| now.plus_ms(ms));
            let shown = json!({
                "name": "mail", "kind": "smtp", "breaker": "open", "open_until": until, "why": "bad_credentials: 535",
            });
            [serde_json::from_value(shown).unwrap()]
        };
        for (ms, is_shut) in [(None, false), (Some(-1), false), (Some(60_000), false), (Some(900_000), true)]
        {
            assert_eq!(shut(&channel(ms), "mail", now).is_some(), is_shut, "{ms:?}");
        }
        let why = shut(&channel(Some(900_000)), "mail", now).unwrap();
        assert!(why.contains("bad_credentials: 535") && why.contains("channels resume mail"), "{why}");
        assert_eq!(shut(&channel(Some(900_000)), "other", now), None);
    }

    #[test]
    fn g4_what_is_over_is_what_does_not_wait() {
        let day = |total: usize, waiting: usize| ReminderSummary {
            object: "reminders".into(),
            date: "2026-11-16".parse().unwrap(),
            total,
            waiting,
            by_status: BTreeMap::new(),
        };
        assert_eq!(Standing::of([day(3, 1), day(2, 2)].iter()), Standing { total: 5, over: 2 });
        assert_eq!(Standing::of([].iter()), Standing::default());
        Shown::new().show(Standing::default());
    }
}
