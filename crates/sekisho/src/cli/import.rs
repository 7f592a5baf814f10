//! `sekisho staff import FILE.csv` and its siblings: one list of the directory, from a table that people keep.
//!
//! All or nothing: first every row is checked, here and then against the store by dry runs, and everything that is wrong
//! is said with its line. Only then is it written, a part at a time, each part whole or not at all. Should the store fail
//! in between, the same file again writes what is missing: rows that change nothing are left as they are.

mod sheet;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use sekisho_core::audit::Role;
use sekisho_core::directory::Register;
use serde_json::{Map, Value, json};

use super::client::{Client, Needs};
use super::output::{Progress, count, json_out, line_out, said};
use super::{Context, MISUSED};
use crate::acts::{self, Actor, FieldError, IMPORT_PROBLEMS_MAX, Import, Imported, Refusal};
use crate::now;
use sheet::{Sheet, SheetProblem, SheetRow};

#[derive(clap::Args)]
pub struct Args {
    /// UTF-8, comma-separated; its first line names the columns, an empty cell says nothing
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
}

const PATH: &str = "/v1/import";
/// Most bytes of a file.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Rows and bytes of one part: well below what the API takes.
const PART_ROWS: usize = 500;
const PART_BYTES: usize = 1 << 19;

pub async fn run(register: Register, args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let bytes = read(&args.file)?;
    let mut sheet = match sheet::read(register, &bytes) {
        Ok(sheet) => sheet,
        Err(why) => {
            eprintln!("error: {} {}", args.file.display(), said(&why));
            return Ok(ExitCode::from(MISUSED));
        }
    };
    check(register, &mut sheet);
    let client = Client::open(context, Needs::ACT).await?;
    let forecast = ask(&client, register, &mut sheet).await?;
    if !sheet.problems.is_empty() {
        return Ok(refuse(&args, sheet.problems));
    }
    let done =
        if args.dry_run { forecast } else { write(&client, register, &sheet.rows, &args.file).await? };
    report(&args, done);
    Ok(ExitCode::SUCCESS)
}

/// An order of those fields that are said.
pub fn order<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))).collect()
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let unreadable = || format!("can't read {}", file.display());
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).with_context(unreadable)?;
    opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("{} is larger than {} MiB; split it into several", file.display(), FILE_BYTES_MAX >> 20);
    }
    Ok(bytes)
}

/// What can be told without looking at the store. Rows that are wrong are taken out.
fn check(register: Register, sheet: &mut Sheet) {
    let actor = Actor { name: "", role: Role::Operator, tenant: None, at: now() };
    let mut seen = BTreeMap::new();
    let Sheet { rows, problems } = sheet;
    rows.retain(|row| {
        let before = problems.len();
        match acts::check_member(register, row.order.clone(), &actor) {
            Ok(()) => {}
            Err(Refusal::Fields(errors)) => {
                problems.extend(errors.into_iter().map(|error| row.problem(error)));
            }
            Err(other) => problems.push(row.problem(FieldError::new("row", other.to_string()))),
        }
        let text = |field| row.order.get(field).and_then(Value::as_str).unwrap_or_default();
        // Ids are the tenant's own.
        let (id, tenant) = (text("id"), text("tenant"));
        if let Some(first) = seen.get(&(tenant.to_owned(), id.to_owned())) {
            let detail = format!("{id} stands in line {first}, too; expected each id once");
            problems.push(row.problem(FieldError::new("id", detail)));
        } else if !id.is_empty() {
            seen.insert((tenant.to_owned(), id.to_owned()), row.line);
        }
        problems.len() == before
    });
}

