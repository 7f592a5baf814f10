//! Endpoints and their JSON, from the OpenAPI document that the server itself answers.

use serde_json::{Map, Value};

use super::cell;

/// A part for each endpoint: scope, parameters, body and answer.
pub fn endpoints(document: &Value) -> String {
    let mut text = "| endpoint | scope | |\n|---|---|---|\n".to_owned();
    let mut details = String::new();
    for (path, methods) in object(&document["paths"]) {
        for (method, endpoint) in methods.as_object().unwrap() {
            let name = format!("{} {path}", method.to_uppercase());
            let summary = cell(endpoint["summary"].as_str().unwrap());
            let link = anchor(&name);
            text += &format!("| [`{name}`](#{link}) | {} | {summary} |\n", scope(endpoint));
            details += &format!("\n### {}\n\n{summary}.\n{}", name.replace('{', "\\{"), detail(endpoint));
        }
    }
    text + &details
}

/// A table for each schema.
pub fn schemas(document: &Value) -> String {
    let mut text = String::new();
    for (name, schema) in object(&document["components"]["schemas"]) {
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}### {name}\n\n");
        if let Some(about) = schema["description"].as_str() {
            text += &format!("{}\n\n", cell(about));
        }
        match schema["properties"].as_object() {
            Some(fields) => text += &table("field", fields.iter().map(|(name, of)| (name.clone(), of, of))),
            None => text += &format!("{}\n", kind(schema)),
        }
    }
    text
}

fn detail(endpoint: &Value) -> String {
    let mut text = String::new();
    if let Some(body) = json_of(&endpoint["requestBody"]) {
        text += &format!("Body: {}. ", kind(body));
    }
    let good = endpoint["responses"].as_object().unwrap().iter().find(|(status, _)| status.starts_with('2'));
    if let Some((status, answer)) = good {
        text += &format!("Answer: {status}");
        text += &json_of(answer).map(|schema| format!(", {}", kind(schema))).unwrap_or_default();
        text += ".\n";
    }
    let parameters = endpoint["parameters"].as_array().cloned().unwrap_or_default();
    if !parameters.is_empty() {
        let rows =
            parameters.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), &one["schema"], one));
        text += &format!("\n{}", table("parameter", rows));
    }
    text
}

fn table<'v>(first: &str, rows: impl Iterator<Item = (String, &'v Value, &'v Value)>) -> String {
    let rows: Vec<_> = rows
        .map(|(name, schema, about)| {
            let about = about["description"].as_str().unwrap_or_default();
            (name, kind(schema), cell(about))
        })
        .collect();
    let is_told = rows.iter().any(|(_, _, about)| !about.is_empty());
    let mut text = format!(
        "| {first} | type |{}\n|---|---|{}\n",
        if is_told { " |" } else { "" },
        if is_told { "---|" } else { "" }
    );
    for (name, kind, about) in rows {
        let about = if is_told { format!(" {about} |") } else { String::new() };
        text += &format!("| `{name}` | {kind} |{about}\n");
    }
    text
}

fn scope(endpoint: &Value) -> String {
    let scope = endpoint["security"][0]["key"][0].as_str();
    scope.map(|scope| format!("`{scope}`")).unwrap_or_default()
}

fn json_of(content: &Value) -> Option<&Value> {
    let content = content["content"].as_object()?;
    content.values().next().map(|one| &one["schema"])
}

/// A type in words, with a link where it has a table of its own.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|value| format!("`{}`", plain(value))).collect();
        return values.join(", ");
    }
    if let Some(only) = schema.get("const") {
        return format!("`{}`", plain(only));
    }
    for several in ["anyOf", "oneOf", "allOf"] {
        if let Some(kinds) = schema[several].as_array() {
            return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let named = |name: &str| match name {
        "array" => format!("list of {}", kind(&schema["items"])),
        other => schema["format"].as_str().filter(|_| other == "string").unwrap_or(other).to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => named(name),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).map(named).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// As GitHub names a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}
