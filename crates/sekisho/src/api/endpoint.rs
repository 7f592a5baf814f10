//! One endpoint: what stands in the table, and what its answer is made from.

use std::pin::Pin;
use std::sync::Arc;

use axum::routing::MethodFilter;
use bytes::Bytes;
use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use sekisho_core::audit::Role;
use sekisho_core::state::State;
use sekisho_core::{Seq, Time};
use sekisho_store::{FIND_MAX, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Api, problem};
use crate::acts::{Actor, Answered, Refusal, Request};
use crate::config::Scope;
use crate::http::Problem;
use crate::types::{Linked, Page};
use crate::view::{Veiled, unlink};

pub struct Endpoint {
    pub method: Verb,
    pub path: &'static str,
    /// What its caller's key must allow; `None` is for everybody.
    pub scope: Option<Scope>,
    /// Whether a key of one tenant may use it; it then sees and touches only what is that tenant's.
    pub for_tenants: bool,
    pub summary: &'static str,
    /// Those after the `?`.
    pub parameters: &'static [Parameter],
    /// Types in [`crate::types`].
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
pub enum Verb {
    Get,
    Post,
    Delete,
}

impl Verb {
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

/// One after the `?`.
pub struct Parameter {
    pub name: &'static str,
    pub schema: SchemaOf,
    pub about: &'static str,
}

impl Parameter {
    pub const fn text(name: &'static str, about: &'static str) -> Self {
        Self { name, schema: schema::<String>, about }
    }

    pub const fn time(name: &'static str, about: &'static str) -> Self {
        Self { name, schema: schema::<Time>, about }
    }

    pub const fn integer(name: &'static str, about: &'static str) -> Self {
        Self { name, schema: schema::<u32>, about }
    }

    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Self { name, schema: schema::<bool>, about }
    }
}

pub const LIMIT: Parameter = Parameter::integer("limit", "Number of rows, 1 to 1000; default: 50");
pub const OWN: Parameter = Parameter::flag("own", "true: also what Sekisho announced or fetched itself");
pub const BEFORE: Parameter = Parameter::text("before", "Only older ones: `next` of the page before");
pub const AFTER: Parameter =
    Parameter::text("after", "Only newer ones, the oldest first: an id, or `next` of the page before");
pub const LIVEMODE: Parameter = Parameter::flag("livemode", "Only live ones, or only those of a test mode");
pub const TENANT: Parameter = Parameter::text("tenant", "Only this tenant's");
pub const WHOSE: Parameter = Parameter::text(
    "tenant",
    "Whose it is: needed where several tenants have this id; empty for what belongs to no tenant. Without it, what belongs to no tenant is meant, or else the only one there is",
);
pub const ADDRESSES: Parameter = Parameter::text(
    "addresses",
    "`full`: mail addresses as they are, in bodies too, for keys with the scope write; without it they are masked (t***@example.com)",
);

const LIMIT_DEFAULT: usize = 50;

/// One request, admitted and read.
pub struct Call {
    pub api: Arc<Api>,
    /// Who asks, for the audit log.
    pub actor: String,
    pub role: Role,
    /// What its key allows.
    pub scope: Scope,
    /// The one tenant whose things it may see and touch, if not all.
    pub tenant: Option<String>,
    /// What stands for the braces of the path.
    pub path: String,
    pub params: Vec<(String, String)>,
    pub body: Bytes,
    /// Which order it is, if the caller says so.
    pub request: Option<Request>,
}

impl Call {
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.param(LIMIT.name) else { return Ok(LIMIT_DEFAULT) };
        let limit = text.parse().ok().filter(|limit| (1..=FIND_MAX).contains(limit));
        limit.ok_or_else(|| problem::parameter(LIMIT.name, format!("expected a number from 1 to {FIND_MAX}")))
    }

    pub fn before(&self) -> Result<Option<Seq>, Problem> {
        self.cursor(BEFORE.name)
    }

    pub fn after(&self) -> Result<Option<Seq>, Problem> {
        self.cursor(AFTER.name)
    }

    fn cursor(&self, name: &str) -> Result<Option<Seq>, Problem> {
        let parse = |text: &str| text.parse().map_err(|error| problem::parameter(name, format!("{error}")));
        self.param(name).map(parse).transpose()
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        let parse =
            |text: &str| text.parse().map_err(|_| problem::parameter(name, "expected true or false".into()));
        self.param(name).map(parse).transpose()
    }

    pub fn time(&self, name: &str) -> Result<Option<Time>, Problem> {
        let wanted = "expected a time such as 2026-02-02T02:40:00Z";
        let parse =
            |text: &str| Time::parse_rfc3339(text).ok_or_else(|| problem::parameter(name, wanted.into()));
        self.param(name).map(parse).transpose()
    }

    /// Whose things are listed: those of the caller's own tenant, where it has one.
    pub fn of_tenant(&self) -> Result<Option<String>, Problem> {
        let asked = self.param(TENANT.name);
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
        match self.param(ADDRESSES.name) {
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

    /// The other parameters, as the query they make up.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let own = [LIMIT.name, BEFORE.name, AFTER.name, OWN.name];
        let others = self.params.iter().filter(|(name, _)| !own.contains(&&**name));
        let others: Map<_, _> =
            others.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        serde_json::from_value(others.into()).map_err(|error| problem::wrong(error.to_string()))
    }

    pub fn actor(&self) -> Actor<'_> {
        Actor { name: &self.actor, role: self.role, tenant: self.tenant.as_deref(), at: self.api.env.wall() }
    }

    /// The order in the body. None at all is an empty one.
    pub fn order<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        order(&self.body)
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
