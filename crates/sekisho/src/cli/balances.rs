//! `sekisho balances CUSTOMER`: what a customer has with us, as the sum of its lines in the books.

use std::process::ExitCode;

use sekisho_core::settlement::payment::customer_account;

use super::Context;
use super::books::sum_shown;
use super::output::list_out;

#[derive(clap::Args)]
pub struct Args {
    /// As the app calls it
    customer: String,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 4] =
    [("CURRENCY", "currency"), ("MODE", "mode"), ("BALANCE", "balance_text"), ("LINES", "lines")];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let sums = store.find_sums(Some(customer_account(&args.customer))).await?;
    let balances: Vec<_> = sums.iter().map(|sum| sum_shown(sum, args.json)).collect();
    let nothing = format!("nothing was ever booked for the customer {}", args.customer);
    list_out(args.json, &COLUMNS, &balances, &nothing);
    Ok(ExitCode::SUCCESS)
}
