//! `sekisho slots [list|show|set]`: places that can be sold once, and what is held, sold and free of each.

use std::process::ExitCode;

use sekisho_core::Time;
use sekisho_core::slot::SlotName;
use serde::Serialize;

use super::Context;
use super::amount::{Mode, mode_text};
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{fields_out, json_out, line_out};
use super::pages::{self, Listing, Pages};
use super::when::later;
use crate::types::{NewSlot, Slot};

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
    /// Slots with what is held, sold and free of each; by id, the last first
    List(List),
    /// One slot
    Show(Show),
    /// Make a slot, or change its capacity, time or title; what is taken must fit
    Set(Set),
}

// `--before` names a slot of the tenant and mode that are given beside it.
#[derive(clap::Args)]
struct List {
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
    /// What the app calls it
    id: String,
    /// Whose slot; without it, one that belongs to no tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// The slot of this id in test mode
    #[arg(long)]
    test: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Set {
    /// What the app calls it: 1 to 100 letters, digits, `.`, `_`, `:` or `-`
    id: String,
    /// How many places it has; a new slot has 1
    #[arg(long, value_name = "NUMBER")]
    capacity: Option<u32>,
    /// When it begins, such as 2026-12-24T19:00:00+09:00
    #[arg(long, value_name = "TIME", value_parser = later)]
    starts_at: Option<Time>,
    /// For people
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Whose slot; without it, it belongs to no tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// In test mode
    #[arg(long)]
    test: bool,
    /// The same order under the same key is carried out once
    #[arg(long, value_name = "TEXT")]
    idempotency_key: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 9] = [
    ("ID", "id"),
    ("STARTS", "starts_at"),
    ("CAPACITY", "capacity"),
    ("HELD", "held"),
    ("SOLD", "sold"),
    ("FREE", "free"),
    ("MODE", "mode"),
    ("TENANT", "tenant"),
    ("TITLE", "title"),
];

const FIELDS: [(&str, &str); 9] = [
    ("id", "id"),
    ("title", "title"),
    ("starts", "starts_at"),
    ("mode", "mode"),
    ("tenant", "tenant"),
    ("capacity", "capacity"),
    ("held", "held"),
    ("sold", "sold"),
    ("free", "free"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Show(args)) => show(args, context).await,
        Some(Command::Set(args)) => set(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let livemode = args.mode.livemode();
    let query = Query::new().with("tenant", args.tenant.as_deref()).with("livemode", livemode);
    let key_of =
        |id| SlotName { livemode: livemode.unwrap_or(true), tenant: args.tenant.clone(), id }.key().id;
    let pages = Pages { before: args.pages.before.map(key_of), ..args.pages };
    let list = Listing { path: "/v1/slots", query, columns: &COLUMNS, nothing: "no slots" };
    pages::out(&client, &pages, list, Row::of).await?;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let query = Query::new().with("tenant", args.tenant).with("livemode", args.test.then_some(false));
    let slot: Whole<Slot> = client.get(&path(&["slots", &args.id])?, &query).await?;
    if args.json {
        json_out(&slot);
    } else {
        fields_out(&FIELDS, &Row::of(slot.known));
    }
    Ok(ExitCode::SUCCESS)
}

async fn set(args: Set, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let order = NewSlot {
        id: args.id,
        capacity: args.capacity,
        starts_at: args.starts_at,
        title: args.title,
        livemode: args.test.then_some(false),
        tenant: args.tenant,
    };
    let slot: Whole<Slot> = client.post_once("/v1/slots", &order, args.idempotency_key.as_deref()).await?;
    if args.json {
        json_out(&slot);
    } else {
        line_out(&format!("{}: {} of {} free", slot.id, slot.free, slot.capacity));
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    slot: Slot,
    mode: &'static str,
}

impl Row {
    fn of(slot: Slot) -> Self {
        Self { mode: mode_text(slot.livemode), slot }
    }
}
