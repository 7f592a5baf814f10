//! The OpenAPI 3.1 document, made from the table of endpoints.

use std::future::ready;

use serde_json::{Map, Value, json};

use super::endpoint::{Endpoint, Verb};
use super::{endpoints, schema};
use crate::config::Scope;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Verb::Get,
    path: "/v1/openapi.json",
    scope: None,
    summary: "This document",
    parameters: &[],
    body: None,
    answer: "any",
    run: |_| Box::pin(ready(Ok(document()))),
}];

pub fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in endpoints() {
        let method = endpoint.method.name().to_lowercase();
        paths.insert(endpoint.path.into(), json!({ method: operation(endpoint) }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sekisho",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Events, dead letters and routes. Times are RFC 3339; errors are Problem Details (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": schema::all(),
            "securitySchemes": { "key": {
                "type": "http",
                "scheme": "bearer",
                "description": "A [[key]] of the configuration, with the scope that the endpoint names",
            } },
        },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut answers = json!({
        "200": { "description": "Done", "content": { "application/json": { "schema": schema::of(endpoint.answer) } } },
        "default": {
            "description": "What is wrong",
            "content": { "application/problem+json": { "schema": schema::of("Problem") } },
        },
    });
    let mut operation = json!({ "summary": endpoint.summary, "parameters": parameters(endpoint) });
    if let Some(body) = endpoint.body {
        let content = json!({ "application/json": { "schema": schema::of(body) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    match endpoint.scope {
        None => operation["security"] = json!([]),
        Some(scope) => {
            operation["security"] = json!([{ "key": [scope.name()] }]);
            answers["401"] = json!({ "description": "No key, or none that is known" });
            if scope > Scope::Read {
                answers["403"] =
                    json!({ "description": format!("The key lacks the scope {}", scope.name()) });
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
    in_path.chain(in_query).collect()
}
