//! `sekisho balances CUSTOMER`: what a customer has with us, as the sum of its lines in the books.

use std::process::ExitCode;

use http::StatusCode;
use sekisho_core::settlement::payment::customer_account;
use serde::Serialize;

use super::Context;
use super::books::{AccountSums, SumRow};
use super::client::{Client, Needs, Query, Whole, is_refused_with, path};
use super::output::{json_out, rows_out};
use crate::types::{Account, Balance, CurrencyBalance};

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

/// What the customer has in one currency.
#[derive(Serialize)]
struct Held {
    tenant: Option<String>,
    #[serde(flatten)]
    sum: Sum,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Sum {
    Booked(Whole<Account>),
    /// A tenant's key sees the balances, and not the books.
    Only(CurrencyBalance),
}

impl Held {
    fn row(self) -> SumRow<Self> {
        let (balance, currency, livemode) = match &self.sum {
            Sum::Booked(sum) => (sum.balance, sum.currency.clone(), sum.livemode),
            Sum::Only(sum) => (sum.balance, sum.currency.clone(), sum.livemode),
        };
        SumRow::new(self, balance, &currency, livemode)
    }
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
        let query = Query::new().with("account", Some(account));
        let held: Vec<_> = match client.get::<AccountSums>("/v1/books", &query).await {
            Ok(books) => books.accounts.into_iter().map(Sum::Booked).collect(),
            Err(error) if is_refused_with(&error, StatusCode::FORBIDDEN) => {
                found.balances.into_iter().map(Sum::Only).collect()
            }
            Err(error) => return Err(error),
        };
        sums.extend(held.into_iter().map(|sum| Held { tenant: found.tenant.clone(), sum }));
    }
    let nothing = format!("nothing was ever booked for the customer {}", args.customer);
    if args.json {
        sums.iter().for_each(json_out);
    } else {
        rows_out(&COLUMNS, &sums.into_iter().map(Held::row).collect::<Vec<_>>(), &nothing);
    }
    Ok(ExitCode::SUCCESS)
}
