//! Tenants and customers: whose money it is, under the ids that the app itself uses.

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::state::{Index, Key, Kind, Loaded, State, Write};
use sekisho_store::Store;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::fields::{FieldError, Fields};
use super::request::{Answered, Request};
use super::{Actor, Refusal, Result, TRIES, contended};

/// What is kept of a tenant or a customer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    pub tenant: Option<String>,
    pub name: Option<String>,
}

/// As it is shown.
pub fn view(key: &Key, member: &Member) -> Value {
    let mut shown = json!({ "id": key.id, "object": key.kind.name(), "name": member.name });
    if key.kind == Kind::Customer {
        shown["tenant"] = json!(member.tenant);
    }
    shown
}

pub async fn create_tenant(
    store: &dyn Store,
    order: Map<String, Value>,
    request: Option<&Request>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let mut fields = Fields::new(order);
    let id = fields.id("id");
    let id = fields.need("id", id).unwrap_or_default();
    let member = Member { tenant: None, name: fields.text("name", 200) };
    fields.finish()?;
    check_tenant(actor, Some(&id))?;
    put(store, Key::new(Kind::Tenant, id), &member, request, actor).await
}

pub async fn create_customer(
    store: &dyn Store,
    order: Map<String, Value>,
    request: Option<&Request>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let mut fields = Fields::new(order);
    let id = fields.id("id");
    let id = fields.need("id", id).unwrap_or_default();
    let tenant = fields.id("tenant").or_else(|| actor.tenant.map(str::to_owned));
    let member = Member { tenant, name: fields.text("name", 200) };
    fields.finish()?;
    check_tenant(actor, member.tenant.as_deref())?;
    put(store, Key::new(Kind::Customer, id), &member, request, actor).await
}

/// Writes it, new or over what was said before; a customer stays with its tenant.
async fn put(
    store: &dyn Store,
    key: Key,
    member: &Member,
    request: Option<&Request>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let answer = view(&key, member);
    for _ in 0..TRIES {
        let keys = [Some(key.clone()), request.map(Request::key)].into_iter().flatten().collect();
        let loaded = store.load(Vec::new(), keys).await?;
        if let Some(answered) = request.map(|request| request.answered(&loaded)).transpose()?.flatten() {
            return Ok(answered);
        }
        if key.kind == Kind::Customer {
            check_customer(&loaded, Some(&key.id), member.tenant.as_deref(), actor)?;
        }
        let known = loaded.states.get(&key);
        let version = known.map_or(0, |state| state.version);
        let action = if known.is_some_and(State::is_shown) { "changed" } else { "created" };
        let write = Write {
            key: key.clone(),
            version,
            facts: serde_json::to_string(member).expect("texts serialise"),
            index: Index { tenant: member.tenant.clone(), ..Index::default() },
        };
        let tenant = if key.kind == Kind::Tenant { Some(&*key.id) } else { member.tenant.as_deref() };
        let entry = actor.entry(
            tenant,
            &format!("{}.{action}", key.kind.name()),
            (key.kind.name(), &key.id),
            json!({ "after": member }),
        );
        let mut set = ChangeSet { writes: vec![write], audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        set.writes.extend(request.map(|request| request.write(&answer)));
        if let [Committed::Applied { .. }] = &*store.commit(vec![set]).await? {
            return Ok(Answered { answer, repeated: false });
        }
    }
    Err(contended())
}

/// A key that belongs to one tenant touches no other's things.
pub fn check_tenant(actor: &Actor<'_>, tenant: Option<&str>) -> Result<()> {
    match actor.tenant {
        Some(own) if tenant != Some(own) => {
            let detail = format!("this key belongs to the tenant {own}; it can't speak for another");
            Err(Refusal::Foreign(FieldError::new("tenant", detail)))
        }
        _ => Ok(()),
    }
}

/// A customer that is known belongs to its tenant and to nobody else.
pub fn check_customer(
    loaded: &Loaded,
    customer: Option<&str>,
    tenant: Option<&str>,
    actor: &Actor<'_>,
) -> Result<()> {
    let Some(id) = customer else { return Ok(()) };
    let state = loaded.states.get(&Key::new(Kind::Customer, id)).filter(|state| state.is_shown());
    let Some(state) = state else { return Ok(()) };
    let known: Member = serde_json::from_str(&state.facts).unwrap_or_default();
    // What is nobody's yet is not for one tenant's key to take.
    let is_claimed = known.tenant.is_some() || actor.tenant.is_some();
    if is_claimed && known.tenant.as_deref() != tenant {
        let detail = format!("the customer {id} belongs to another tenant");
        return Err(Refusal::Foreign(FieldError::new("customer", detail)));
    }
    Ok(())
}
