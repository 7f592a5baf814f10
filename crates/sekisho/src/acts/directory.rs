//! Tenants, customers, staff and subjects: whose money it is and who is told what, under the ids that the app itself
//! uses.
//!
//! Whoever is said anew is replaced as a whole: what is left out is empty from then on. What changes nothing is neither
//! written nor audited. Ids of customers, staff and subjects are their tenant's: what one tenant enters is no business of
//! another that uses the same id. Staff and subjects need a tenant that is known. Addresses are masked in answers, in what is remembered of requests, and in the audit log.

mod draft;
mod find;

use sekisho_core::change::ChangeSet;
use sekisho_core::directory::{Member, Register, own_id};
use sekisho_core::state::Key;
use sekisho_store::Store;
use serde_json::{Map, Value, json};

use super::fields::FieldError;
use super::request::{Answered, Request};
use super::typed_state::is_written;
use super::{Actor, Refusal, Result, TRIES, contended};

pub(super) use draft::{Draft, Effect};
pub use find::{NAMED_MAX, every_of_id, find_member, several};

/// As it is shown, with its address masked.
pub fn view(key: &Key, member: &Member) -> Value {
    let mut shown = said(member);
    if let Member::Staff(staff) = member {
        shown["name"] = json!(staff.name());
    }
    shown["id"] = json!(own_id(key));
    shown["object"] = json!(key.kind.name());
    shown
}

/// The same with its whole address.
pub fn view_whole(key: &Key, member: &Member) -> Value {
    let mut shown = view(key, member);
    if let Some(email) = member.email() {
        shown["email"] = json!(email.whole());
    }
    shown
}

/// What is kept of it, with its address masked.
fn said(member: &Member) -> Value {
    let masked = member.email().map(ToString::to_string);
    match member {
        Member::Tenant(tenant) => json!({
            "name": tenant.name,
            "language": tenant.language,
            "time_zone": tenant.time_zone,
        }),
        Member::Customer(customer) => json!({
            "tenant": customer.tenant,
            "name": customer.name,
            "email": masked,
            "language": customer.language,
        }),
        Member::Staff(staff) => json!({
            "tenant": staff.tenant,
            "family_name": staff.family_name,
            "given_name": staff.given_name,
            "email": masked,
            "language": staff.language,
            "notifications": staff.notifications,
            "threshold_days": staff.threshold_days,
        }),
        Member::Subject(subject) => json!({
            "tenant": subject.tenant,
            "name": subject.name,
            "renewal_due_on": subject.renewal_due_on,
            "assessment_due_on": subject.assessment_due_on,
        }),
    }
}

/// Writes one, new or over what was said before.
pub async fn create_member(
    store: &dyn Store,
    register: Register,
    order: Map<String, Value>,
    request: Option<&Request>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let draft = Draft::read(register, order, actor)?;
    let answer = view(&draft.key, &draft.member);
    for _ in 0..TRIES {
        let keys = draft.keys().chain(request.map(Request::key)).collect();
        let loaded = store.load(Vec::new(), keys).await?;
        if let Some(answered) = request.map(|request| request.answered(&loaded)).transpose()?.flatten() {
            return Ok(answered);
        }
        let effect = draft.effect(&loaded)?;
        let mut set = ChangeSet::nothing(actor.at);
        draft.add_to(&mut set, effect, &loaded, actor);
        set.writes.extend(request.map(|request| request.write(&answer)));
        if set.writes.is_empty() {
            return Ok(Answered { answer, repeated: false });
        }
        if is_written(store, set).await? {
            return Ok(Answered { answer, repeated: false });
        }
    }
    Err(contended())
}

/// What is wrong with an order, as far as that can be told without looking at what is there.
pub fn check_member(register: Register, order: Map<String, Value>, actor: &Actor<'_>) -> Result<()> {
    Draft::read(register, order, actor).map(drop)
}

/// A key that belongs to one tenant touches no other's things.
pub fn check_tenant(actor: &Actor<'_>, tenant: Option<&str>) -> Result<()> {
    match actor.tenant {
        Some(own) if tenant != Some(own) => {
            let detail = format!("this key belongs to the tenant {own}; it has no access to other tenants");
            Err(Refusal::Forbidden(FieldError::new("tenant", detail)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
