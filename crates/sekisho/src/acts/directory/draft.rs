//! One of the directory as an order says it: read, held against what is there, and written down. One by one or by the
//! thousand, the same questions are asked.

use sekisho_core::change::ChangeSet;
use sekisho_core::directory::{
    Customer, Member, Register, Staff, Subject, THRESHOLD_DAYS, THRESHOLD_DAYS_MAX, Tenant, own_id,
};
use sekisho_core::state::{Key, Kind, Loaded, State, Write};
use serde_json::{Map, Value, json};

use super::super::fields::{FieldError, Fields};
use super::super::{Actor, Refusal, Result};
use super::{check_tenant, said};

/// Most letters of a name, and of each half of a person's.
const NAME_MAX: usize = 200;
const HALF_NAME_MAX: usize = 100;

pub struct Draft {
    pub key: Key,
    pub member: Member,
}

/// What writing it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    New,
    Changed,
    Unchanged,
}

impl Draft {
    /// A caller that belongs to a tenant need not name it.
    pub fn read(register: Register, order: Map<String, Value>, actor: &Actor<'_>) -> Result<Self> {
        let mut fields = Fields::new(order);
        let id = fields.id("id");
        let id = fields.need("id", id);
        let member = match register {
            Register::Tenants => tenant(&mut fields),
            Register::Customers => customer(&mut fields, actor),
            Register::Staff => staff(&mut fields, actor),
            Register::Subjects => subject(&mut fields, actor),
        };
        fields.finish()?;
        let (id, member) = id.zip(member).expect("what is needed and not there was said by `finish`");
        match register {
            Register::Tenants => check_tenant(actor, Some(&id))?,
            Register::Customers | Register::Staff | Register::Subjects => {
                check_tenant(actor, member.tenant())?;
            }
        }
        Ok(Self { key: register.key(member.tenant(), &id), member })
    }

    /// What must be loaded to know what it does.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        [Some(self.key.clone()), self.tenant_needed()].into_iter().flatten()
    }

    /// Customers may be known before their tenant is; who is reminded needs a tenant with a name and a zone.
    fn tenant_needed(&self) -> Option<Key> {
        match &self.member {
            Member::Tenant(_) | Member::Customer(_) => None,
            Member::Staff(Staff { tenant, .. }) | Member::Subject(Subject { tenant, .. }) => {
                Some(Key::new(Kind::Tenant, tenant))
            }
        }
    }

    /// Whether it may be written over what is there, and what that does.
    pub fn effect(&self, loaded: &Loaded) -> Result<Effect> {
        if let Some(needed) = self.tenant_needed()
            && loaded.states.get(&needed).is_none_or(State::is_deleted)
        {
            let detail = format!("there is no tenant {}; create it first", needed.id);
            return Err(Refusal::Fields(vec![FieldError::new("tenant", detail)]));
        }
        let Some(known) = loaded.states.get(&self.key).filter(|state| !state.is_deleted()) else {
            return Ok(Effect::New);
        };
        Ok(if self.member.is_kept_as(known) { Effect::Unchanged } else { Effect::Changed })
    }

    /// Puts what is to be written and noted into the set; nothing, if nothing changes.
    pub fn add_to(&self, set: &mut ChangeSet, effect: Effect, loaded: &Loaded, actor: &Actor<'_>) {
        let word = match effect {
            Effect::New => "created",
            Effect::Changed => "changed",
            Effect::Unchanged => return,
        };
        set.writes.push(Write {
            key: self.key.clone(),
            version: loaded.states.get(&self.key).map_or(0, |state| state.version),
            facts: self.member.facts(),
            index: self.member.index(&self.key),
        });
        let (kind, id) = (self.key.kind.name(), own_id(&self.key));
        let tenant = if self.key.kind == Kind::Tenant { Some(id) } else { self.member.tenant() };
        let details = json!({ "after": said(&self.member) });
        set.audit.push(actor.entry(tenant, &format!("{kind}.{word}"), (kind, id), details));
    }
}

fn tenant(fields: &mut Fields) -> Option<Member> {
    Some(Member::Tenant(Tenant {
        name: fields.text("name", NAME_MAX),
        language: fields.language("language"),
        time_zone: fields.time_zone("time_zone"),
    }))
}

fn customer(fields: &mut Fields, actor: &Actor<'_>) -> Option<Member> {
    Some(Member::Customer(Customer {
        tenant: tenant_of(fields, actor),
        name: fields.text("name", NAME_MAX),
        email: fields.email("email"),
        language: fields.language("language"),
    }))
}

fn staff(fields: &mut Fields, actor: &Actor<'_>) -> Option<Member> {
    let tenant = tenant_of(fields, actor);
    let tenant = fields.need("tenant", tenant);
    let (family_name, given_name) =
        (fields.text("family_name", HALF_NAME_MAX), fields.text("given_name", HALF_NAME_MAX));
    let email = fields.email("email");
    let email = fields.need("email", email);
    let language = fields.language("language");
    let notifications = fields.boolean("notifications").unwrap_or(true);
    let threshold_days = fields.whole_number("threshold_days", 0..=THRESHOLD_DAYS_MAX);
    Some(Member::Staff(Staff {
        tenant: tenant?,
        family_name,
        given_name,
        email: email?,
        language,
        notifications,
        threshold_days: threshold_days.unwrap_or(THRESHOLD_DAYS),
    }))
}

fn subject(fields: &mut Fields, actor: &Actor<'_>) -> Option<Member> {
    let tenant = tenant_of(fields, actor);
    let tenant = fields.need("tenant", tenant);
    let name = fields.text("name", NAME_MAX);
    let name = fields.need("name", name);
    let (renewal_due_on, assessment_due_on) = (fields.day("renewal_due_on"), fields.day("assessment_due_on"));
    Some(Member::Subject(Subject { tenant: tenant?, name: name?, renewal_due_on, assessment_due_on }))
}

fn tenant_of(fields: &mut Fields, actor: &Actor<'_>) -> Option<String> {
    fields.id("tenant").or_else(|| actor.tenant.map(str::to_owned))
}
