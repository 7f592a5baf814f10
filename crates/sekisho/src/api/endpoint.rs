//! One endpoint: what stands in the table, and what its answer is made from.

use std::pin::Pin;
use std::sync::Arc;

use axum::routing::MethodFilter;
use bytes::Bytes;
use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use sekisho_core::Seq;
use sekisho_core::audit::Role;
use sekisho_core::state::State;
use sekisho_store::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::params::{ADDRESSES, Parameter, Params, TENANT};
use super::{ApiContext, problem};
use crate::acts::{Actor, Answered, OnceKey, Refusal};
use crate::config::Scope;
use crate::http::Problem;
use crate::types::{FieldError, Linked, Page};
use crate::view::{Veiled, unlink};

pub struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    /// What its caller's key must allow; `None` is for everybody.
    pub scope: Option<Scope>,
    /// Whether a key of one tenant may use it; it then sees and touches only what is that tenant's.
    pub for_tenants: bool,
    pub summary: &'static str,
    /// Those after the `?`.
    pub parameters: &'static [Parameter],
    /// Types in [`crate::types`]. Each field of the query is a parameter, too.
    pub query: Option<SchemaOf>,
    pub body: Option<SchemaOf>,
    pub answer: SchemaOf,
    pub success: Success,
    pub run: fn(Call) -> Running,
}

/// Describes a type in the document.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// How it is said that all went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    Done,
    Created,
    /// The same order under the same `Idempotency-Key` gets the same answer again.
    CreatedOnce,
    /// It will be done; the same order under the same `Idempotency-Key` gets the same answer again.
    AcceptedOnce,
}

impl Success {
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Done => StatusCode::OK,
            Self::Created | Self::CreatedOnce => StatusCode::CREATED,
            Self::AcceptedOnce => StatusCode::ACCEPTED,
        }
    }

    /// Whether the caller's `Idempotency-Key` counts.
    pub const fn is_once(self) -> bool {
        match self {
            Self::Done | Self::Created => false,
            Self::CreatedOnce | Self::AcceptedOnce => true,
        }
    }
}

/// What an endpoint has to say.
pub struct Reply {
    pub value: Value,
    /// Carried out before: this is the answer of then.
    pub repeated: bool,
}

impl<T: Serialize> From<T> for Reply {
    fn from(value: T) -> Self {
        let value = serde_json::to_value(value).expect("types of the API have text keys and no floats");
        Self { value, repeated: false }
    }
}

impl Reply {
    pub fn once(answered: Answered) -> Self {
        Self { value: answered.answer, repeated: answered.repeated }
    }
}

pub type Answer = Result<Reply, Problem>;
pub type Running = Pin<Box<dyn Future<Output = Answer> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    pub(super) const fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// One request, admitted and read.
pub struct Call {
    pub api: Arc<ApiContext>,
    /// Who asks, for the audit log.
    pub actor: String,
    pub role: Role,
    /// What its key allows.
    pub scope: Scope,
    /// The one tenant whose things it may see and touch, if not all.
    pub tenant: Option<String>,
    /// The one run it may answer for, if it showed that run's token and no key.
    pub run: Option<u32>,
    /// What stands for the braces of the path.
    pub path: String,
    /// What stands after the `?`.
    pub params: Params,
    pub body: Bytes,
    /// Which order it is, if the caller says so.
    pub request: Option<OnceKey>,
}

impl Call {
    /// Whose things are listed: those of the caller's own tenant, where it has one.
    pub fn of_tenant(&self) -> Result<Option<String>, Problem> {
        let asked = self.params.get(TENANT.name);
        let wanted = asked.or(self.tenant.as_deref());
        self.actor().check_tenant(wanted).map_err(Refusal::from)?;
        Ok(wanted.map(str::to_owned))
    }

    /// Whether it may see what belongs to this tenant; `None` is nobody's.
    pub fn may_see(&self, tenant: Option<&str>) -> bool {
        self.tenant.is_none() || self.tenant.as_deref() == tenant
    }

    /// Whether mail addresses are shown whole: to those who ask, with a key that could also write them.
    pub fn wants_addresses(&self) -> Result<bool, Problem> {
        match self.params.get(ADDRESSES.name) {
            None => Ok(false),
            Some("full") if self.scope >= Scope::Write => Ok(true),
            Some("full") => Err(problem::no_scope(&self.actor, Scope::Write)),
            Some(_) => Err(problem::parameter(ADDRESSES.name, "expected full, or nothing at all".into())),
        }
    }

    /// What came from outside, with whole addresses only for those who may see them and ask.
    pub fn veiled<T: Veiled + Serialize>(&self, mut shown: T) -> Answer {
        if !self.wants_addresses()? {
            shown.veil();
        }
        Ok(shown.into())
    }

    pub fn actor(&self) -> Actor<'_> {
        Actor { name: &self.actor, role: self.role, tenant: self.tenant.as_deref(), at: self.api.env.wall() }
    }

    /// The order in the body. None at all is an empty one.
    pub fn order<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        order(&self.body)
    }

    /// The same, of what has many fields: one that is missing or unknown is named.
    pub fn fields<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body: Value = self.order()?;
        serde_json::from_value(body).map_err(|error| Refusal::Fields(vec![field_error(&error)]).into())
    }

    /// The id in the path.
    pub fn id(&self) -> Result<Seq, Problem> {
        self.path.parse().map_err(|error| problem::wrong(format!("{:?} is {error}", self.path)))
    }
}

/// What a body orders.
pub fn order<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| problem::wrong(format!("the body is not the JSON that is expected here: {error}")))
}

/// Which field is wrong, by the words of the library: it names it in backticks first.
fn field_error(error: &serde_json::Error) -> FieldError {
    let text = error.to_string();
    let field = text.split('`').nth(1).unwrap_or_default();
    match text.split_once('`').map(|(start, _)| start.trim_end()) {
        Some("missing field") => FieldError::new(field, "is needed"),
        Some("unknown field") => {
            let known: Vec<&str> = text.split('`').skip(3).step_by(2).collect();
            FieldError::new(field, format!("there is no such field; known are {}", known.join(", ")))
        }
        _ => FieldError::new("body", text),
    }
}

/// A page of things. What was merged into another or deleted is left out: such a page is shorter, and still leads on.
pub async fn page_of_states<T: Linked + Serialize>(
    store: &dyn Store,
    states: &[State],
    limit: usize,
    view: impl Fn(&State) -> sekisho_store::Result<T>,
) -> Answer {
    let next = states.last().filter(|_| states.len() == limit).map(|last| last.key.id.clone());
    // Facts that can't be read don't hide the others.
    let unreadable = |state: &State, error: sekisho_store::Error| {
        let (id, object) = (&state.key.id, state.key.kind.name());
        json!({ "id": id, "object": object, "status": "unreadable", "error": error.chain() })
    };
    let shown = states.iter().filter(|state| state.is_shown());
    let mut rows: Vec<Result<T, Value>> =
        shown.map(|state| view(state).map_err(|error| unreadable(state, error))).collect();
    unlink(store, rows.iter_mut().filter_map(|row| row.as_mut().ok())).await?;
    let items = rows.into_iter().map(|row| row.map_or_else(|unreadable| unreadable, |row| json!(row)));
    Ok(Page::<Value> { items: items.collect(), next }.into())
}
