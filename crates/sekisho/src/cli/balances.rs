//! `sekisho balances CUSTOMER`: what a customer has with us, as the sum of its lines in the books.

use std::process::ExitCode;

use http::StatusCode;
use sekisho_core::settlement::payment::customer_account;
use serde::Deserialize;
use serde_json::Value;

use super::Context;
use super::books::{Books, put_texts};
use super::client::{Client, Needs, Query, is_refused_with, path};
use super::output::list_out;

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

#[derive(Deserialize)]
struct Balance {
    tenant: Option<String>,
    balances: Vec<Value>,
}

const COLUMNS: [(&str, &str); 5] = [
    ("TENANT", "tenant"),
    ("CURRENCY", "currency"),
    ("MODE", "mode"),
    ("BALANCE", "balance_text"),
    ("LINES", "lines"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let query = Query::new().with("tenant", args.tenant);
    let found: Option<Balance> = client.find(&path(&["balances", &args.customer])?, &query).await?;
    let mut sums = Vec::new();
    if let Some(found) = found {
        let account = customer_account(found.tenant.as_deref(), &args.customer);
        sums = match client.get::<Books>("/v1/books", &Query::new().with("account", Some(account))).await {
            Ok(books) => books.accounts,
            // A tenant's key sees the balances, and not the books.
            Err(error) if is_refused_with(&error, StatusCode::FORBIDDEN) => found.balances,
            Err(error) => return Err(error),
        };
        sums.iter_mut().for_each(|sum| sum["tenant"] = found.tenant.clone().into());
    }
    if !args.json {
        sums.iter_mut().for_each(put_texts);
    }
    let nothing = format!("nothing was ever booked for the customer {}", args.customer);
    list_out(args.json, &COLUMNS, &sums, &nothing);
    Ok(ExitCode::SUCCESS)
}
