//! One endpoint: what stands in the table, and what its answer is made from.

use std::pin::Pin;
use std::sync::Arc;

use axum::routing::MethodFilter;
use bytes::Bytes;
use sekisho_core::Seq;
use sekisho_store::FIND_MAX;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Api, problem};
use crate::config::Scope;
use crate::http::Problem;
use crate::now;
use crate::transition::Actor;

pub struct Endpoint {
    pub method: Verb,
    pub path: &'static str,
    /// What its caller's key must allow; `None` is for everybody.
    pub scope: Option<Scope>,
    pub summary: &'static str,
    /// Those after the `?`.
    pub parameters: &'static [Parameter],
    /// Names in [`super::schema`].
    pub body: Option<&'static str>,
    pub answer: &'static str,
    pub run: fn(Call) -> Running,
}

pub type Answer = Result<Value, Problem>;
pub type Running = Pin<Box<dyn Future<Output = Answer> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
}

impl Verb {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }

    pub(super) const fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
        }
    }
}

pub struct Parameter {
    pub name: &'static str,
    /// A type in [`super::schema`]'s notation.
    pub kind: &'static str,
    pub about: &'static str,
}

pub const LIMIT: Parameter =
    Parameter { name: "limit", kind: "integer", about: "At most so many; 50 when not written, 1 to 1000" };
pub const BEFORE: Parameter =
    Parameter { name: "before", kind: "text", about: "Only older ones: `next` of the page before" };

const LIMIT_DEFAULT: usize = 50;

/// One request, admitted and read.
pub struct Call {
    pub api: Arc<Api>,
    /// Who asks, for the audit log.
    pub actor: String,
    /// The one tenant whose things it may see and touch, if not all.
    pub tenant: Option<String>,
    /// What stands for the braces of the path.
    pub path: String,
    pub params: Vec<(String, String)>,
    pub body: Bytes,
}

impl Call {
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.param(LIMIT.name) else { return Ok(LIMIT_DEFAULT) };
        let limit = text.parse().ok().filter(|limit| (1..=FIND_MAX).contains(limit));
        limit.ok_or_else(|| problem::wrong(format!("limit: expected a number from 1 to {FIND_MAX}")))
    }

    pub fn before(&self) -> Result<Option<Seq>, Problem> {
        let parse = |text: &str| text.parse().map_err(|error| problem::wrong(format!("before: {error}")));
        self.param(BEFORE.name).map(parse).transpose()
    }

    /// The other parameters, as the query they make up.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let others = self.params.iter().filter(|(name, _)| *name != LIMIT.name && *name != BEFORE.name);
        let others: Map<_, _> =
            others.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        serde_json::from_value(others.into()).map_err(|error| problem::wrong(error.to_string()))
    }

    pub fn actor(&self) -> Actor<'_> {
        Actor { name: &self.actor, tenant: self.tenant.as_deref(), at: now() }
    }

    /// The order in the body. None at all is an empty one.
    pub fn order<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body = if self.body.trim_ascii().is_empty() { b"{}" } else { &*self.body };
        serde_json::from_slice(body).map_err(|error| {
            problem::wrong(format!("the body is not the JSON that is expected here: {error}"))
        })
    }

    /// The id in the path.
    pub fn id(&self) -> Result<Seq, Problem> {
        self.path.parse().map_err(|error| problem::wrong(format!("{:?} is {error}", self.path)))
    }
}

/// A page of a list; `next` leads to the one after it.
pub fn page(items: Vec<Value>, limit: usize) -> Value {
    let next = items.last().filter(|_| items.len() == limit).map(|last| last["id"].clone());
    json!({ "items": items, "next": next })
}
