//! An operator's expression over an event, in CEL: `event.livemode && body.data.object.amount > 1000`.
//!
//! Compiled at start, so that a slip is found before an event is. An expression has no side effects, and how deep it
//! is and how long it runs is bounded ([`limit`]); a panic of the library is an error of the rule. A key that is not
//! there is an error too, never silently false; `has(body.x)` asks first.

mod limit;

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, OnceLock};

use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::parser::{Expression, PrattParser};
use cel::{Context, Env, ExecutionError, ParseErrors, Value};

use crate::event::Stored;

/// Checked and ready. Cheap to clone.
#[derive(Clone)]
pub struct Rule(Arc<Compiled>);

struct Compiled {
    text: String,
    expression: Expression,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({:?})", self.as_str())
    }
}

/// What is wrong with a rule, or why it has no answer for this event. Holds nothing of the event but names of keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(pub String);

/// With what the standard library offers, and the meter that loops pass through.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    limit::install(&mut env);
    Arc::new(env)
});

impl Rule {
    pub fn compile(text: &str) -> Result<Self, RuleError> {
        limit::check_text(text)?;
        let parsed = caught(|| PrattParser::new().parse(text))?;
        let mut expression = parsed.map_err(|errors| explain_parse(&errors))?;
        caught(|| limit::bound(&mut expression))??;
        Ok(Self(Arc::new(Compiled { text: text.to_owned(), expression })))
    }

    /// Whether it can ever be a condition: names only what there is, and where it has an answer for an empty event, that is
    /// true or false. A key that an event may have is no reason to complain.
    pub fn check_condition(&self) -> Result<(), RuleError> {
        let nothing = Stored::nothing();
        let variables = Variables::of(&nothing);
        match self.evaluate(&variables)? {
            Err(error @ ExecutionError::UndeclaredReference(_)) => Err(explain(&error)),
            Ok(Value::Bool(_)) | Err(_) => Ok(()),
            Ok(other) => Err(RuleError(format!("expected true or false, found {}", other.type_of()))),
        }
    }

    /// The same of a condition over an order.
    pub fn check_order_condition(&self) -> Result<(), RuleError> {
        match self.evaluate_with(&OrderVariables::default(), 0)? {
            Err(ExecutionError::UndeclaredReference(name)) => {
                let known = "there are `payment`, `reservation` and `fulfilment`, and CEL's own functions";
                Err(RuleError(format!("`{name}` is not known; {known}")))
            }
            Ok(Value::Bool(_)) | Err(_) => Ok(()),
            Ok(other) => Err(RuleError(format!("expected true or false, found {}", other.type_of()))),
        }
    }

    /// Whether it holds for an order. What it can't answer does not hold, and says why.
    pub fn holds_for(&self, order: &OrderVariables) -> Result<bool, RuleError> {
        match self.evaluate_with(order, order.bytes)?.map_err(|error| explain(&error))? {
            Value::Bool(answer) => Ok(answer),
            other => Err(RuleError(format!("expected true or false, found {}", other.type_of()))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    pub fn is_true(&self, variables: &Variables<'_>) -> Result<bool, RuleError> {
        match self.evaluate(variables)?.map_err(|error| explain(&error))? {
            Value::Bool(answer) => Ok(answer),
            other => Err(RuleError(format!("expected true or false, found {}", other.type_of()))),
        }
    }

    /// A text, number or boolean as text; `None` when it is null or not there.
    pub fn text(&self, variables: &Variables<'_>) -> Result<Option<String>, RuleError> {
        match self.evaluate(variables)? {
            Ok(Value::String(text)) => Ok(Some(text.to_string())),
            Ok(Value::Int(number)) => Ok(Some(number.to_string())),
            Ok(Value::UInt(number)) => Ok(Some(number.to_string())),
            Ok(Value::Float(number)) => Ok(Some(number.to_string())),
            Ok(Value::Bool(answer)) => Ok(Some(answer.to_string())),
            Ok(Value::Null) | Err(ExecutionError::NoSuchKey(_)) => Ok(None),
            Ok(other) => {
                Err(RuleError(format!("expected a text, a number or a boolean, found {}", other.type_of())))
            }
            Err(error) => Err(explain(&error)),
        }
    }

    fn evaluate(&self, variables: &Variables<'_>) -> Result<Result<Value, ExecutionError>, RuleError> {
        self.evaluate_with(variables, variables.event.body.len())
    }

    fn evaluate_with(
        &self,
        variables: &dyn VariableResolver,
        bytes: usize,
    ) -> Result<Result<Value, ExecutionError>, RuleError> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(variables);
        limit::metered(bytes, || caught(|| Value::resolve(&self.0.expression, &context)))?
    }
}

/// What rules about orders may look at. What is not there is null.
pub struct OrderVariables {
    payment: Box<dyn Val>,
    reservation: Box<dyn Val>,
    fulfilment: Box<dyn Val>,
    /// How much there is to look at.
    bytes: usize,
}

impl Default for OrderVariables {
    fn default() -> Self {
        Self::new(serde_json::Value::Null, serde_json::Value::Null, serde_json::Value::Null)
    }
}

impl OrderVariables {
    pub fn new(
        payment: serde_json::Value,
        reservation: serde_json::Value,
        fulfilment: serde_json::Value,
    ) -> Self {
        let bytes = [&payment, &reservation, &fulfilment].iter().map(|value| value.to_string().len()).sum();
        let [payment, reservation, fulfilment] =
            [payment, reservation, fulfilment].map(|value| as_val(from_json(value)));
        Self { payment, reservation, fulfilment, bytes }
    }
}

impl VariableResolver for OrderVariables {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let value = match name {
            "payment" => &self.payment,
            "reservation" => &self.reservation,
            "fulfilment" => &self.fulfilment,
            _ => return None,
        };
        Some(CowVal::Borrowed(value.as_ref()))
    }
}

/// What rules may look at: `event` and `body`. Made once per event; nothing is parsed before a rule asks for it.
pub struct Variables<'e> {
    event: &'e Stored,
    about: OnceLock<Box<dyn Val>>,
    body: OnceLock<Box<dyn Val>>,
}

