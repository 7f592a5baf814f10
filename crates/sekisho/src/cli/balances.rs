//! `sekisho balances CUSTOMER`: what a customer has with us, as the sum of its lines in the books.

use std::process::ExitCode;

use sekisho_core::settlement::payment::customer_account;

use super::Context;
use super::books::sum_shown;
use super::output::list_out;
use crate::view;

#[derive(clap::Args)]
pub struct Args {
    /// As the app calls it
    customer: String,
    /// Whose customer it is: needed where several tenants have this id. Without it, one of no tenant is meant, or else the
    /// only one there is
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 5] = [
    ("TENANT", "tenant"),
    ("CURRENCY", "currency"),
    ("MODE", "mode"),
    ("BALANCE", "balance_text"),
    ("LINES", "lines"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let found = view::find_balance(&*store, args.tenant.as_deref(), &args.customer).await?;
    let sums = match &found {
        Some(found) => {
            store.find_sums(Some(customer_account(found["tenant"].as_str(), &args.customer))).await?
        }
        None => Vec::new(),
    };
    let shown = sums.iter().map(|sum| {
        let mut shown = sum_shown(sum, args.json);
        shown["tenant"] = found.as_ref().map(|found| found["tenant"].clone()).into();
        shown
    });
    let nothing = format!("nothing was ever booked for the customer {}", args.customer);
    list_out(args.json, &COLUMNS, &shown.collect::<Vec<_>>(), &nothing);
    Ok(ExitCode::SUCCESS)
}
