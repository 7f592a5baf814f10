//! Long lists, page by page: JSON as it comes, a table when all of it is there.

use std::error::Error;
use std::str::FromStr;

use sekisho_core::Seq;
use serde_json::Value;

use super::output::{json_out, rows_out};

const PAGE: usize = 500;

/// `C` is what a list is ordered by, as its ids are written.
#[derive(clap::Args)]
pub struct Pages<C = Seq>
where
    C: FromStr<Err: Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    /// How many; 0 for all, page by page
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Only those older than this one: the last id of the page before
    #[arg(long, value_name = "ID", value_parser = C::from_str)]
    before: Option<C>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `fetch` gets a cursor and a limit, and gives the rows with their cursors.
pub async fn out<C, F>(
    args: &Pages<C>,
    columns: &[(&str, &str)],
    nothing: &str,
    mut fetch: impl FnMut(Option<C>, usize) -> F,
) -> anyhow::Result<()>
where
    C: FromStr<Err: Error + Send + Sync> + Clone + Send + Sync + 'static,
    F: Future<Output = anyhow::Result<Vec<(C, Value)>>>,
{
    let mut before = args.before.clone();
    let mut left = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut rows = Vec::new();
    while left > 0 {
        let wanted = left.min(PAGE);
        let page = fetch(before, wanted).await?;
        let is_last = page.len() < wanted;
        left -= page.len();
        before = page.last().map(|(cursor, _)| cursor.clone());
        let page = page.into_iter().map(|(_, value)| value);
        if args.json {
            page.for_each(|value| json_out(&value));
        } else {
            rows.extend(page);
        }
        if is_last {
            break;
        }
    }
    if !args.json {
        rows_out(columns, &rows, nothing);
    }
    Ok(())
}
