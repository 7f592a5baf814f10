//! `sekisho audit`: what people did.

use std::process::ExitCode;

use sekisho_store::AuditFilter;

use super::Context;
use super::output::list_out;
use crate::view;

#[derive(clap::Args)]
pub struct Args {
    /// How many lines
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 5] =
    [("AT", "at"), ("WHO", "actor"), ("DID", "action"), ("TO", "target"), ("REASON", "reason")];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let entries =
        store.find_audit(AuditFilter { limit: args.limit.into(), ..AuditFilter::default() }).await?;
    let entries: Vec<_> = entries.iter().map(view::audit).collect();
    list_out(args.json, &COLUMNS, &entries, "nobody did anything by hand");
    Ok(ExitCode::SUCCESS)
}
