//! Paths and queries of requests, with every character of a name taken as it is: what is no name leads to no other path.

use std::borrow::Cow;

use anyhow::bail;
use serde::Serialize;
use url::Url;

use crate::types::write_query;

/// What follows the `?`.
#[derive(Clone, Default)]
pub struct Query(Vec<(Cow<'static, str>, String)>);

impl Query {
    pub fn new() -> Self {
        Self::default()
    }

    /// Every condition that is set.
    pub fn of_list(query: &impl Serialize) -> Self {
        Self(write_query(query).into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Nothing is added without a value.
    pub fn with(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.0.extend(value.map(|value| (name.into(), value.to_string())));
        self
    }

    /// Added only if it is set.
    pub fn flag(self, name: &'static str, is_set: bool) -> Self {
        self.with(name, is_set.then_some(true))
    }

    pub(super) fn of(&self, path: &str) -> String {
        if self.0.is_empty() {
            return path.to_owned();
        }
        let pairs = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish();
        format!("{path}?{pairs}")
    }
}

/// The path of the API with these parts.
pub fn path(parts: &[&str]) -> anyhow::Result<String> {
    if let Some(part) = parts.iter().find(|part| matches!(**part, "" | "." | "..")) {
        bail!("{part:?} is no name");
    }
    let mut url = Url::parse("http://localhost/v1")?;
    url.path_segments_mut().expect("http has a path").extend(parts);
    Ok(url.path().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_what_is_no_name_leads_to_no_other_path() {
        let cases = [
            ("ntc_1", Some("/v1/notices/ntc_1/resend")),
            ("a/../b?c#d", Some("/v1/notices/a%2F..%2Fb%3Fc%23d/resend")),
            ("社", Some("/v1/notices/%E7%A4%BE/resend")),
            ("..", None),
            ("", None),
        ];
        for (id, expected) in cases {
            assert_eq!(path(&["notices", id, "resend"]).ok().as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn h2_a_query_holds_what_has_a_value() {
        let query = Query::new().with("tenant", Some("a&b c")).with("none", None::<&str>).flag("own", true);
        assert_eq!(query.flag("all", false).of("/v1/events"), "/v1/events?tenant=a%26b+c&own=true");
        assert_eq!(Query::new().of("/v1/books"), "/v1/books");
    }
}
