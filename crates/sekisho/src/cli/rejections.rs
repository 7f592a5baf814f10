//! `sekisho rejections`: who was turned away, when, and why.

use std::convert::identity;
use std::process::ExitCode;

use super::Context;
use super::client::{Client, Needs, Query};
use super::pages::{self, Listing, Pages};
use crate::types::Rejection;

#[derive(clap::Args)]
pub struct Args {
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only those rejected for this reason, such as bad_signature
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    pages: Pages,
}

const COLUMNS: [(&str, &str); 7] = [
    ("AT", "at"),
    ("LAST", "last_at"),
    ("SOURCE", "source"),
    ("FROM", "peer"),
    ("TIMES", "count"),
    ("REASON", "reason"),
    ("DETAIL", "detail"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new().with("source", args.source).with("reason", args.reason);
    let nothing = "no requests were rejected";
    let list = Listing { path: "/v1/rejections", query, columns: &COLUMNS, nothing };
    pages::out(&client, &args.pages, list, identity::<Rejection>).await?;
    Ok(ExitCode::SUCCESS)
}
