//! What is left where one of the directory, or a billing, was deleted: a tombstone without what was said of it
//! ([ADR 20](../../../docs/adr/0020-deleting-leaves-a-stone.md)). Who reads finds nothing there, and what leads there leads
//! nowhere. Events, payments, books and the audit log stay as they are.

use serde_json::{Value, json};

use crate::actor::Actor;
use crate::change::ChangeSet;
use crate::directory::{Register, own_id};
use crate::settlement::billing;
use crate::settlement::order::billing_known_as;
use crate::state::{DELETED, Index, Key, Kind, Loaded, State, Unreadable, Wanted, Write};

/// Why nothing is deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeletionRefusal {
    #[error("there is no {noun} {id}; `sekisho {list}` lists them", noun = .register.noun(), list = .register.name())]
    NoMember { register: Register, id: String },
    #[error("there is no billing of {0}")]
    NoBilling(String),
    #[error("{0} has billing in both modes; specify the mode, live or test")]
    BothModes(String),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Leaves tombstones where these of the directory stood; what was deleted meanwhile is left as it is.
pub fn delete_members<'s>(members: impl IntoIterator<Item = &'s State>, actor: &Actor<'_>) -> ChangeSet {
    let mut set = ChangeSet::nothing(actor.at);
    for state in members.into_iter().filter(|state| state.is_shown()) {
        let whose = state.index.tenant.as_deref();
        let write = Write {
            key: state.key.clone(),
            version: state.version,
            facts: json!({ "deleted": { "at": actor.at, "by": actor.name } }).to_string(),
            index: Index { status: Some(DELETED.to_owned()), ..Index::default() },
        };
        let tenant = if state.key.kind == Kind::Tenant { Some(&*state.key.id) } else { whose };
        let before = json!({ "tenant": whose, "created_at": state.created_at });
        add(&mut set, write, tenant, &before, actor);
    }
    set
}

/// One of the directory.
pub fn delete_member(
    register: Register,
    id: &str,
    known: Option<&State>,
    actor: &Actor<'_>,
) -> Result<(ChangeSet, Value), DeletionRefusal> {
    let missing = || DeletionRefusal::NoMember { register, id: id.to_owned() };
    let state = known.filter(|state| state.is_shown()).ok_or_else(missing)?;
    Ok((delete_members([state], actor), answer(&state.key, None)))
}

/// What must be loaded to find a billing by its own id, or by its tenant's.
pub fn billing_wanted(which: &str, livemode: Option<bool>) -> Wanted {
    Wanted {
        names: billing_known_as(which, livemode).into_iter().collect(),
        keys: [Key::new(Kind::Billing, which)].into(),
    }
}

/// A billing; the mode says which, if a tenant has two.
pub fn delete_billing(
    which: &str,
    livemode: Option<bool>,
    loaded: &Loaded,
    actor: &Actor<'_>,
) -> Result<(ChangeSet, Value), DeletionRefusal> {
    let is_meant = |state: &&State| {
        state.is_shown()
            && state.key.kind == Kind::Billing
            && (livemode.is_none() || state.index.livemode == livemode)
    };
    let mut found = loaded.states.values().filter(is_meant);
    let state = match (found.next(), found.next()) {
        (None, _) => return Err(DeletionRefusal::NoBilling(which.to_owned())),
        (Some(state), None) => state,
        (Some(_), Some(_)) => return Err(DeletionRefusal::BothModes(which.to_owned())),
    };
    let (write, before) = billing::delete(state, actor.name, actor.at).map_err(Unreadable)?;
    let mut set = ChangeSet::nothing(actor.at);
    add(&mut set, write, state.index.tenant.as_deref(), &before, actor);
    Ok((set, answer(&state.key, before["status"].as_str())))
}

/// What is written, and noted with what stood there before.
fn add(set: &mut ChangeSet, write: Write, tenant: Option<&str>, before: &Value, actor: &Actor<'_>) {
    let (kind, id) = (write.key.kind.name(), own_id(&write.key).to_owned());
    let details = json!({ "before": before });
    set.audit.push(actor.entry(tenant, &format!("{kind}.deleted"), (kind, &id), &details));
    set.writes.push(write);
}

/// What is answered; `was` is how it stood.
fn answer(key: &Key, was: Option<&str>) -> Value {
    json!({ "id": own_id(key), "object": key.kind.name(), "deleted": true, "was": was })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Role;
    use crate::time::Time;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const ACTOR: Actor<'_> = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };

    fn state(key: Key, facts: &str, index: Index) -> State {
        State { key, version: 2, facts: facts.to_owned(), index, created_at: NOW, changed_at: NOW }
    }

    #[test]
    fn d8_a_tombstone_says_nothing_of_who_was_there() {
        let index = Index { tenant: Some("a".into()), customer: Some("c1".into()), ..Index::default() };
        let mika = state(Register::Customers.key(Some("a"), "c1"), r#"{"name":"Mika"}"#, index);
        let (set, answer) = delete_member(Register::Customers, "c1", Some(&mika), &ACTOR).unwrap();
        assert_eq!(answer, json!({ "id": "c1", "object": "customer", "deleted": true, "was": null }));
        let (write, entry) = (&set.writes[0], &set.audit[0]);
        assert_eq!((write.version, write.index.status.as_deref()), (2, Some(DELETED)));
        assert_eq!((write.index.tenant.as_ref(), write.index.customer.as_ref()), (None, None));
        assert!(!write.facts.contains("Mika") && !entry.details.contains("Mika"));
        assert_eq!((&*entry.action, entry.tenant.as_deref()), ("customer.deleted", Some("a")));
        let stone = State { index: write.index.clone(), ..mika };
        for gone in [Some(&stone), None] {
            let refused = delete_member(Register::Customers, "c1", gone, &ACTOR).unwrap_err();
            assert_eq!(refused.to_string(), "there is no customer c1; `sekisho customers` lists them");
        }
        assert!(delete_members([&stone], &ACTOR).is_empty(), "not twice");
    }

    #[test]
    fn d8_the_mode_says_which_billing() {
        let billing = |id: &str, livemode: bool| {
            let index = Index { livemode: Some(livemode), tenant: Some("a".into()), ..Index::default() };
            let state = state(Key::new(Kind::Billing, id), "{}", index);
            (state.key.clone(), state)
        };
        let states = [billing("bil_1", true), billing("bil_2", false)].into();
        let loaded = Loaded { states, ..Loaded::default() };
        let delete = |livemode| delete_billing("a", livemode, &loaded, &ACTOR);
        assert!(matches!(delete(None), Err(DeletionRefusal::BothModes(_))));
        for (livemode, id) in [(true, "bil_1"), (false, "bil_2")] {
            let (set, answer) = delete(Some(livemode)).unwrap();
            assert_eq!((&answer["id"], &*set.writes[0].key.id), (&json!(id), id));
            assert_eq!(set.audit[0].tenant.as_deref(), Some("a"));
        }
        let nothing = delete_billing("a", None, &Loaded::default(), &ACTOR);
        assert!(matches!(nothing, Err(DeletionRefusal::NoBilling(_))));
    }
}
