//! A payment that the app announces.

use std::collections::BTreeMap;
use std::process::ExitCode;

use sekisho_core::money::Currency;

use crate::cli::Context;
use crate::cli::amount::{Mode, amount_text, currency, minor};
use crate::cli::client::{Client, Needs, Whole};
use crate::cli::metadata::pair;
use crate::cli::output::{json_out, line_out};
use crate::types::{NewPayment, Payment};

#[derive(clap::Args)]
pub struct Args {
    /// What is to be paid, in the currency's smallest unit: 1200 is 1,200 yen or 12 dollars
    #[arg(long, value_name = "NUMBER", value_parser = minor, allow_negative_numbers = true)]
    amount: i64,
    /// Three letters of ISO 4217, such as jpy
    #[arg(long, value_parser = currency)]
    currency: Currency,
    /// The app's own id of the order; the provider's objects find the payment by it
    #[arg(long, value_name = "ID")]
    reference: Option<String>,
    /// The provider's connected account that is paid, if it is one
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    /// Whose money it is
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Who pays
    #[arg(long, value_name = "ID")]
    customer: Option<String>,
    /// What it is for; `balance` fills the customer's balance
    #[arg(long, value_name = "TEXT")]
    purpose: Option<String>,
    /// For people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// For programs; may be written several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    mode: Mode,
    /// The same order under the same key is carried out once
    #[arg(long, value_name = "TEXT")]
    idempotency_key: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let created: Whole<Payment> =
        client.post_once("/v1/payments", &args.order(), args.idempotency_key.as_deref()).await?;
    if args.json {
        json_out(&created);
        return Ok(ExitCode::SUCCESS);
    }
    let Payment { id, reference, amount, currency, status, .. } = created.known;
    line_out(&format!("{id}: {}, {status}", amount_text(amount, currency.as_deref())));
    let known_as = reference.map_or_else(|| id.clone(), |reference| format!("{reference} or {id}"));
    line_out(&format!("the provider's objects find it by the order id {known_as}"));
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn order(&self) -> NewPayment {
        let metadata: BTreeMap<_, _> = self.metadata.iter().cloned().collect();
        NewPayment {
            amount: self.amount,
            currency: self.currency.to_string(),
            tenant: self.tenant.clone(),
            customer: self.customer.clone(),
            purpose: self.purpose.clone(),
            reference: self.reference.clone(),
            account: self.account.clone(),
            description: self.description.clone(),
            metadata: (!metadata.is_empty()).then_some(metadata),
            livemode: self.mode.livemode(),
        }
    }
}
