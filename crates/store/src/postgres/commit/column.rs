//! A column of what a commit is given: its name and type in the statement, and its value in a row.
//!
//! The statement numbers its parameters by the same lists that fill them, so that no number is written by hand.

use tokio_postgres::types::ToSql;

use crate::postgres::upkeep::without_nul;

/// One array for each column, table after table.
#[derive(Default)]
pub struct Columns<'s> {
    pub tables: Vec<ColumnTable>,
    values: Vec<Box<dyn ToSql + Sync + Send + 's>>,
}

/// What the statement must know of a table.
pub struct ColumnTable {
    pub name: &'static str,
    pub columns: Vec<Shape>,
}

pub struct Shape {
    pub name: &'static str,
    /// Of one value; the parameter is an array of them.
    pub sql_type: &'static str,
    pub is_stored: bool,
}

pub struct Column<'s, R> {
    name: &'static str,
    value: Value<'s, R>,
    /// A column of the stored table too, under the same name.
    is_stored: bool,
}

enum Value<'s, R> {
    Bigint(fn(&R) -> Option<i64>),
    Integer(fn(&R) -> Option<i32>),
    Boolean(fn(&R) -> Option<bool>),
    Text(fn(&R) -> Option<&'s str>),
    OwnText(fn(&R) -> Option<String>),
    Bytes(fn(&R) -> Option<&'s [u8]>),
    OwnBytes(fn(&R) -> Vec<u8>),
}

pub fn bigint<'s, R>(name: &'static str, value: fn(&R) -> Option<i64>) -> Column<'s, R> {
    Column { name, value: Value::Bigint(value), is_stored: true }
}

pub fn integer<'s, R>(name: &'static str, value: fn(&R) -> Option<i32>) -> Column<'s, R> {
    Column { name, value: Value::Integer(value), is_stored: true }
}

pub fn boolean<'s, R>(name: &'static str, value: fn(&R) -> Option<bool>) -> Column<'s, R> {
    Column { name, value: Value::Boolean(value), is_stored: true }
}

pub fn text<'s, R>(name: &'static str, value: fn(&R) -> Option<&'s str>) -> Column<'s, R> {
    Column { name, value: Value::Text(value), is_stored: true }
}

/// Text that is made for this row, free of NUL.
pub fn own_text<'s, R>(name: &'static str, value: fn(&R) -> Option<String>) -> Column<'s, R> {
    Column { name, value: Value::OwnText(value), is_stored: true }
}

pub fn bytes<'s, R>(name: &'static str, value: fn(&R) -> Option<&'s [u8]>) -> Column<'s, R> {
    Column { name, value: Value::Bytes(value), is_stored: true }
}

pub fn own_bytes<'s, R>(name: &'static str, value: fn(&R) -> Vec<u8>) -> Column<'s, R> {
    Column { name, value: Value::OwnBytes(value), is_stored: true }
}

/// Needed by the statement, but no column of the stored table.
pub fn unstored<R>(column: Column<'_, R>) -> Column<'_, R> {
    Column { is_stored: false, ..column }
}

impl<'s, R> Column<'s, R> {
    fn shape(&self) -> Shape {
        let sql_type = match self.value {
            Value::Bigint(_) => "bigint",
            Value::Integer(_) => "integer",
            Value::Boolean(_) => "boolean",
            Value::Text(_) | Value::OwnText(_) => "text",
            Value::Bytes(_) | Value::OwnBytes(_) => "bytea",
        };
        Shape { name: self.name, sql_type, is_stored: self.is_stored }
    }

    fn values(&self, rows: &[R]) -> Box<dyn ToSql + Sync + Send + 's> {
        match self.value {
            Value::Bigint(of) => Box::new(rows.iter().map(of).collect::<Vec<_>>()),
            Value::Integer(of) => Box::new(rows.iter().map(of).collect::<Vec<_>>()),
            Value::Boolean(of) => Box::new(rows.iter().map(of).collect::<Vec<_>>()),
            Value::Text(of) => Box::new(rows.iter().map(|row| of(row).map(without_nul)).collect::<Vec<_>>()),
            Value::OwnText(of) => Box::new(rows.iter().map(of).collect::<Vec<_>>()),
            Value::Bytes(of) => Box::new(rows.iter().map(of).collect::<Vec<_>>()),
            Value::OwnBytes(of) => Box::new(rows.iter().map(of).collect::<Vec<_>>()),
        }
    }
}

impl<'s> Columns<'s> {
    pub fn add<R>(&mut self, name: &'static str, columns: &[Column<'s, R>], rows: &[R]) {
        self.tables.push(ColumnTable { name, columns: columns.iter().map(Column::shape).collect() });
        self.values.extend(columns.iter().map(|column| column.values(rows)));
    }

    /// A parameter of its own, behind the tables.
    pub fn push(&mut self, value: impl ToSql + Sync + Send + 's) {
        self.values.push(Box::new(value));
    }

    pub fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|column| &**column as &(dyn ToSql + Sync)).collect()
    }
}
