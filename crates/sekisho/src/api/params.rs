//! What stands after the `?`: which parameters an endpoint knows, and how they are read.

use schemars::{Schema, SchemaGenerator};
use sekisho_core::{Seq, Time};
use sekisho_store::FIND_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::endpoint::{Endpoint, SchemaOf, schema};
use super::problem;
use crate::http::Problem;
use crate::types::read_query;

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

/// A parameter as the document describes it.
pub struct Described {
    pub name: String,
    pub about: String,
    pub schema: Schema,
}

/// Everything that an endpoint knows: the fields of its query, then its other parameters.
pub fn known(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Vec<Described> {
    let mut known = endpoint.query.map_or_else(Vec::new, |query| fields(query, generator));
    known.extend(endpoint.parameters.iter().map(|parameter| Described {
        name: parameter.name.to_owned(),
        about: parameter.about.to_owned(),
        schema: (parameter.schema)(generator),
    }));
    known
}

/// The names of all of them.
pub fn names(endpoint: &Endpoint) -> Vec<String> {
    known(endpoint, &mut SchemaGenerator::default()).into_iter().map(|known| known.name).collect()
}

fn fields(query: SchemaOf, generator: &mut SchemaGenerator) -> Vec<Described> {
    let reference = query(generator);
    let name = reference.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let fields = name.and_then(|name| generator.definitions().get(name)?.get("properties")?.as_object());
    let fields = fields.expect("a query is a struct with a schema of its own");
    fields.iter().map(|(name, schema)| field(name, schema)).collect()
}

fn field(name: &str, schema: &Value) -> Described {
    let mut schema = Schema::try_from(schema.clone()).expect("a field has a schema");
    let about = schema.remove("description");
    schema.remove("default");
    // What is not given is left out; after a `?` nothing is null.
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        let kind = kinds.pop().expect("a field can be more than null");
        schema.insert("type".to_owned(), kind);
    }
    let about = about.as_ref().and_then(Value::as_str).unwrap_or_default().trim_end_matches('.');
    Described { name: name.to_owned(), about: about.to_owned(), schema }
}

/// What was given.
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Each is known and given once.
    pub fn check(given: Vec<(String, String)>, known: &[String]) -> Result<Self, Problem> {
        for (n, (name, value)) in given.iter().enumerate() {
            if !known.contains(name) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let shown: String = name.chars().take(100).collect();
                let detail = format!("there is no such parameter here; known are: {known}");
                return Err(problem::parameter(&shown, detail));
            }
            if given[..n].iter().any(|(earlier, _)| earlier == name) {
                return Err(problem::parameter(name, "is given twice".into()));
            }
            if value.contains(char::is_control) {
                return Err(problem::parameter(name, "expected a text without control characters".into()));
            }
        }
        Ok(Self(given))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.get(LIMIT.name) else { return Ok(LIMIT_DEFAULT) };
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
        self.get(name).map(parse).transpose()
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        let parse =
            |text: &str| text.parse().map_err(|_| problem::parameter(name, "expected true or false".into()));
        self.get(name).map(parse).transpose()
    }

    pub fn time(&self, name: &str) -> Result<Option<Time>, Problem> {
        let wanted = "expected a time such as 2026-02-02T02:40:00Z";
        let parse =
            |text: &str| Time::parse_rfc3339(text).ok_or_else(|| problem::parameter(name, wanted.into()));
        self.get(name).map(parse).transpose()
    }

    /// The endpoint's query.
    pub fn query<Q: Default + Serialize + DeserializeOwned>(&self) -> Result<Q, Problem> {
        let given = |name: &str| self.get(name).map(str::to_owned);
        read_query(given).map_err(|wrong| problem::parameter(&wrong.field, wrong.detail))
    }
}