/// What writing the rows would do. What only the store could know to be wrong is added to the problems.
async fn ask(client: &Client, register: Register, sheet: &mut Sheet) -> anyhow::Result<Imported> {
    let (mut sum, progress) = (Imported::default(), Progress::new());
    for part in parts(&sheet.rows) {
        if sheet.problems.len() >= IMPORT_PROBLEMS_MAX {
            break;
        }
        progress.show(&format!("checking line {} …", part[0].line));
        let asked: anyhow::Result<Imported> = client.post(PATH, &import_of(register, part, true)).await;
        match asked.map_err(anyhow::Error::downcast::<Refusal>) {
            Ok(would) => add(&mut sum, would),
            Err(Ok(Refusal::Fields(errors))) => {
                sheet.problems.extend(errors.into_iter().map(|error| at_row(part, error)));
            }
            Err(Ok(other)) => return Err(other.into()),
            Err(Err(other)) => return Err(other),
        }
    }
    sheet.problems.sort_by_key(|problem| problem.line);
    Ok(sum)
}

async fn write(
    client: &Client,
    register: Register,
    rows: &[SheetRow],
    file: &Path,
) -> anyhow::Result<Imported> {
    let (mut sum, progress) = (Imported::default(), Progress::new());
    for part in parts(rows) {
        let line = part[0].line;
        progress.show(&format!("writing line {line} …"));
        let written: anyhow::Result<Imported> = client.post(PATH, &import_of(register, part, false)).await;
        let stopped = || {
            format!(
                "stopped before line {line} of {}: the lines above are saved; import the file again to write the rest",
                file.display()
            )
        };
        add(&mut sum, written.with_context(stopped)?);
    }
    Ok(sum)
}

fn import_of(register: Register, part: &[SheetRow], dry_run: bool) -> Import {
    let rows = part.iter().map(|row| row.order.clone()).collect();
    Import { kind: register.kind().name().to_owned(), rows, dry_run }
}

fn add(sum: &mut Imported, more: Imported) {
    sum.new += more.new;
    sum.changed += more.changed;
    sum.unchanged += more.unchanged;
}

/// The rows in pieces that one request can carry.
fn parts(rows: &[SheetRow]) -> Vec<&[SheetRow]> {
    let (mut parts, mut rest) = (Vec::new(), rows);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take(PART_ROWS).take_while(|row| {
            bytes += json!(row.order).to_string().len();
            bytes <= PART_BYTES
        });
        let (part, later) = rest.split_at(fits.count().max(1));
        parts.push(part);
        rest = later;
    }
    parts
}

/// `rows[3].email` is the email of the line that the fourth row of the part has.
fn at_row(part: &[SheetRow], error: FieldError) -> SheetProblem {
    let place = error.field.strip_prefix("rows[").and_then(|rest| rest.split_once("]."));
    let row = place.and_then(|(n, _)| part.get(n.parse::<usize>().ok()?)).unwrap_or(&part[0]);
    let field = place.map_or(&*error.field, |(_, field)| field).to_owned();
    row.problem(FieldError { field, detail: error.detail })
}

fn refuse(args: &Args, problems: Vec<SheetProblem>) -> ExitCode {
    let (found, file) = (problems.len(), args.file.display());
    let told = problems.into_iter().take(IMPORT_PROBLEMS_MAX);
    if args.json {
        let told: Vec<_> = told
            .map(|SheetProblem { line, column, detail }| json!({ "line": line, "column": column, "detail": detail }))
            .collect();
        json_out(&json!({ "problems": told }));
    } else {
        for SheetProblem { line, column, detail } in told {
            eprintln!("{file}:{line}: {}: {}", said(&column), said(&detail));
        }
    }
    let more = if found > IMPORT_PROBLEMS_MAX {
        format!(", of which the first {IMPORT_PROBLEMS_MAX} are told")
    } else {
        String::new()
    };
    eprintln!("error: {file} has {}{more}; nothing was imported", count(found, "problem"));
    ExitCode::from(MISUSED)
}

fn report(args: &Args, done: Imported) {
    let Imported { new, changed, unchanged } = done;
    if args.json {
        let dry_run = args.dry_run;
        return json_out(
            &json!({ "new": new, "changed": changed, "unchanged": unchanged, "dry_run": dry_run }),
        );
    }
    let numbers = format!("{new} new, {changed} changed, {unchanged} unchanged");
    line_out(&if args.dry_run { format!("would be: {numbers}") } else { numbers });
}

#[cfg(test)]
mod tests;
