//! Figures of all nodes: what they counted, what is there now, how alerts stand, and whether targets are met.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::alert::{AlertName, AlertState, parse_alert_id};
use sekisho_core::job::Lane;
use sekisho_core::meter::{HOURS, Meter, MeterLog, began, period_prefix};
use sekisho_core::queue::Breaker;
use sekisho_core::state::{Kind, State};
use sekisho_core::target::{MILLION, TargetName, TargetPolicy, TargetVerdict};
use sekisho_core::time::{DAY_MS, HOUR_MS, Time, hour_of};
use sekisho_store::{DeadFilter, DeadGroup, FIND_MAX, GROUPED_MAX, PendingWork, Result, StateFilter, Store};

use crate::telemetry::{LaneStock, StockSample};

/// Pages of rows that one question reads.
const PAGES_MAX: usize = 40;

/// The windows that targets are shown over.
pub const WINDOWS: [(&str, i64); 3] = [("1h", HOUR_MS), ("24h", DAY_MS), ("30d", 30 * DAY_MS)];

/// Rows of periods that began from one moment (with) to another (without), oldest first.
pub async fn meter_rows(store: &dyn Store, from: Time, to: Time) -> Result<Vec<(Time, Meter)>> {
    let mut rows = Vec::new();
    each_state(store, Some(period_prefix(to)), |state| {
        let start = began(&state.key.id).filter(|start| *start >= from);
        let Some(start) = start else { return false };
        // One that can't be read is another version's: what it counted is not known here.
        rows.extend(serde_json::from_str(&state.facts).ok().map(|meter| (start, meter)));
        true
    })
    .await?;
    rows.reverse();
    Ok(rows)
}

/// What was counted: by period for so long, by hour for so long.
pub async fn meter_log(store: &dyn Store, now: Time, periods_ms: i64, hours_ms: i64) -> Result<MeterLog> {
    let mut log = MeterLog::default();
    let oldest = hour_of(now.plus_ms(-hours_ms));
    each_state(store, None, |state| {
        let start = began(&state.key.id).filter(|start| state.key.id.starts_with(HOURS) && *start >= oldest);
        let Some(start) = start else { return false };
        log.hours.extend(serde_json::from_str::<Meter>(&state.facts).ok().map(|meter| (start, meter)));
        true
    })
    .await?;
    // What was not folded yet is read by its periods, as far as anybody would wait for it.
    let unfolded = log.hours.keys().next_back().map_or(oldest, |last| last.plus_ms(HOUR_MS));
    let from = now.plus_ms(-periods_ms).min(unfolded).max(now.plus_ms(-DAY_MS).min(now.plus_ms(-periods_ms)));
    log.periods = meter_rows(store, from, now.plus_ms(HOUR_MS)).await?;
    Ok(log)
}

