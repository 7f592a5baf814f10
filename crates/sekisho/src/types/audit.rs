//! Entries of the audit log, as they are listed and as they are exported for others to check.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub id: i64,
    pub at: Time,
    /// Null is Sekisho itself.
    pub actor: Option<String>,
    pub role: Option<String>,
    /// `payment.paid`, `dead_letter.retried`, …
    pub action: String,
    /// The id of what was changed.
    pub target: String,
    pub target_type: String,
    pub tenant: Option<String>,
    /// The event that caused it: `evt_…`
    pub event: Option<String>,
    /// Why, as the actor said.
    pub reason: Option<String>,
    pub details: Value,
}

/// An entry with all that its digest is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SealedEntry {
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// The details to the letter, as they are hashed.
    pub details_text: String,
    pub event_number: Option<i64>,
    pub digest: String,
}

/// An entry with all that the hash of its link is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExportedEntry {
    #[serde(flatten)]
    pub entry: SealedEntry,
    pub chain: i64,
    pub n: i64,
    pub previous: String,
    pub hash: String,
}

/// Whether the log is as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditCheck {
    pub entries: u64,
    pub links: u64,
    pub anchors: u64,
    /// What is not as it was written; none in a log that is whole.
    pub faults: Vec<String>,
    /// When the newest anchor was written: what was cut off the end after it can't be seen.
    pub anchored_at: Option<Time>,
    /// The number of that entry.
    pub anchor: Option<i64>,
}

/// What the details of an entry say of a change to a payment or a billing. Each action has some of these fields; one that
/// is missing, or of another form than here, counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ChangeDetails {
    /// Of what was announced.
    #[serde(deserialize_with = "text")]
    pub id: Option<String>,
    /// The event that caused it: as its provider calls it, its type, and where it came from.
    #[serde(deserialize_with = "text")]
    pub event_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub event_type: Option<String>,
    #[serde(deserialize_with = "text")]
    pub source: Option<String>,
    /// The hash of that event's body, by which a later change of it is seen.
    #[serde(deserialize_with = "text")]
    pub body_sha256: Option<String>,
    /// The ids of what became part of it.
    pub merged: Value,
    /// Its summary before and after.
    pub before: Value,
    pub after: Value,
}

impl ChangeDetails {
    pub fn of(details: &str) -> Self {
        serde_json::from_str(details).map(Self::read).unwrap_or_default()
    }

    pub fn read(details: Value) -> Self {
        serde_json::from_value(details).unwrap_or_default()
    }

    pub fn merged_ids(self) -> Vec<String> {
        serde_json::from_value(self.merged).unwrap_or_default()
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d8_details_of_another_form_count_as_absent() {
        let read = ChangeDetails::of(r#"{"id":7,"event_id":"evt_1","merged":["pay_2"],"note":"x"}"#);
        assert_eq!((read.id.as_deref(), read.event_id.as_deref()), (None, Some("evt_1")));
        assert_eq!(read.merged_ids(), ["pay_2"]);
        assert_eq!(ChangeDetails::of("[]").merged_ids(), [""; 0]);
        assert_eq!(ChangeDetails::of("no JSON"), ChangeDetails::default());
    }

    #[test]
    fn d8_the_seal_of_a_body_is_read_under_the_name_it_is_written_by() {
        let sealed = format!(r#"{{"{}":"ab"}}"#, sekisho_core::audit::SEALED);
        assert_eq!(ChangeDetails::of(&sealed).body_sha256.as_deref(), Some("ab"));
    }
}
