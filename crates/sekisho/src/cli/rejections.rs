//! `sekisho rejections`: who was turned away, when, and why.

use std::process::ExitCode;

use sekisho_store::{RejectionFilter, Store};

use super::{Context, pages};
use crate::view;

#[derive(clap::Args)]
pub struct Args {
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only those rejected for this reason, such as bad_signature
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    pages: pages::Pages,
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
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &RejectionFilter { source: args.source, reason: args.reason, ..RejectionFilter::default() };
    let fetch = async |before, limit| {
        let found = store.find_rejections(RejectionFilter { before, limit, ..query.clone() }).await?;
        Ok(found.iter().map(|one| (one.seq, view::rejection(one))).collect())
    };
    pages::out(&args.pages, &COLUMNS, "no requests were rejected", fetch).await?;
    Ok(ExitCode::SUCCESS)
}
