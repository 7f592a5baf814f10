//! Whether an object of the provider's says the same as our facts. They agree when joining theirs to ours changes nothing;
//! when ours says more of money than theirs, it is ours that needs a person's eye.

use crate::settlement::payment::{ChargeStatus, Facts, IntentStatus, RefundStatus, SessionStatus};
use crate::settlement::{self, Input, Terms};
use crate::state::{Key, Kind, Loaded, State, Wanted};
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    Agree,
    /// Joining theirs moves ours: something did not come.
    Theirs,
    /// Ours says what theirs denies.
    Ours(String),
    /// Nothing has happened at the object yet that an event would tell.
    Idle,
    /// Ours changed while theirs was read: the next run compares again.
    Moving,
}

/// When theirs was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAt {
    /// What we learnt from here on may be newer.
    pub at: Time,
    /// A list may lag so long behind what its provider told us itself.
    pub grace_ms: i64,
}

/// Compares one object, read as an input. `asked` is what was asked for when `loaded` was loaded; what more must be known is
/// the other answer.
pub fn compare(input: &Input, asked: &Wanted, loaded: &Loaded, read: ReadAt) -> Result<Comparison, Wanted> {
    let theirs = input.reading.payment.as_ref();
    if input.reading.billing.is_none() && theirs.is_none_or(is_idle) {
        return Ok(Comparison::Idle);
    }
    // When the money came is no difference: a list may say it more exactly than the event did.
    let mut untimed = input.clone();
    untimed.reading.payment.iter_mut().for_each(|payment| payment.paid_at = None);
    let terms = Terms { follows: false, ..Terms::at(read.at) };
    let changes = settlement::decide(std::slice::from_ref(&untimed), asked, loaded, &terms)?;
    let ours = known(input, loaded);
    let changed_since = |moment: Time| ours.iter().any(|state| state.changed_at >= moment);
    if changed_since(read.at) {
        return Ok(Comparison::Moving);
    }
    let denied = theirs.and_then(|theirs| {
        let facts = ours.iter().filter_map(|state| Facts::parse(&state.facts).ok());
        facts.into_iter().find_map(|ours| denied(&ours, theirs))
    });
    Ok(match denied {
        Some(_) if changed_since(read.at.plus_ms(-read.grace_ms)) => Comparison::Moving,
        Some(detail) => Comparison::Ours(detail),
        None if changes.iter().any(|change| !change.writes.is_empty()) => Comparison::Theirs,
        None => Comparison::Agree,
    })
}

/// The payments that the input's names lead to, where they stand now.
fn known<'l>(input: &Input, loaded: &'l Loaded) -> Vec<&'l State> {
    let names = settlement::names(std::slice::from_ref(input)).names;
    let keys = names.iter().filter_map(|name| loaded.names.get(name));
    let states = keys.filter(|key| key.kind == Kind::Payment).filter_map(|key| loaded.states.get(key));
    let mut found: Vec<&State> = Vec::new();
    for mut state in states {
        for _ in 0..loaded.states.len() {
            let into = Facts::parse(&state.facts).ok().and_then(|facts| facts.merged_into);
            let into = into.map(|id| Key::new(Kind::Payment, id));
            match into.and_then(|key| loaded.states.get(&key)) {
                Some(next) => state = next,
                None => break,
            }
        }
        if !found.iter().any(|known| known.key == state.key) {
            found.push(state);
        }
    }
    found
}

/// Whether nothing has happened yet: an open session, an intent that nobody tried to pay. Providers send no event of it, or
/// one that few endpoints ask for.
fn is_idle(theirs: &Facts) -> bool {
    let no_session = theirs.sessions.values().all(|session| session.status == SessionStatus::Open);
    let no_try = theirs.intents.values().all(|intent| {
        intent.status == IntentStatus::Waiting
            && !intent.failed
            && intent.received == 0
            && intent.charges.is_empty()
    });
    no_session
        && no_try
        && theirs.charges.is_empty()
        && theirs.refunds.is_empty()
        && theirs.disputes.is_empty()
        && theirs.transactions.is_empty()
}