/// Meters below an id, newest first, while they are wanted.
async fn each_state(
    store: &dyn Store,
    mut before: Option<String>,
    mut wants_more: impl FnMut(&State) -> bool,
) -> Result<()> {
    for _ in 0..PAGES_MAX {
        let filter = StateFilter { before: before.clone(), ..StateFilter::all(Kind::Meter, FIND_MAX) };
        let page = store.find_states(filter).await?;
        for state in &page {
            if !wants_more(state) {
                return Ok(());
            }
        }
        match page.last() {
            Some(last) if page.len() == FIND_MAX => before = Some(last.key.id.clone()),
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// How every alert stands that was ever looked at and not well. One that a newer version wrote, and this one can't read, is
/// left out.
pub async fn alert_states(store: &dyn Store) -> Result<BTreeMap<(AlertName, String), AlertState>> {
    let states = store.find_states(StateFilter::all(Kind::Alert, FIND_MAX)).await?;
    let read = |state: State| {
        let (alert, subject) = parse_alert_id(&state.key.id)?;
        Some(((alert, subject.to_owned()), serde_json::from_str(&state.facts).ok()?))
    };
    Ok(states.into_iter().filter_map(read).collect())
}

/// What is there now.
pub struct Present {
    pub work: Vec<PendingWork>,
    pub dead: Vec<DeadGroup>,
    pub breakers: BTreeMap<String, Breaker>,
}

pub async fn present(store: &dyn Store) -> Result<Present> {
    let breakers = store.find_states(StateFilter::all(Kind::Breaker, FIND_MAX)).await?;
    let breakers = breakers.into_iter().filter_map(|state| {
        let breaker = serde_json::from_str::<Breaker>(&state.facts).ok()?;
        Some((state.key.id, breaker))
    });
    let dead = DeadFilter { limit: GROUPED_MAX, ..DeadFilter::default() };
    Ok(Present {
        work: store.find_work().await?,
        dead: store.find_dead_groups(dead).await?,
        breakers: breakers.collect(),
    })
}

/// Everything that `/metrics` says of all nodes. These lanes are shown also when they are empty.
pub async fn sample(
    store: &dyn Store,
    lanes: &[Lane],
    policy: &TargetPolicy,
    now: Time,
) -> Result<StockSample> {
    let Present { work, dead, breakers } = present(store).await?;
    let known = work.iter().map(|own| &own.lane).chain(dead.iter().map(|group| &group.lane)).chain(lanes);
    let names: BTreeSet<&str> =
        known.map(|lane| &*lane.0).chain(breakers.keys().map(String::as_str)).collect();
    let seconds = |since: Time| (now.ms() - since.ms()).max(0) as f64 / 1_000.0;
    let lane = |name: &str| {
        let own = work.iter().find(|own| &*own.lane.0 == name);
        LaneStock {
            lane: name.to_owned(),
            waiting: own.map_or(0, |own| own.waiting),
            retrying: own.map_or(0, |own| own.retrying),
            running: own.map_or(0, |own| own.running),
            oldest_due_seconds: own.and_then(|own| own.oldest_due).map_or(0.0, seconds),
            dead_letters: dead
                .iter()
                .filter(|group| &*group.lane.0 == name)
                .map(|group| group.count as i64)
                .sum(),
            is_open: breakers.get(name).is_some_and(Breaker::is_open),
        }
    };
    let alerts = alert_states(store).await?.into_iter().map(|((alert, subject), state)| {
        (alert.name(), subject, state.phase == sekisho_core::alert::AlertPhase::Firing)
    });
    let figures = target_figures(store, policy, now).await?;
    let targets = figures.into_iter().filter_map(|(target, window, figure)| {
        let share = figure.share().filter(|_| figure.verdict != TargetVerdict::TooLittle)?;
        let bad = share as f64 / MILLION as f64;
        Some((
            target.name(),
            window,
            match target {
                TargetName::DeadLetters => figure.bad as f64,
                TargetName::Retry => bad,
                TargetName::Publish | TargetName::Worker | TargetName::Mail => 1.0 - bad,
            },
        ))
    });
    Ok(StockSample {
        lanes: names.into_iter().map(lane).collect(),
        dead_letter_oldest_seconds: dead.iter().map(|group| group.oldest).min().map_or(0.0, seconds),
        alerts: alerts.collect(),
        targets: targets.collect(),
        nodes: store.find_nodes().await?.len() as i64,
    })
}

/// Every target over every window.
pub async fn target_figures(
    store: &dyn Store,
    policy: &TargetPolicy,
    now: Time,
) -> Result<Vec<(TargetName, &'static str, sekisho_core::target::TargetFigure)>> {
    let log = meter_log(store, now, HOUR_MS, 30 * DAY_MS).await?;
    let of = |window: &'static str, ms: i64| {
        let from = now.plus_ms(-ms);
        let meter = if ms <= HOUR_MS { log.periods_since(from) } else { log.since(from) };
        TargetName::ALL.map(|target| (target, window, target.figure(&meter, policy)))
    };
    Ok(WINDOWS.into_iter().flat_map(|(window, ms)| of(window, ms)).collect())
}

/// The share of bad ones in each of the last 24 hours, oldest first; `None` where nothing was counted.
pub async fn target_course(
    store: &dyn Store,
    target: TargetName,
    policy: &TargetPolicy,
    now: Time,
) -> Result<Vec<Option<u64>>> {
    let log = meter_log(store, now, HOUR_MS, DAY_MS).await?;
    let hours = (0..24).rev().map(|ago| hour_of(now).plus_ms(-ago * HOUR_MS));
    let share = |hour: Time| {
        let meter = log.hours.get(&hour).cloned().unwrap_or_else(|| log.hour(hour));
        target.figure(&meter, policy).share()
    };
    Ok(hours.map(share).collect())
}
