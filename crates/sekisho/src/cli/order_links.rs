//! `sekisho pages link|revoke`: the links by which customers open the pages of their orders.

use std::process::ExitCode;

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{hint, json_out, line_out};
use crate::types::CustomerLink;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Print the link to the page of an order; whoever has it may cancel the order
    Link(LinkArgs),
    /// Make every link void that was given out for an order, and print a new one
    Revoke(LinkArgs),
}

#[derive(clap::Args)]
pub struct LinkArgs {
    /// Its id: rsv_…, or ful_… of what is made without a reservation
    id: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    let (order, link): (_, Whole<CustomerLink>) = match command {
        Command::Link(order) => {
            let client = Client::open(context, Needs::ACT.and_configuration()).await?;
            let link = client.get(&path(&["order_links", &order.id])?, &Query::new()).await?;
            (order, link)
        }
        Command::Revoke(order) => {
            let client = Client::open(context, Needs::ACT.and_configuration()).await?;
            let revoked = client.post(&path(&["order_links", &order.id, "revoke"])?, &()).await?;
            (order, revoked)
        }
    };
    if order.json {
        json_out(&link);
        return Ok(ExitCode::SUCCESS);
    }
    match &link.url {
        Some(url) => {
            line_out(url);
            hint(&format!("opens the page of {} until {}", link.order, link.expires_at));
        }
        None => hint("there are no customers' pages: set [pages] url"),
    }
    Ok(ExitCode::SUCCESS)
}
