//! The OpenAPI 3.1 document, made from the table of endpoints and the types that it names.

use std::collections::BTreeMap;
use std::future::ready;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::endpoint::{Endpoint, Method, Success, schema};
use super::{endpoints, params};
use crate::config::Scope;
use crate::types::Problem;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Get,
    path: "/v1/openapi.json",
    scope: None,
    for_tenants: false,
    summary: "This document",
    parameters: &[],
    query: None,
    body: None,
    answer: schema::<Value>,
    success: Success::Done,
    run: |_| Box::pin(ready(Ok(document().into()))),
}];

pub fn document() -> Value {
    let mut writer = Writer::new();
    let mut paths = Map::new();
    for endpoint in endpoints() {
        let method = endpoint.method.name().to_lowercase();
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[method] = writer.operation(endpoint);
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
            "schemas": writer.schemas(),
            "securitySchemes": { "key": {
                "type": "http",
                "scheme": "bearer",
                "description": "A [[key]] of the configuration, or one made by `sekisho keys`, with the scope that the endpoint names",
            } },
        },
    })
}

/// Collects what endpoints name. What is read may leave out more than what is written, so each has its own generator.
struct Writer {
    bodies: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Writer {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            bodies: settings().for_deserialize().into_generator(),
            answers: settings().for_serialize().into_generator(),
        }
    }

    fn schemas(mut self) -> BTreeMap<String, Value> {
        let (answers, bodies) = (self.answers.take_definitions(true), self.bodies.take_definitions(true));
        answers.into_iter().chain(bodies).collect()
    }

    fn operation(&mut self, endpoint: &Endpoint) -> Value {
        let problem = schema::<Problem>(&mut self.answers);
        let mut answers = json!({
            "default": {
                "description": "What is wrong",
                "content": { "application/problem+json": { "schema": problem } },
            },
        });
        let content = json!({ "application/json": { "schema": (endpoint.answer)(&mut self.answers) } });
        let mut good = match endpoint.success {
            Success::Done => json!({ "description": "Done" }),
            Success::Created => json!({ "description": "Created" }),
            Success::CreatedOnce => json!({ "description": "Created, now or when it was sent before" }),
            Success::AcceptedOnce => json!({ "description": "Accepted, now or when it was sent before" }),
        };
        if endpoint.success.is_once() {
            good["headers"] = json!({ "Idempotent-Replayed": {
                "description": "`true` when it was sent before: this is the answer of then",
                "schema": schema::<String>(&mut self.answers),
            } });
        }
        good["content"] = content;
        answers[endpoint.success.status().as_str()] = good;
        let parameters = self.parameters(endpoint);
        let mut operation = json!({ "summary": endpoint.summary, "parameters": parameters });
        if let Some(body) = endpoint.body {
            let content = json!({ "application/json": { "schema": body(&mut self.bodies) } });
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

    fn parameters(&mut self, endpoint: &Endpoint) -> Vec<Value> {
        let text = schema::<String>(&mut self.bodies);
        let in_path = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let in_path =
            in_path.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text }));
        let in_query = params::known(endpoint, &mut self.bodies).into_iter().map(|known| {
            let (name, about, schema) = (known.name, known.about, known.schema);
            json!({ "name": name, "in": "query", "description": about, "schema": schema })
        });
        let once = endpoint.success.is_once().then(|| {
            let about = "Sent again with the same key and body, the order is not carried out twice";
            json!({ "name": "Idempotency-Key", "in": "header", "description": about, "schema": text })
        });
        in_path.chain(in_query).chain(once).collect()
    }
}
