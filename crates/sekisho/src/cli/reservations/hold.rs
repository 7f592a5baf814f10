//! Places that are held for a customer who is about to pay.

use std::process::ExitCode;

use sekisho_core::Time;
use sekisho_core::money::{AMOUNT_MAX, Currency};
use serde_json::Value;

use super::{Once, say_who_acts, sentence};
use crate::cli::Context;
use crate::cli::amount::{Mode, currency};
use crate::cli::client::{Client, Needs, Whole};
use crate::cli::metadata::pair;
use crate::cli::output::{json_out, line_out};
use crate::cli::when::later;
use crate::types::{NewReservation, Reservation, ReservedCheckout, ReservedFulfilment, ReservedPayment};

#[derive(clap::Args)]
pub struct Args {
    /// The slot; one that does not exist is made with one place
    slot: String,
    /// How many places; default: 1
    #[arg(long, value_name = "NUMBER")]
    quantity: Option<u32>,
    /// When what is reserved begins; default: when its slot does
    #[arg(long, value_name = "TIME", value_parser = later)]
    starts_at: Option<Time>,
    /// How long the places are held, such as 30m; default: `[reservations] hold`
    #[arg(long, value_name = "DURATION")]
    hold: Option<String>,
    /// The app's own id of the order: payments that carry it pay this reservation
    #[arg(long, value_name = "ID")]
    reference: Option<String>,
    #[command(flatten)]
    price: Price,
    /// Who reserves
    #[arg(long, value_name = "ID")]
    customer: Option<String>,
    /// Where the customer hears of it
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// ja or en
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
    /// Whose slot it is
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    #[command(flatten)]
    made: Made,
    /// Where the customer is sent to pay once more
    #[arg(long, value_name = "URL")]
    retry_url: Option<String>,
    /// Have a Checkout Session made by `[checkout] source`, and print where the customer pays
    #[arg(long, requires = "amount")]
    checkout: bool,
    /// For programs; may be written several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    mode: Mode,
    #[command(flatten)]
    once: Once,
}

// What is to be paid.
#[derive(clap::Args)]
struct Price {
    /// What is to be paid, in the currency's smallest unit; without it, or if 0, the reservation is confirmed at once
    #[arg(long, value_name = "NUMBER", requires = "currency", value_parser = price)]
    amount: Option<i64>,
    /// Three letters of ISO 4217, such as jpy
    #[arg(long, requires = "amount", value_parser = currency)]
    currency: Option<Currency>,
    /// What the customer pays for
    #[arg(long, value_name = "TEXT", requires = "amount")]
    description: Option<String>,
}

// What must be made once it is confirmed.
#[derive(clap::Args)]
struct Made {
    /// What must be made once it is confirmed, in the app's words, such as video
    #[arg(long, value_name = "KIND")]
    fulfilment: Option<String>,
    /// paid or free
    #[arg(long, value_name = "TIER", requires = "fulfilment")]
    tier: Option<String>,
    /// What is made, as its customer knows it
    #[arg(long, value_name = "TEXT", requires = "fulfilment")]
    name: Option<String>,
    /// JSON for whoever makes it
    #[arg(long, value_name = "JSON", requires = "fulfilment", value_parser = json)]
    input: Option<Value>,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let key = args.once.idempotency_key.clone();
    let as_json = args.once.json;
    let held: Whole<Reservation> =
        client.post_once("/v1/reservations", &args.order(), key.as_deref()).await?;
    if as_json {
        json_out(&held);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&sentence(&held));
    if let Some(url) = &held.checkout_url {
        line_out(&format!("the customer pays at {url}"));
    }
    if let Some(payment) = &held.payment {
        let known_as =
            held.reference.as_ref().map_or_else(|| payment.clone(), |own| format!("{own} or {payment}"));
        line_out(&format!("the provider's objects pay it by the order id {known_as}"));
    }
    say_who_acts(&client);
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn order(self) -> NewReservation {
        let Price { amount, currency, description } = self.price;
        let Made { fulfilment, tier, name, input } = self.made;
        let payment = amount.zip(currency).map(|(amount, currency)| ReservedPayment {
            amount,
            currency: currency.to_string(),
            description,
        });
        NewReservation {
            slot: self.slot,
            quantity: self.quantity,
            starts_at: self.starts_at,
            hold: self.hold,
            reference: self.reference,
            livemode: self.mode.livemode(),
            tenant: self.tenant,
            payment,
            customer: self.customer,
            email: self.email,
            language: self.language,
            fulfilment: fulfilment.map(|kind| ReservedFulfilment { kind, tier, name, input }),
            retry_url: self.retry_url,
            checkout: self.checkout.then(ReservedCheckout::default),
            metadata: self.metadata.into_iter().collect(),
        }
    }
}

fn price(text: &str) -> Result<i64, String> {
    let amount = text.parse().ok().filter(|amount| (0..=AMOUNT_MAX).contains(amount));
    amount.ok_or_else(|| {
        format!("expected a whole number from 0 to {AMOUNT_MAX} of the currency's smallest unit: 1200 is 1,200 yen or 12 dollars")
    })
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("expected JSON: {error}"))
}
