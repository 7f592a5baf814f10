//! Collects what the checker joins: rows of the store as plain SQL gives them, and the application's ledger.

use std::str::FromStr;
use std::time::SystemTime;

use sekisho_core::Seq;

use super::checker::{CheckedEvent, Left, SeenAttempt, SeenOutcome, SeenRequest};
use super::cluster::ClusterStore;
use crate::app::{AnsweredRequest, SeenDelivery};

/// Work that is not finished. Timers never are.
pub fn unfinished(store: &ClusterStore) -> Result<u64, String> {
    number(&store.sql("SELECT count(*) FROM job WHERE kind <> 'timer'")?)
}

/// What the provider sent.
pub fn events(store: &ClusterStore) -> Result<Vec<CheckedEvent>, String> {
    rows(
        store,
        "SELECT seq, event_id, type, coalesce(object_id, '') FROM event WHERE source = 'stripe'",
        |row| {
            let &[seq, id, kind, object] = row else { return None };
            Some(CheckedEvent {
                seq: seq.parse().ok()?,
                id: id.into(),
                kind: kind.into(),
                object: object.into(),
            })
        },
    )
}

/// Which delivery a job was is read from its effect: a suspect's own lane is not in its outcome.
pub fn outcomes(store: &ClusterStore) -> Result<Vec<SeenOutcome>, String> {
    let sql = "SELECT outcome.job, result, attempts, coalesce(effect.key, ''), coalesce(outcome.event, 0) \
               FROM outcome LEFT JOIN effect ON effect.job = outcome.job \
               WHERE lane IS NULL OR lane <> 'timer'";
    rows(store, sql, |row| {
        let &[job, result, attempts, key, event] = row else { return None };
        let delivered = match key.split_once("to:") {
            Some((_, route)) => {
                let route = route.split('#').next().unwrap_or(route);
                Some((route.to_owned(), event.parse().ok()?))
            }
            None => None,
        };
        Some(SeenOutcome {
            job: job.parse().ok()?,
            result: result.into(),
            attempts: attempts.parse().ok()?,
            delivered,
        })
    })
}

pub fn attempts(store: &ClusterStore) -> Result<Vec<SeenAttempt>, String> {
    rows(store, "SELECT job, n, CASE WHEN reason IS NULL THEN 1 ELSE 0 END FROM attempt", |row| {
        let &[job, n, well] = row else { return None };
        Some(SeenAttempt { job: job.parse().ok()?, n: n.parse().ok()?, well: well == "1" })
    })
}

pub fn dead(store: &ClusterStore) -> Result<Vec<Left>, String> {
    let sql = "SELECT job, coalesce(event, 0), payload, lane, reason, attempts, crashes FROM dead";
    rows(store, sql, |row| {
        let &[job, event, route, lane, reason, attempts, crashes] = row else { return None };
        let what = format!("{lane}, {reason}, {attempts} attempts, {crashes} crashes");
        Some(Left { job: job.parse().ok()?, event: event.parse().ok()?, route: route.into(), what })
    })
}

pub fn left(store: &ClusterStore) -> Result<Vec<Left>, String> {
    let sql = "SELECT id, coalesce(event, 0), payload, lane, due_at, coalesce(owner, 0), attempt, crashes \
               FROM job WHERE kind <> 'timer'";
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_millis() as i64);
    rows(store, sql, |row| {
        let &[job, event, route, lane, due_at, owner, attempt, crashes] = row else { return None };
        let due_s = (due_at.parse::<i64>().ok()? - now) / 1000;
        let what = format!("{lane}, due in {due_s} s, owner {owner}, attempt {attempt}, crashes {crashes}");
        Some(Left { job: job.parse().ok()?, event: event.parse().ok()?, route: route.into(), what })
    })
}

pub fn request(delivery: SeenDelivery) -> SeenRequest {
    SeenRequest {
        message: Seq::from_str(&delivery.message).map_or(0, Seq::as_i64),
        attempt: delivery.attempt,
        at_ms: delivery.at_ms,
        answered_well: matches!(delivery.answered, AnsweredRequest::Status(200..=299)),
        processed: delivery.is_processed(),
        route: delivery.path.trim_start_matches('/').to_owned(),
        event: delivery.event,
    }
}

fn rows<T>(store: &ClusterStore, sql: &str, read: impl Fn(&[&str]) -> Option<T>) -> Result<Vec<T>, String> {
    let text = store.sql(sql)?;
    let row = |line: &str| {
        read(&line.split('|').collect::<Vec<_>>())
            .ok_or_else(|| format!("unreadable row {line:?} of `{sql}`"))
    };
    text.lines().map(row).collect()
}

fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is no number"))
}
