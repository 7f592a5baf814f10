//! One of the directory as an order says it, held against what is there. One by one or by the thousand, the same questions
//! are asked.

use serde_json::json;

use super::view::said;
use super::{Member, Staff, Subject, own_id};
use crate::actor::Actor;
use crate::change::ChangeSet;
use crate::state::{Key, Kind, Loaded, State, Write};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDraft {
    pub key: Key,
    pub member: Member,
}

/// What writing it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftEffect {
    New,
    Changed,
    Unchanged,
}

/// Whoever is reminded needs a tenant with a name and a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tenant {0}; create it first")]
pub struct NoTenant(pub String);

impl MemberDraft {
    /// What must be loaded to know what it does.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        [Some(self.key.clone()), self.tenant_needed()].into_iter().flatten()
    }

    /// Customers may be known before their tenant is; staff and subjects may not.
    fn tenant_needed(&self) -> Option<Key> {
        match &self.member {
            Member::Tenant(_) | Member::Customer(_) => None,
            Member::Staff(Staff { tenant, .. }) | Member::Subject(Subject { tenant, .. }) => {
                Some(Key::new(Kind::Tenant, tenant))
            }
        }
    }

    /// Whether it may be written over what is there, and what that does.
    pub fn effect(&self, loaded: &Loaded) -> Result<DraftEffect, NoTenant> {
        if let Some(needed) = self.tenant_needed()
            && loaded.states.get(&needed).is_none_or(State::is_deleted)
        {
            return Err(NoTenant(needed.id));
        }
        let Some(known) = loaded.states.get(&self.key).filter(|state| !state.is_deleted()) else {
            return Ok(DraftEffect::New);
        };
        Ok(if self.member.is_kept_as(known) { DraftEffect::Unchanged } else { DraftEffect::Changed })
    }

    /// Puts what is to be written and noted into the set; nothing, if nothing changes.
    pub fn add_to(&self, set: &mut ChangeSet, effect: DraftEffect, loaded: &Loaded, actor: &Actor<'_>) {
        let word = match effect {
            DraftEffect::New => "created",
            DraftEffect::Changed => "changed",
            DraftEffect::Unchanged => return,
        };
        set.writes.push(Write {
            key: self.key.clone(),
            version: loaded.version(&self.key),
            facts: self.member.facts(),
            index: self.member.index(&self.key),
        });
        let (kind, id) = (self.key.kind.name(), own_id(&self.key));
        let tenant = if self.key.kind == Kind::Tenant { Some(id) } else { self.member.tenant() };
        let details = json!({ "after": said(&self.member) });
        set.audit.push(actor.entry(tenant, &format!("{kind}.{word}"), (kind, id), &details));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Role;
    use crate::directory::{Register, Tenant};
    use crate::state::{DELETED, Index};
    use crate::time::Time;

    const NOW: Time = Time::from_ms(1_780_000_000_000);
    const ACTOR: Actor<'_> = Actor { name: "tomo", role: Role::Operator, tenant: None, at: NOW };

    fn draft(register: Register, facts: &str) -> MemberDraft {
        let member = Member::read(register, facts).unwrap();
        MemberDraft { key: register.key(member.tenant(), "x"), member }
    }

    fn keep(loaded: &mut Loaded, draft: &MemberDraft, index: Index) {
        let (key, facts) = (draft.key.clone(), draft.member.facts());
        let state = State { key: key.clone(), version: 3, facts, index, created_at: NOW, changed_at: NOW };
        loaded.states.insert(key, state);
    }

    #[test]
    fn h2_what_changes_nothing_is_not_written_and_not_audited() {
        let mut loaded = Loaded::default();
        let before = draft(Register::Customers, r#"{"name":"Mika"}"#);
        let written = |draft: &MemberDraft, loaded: &Loaded| {
            let mut set = ChangeSet::nothing(NOW);
            draft.add_to(&mut set, draft.effect(loaded).unwrap(), loaded, &ACTOR);
            (set.writes.first().map(|write| write.version), set.audit.first().map(|one| one.action.clone()))
        };
        assert_eq!(written(&before, &loaded), (Some(0), Some("customer.created".into())));
        keep(&mut loaded, &before, Index::default());
        assert_eq!(written(&before, &loaded), (None, None));
        let after = draft(Register::Customers, r#"{"name":"Tomo"}"#);
        assert_eq!(written(&after, &loaded), (Some(3), Some("customer.changed".into())));
        keep(&mut loaded, &before, Index { status: Some(DELETED.into()), ..Index::default() });
        assert_eq!(written(&before, &loaded), (Some(3), Some("customer.created".into())), "over a tombstone");
    }

    #[test]
    fn g4_who_is_reminded_needs_a_tenant() {
        let mut loaded = Loaded::default();
        let subject = draft(
            Register::Subjects,
            r#"{"tenant":"a","name":"Sato","renewal_due_on":null,"assessment_due_on":null}"#,
        );
        assert_eq!(subject.keys().count(), 2);
        assert_eq!(subject.effect(&loaded), Err(NoTenant("a".into())));
        let tenant =
            MemberDraft { key: Register::Tenants.key(None, "a"), member: Member::Tenant(Tenant::default()) };
        keep(&mut loaded, &tenant, Index { status: Some(DELETED.into()), ..Index::default() });
        assert_eq!(subject.effect(&loaded), Err(NoTenant("a".into())));
        keep(&mut loaded, &tenant, Index::default());
        assert_eq!(subject.effect(&loaded), Ok(DraftEffect::New));
    }
}
