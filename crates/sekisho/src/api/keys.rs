//! Keys to the API that were made by command: made, listed, taken back. A key is shown once, when it is made.

use serde_json::{Map, Value, json};

use super::endpoint::{Answer, Call, Endpoint, Success, Verb};
use crate::config::Scope;
use crate::transition::{self, Fields};
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/keys",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Every key that was made by command, without what opens it; the oldest first",
        parameters: &[],
        body: None,
        answer: "ApiKeyList",
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/keys",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Make a key; the answer is the only one that shows it",
        parameters: &[],
        body: Some("NewApiKey"),
        answer: "ApiKeyDetail",
        success: Success::Created,
        run: |call| Box::pin(create(call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/keys/revoke",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Take a key back, by its name or its hint; it opens nothing from now on",
        parameters: &[],
        body: Some("RevokedKey"),
        answer: "ApiKey",
        success: Success::Done,
        run: |call| Box::pin(revoke(call)),
    },
];

async fn list(call: Call) -> Answer {
    let keys = transition::list_keys(&*call.api.store).await?;
    Ok(json!({ "items": keys.iter().map(view::key).collect::<Vec<_>>() }).into())
}

async fn create(call: Call) -> Answer {
    let NewKey { name, scopes, tenant } = NewKey::read(call.order()?)?;
    let actor = call.actor();
    let made = transition::create_key(&*call.api.store, name.as_deref(), scopes, tenant, &actor).await?;
    let mut shown = view::key(&made.key);
    shown["key"] = made.secret.expose().into();
    Ok(shown.into())
}

async fn revoke(call: Call) -> Answer {
    let mut fields = Fields::new(call.order()?);
    let key = fields.text("key", 100);
    let key = fields.need("key", key).unwrap_or_default();
    fields.finish()?;
    Ok(view::key(&transition::revoke_key(&*call.api.store, &key, &call.actor()).await?).into())
}

/// What an order to make a key says, checked.
struct NewKey {
    name: Option<String>,
    scopes: Vec<Scope>,
    tenant: Option<String>,
}

impl NewKey {
    fn read(order: Map<String, Value>) -> transition::Result<Self> {
        let mut fields = Fields::new(order);
        let name = fields.text("name", 100);
        let names = fields.texts("scopes");
        let mut scopes = Vec::new();
        for name in fields.need("scopes", names).unwrap_or_default() {
            match Scope::parse(&name) {
                Some(scope) => scopes.push(scope),
                None => fields.wrong("scopes", format!("{name:?} is none of read, write and operate")),
            }
        }
        let tenant = fields.id("tenant");
        fields.finish()?;
        Ok(Self { name, scopes, tenant })
    }
}
