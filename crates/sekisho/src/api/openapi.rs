//! The OpenAPI 3.1 document, made from the table of endpoints.

use std::future::ready;

use serde_json::{Map, Value, json};

use super::endpoint::{Endpoint, Success, Verb};
use super::{endpoints, schema};
use crate::config::Scope;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Verb::Get,
    path: "/v1/openapi.json",
    scope: None,
    for_tenants: false,
    summary: "This document",
    parameters: &[],
    body: None,
    answer: "any",
    success: Success::Done,
    run: |_| Box::pin(ready(Ok(document().into()))),
}];

pub fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in endpoints() {
        let method = endpoint.method.name().to_lowercase();
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[method] = operation(endpoint);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sekisho",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Payments, billing, balances, events, dead letters and routes. Times are RFC 3339, amounts are whole numbers in the currency's smallest unit; errors are Problem Details (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": schema::all(),
            "securitySchemes": { "key": {
                "type": "http",
                "scheme": "bearer",
                "description": "A [[key]] of the configuration, or one made by `sekisho keys`, with the scope that the endpoint names",
            } },
        },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut answers = json!({
        "default": {
            "description": "What is wrong",
            "content": { "application/problem+json": { "schema": schema::of("Problem") } },
        },
    });
    let content = json!({ "application/json": { "schema": schema::of(endpoint.answer) } });
    let mut good = match endpoint.success {
        Success::Done => json!({ "description": "Done" }),
        Success::Created => json!({ "description": "Created" }),
        Success::CreatedOnce => json!({
            "description": "Created, now or when it was sent before",
            "headers": { "Idempotent-Replayed": {
                "description": "`true` when it was sent before: this is the answer of then",
                "schema": schema::of("text"),
            } },
        }),
    };
    good["content"] = content;
    answers[endpoint.success.status().as_str()] = good;
    let mut operation = json!({ "summary": endpoint.summary, "parameters": parameters(endpoint) });
    if let Some(body) = endpoint.body {
        let content = json!({ "application/json": { "schema": schema::of(body) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    match endpoint.scope {
        None => operation["security"] = json!([]),
        Some(scope) => {
            operation["security"] = json!([{ "key": [scope.name()] }]);
            answers["401"] = json!({ "description": "The key is missing or unknown" });
            if scope > Scope::Read || !endpoint.for_tenants {
                let lacks =
                    format!("The key lacks the scope {}, or belongs to one tenant only", scope.name());
                answers["403"] = json!({ "description": lacks });
            }
        }
    }
    operation["responses"] = answers;
    operation
}

fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    let in_path = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": schema::of("text") }));
    let in_query = endpoint.parameters.iter().map(|parameter| {
        let schema = schema::of(parameter.kind);
        json!({ "name": parameter.name, "in": "query", "description": parameter.about, "schema": schema })
    });
    let once = (endpoint.success == Success::CreatedOnce).then(|| {
        let about = "Sent again with the same key and body, the order is not carried out twice";
        json!({ "name": "Idempotency-Key", "in": "header", "description": about, "schema": schema::of("text") })
    });
    in_path.chain(in_query).chain(once).collect()
}
