//! One of the directory as an order says it, read field by field.

use sekisho_core::actor::Actor;
use sekisho_core::directory::{
    Customer, Member, MemberDraft, Register, Staff, Subject, THRESHOLD_DAYS, THRESHOLD_DAYS_MAX, Tenant,
};
use serde_json::{Map, Value};

use crate::acts::fields::Fields;
use crate::refusal::Result;

/// Most characters of a name, and of each half of a person's.
const NAME_MAX: usize = 200;
const HALF_NAME_MAX: usize = 100;

/// A caller that belongs to a tenant need not name it.
pub fn parse(register: Register, order: Map<String, Value>, actor: &Actor<'_>) -> Result<MemberDraft> {
    let mut fields = Fields::new(order);
    let id = fields.take("id").id();
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
        Register::Tenants => actor.check_tenant(Some(&id))?,
        Register::Customers | Register::Staff | Register::Subjects => actor.check_tenant(member.tenant())?,
    }
    Ok(MemberDraft { key: register.key(member.tenant(), &id), member })
}

fn tenant(fields: &mut Fields) -> Option<Member> {
    Some(Member::Tenant(Tenant {
        name: fields.take("name").text(NAME_MAX),
        language: fields.take("language").parsed(),
        time_zone: fields.take("time_zone").parsed(),
    }))
}

fn customer(fields: &mut Fields, actor: &Actor<'_>) -> Option<Member> {
    Some(Member::Customer(Customer {
        tenant: tenant_of(fields, actor),
        name: fields.take("name").text(NAME_MAX),
        email: fields.take("email").email(),
        language: fields.take("language").parsed(),
    }))
}

fn staff(fields: &mut Fields, actor: &Actor<'_>) -> Option<Member> {
    let tenant = tenant_of(fields, actor);
    let tenant = fields.need("tenant", tenant);
    let (family_name, given_name) =
        (fields.take("family_name").text(HALF_NAME_MAX), fields.take("given_name").text(HALF_NAME_MAX));
    let email = fields.take("email").email();
    let email = fields.need("email", email);
    let language = fields.take("language").parsed();
    let notifications = fields.take("notifications").boolean().unwrap_or(true);
    let threshold_days = fields.take("threshold_days").whole_number(0..=THRESHOLD_DAYS_MAX);
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
    let name = fields.take("name").text(NAME_MAX);
    let name = fields.need("name", name);
    let (renewal_due_on, assessment_due_on) =
        (fields.take("renewal_due_on").parsed(), fields.take("assessment_due_on").parsed());
    Some(Member::Subject(Subject { tenant: tenant?, name: name?, renewal_due_on, assessment_due_on }))
}

fn tenant_of(fields: &mut Fields, actor: &Actor<'_>) -> Option<String> {
    fields.take("tenant").id().or_else(|| actor.tenant.map(str::to_owned))
}
