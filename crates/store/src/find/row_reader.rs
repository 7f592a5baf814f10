//! The columns of a row as both databases read them, so that what is selected and how it is read stand in one place.

/// A row, read from left to right.
pub(crate) trait RowReader {
    type Error;

    fn text(&mut self) -> Result<String, Self::Error>;
    fn optional_text(&mut self) -> Result<Option<String>, Self::Error>;
    fn integer(&mut self) -> Result<i64, Self::Error>;
    fn optional_integer(&mut self) -> Result<Option<i64>, Self::Error>;
    fn small_integer(&mut self) -> Result<i32, Self::Error>;
    fn optional_small_integer(&mut self) -> Result<Option<i32>, Self::Error>;
    /// A word in the column that was read last is none of ours.
    fn unreadable(&self, what: &'static str) -> Self::Error;
}
