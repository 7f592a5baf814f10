//! How a run failed: whether trying again can help, said where it is known and never guessed later from a text.

use crate::job::Class;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub class: Class,
    /// Stable word to filter by: `timeout`.
    pub reason: &'static str,
    /// A sentence for a person.
    pub error: String,
    /// How long the other side asked to be left alone.
    pub retry_after_ms: Option<i64>,
    /// The other side is in trouble, not this piece of work: counts for its breaker.
    pub blames_destination: bool,
}

impl Failure {
    pub fn transient(reason: &'static str, error: impl Into<String>) -> Self {
        Self {
            class: Class::Transient,
            reason,
            error: error.into(),
            retry_after_ms: None,
            blames_destination: false,
        }
    }

    pub fn terminal(reason: &'static str, error: impl Into<String>) -> Self {
        Self { class: Class::Terminal, ..Self::transient(reason, error) }
    }

    #[must_use]
    pub fn blaming_destination(self) -> Self {
        Self { blames_destination: true, ..self }
    }

    #[must_use]
    pub fn after_ms(self, retry_after_ms: Option<i64>) -> Self {
        Self { retry_after_ms, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b3_a_class_is_found_by_its_name() {
        for class in [Class::Transient, Class::Terminal] {
            assert_eq!(Class::parse(class.name()), Some(class));
        }
        assert_eq!(Class::parse("perhaps"), None);
    }
}
