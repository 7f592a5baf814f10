//! The columns of a row, one after the other.

use rusqlite::Row;
use rusqlite::types::FromSql;

use super::connection::unreadable;
use crate::find::RowReader;

/// The columns of a row from one of them on.
pub struct SqliteRow<'r, 's> {
    row: &'r Row<'s>,
    next: usize,
}

impl<'r, 's> SqliteRow<'r, 's> {
    pub const fn of(row: &'r Row<'s>, first: usize) -> Self {
        Self { row, next: first }
    }

    fn cell<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }
}

impl RowReader for SqliteRow<'_, '_> {
    type Error = rusqlite::Error;

    fn text(&mut self) -> rusqlite::Result<String> {
        self.cell()
    }

    fn optional_text(&mut self) -> rusqlite::Result<Option<String>> {
        self.cell()
    }

    fn integer(&mut self) -> rusqlite::Result<i64> {
        self.cell()
    }

    fn optional_integer(&mut self) -> rusqlite::Result<Option<i64>> {
        self.cell()
    }

    fn small_integer(&mut self) -> rusqlite::Result<i32> {
        self.cell()
    }

    fn optional_small_integer(&mut self) -> rusqlite::Result<Option<i32>> {
        self.cell()
    }

    fn unreadable(&self, what: &'static str) -> rusqlite::Error {
        unreadable(self.next - 1, what)
    }
}
