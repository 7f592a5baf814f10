//! `sekisho reservations [list|show|hold|checkout|confirm|extend|cancel]`: places that are held while their customer pays, and theirs
//! once they have.

mod hold;

use std::process::ExitCode;

use sekisho_core::Time;
use sekisho_core::reservation::ReservationStatus;
use serde::Serialize;

use super::Context;
use super::amount::{Mode, mode_text};
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{cell, fields_out, hint, json_out, line_out};
use super::pages::{self, Listing, Pages};
use super::when::later;
use crate::types::{Cancel, Checkout, Confirm, Extend, NewCheckout, Payment, Reservation};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum Command {
    /// The newest reservations first
    List(List),
    /// One reservation, with where its payment stands
    Show(Show),
    /// Hold places of a slot while their customer pays
    Hold(Box<hold::Args>),
    /// Have a Checkout Session made for it, or tell of one that the app made
    Checkout(CheckoutArgs),
    /// Confirm a reservation by hand, whatever was paid
    Confirm(ConfirmArgs),
    /// Hold the places longer
    Extend(ExtendArgs),
    /// Give the places back, and the money
    Cancel(CancelArgs),
}

#[derive(clap::Args)]
struct List {
    /// Only those with this status: hold, confirmed, expired or cancelled
    #[arg(long, value_parser = status)]
    status: Option<ReservationStatus>,
    /// Only of this slot
    #[arg(long, value_name = "ID")]
    slot: Option<String>,
    /// Only of this customer
    #[arg(long, value_name = "ID")]
    customer: Option<String>,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    #[command(flatten)]
    mode: Mode,
    #[command(flatten)]
    pages: Pages,
}

