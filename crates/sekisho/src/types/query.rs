//! The query of a list as names and texts, as an address or a form has it. The names are the fields of its type, so a new
//! condition is written there once.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::FieldError;

/// Reads a query from the texts that `given` has for its fields.
pub fn read_query<Q: Default + Serialize + DeserializeOwned>(
    given: impl Fn(&str) -> Option<String>,
) -> Result<Q, FieldError> {
    let mut found = Map::new();
    for (name, default) in fields(&Q::default()) {
        let Some(text) = given(&name) else { continue };
        let value = match default {
            Value::Bool(_) => {
                let flag = text.parse::<bool>().map_err(|_| FieldError::new(&name, "expected true or false"));
                flag?.into()
            }
            _ => Value::String(text),
        };
        // Alone first: the error then belongs to this field.
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        serde_json::from_value::<Q>(alone.into())
            .map_err(|error| FieldError::new(&name, error.to_string()))?;
        found.insert(name, value);
    }
    Ok(serde_json::from_value(found.into()).expect("each field was read alone"))
}

/// The conditions of a query that are set.
pub fn write_query(query: &impl Serialize) -> Vec<(String, String)> {
    let text = |(name, value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Bool(true) => Some((name, true.to_string())),
        _ => None,
    };
    fields(query).into_iter().filter_map(text).collect()
}

fn fields(query: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(query) {
        Ok(Value::Object(fields)) => fields,
        _ => unreachable!("a query is a struct of texts, times and flags"),
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;

    use super::*;
    use crate::types::EventQuery;

    #[test]
    fn h2_a_query_is_read_from_texts_and_written_as_texts() {
        let given =
            [("type", "payment.*"), ("since", "2026-02-02T02:40:00.000Z"), ("own", "true"), ("q", "x")];
        let get =
            |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        let query: EventQuery = read_query(get).unwrap();
        let since = Time::parse_rfc3339("2026-02-02T02:40:00Z");
        let expected =
            EventQuery { event_type: Some("payment.*".into()), since, own: true, ..EventQuery::default() };
        assert_eq!(query, expected);
        let mut written = write_query(&query);
        written.sort();
        let mut texts: Vec<_> =
            given[..3].iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        texts.sort();
        assert_eq!(written, texts);
        assert_eq!(write_query(&EventQuery::default()), []);
    }

    #[test]
    fn h2_a_wrong_condition_is_named() {
        for (name, text, wanted) in
            [("own", "yes", "true or false"), ("until", "yesterday", "a time such as")]
        {
            let wrong =
                read_query::<EventQuery>(|known| (known == name).then(|| text.to_owned())).unwrap_err();
            assert!(wrong.field == name && wrong.detail.contains(wanted), "{wrong:?}");
        }
    }
}
