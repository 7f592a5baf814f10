//! Conditions of a filter that both databases write the same way. Where a database needs a hint for its indexes, its own file
//! writes the condition.

/// What one column must be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Text(&'static str, String),
    Number(&'static str, i64),
    /// Exact, or a prefix when it ends in `*`.
    Word(&'static str, String),
    AtLeast(&'static str, i64),
    Below(&'static str, i64),
}
