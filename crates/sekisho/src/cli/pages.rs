//! Long lists, page by page: JSON as it comes, a table when all of it is there.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{Client, ListPage, Query, Whole};
use super::output::{cell, json_out, rows_out};

const PAGE: usize = 500;

#[derive(clap::Args)]
pub struct Pages {
    /// How many; 0 for all, page by page
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    /// Only those older than this one: the last id of the page before
    #[arg(long, value_name = "ID")]
    pub before: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Where a list is, and how its table looks.
pub struct Listing<'a> {
    pub path: &'a str,
    pub query: Query,
    pub columns: &'a [(&'a str, &'a str)],
    /// What is said when there is none.
    pub nothing: &'a str,
}

/// `row` makes what the table shows of an item.
pub async fn out<T: DeserializeOwned, R: Serialize>(
    client: &Client,
    pages: &Pages,
    list: Listing<'_>,
    row: impl Fn(T) -> R,
) -> anyhow::Result<()> {
    let mut before = pages.before.clone();
    let mut left = if pages.limit == 0 { usize::MAX } else { pages.limit };
    let mut rows = Vec::new();
    while left > 0 {
        let query = list.query.clone().with("before", before).with("limit", Some(left.min(PAGE)));
        let ListPage { items, next } = client.get::<ListPage<Whole<T>>>(list.path, &query).await?;
        left -= items.len().min(left);
        if pages.json {
            items.iter().for_each(json_out);
        } else {
            rows.extend(items.into_iter().map(|item| row(item.known)));
        }
        before = next.map(|next| cell(&next));
        if before.is_none() {
            break;
        }
    }
    if !pages.json {
        rows_out(list.columns, &rows, list.nothing);
    }
    Ok(())
}
