//! A CSV file as people keep it: which row says what, in which line. UTF-8 with or without a mark at its beginning; what
//! Excel saves in other encodings is recognised, and said with the way to save it right.

use sekisho_core::directory::Register;
use sekisho_core::text::nearest;
use serde_json::{Map, Value};

use crate::acts::FieldError;

/// Most rows of a file.
const ROWS_MAX: usize = 100_000;

pub struct Sheet {
    pub rows: Vec<SheetRow>,
    pub problems: Vec<SheetProblem>,
}

/// One line, as an order to the directory.
pub struct SheetRow {
    pub line: usize,
    pub order: Map<String, Value>,
}

impl SheetRow {
    pub fn problem(&self, error: FieldError) -> SheetProblem {
        SheetProblem { line: self.line, column: error.field, detail: error.detail }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct SheetProblem {
    pub line: usize,
    pub column: String,
    pub detail: String,
}

/// What is wrong with the file as a whole is the error. Without a header that can be used there are no rows.
pub fn read(register: Register, bytes: &[u8]) -> Result<Sheet, String> {
    let text = decode(bytes)?;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
    let mut records = reader.records();
    let mut next = || {
        let record = records.next()?.map_err(|error| format!("can't be read: {error}"));
        Some(record.map(|record| {
            let byte = record.position().map_or(0, csv::Position::byte);
            (lines.of(byte as usize), record)
        }))
    };
    let Some((line, header)) = next().transpose()? else {
        return Err(format!("is empty; expected a first line with {}", register.fields().join(",")));
    };
    let (columns, mut problems) = columns(register, line, &header);
    let mut rows = Vec::new();
    if !problems.is_empty() {
        return Ok(Sheet { rows, problems });
    }
    while let Some((line, record)) = next().transpose()? {
        // What a table leaves behind its last row.
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        if rows.len() == ROWS_MAX {
            return Err(format!("has more than {ROWS_MAX} rows; split it into several"));
        }
        let mut row = SheetRow { line, order: Map::new() };
        if record.len() != columns.len() {
            let detail = format!(
                "has {} cells; expected {}, as the first line has (a text with a comma in it stands in quotes)",
                record.len(),
                columns.len()
            );
            problems.push(row.problem(FieldError::new("row", detail)));
            continue;
        }
        let mut is_whole = true;
        for (column, cell) in columns.iter().zip(&record) {
            match value(column, cell.trim()) {
                Ok(value) => row.order.extend(value.map(|value| ((*column).to_owned(), value))),
                Err(detail) => {
                    is_whole = false;
                    problems.push(row.problem(FieldError::new(column, detail)));
                }
            }
        }
        if is_whole {
            rows.push(row);
        }
    }
    Ok(Sheet { rows, problems })
}

/// Which column is what, by the first line.
fn columns(
    register: Register,
    line: usize,
    header: &csv::StringRecord,
) -> (Vec<&'static str>, Vec<SheetProblem>) {
    let (mut columns, mut problems) = (Vec::new(), Vec::new());
    let mut wrong = |column: &str, detail: String| {
        problems.push(SheetProblem { line, column: column.to_owned(), detail });
    };
    for cell in header {
        let name = cell.trim().to_lowercase();
        match register.fields().iter().find(|known| **known == name) {
            Some(known) if columns.contains(known) => {
                wrong(known, "is given twice; expected once".into());
            }
            Some(known) => columns.push(*known),
            None if header.len() == 1 && name.contains([';', '\t']) => {
                let detail = "is one column; expected comma-separated columns, not semicolons or tabs";
                wrong("header", detail.into());
            }
            None => {
                let shown: String = name.chars().take(50).collect();
                let meant = nearest(&shown, register.fields().iter().copied());
                let meant = meant.map(|meant| format!(" did you mean {meant}?")).unwrap_or_default();
                let known = register.fields().join(", ");
                wrong(&shown, format!("there is no such column;{meant} expected only {known}"));
            }
        }
    }
    for needed in register.needed().iter().filter(|needed| !columns.contains(needed)) {
        wrong(needed, format!("the column is missing; expected it in line {line}"));
    }
    (columns, problems)
}

/// A cell as the field takes it; an empty one says nothing.
fn value(column: &str, cell: &str) -> Result<Option<Value>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    let value = match column {
        "notifications" => match &*cell.to_lowercase() {
            "true" | "on" | "はい" => true.into(),
            "false" | "off" | "いいえ" => false.into(),
            _ => return Err(format!("{cell:?} is neither; expected true, false, on, off, はい or いいえ")),
        },
        "threshold_days" => cell.parse::<u64>().map_or_else(|_| cell.into(), Value::from),
        "renewal_due_on" | "assessment_due_on" => with_hyphens(cell).into(),
        _ => cell.into(),
    };
    Ok(Some(value))
}

/// Excel turns 2026-04-01 into 2026/4/1 wherever it finds one.
fn with_hyphens(date: &str) -> String {
    let parts: Vec<_> = date.split('/').collect();
    match parts[..] {
        [year, month, day] if year.len() == 4 => format!("{year}-{month:0>2}-{day:0>2}"),
        _ => date.to_owned(),
    }
}

/// The text without the mark that some programs write at its beginning.
fn decode(bytes: &[u8]) -> Result<&str, String> {
    let cure = "save it as UTF-8: in Excel, File > Save As > \"CSV UTF-8 (Comma delimited)\" \
                (名前を付けて保存 →「CSV UTF-8 (コンマ区切り)」)";
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(format!("is written in UTF-16; {cure}"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        // Letters that were UTF-8 up to here are no accident: then the file is damaged, and not Shift_JIS.
        if bytes[..error.valid_up_to()].is_ascii() && is_shift_jis(bytes) {
            return format!("is written in Shift_JIS, as Excel in Japan does; {cure}");
        }
        let line = Lines { text: bytes, at: 0, line: 1 }.of(error.valid_up_to());
        format!("is not written in UTF-8 (line {line}); {cure}")
    })
}

/// Whether every byte has its place in that encoding: alone, or as the first or second half of a letter.
fn is_shift_jis(bytes: &[u8]) -> bool {
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        let is_fine = match byte {
            0x00..=0x7f | 0xa1..=0xdf => true,
            0x81..=0x9f | 0xe0..=0xfc => {
                bytes.next().is_some_and(|second| matches!(second, 0x40..=0x7e | 0x80..=0xfc))
            }
            0x80 | 0xa0 | 0xfd..=0xff => false,
        };
        if !is_fine {
            return false;
        }
    }
    true
}

/// Counts lines; asked in rising order.
struct Lines<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of what comes at this byte. The reader names where it began to look, which is before empty lines.
    fn of(&mut self, byte: usize) -> usize {
        let is_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let start = byte + self.text[byte..].iter().take_while(is_end).count();
        for n in self.at..start {
            let is_half = self.text[n] == b'\r' && self.text.get(n + 1) == Some(&b'\n');
            self.line += usize::from(is_end(&&self.text[n]) && !is_half);
        }
        self.at = start.max(self.at);
        self.line
    }
}
