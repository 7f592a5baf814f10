//! Long lists, page by page: JSON as it comes, a table when all of it is there.

use sekisho_core::Seq;
use serde_json::Value;

use super::output::{json_out, rows_out};

const PAGE: usize = 500;

#[derive(clap::Args)]
pub struct Pages {
    /// How many; 0 for all, page by page
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Only those older than this one: the last id of the page before
    #[arg(long, value_name = "ID")]
    before: Option<Seq>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// `fetch` gets a cursor and a limit, and gives the rows with their numbers.
pub async fn out<F>(
    args: &Pages,
    columns: &[(&str, &str)],
    nothing: &str,
    mut fetch: impl FnMut(Option<Seq>, usize) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<Vec<(Seq, Value)>>>,
{
    let mut before = args.before;
    let mut left = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut rows = Vec::new();
    while left > 0 {
        let wanted = left.min(PAGE);
        let page = fetch(before, wanted).await?;
        let is_last = page.len() < wanted;
        left -= page.len();
        before = page.last().map(|(seq, _)| *seq);
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
