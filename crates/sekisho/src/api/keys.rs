//! Keys to the API that people make, here, by command or in the console: made, listed, taken back. A key is shown once, when
//! it is made. Those of the configuration are not listed.

use serde_json::{Map, Value};

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::problem;
use crate::acts::{self, Fields, NewKey};
use crate::config::Scope;
use crate::queries;
use crate::types::{ApiKey, List, NewApiKey, NewKeyAnswer, RevokedKey};
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/keys",
        scope: Some(Scope::Admin),
        for_tenants: false,
        summary: "API keys that people created, without their secrets and without those of the configuration; the oldest first",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<ApiKey>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/keys",
        scope: Some(Scope::Admin),
        for_tenants: false,
        summary: "Create a key; only this response shows it",
        parameters: &[],
        query: None,
        body: Some(schema::<NewApiKey>),
        answer: schema::<NewKeyAnswer>,
        success: Success::Created,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/keys/revoke",
        scope: Some(Scope::Admin),
        for_tenants: false,
        summary: "Revoke a key, by its name or its prefix; it is refused from now on",
        parameters: &[],
        query: None,
        body: Some(schema::<RevokedKey>),
        answer: schema::<ApiKey>,
        success: Success::Done,
        run: |call| Box::pin(revoke(call)),
    },
];

async fn list(call: Call) -> Answer {
    let keys = queries::list_keys(&*call.api.store).await?;
    Ok(keys.iter().map(view::key).collect::<List<_>>().into())
}

async fn create(call: Call) -> Answer {
    let order = read(call.order()?)?;
    if let Some(lacking) = order.lacking(call.scope) {
        return Err(problem::no_scope(&call.actor, lacking));
    }
    let (actor, configured) = (call.actor(), &call.api.known.keys);
    let made = acts::create_key(&*call.api.store, order, configured, &actor).await?;
    Ok(NewKeyAnswer { about: view::key(&made.key), key: made.secret.expose().to_owned() }.into())
}

async fn revoke(call: Call) -> Answer {
    let mut fields = Fields::new(call.order()?);
    let key = fields.take("key").text(100);
    let key = fields.need("key", key).unwrap_or_default();
    fields.finish()?;
    Ok(view::key(&acts::revoke_key(&*call.api.store, &key, &call.actor()).await?).into())
}

/// What an order to make a key says, checked.
fn read(order: Map<String, Value>) -> acts::Result<NewKey> {
    let mut fields = Fields::new(order);
    let name = fields.take("name").text(100);
    let names = fields.take("scopes").texts();
    let mut scopes = Vec::new();
    for name in fields.need("scopes", names).unwrap_or_default() {
        match Scope::parse(&name) {
            Some(scope) => scopes.push(scope),
            None => fields.wrong("scopes", format!("{name:?} is none of read, write, operate and admin")),
        }
    }
    let tenant = fields.take("tenant").id();
    fields.finish()?;
    Ok(NewKey { name, scopes, tenant })
}
