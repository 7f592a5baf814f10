//! Alerts that people silence for a while, and trials that show whether anybody hears them.

use sekisho_core::Seq;
use sekisho_core::actor::Actor;
use sekisho_core::alert::announce::trial;
use sekisho_core::alert::{AlertName, AlertPolicy, AlertSilence, AlertState, alert_id, parse_alert_id};
use sekisho_core::change::ChangeSet;
use sekisho_core::selection::check_discard;
use sekisho_core::state::{Wanted, Write};
use sekisho_store::Store;
use serde_json::json;

use crate::refusal::{Refusal, Result};
use crate::transact::transact;
use crate::types::{FieldError, SilenceAlert};

/// The longest silence: after a month it is a decision for the configuration.
const SILENCE_MAX_MS: i64 = 30 * 24 * 3_600_000;

/// Tells nobody of an alert for a while; what still fires then is told. With the state as it now is.
pub async fn silence_alert(
    store: &dyn Store,
    id: &str,
    order: &SilenceAlert,
    actor: &Actor<'_>,
) -> Result<(AlertName, String, AlertState)> {
    let (alert, subject) = find(id)?;
    let lasts_ms = lasts_ms(&order.lasts)?;
    let reason = check_discard(&order.reason, false)?;
    let key = AlertState::key(alert, subject);
    let until = actor.at.plus_ms(lasts_ms);
    let silenced = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let mut state = loaded.read::<AlertState>(&key)?.map(|known| known.value).unwrap_or_default();
        let silence = AlertSilence { until, by: actor.name.to_owned(), reason: reason.clone() };
        state.silence = (lasts_ms > 0).then_some(silence);
        let mut write = Write::of(&key, loaded.version(&key), &state);
        write.index.status = Some(state.phase.name().to_owned());
        let details = json!({ "until": until, "reason": reason });
        let entry = actor.entry(None, "alert.silenced", ("alert", &alert_id(alert, subject)), &details);
        let set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        Ok((set, state))
    });
    Ok((alert, subject.to_owned(), silenced.await?))
}

/// Sends one through, to see whether anybody hears it; says which event tells of it.
pub async fn try_alert(
    store: &dyn Store,
    id: &str,
    policy: &AlertPolicy,
    base: &str,
    seq: Seq,
    actor: &Actor<'_>,
) -> Result<String> {
    let (alert, _) = find(id)?;
    let announced = trial(alert, policy.threshold(alert), base, actor.at);
    let event_id = announced.id.clone();
    let event = announced.arrival(seq);
    let tried = transact(store, Wanted::default(), |_| -> Result<_> {
        let entry = actor.entry(None, "alert.tried", ("alert", alert.name()), &json!({}));
        let set =
            ChangeSet { events: vec![event.clone()], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        Ok((set, ()))
    });
    tried.await?;
    Ok(event_id)
}

fn find(id: &str) -> Result<(AlertName, &str)> {
    let names = || AlertName::ALL.map(AlertName::name).join(", ");
    parse_alert_id(id)
        .ok_or_else(|| Refusal::Missing(format!("there is no alert {id}; there are: {}", names())))
}

/// `30m`, `2h`, `1d`.
fn lasts_ms(text: &str) -> Result<i64> {
    const UNITS: [(&str, i64); 3] = [("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let wanted = || {
        let text = "expected a time such as 30m, 2h or 1d, up to 30 days";
        Refusal::Fields(vec![FieldError::new("for", text)])
    };
    let text = text.trim();
    let read = UNITS.iter().find_map(|(unit, ms)| {
        let number = text.strip_suffix(unit)?;
        let is_number = !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit());
        number.parse::<i64>().ok().filter(|_| is_number)?.checked_mul(*ms)
    });
    read.filter(|ms| *ms <= SILENCE_MAX_MS).ok_or_else(wanted)
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;
    use sekisho_core::audit::Role;
    use sekisho_store::memory::MemoryStore;
    use sekisho_store::{AuditFilter, EventFilter};

    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const TOMO: Actor<'_> = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };

    fn order(lasts: &str, reason: &str) -> SilenceAlert {
        SilenceAlert { lasts: lasts.into(), reason: reason.into() }
    }

    #[tokio::test]
    async fn h4_a_silence_has_an_end_a_reason_and_an_entry_in_the_audit_log() {
        let store = MemoryStore::default();
        let silence = async |id: &str, order: SilenceAlert| silence_alert(&store, id, &order, &TOMO).await;
        for (id, order) in [
            ("nonsense", order("2h", "x")),
            ("dead_letters", order("2h", " ")),
            ("dead_letters", order("2", "x")),
            ("dead_letters", order("-2h", "x")),
            ("dead_letters", order("31d", "x")),
        ] {
            assert!(silence(id, order.clone()).await.is_err(), "{id} {order:?}");
        }
        let (.., state) = silence("dead_letters/to:app", order("2h", "planned")).await.unwrap();
        let silence_of = state.silence.unwrap();
        assert_eq!((silence_of.until, &*silence_of.by), (NOW.plus_ms(7_200_000), "tomo"));
        let (.., state) = silence("dead_letters/to:app", order("0m", "over")).await.unwrap();
        assert_eq!(state.silence, None);
        let log = store.find_audit(AuditFilter { limit: 9, ..AuditFilter::default() }).await.unwrap();
        assert_eq!(log.entries.len(), 2);
    }

    #[tokio::test]
    async fn h4_a_trial_is_an_event_like_any_alert() {
        let store = MemoryStore::default();
        let policy = AlertPolicy::default();
        let id = try_alert(&store, "slow", &policy, "http://c", Seq::from_i64(7), &TOMO).await.unwrap();
        let found = store.find_events(EventFilter { limit: 9, ..EventFilter::default() }).await.unwrap();
        assert_eq!(found.events[0].event_id, id);
        assert_eq!(found.events[0].event_type, "alert.fired");
    }
}
