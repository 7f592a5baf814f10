//! A list as a CSV file, for spreadsheets: as many rows as the filters find, up to a limit, in UTF-8 with the mark by which
//! spreadsheets know it. No cell becomes a formula, whoever wrote it.

use axum::body::Body;
use http::{HeaderValue, Response, header};

use super::page::{Answer, Reply};
use super::trouble::Trouble;

/// Rows of one file.
pub const ROWS_MAX: usize = 10_000;

const BYTE_ORDER_MARK: &str = "\u{feff}";

pub struct CsvFile(csv::Writer<Vec<u8>>);

impl CsvFile {
    pub fn new<const N: usize>(columns: [&str; N]) -> Result<Self, Trouble> {
        let mut sheet = Self(csv::Writer::from_writer(BYTE_ORDER_MARK.as_bytes().to_vec()));
        sheet.row(columns.map(str::to_owned))?;
        Ok(sheet)
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) -> Result<(), Trouble> {
        self.0.write_record(cells.map(harmless)).map_err(|error| Trouble::Broken(error.to_string()))
    }

    /// The file; `name` without its ending.
    pub fn reply(self, name: &'static str) -> Answer {
        let bytes = self.0.into_inner().map_err(|error| Trouble::Broken(error.to_string()))?;
        let mut answer = Response::new(Body::from(bytes));
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
        let disposition = format!("attachment; filename=\"sekisho-{name}.csv\"");
        headers.insert(
            header::CONTENT_DISPOSITION,
            HeaderValue::from_str(&disposition).expect("names of lists are plain words"),
        );
        Ok(Reply::Other(answer))
    }
}

/// What a spreadsheet would take for a formula is text; numbers stay numbers.
fn harmless(cell: String) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<i64>().is_err();
    if is_formula { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h1_no_cell_becomes_a_formula_and_numbers_stay_numbers() {
        for (cell, written) in [
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("+1-2", "'+1-2"),
            ("@x", "'@x"),
            ("-200", "-200"),
            ("1200", "1200"),
            ("注文 1", "注文 1"),
            ("", ""),
        ] {
            assert_eq!(harmless(cell.into()), written);
        }
    }
}