#[derive(clap::Args)]
struct Show {
    /// Its id: rsv_…
    id: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct CheckoutArgs {
    /// Its id: rsv_…
    id: String,
    /// The source whose api_key makes the session; default: `[checkout] source`
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Where the customer comes back to; default: the order's own page
    #[arg(long, value_name = "URL")]
    success_url: Option<String>,
    /// A way to pay, such as konbini; may be written several times
    #[arg(long = "method", value_name = "WORD")]
    methods: Vec<String>,
    /// The id of a session that the app made itself: cs_…
    #[arg(long, value_name = "ID", conflicts_with_all = ["source", "success_url", "methods"])]
    session: Option<String>,
    #[command(flatten)]
    once: Once,
}

#[derive(clap::Args)]
struct ConfirmArgs {
    /// Its id: rsv_…
    id: String,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    once: Once,
}

#[derive(clap::Args)]
struct ExtendArgs {
    /// Its id: rsv_…
    id: String,
    /// Until when, such as 2026-12-24T19:00:00+09:00, or how long from now: 30m, 2h
    #[arg(long, value_name = "TIME", value_parser = later)]
    until: Time,
    #[command(flatten)]
    once: Once,
}

#[derive(clap::Args)]
struct CancelArgs {
    /// Its id: rsv_…
    id: String,
    /// Why; the customer may read it
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Keep what was paid
    #[arg(long)]
    no_refund: bool,
    #[command(flatten)]
    once: Once,
}

/// What every act on a reservation has in common.
#[derive(clap::Args)]
struct Once {
    /// The same order under the same key is carried out once
    #[arg(long, value_name = "TEXT")]
    idempotency_key: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 9] = [
    ("CREATED", "created_at"),
    ("ID", "id"),
    ("STATUS", "status"),
    ("SLOT", "slot"),
    ("PLACES", "quantity"),
    ("HELD UNTIL", "hold_expires_at"),
    ("CUSTOMER", "customer"),
    ("REFERENCE", "reference"),
    ("TENANT", "tenant"),
];

const FIELDS: [(&str, &str); 21] = [
    ("id", "id"),
    ("status", "status"),
    ("mode", "mode"),
    ("slot", "slot"),
    ("places", "quantity"),
    ("starts", "starts_at"),
    ("held until", "hold_expires_at"),
    ("confirmed", "confirmed_at"),
    ("cancelled", "/cancelled/at"),
    ("by", "/cancelled/by"),
    ("because", "/cancelled/reason"),
    ("may cancel", "cancel_until"),
    ("reference", "reference"),
    ("payment", "payment_text"),
    ("pays at", "checkout_url"),
    ("fulfilment", "fulfilment"),
    ("customer", "customer"),
    ("language", "language"),
    ("tenant", "tenant"),
    ("metadata", "metadata_text"),
    ("created", "created_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Show(args)) => show(args, context).await,
        Some(Command::Hold(args)) => hold::run(*args, context).await,
        Some(Command::Checkout(args)) => checkout(args, context).await,
        Some(Command::Confirm(args)) => {
            let order = Confirm { reason: args.reason };
            change(&args.id, "confirm", &order, &args.once, context).await
        }
        Some(Command::Extend(args)) => {
            change(&args.id, "extend", &Extend { until: args.until }, &args.once, context).await
        }
        Some(Command::Cancel(args)) => {
            let order = Cancel { reason: args.reason, refund: Some(!args.no_refund) };
            change(&args.id, "cancel", &order, &args.once, context).await
        }
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let query = Query::new()
        .with("status", args.status.map(ReservationStatus::name))
        .with("slot", args.slot)
        .with("customer", args.customer)
        .with("tenant", args.tenant)
        .with("livemode", args.mode.livemode());
    let list = Listing { path: "/v1/reservations", query, columns: &COLUMNS, nothing: "no reservations" };
    pages::out(&client, &args.pages, list, std::convert::identity::<Reservation>).await?;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let shown: Whole<Reservation> = client.get(&path(&["reservations", &args.id])?, &Query::new()).await?;
    if args.json {
        json_out(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    let payment: Option<Payment> = match &shown.payment {
        Some(id) => client.find(&path(&["payments", id])?, &Query::new()).await?,
        None => None,
    };
    fields_out(&FIELDS, &Fields::of(shown.known, payment.as_ref()));
    Ok(ExitCode::SUCCESS)
}

async fn change(
    id: &str,
    act: &str,
    order: &impl Serialize,
    once: &Once,
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let path = path(&["reservations", id, act])?;
    let changed: Whole<Reservation> = client.post_once(&path, order, once.idempotency_key.as_deref()).await?;
    if once.json {
        json_out(&changed);
    } else {
        line_out(&sentence(&changed));
    }
    say_who_acts(&client);
    Ok(ExitCode::SUCCESS)
}

async fn checkout(args: CheckoutArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let path = path(&["reservations", &args.id, "checkout"])?;
    let CheckoutArgs { source, success_url, methods, session, once, .. } = args;
    let methods = Some(methods).filter(|methods| !methods.is_empty());
    let order = NewCheckout { source, success_url, methods, session };
    let made: Whole<Checkout> = client.post_once(&path, &order, once.idempotency_key.as_deref()).await?;
    if once.json {
        json_out(&made);
    } else {
        let place = made.url.as_ref().map(|url| format!(": {url}")).unwrap_or_default();
        line_out(&format!("try {} of {}: {}{place}", made.number, made.payment, made.status));
    }
    say_who_acts(&client);
    Ok(ExitCode::SUCCESS)
}

/// Where a reservation stands, in one line.
fn sentence(shown: &Reservation) -> String {
    let until = shown.hold_expires_at.map(|until| format!(" until {}", cell(&until)));
    let Reservation { id, status, quantity, slot, .. } = shown;
    format!("{id}: {status}{}, {quantity} of {slot}", until.unwrap_or_default())
}

/// What follows is a server's work.
fn say_who_acts(client: &Client) {
    if !client.is_served() {
        hint("no server runs here: what follows, such as refunds and messages, is done when one does");
    }
}

/// A reservation as fields to be read.
#[derive(Serialize)]
struct Fields {
    #[serde(flatten)]
    reservation: Reservation,
    mode: &'static str,
    payment_text: Option<String>,
    metadata_text: String,
}

impl Fields {
    fn of(reservation: Reservation, payment: Option<&Payment>) -> Self {
        let metadata: Vec<_> =
            reservation.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let status = payment.map(|payment| format!(" ({})", payment.status)).unwrap_or_default();
        Self {
            mode: mode_text(Some(reservation.livemode)),
            payment_text: reservation.payment.as_ref().map(|id| format!("{id}{status}")),
            metadata_text: metadata.join(" "),
            reservation,
        }
    }
}

fn status(text: &str) -> Result<ReservationStatus, String> {
    ReservationStatus::parse(text).ok_or_else(|| {
        format!("expected one of {}", ReservationStatus::ALL.map(ReservationStatus::name).join(", "))
    })
}
