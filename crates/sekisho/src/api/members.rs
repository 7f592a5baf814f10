//! Tenants, customers, staff and subjects are listed, entered, shown and deleted alike; each has its own table of
//! endpoints.

use sekisho_core::directory::Register;
use sekisho_store::StateFilter;

use super::endpoint::{Answer, Call, Reply, page_of_states};
use super::params::BEFORE;
use super::problem;
use crate::{acts, queries, view};

pub async fn list(register: Register, call: Call) -> Answer {
    let before = call.params.get(BEFORE.name).map(str::to_owned);
    let filter = StateFilter {
        before,
        tenant: call.of_tenant()?,
        ..StateFilter::all(register.kind(), call.params.limit()?)
    };
    let (limit, view) = (filter.limit, view::member_for(call.wants_addresses()?));
    let store = &*call.api.store;
    page_of_states(store, &store.find_states(filter).await?, limit, view).await
}

pub async fn create(register: Register, call: Call) -> Answer {
    let (store, actor) = (&*call.api.store, call.actor());
    let created = acts::create_member(store, register, call.order()?, call.request.as_ref(), &actor);
    Ok(Reply::once(created.await?))
}

pub async fn show(register: Register, call: Call) -> Answer {
    let (store, view) = (&*call.api.store, view::member_for(call.wants_addresses()?));
    let tenant = call.of_tenant()?;
    let found = view::find_member(store, register, tenant.as_deref(), &call.path, view).await?;
    let missing = || problem::missing(format!("there is no {} {}", register.noun(), call.path));
    let mut found = found.ok_or_else(missing)?;
    view::unlink(store, [&mut found]).await?;
    Ok(found.into())
}

pub async fn delete(register: Register, call: Call) -> Answer {
    let (store, actor, tenant) = (&*call.api.store, call.actor(), call.of_tenant()?);
    if register == Register::Tenants
        && let Some(wider) = queries::strongest_key(store, &call.path).await?.filter(|key| *key > call.scope)
    {
        // With the tenant its keys go: nobody takes back what they could not have given.
        return Err(problem::no_scope(&call.actor, wider));
    }
    Ok(acts::delete_member(store, register, tenant.as_deref(), &call.path, &actor).await?.into())
}
