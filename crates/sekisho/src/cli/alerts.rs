//! `sekisho alerts [list|silence|test]`: what is wrong now, silencing an alert, and trying whether anybody hears them.

use std::process::ExitCode;

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{json_out, line_out, list_out};
use crate::types::{AlertStanding, AlertTrial, SilenceAlert};

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
    /// Every alert and how it stands, those that fire first
    List(List),
    /// Silence an alert for a while; what still fires then is told
    Silence(Silence),
    /// Send a trial of an alert through, to see whether anybody hears it
    Test(Test),
}

#[derive(clap::Args)]
struct List {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Silence {
    /// The alert, such as dead_letters or dead_letters/to:app
    #[arg(value_name = "NAME[/SUBJECT]")]
    alert: String,
    /// How long: 30m, 2h or 1d; 0m ends a silence
    #[arg(long = "for", value_name = "TIME")]
    lasts: String,
    /// Why, for the audit log
    #[arg(long)]
    reason: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Test {
    /// The alert, such as dead_letters
    name: String,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 6] = [
    ("ALERT", "id"),
    ("STATE", "state"),
    ("SINCE", "since"),
    ("VALUE", "value"),
    ("FIRES WHEN", "fires_when"),
    ("SILENCED UNTIL", "silenced_until"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Silence(args)) => silence(args, context).await,
        Some(Command::Test(args)) => test(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ.and_configuration()).await?;
    let alerts: Vec<Whole<AlertStanding>> = client.items("/v1/alerts", &Query::new()).await?;
    list_out(args.json, &COLUMNS, &alerts, "there are no alerts");
    Ok(ExitCode::SUCCESS)
}

async fn silence(args: Silence, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let order = SilenceAlert { lasts: args.lasts, reason: args.reason };
    let alert: AlertStanding = client.post(&path(&["alerts", &args.alert, "silence"])?, &order).await?;
    if args.json {
        json_out(&alert);
    } else {
        line_out(&match alert.silenced_until {
            Some(until) => format!("Silenced {} until {until}; it is {}.", alert.id, alert.state),
            None => format!("Ended the silence of {}; it is {}.", alert.id, alert.state),
        });
    }
    Ok(ExitCode::SUCCESS)
}

async fn test(args: Test, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let trial: AlertTrial = client.post(&path(&["alerts", &args.name, "test"])?, &()).await?;
    if args.json {
        json_out(&trial);
    } else {
        line_out(&match &trial.channel {
            Some(channel) => format!("Sent a trial by the channel {channel}; see `sekisho notices`."),
            None => "Made the event, but nobody hears it: set [notifications] alerts = \"NAME\".".to_owned(),
        });
    }
    Ok(ExitCode::SUCCESS)
}