impl<'e> Variables<'e> {
    pub fn of(event: &'e Stored) -> Self {
        Self { event, about: OnceLock::new(), body: OnceLock::new() }
    }

    fn about(&self) -> Value {
        let event = self.event;
        let text = |text: &str| Value::from(text);
        let maybe = |value: Option<&str>| value.map_or(Value::Null, text);
        // Without an object its parts are null, so that `event.object.id` has an answer for every event.
        let (kind, id) = event.object.as_ref().map(|(kind, id)| (kind.as_str(), id.as_str())).unzip();
        let object = Value::from(HashMap::from([("kind", maybe(kind)), ("id", maybe(id))]));
        Value::from(HashMap::from([
            ("id", text(&event.seq.as_event().to_string())),
            ("event_id", text(&event.event_id)),
            ("type", text(&event.event_type)),
            ("source", text(&event.source)),
            ("account", maybe(event.account.as_deref())),
            ("livemode", event.livemode.map_or(Value::Null, Value::Bool)),
            ("object", object),
            ("trust", text(event.trust.name())),
            ("received_at", text(&event.received_at.to_string())),
        ]))
    }

    /// The provider's JSON; null when the body is none. serde_json refuses what is nested deeper than 128.
    fn body(&self) -> Value {
        serde_json::from_slice(&self.event.body).map_or(Value::Null, from_json)
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let value = match name {
            "event" => self.about.get_or_init(|| as_val(self.about())),
            "body" => self.body.get_or_init(|| as_val(self.body())),
            _ => return None,
        };
        Some(CowVal::Borrowed(value.as_ref()))
    }
}

fn as_val(value: Value) -> Box<dyn Val> {
    value.try_into().expect("texts, numbers, lists and maps have a form in CEL")
}

/// By hand, because integers must be CEL's `int`, so that `body.amount + 1` works.
fn from_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(boolean) => Value::Bool(boolean),
        serde_json::Value::Number(number) => number
            .as_i64()
            .map(Value::Int)
            .or_else(|| number.as_u64().map(Value::UInt))
            .unwrap_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN))),
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(values) => {
            Value::List(Arc::new(values.into_iter().map(from_json).collect()))
        }
        serde_json::Value::Object(fields) => Value::from(
            fields.into_iter().map(|(name, value)| (name, from_json(value))).collect::<HashMap<_, _>>(),
        ),
    }
}

/// The library's panics are not ours to die of.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, RuleError> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| RuleError("the expression makes its library panic; write it another way".into()))
}

fn explain_parse(errors: &ParseErrors) -> RuleError {
    let Some(first) = errors.errors.first() else { return RuleError("can't be understood".into()) };
    let what = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    match first.pos {
        (line, column) if line > 0 => RuleError(format!("line {line}, column {column}: {what}")),
        _ => RuleError(what.to_owned()),
    }
}

/// In our words: the library's would quote values, and those are the customers'.
fn explain(error: &ExecutionError) -> RuleError {
    RuleError(match error {
        ExecutionError::NoSuchKey(key) => {
            format!("there is no key `{key}` here; ask with has(…) first if it may be missing")
        }
        ExecutionError::UndeclaredReference(name) => {
            format!("`{name}` is not known; there are `event` and `body`, and CEL's own functions")
        }
        ExecutionError::NoSuchOverload(overload) => overload.to_string(),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function wants {expected} arguments and got {actual}")
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "a number is divided by zero".into()
        }
        ExecutionError::Overflow(..) => "a number grows too large".into(),
        ExecutionError::IndexOutOfBounds(_) => "a list is shorter than the index".into(),
        ExecutionError::FunctionError { function, .. } => format!("{function} does not work on this value"),
        _ => "a value has another type than the expression needs".into(),
    })
}

#[cfg(test)]
mod tests;
