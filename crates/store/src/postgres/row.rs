//! The columns of a row, one after the other.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::connection::{unreadable, value};
use crate::error::{Error, Result};
use crate::find::RowReader;

/// The columns of a row from one of them on.
pub struct PostgresRow<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> PostgresRow<'r> {
    pub const fn of(row: &'r Row, first: usize) -> Self {
        Self { row, next: first }
    }

    fn cell<T: FromSql<'r>>(&mut self) -> Result<T> {
        self.next += 1;
        value(self.row, self.next - 1)
    }
}

impl RowReader for PostgresRow<'_> {
    type Error = Error;

    fn text(&mut self) -> Result<String> {
        self.cell()
    }

    fn optional_text(&mut self) -> Result<Option<String>> {
        self.cell()
    }

    fn integer(&mut self) -> Result<i64> {
        self.cell()
    }

    fn optional_integer(&mut self) -> Result<Option<i64>> {
        self.cell()
    }

    fn small_integer(&mut self) -> Result<i32> {
        self.cell()
    }

    fn optional_small_integer(&mut self) -> Result<Option<i32>> {
        self.cell()
    }

    fn unreadable(&self, what: &'static str) -> Error {
        unreadable(what)
    }
}