/// What ours says of money that theirs does not, about the very objects that theirs speaks of.
fn denied(ours: &Facts, theirs: &Facts) -> Option<String> {
    let intents = theirs.intents.iter().filter_map(|(id, theirs)| {
        let ours = ours.intents.get(id)?;
        let more = ours.received > theirs.received;
        let paid = ours.status == IntentStatus::Succeeded && theirs.status != IntentStatus::Succeeded;
        let word = |status: IntentStatus| serde_json::to_value(status).ok()?.as_str().map(str::to_owned);
        (more || paid).then(|| {
            let (own, other) = (word(ours.status), word(theirs.status));
            let (own, other) = (own.unwrap_or_default(), other.unwrap_or_default());
            format!("{id}: {} received ({own}) here, {} ({other}) there", ours.received, theirs.received)
        })
    });
    let charges = theirs.charges.iter().filter_map(|(id, theirs)| {
        let ours = ours.charges.get(id)?;
        let is_more = ours.status == ChargeStatus::Succeeded && ours.taken() > theirs.taken();
        is_more.then(|| format!("{id}: {} taken here, {} there", ours.taken(), theirs.taken()))
    });
    let refunds = theirs.refunds.iter().filter_map(|(id, theirs)| {
        let ours = ours.refunds.get(id)?;
        let is_more = ours.status == RefundStatus::Succeeded && theirs.status < RefundStatus::Succeeded;
        is_more.then(|| format!("{id}: refunded here, and not yet there"))
    });
    let mut all = intents.chain(charges).chain(refunds);
    all.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Seq;
    use crate::settlement::{ApiProvider, Cause, Fetch, References, read};
    use crate::source_name::Origin;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    const NOW: Time = Time::from_seconds(1_780_000_000);
    const BEFORE: Time = Time::from_seconds(1_779_999_000);

    const READ: ReadAt = ReadAt { at: NOW, grace_ms: 60_000 };

    fn input(received: i64, status: &str) -> Input {
        let object = json!({
            "object": "payment_intent", "id": "pi_1", "amount": 500, "amount_received": received, "currency": "jpy",
            "status": status, "metadata": { "order_id": "O-1" },
        });
        let fetch = Fetch {
            provider: ApiProvider::Stripe,
            account: None,
            livemode: Some(false),
            object: "payment_intent".into(),
            id: "pi_1".into(),
            after_days: 0,
            moment: None,
            trace: None,
        };
        let event = fetch.arrival(Seq::from_i64(7), BEFORE, &to_raw_value(&object).unwrap()).stored();
        let stripe = Origin { provider: "stripe", livemode: None };
        let reading = read(stripe, &event, &References::default()).unwrap().unwrap();
        Input { seq: event.seq, reading, cause: Cause::of(&event) }
    }

    /// What is kept after these were taken in.
    fn kept(inputs: &[Input], changed_at: Time) -> Loaded {
        let wanted = settlement::names(inputs);
        let changes = settlement::decide(inputs, &wanted, &Loaded::default(), &Terms::at(BEFORE)).unwrap();
        let mut loaded = Loaded::default();
        for change in changes {
            loaded.names.extend(change.names.into_iter().map(|naming| (naming.name, naming.key)));
            for write in change.writes {
                let state = State {
                    key: write.key.clone(),
                    version: 1,
                    facts: write.facts,
                    index: write.index,
                    created_at: changed_at,
                    changed_at,
                };
                loaded.states.insert(write.key, state);
            }
        }
        loaded
    }

    fn compared(input: &Input, loaded: &Loaded) -> Comparison {
        let mut asked = settlement::names(std::slice::from_ref(input));
        asked.keys.extend(loaded.states.keys().cloned());
        compare(input, &asked, loaded, READ).unwrap_or_else(|more| panic!("{more:?}"))
    }

    #[test]
    fn e2_they_agree_when_joining_theirs_changes_nothing() {
        let paid = input(500, "succeeded");
        let kept_paid = kept(std::slice::from_ref(&paid), BEFORE);
        assert_eq!(compared(&paid, &kept_paid), Comparison::Agree);
        assert_eq!(compared(&paid, &Loaded::default()), Comparison::Theirs);
        let waiting = kept(&[input(0, "processing")], BEFORE);
        assert_eq!(compared(&paid, &waiting), Comparison::Theirs);
    }

    #[test]
    fn e2_what_theirs_denies_is_ours_alone() {
        let kept_paid = kept(&[input(500, "succeeded")], BEFORE);
        for (received, status) in [(0, "processing"), (0, "canceled"), (400, "succeeded")] {
            let found = compared(&input(received, status), &kept_paid);
            assert!(
                matches!(&found, Comparison::Ours(detail) if detail.contains("500 received")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn e2_what_moves_while_it_is_read_or_has_not_begun_is_left_for_later() {
        let kept_paid = kept(&[input(500, "succeeded")], NOW);
        assert_eq!(compared(&input(0, "processing"), &kept_paid), Comparison::Moving);
        let just_now = kept(&[input(500, "succeeded")], NOW.plus_ms(-1_000));
        assert_eq!(compared(&input(0, "processing"), &just_now), Comparison::Moving, "the list may lag");
        assert_eq!(compared(&input(500, "succeeded"), &just_now), Comparison::Agree);
        assert_eq!(compared(&input(0, "requires_payment_method"), &Loaded::default()), Comparison::Idle);
    }

    #[test]
    fn e2_what_is_not_loaded_is_asked_for() {
        let paid = input(500, "succeeded");
        let mut loaded = kept(std::slice::from_ref(&paid), BEFORE);
        let asked = settlement::names(std::slice::from_ref(&paid));
        let states = std::mem::take(&mut loaded.states);
        let more = compare(&paid, &asked, &loaded, READ).unwrap_err();
        let key: Vec<Key> = states.into_keys().collect();
        assert_eq!(more.keys.into_iter().collect::<Vec<_>>(), key);
    }
}
