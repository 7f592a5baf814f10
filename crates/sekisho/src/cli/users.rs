//! `sekisho users [list|invite|rank|disable|enable|end-sessions]`: who may enter the console. Only on the server's own
//! machine: no key decides about people.

use std::process::ExitCode;

use anyhow::bail;
use sekisho_core::user::{Rank, UserAct, check_name};
use serde::Serialize;
use serde_json::{Value, json};

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{hint, json_out, line_out, list_out};
use crate::types::{self, NewInvite};

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
    /// Users of the console, by name
    List(List),
    /// Print an invitation link for one user, valid for 24 hours
    Invite(Invite),
    /// Change a user's role
    Rank(SetRank),
    /// Deactivate a user and end every session
    Disable(One),
    /// Reactivate a user
    Enable(One),
    /// End every session of a user
    EndSessions(One),
}

#[derive(clap::Args)]
struct List {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Invite {
    /// The role: viewer reads, operator retries and replays, admin manages users and keys
    #[arg(long, default_value = "viewer", value_parser = rank)]
    rank: Rank,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct SetRank {
    name: String,
    /// viewer, operator or admin
    #[arg(value_parser = rank)]
    rank: Rank,
    #[command(flatten)]
    one: Output,
}

#[derive(clap::Args)]
struct One {
    name: String,
    #[command(flatten)]
    one: Output,
}

#[derive(clap::Args)]
struct Output {
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [(&str, &str); 6] = [
    ("NAME", "name"),
    ("ROLE", "rank"),
    ("CREATED", "created_at"),
    ("LAST SEEN", "entered_at"),
    ("SESSIONS", "sessions"),
    ("DISABLED", "disabled_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Invite(args)) => invite(args, context).await,
        Some(Command::Rank(args)) => change(&args.name, UserAct::Rank(args.rank), args.one, context).await,
        Some(Command::Disable(args)) => change(&args.name, UserAct::Disable, args.one, context).await,
        Some(Command::Enable(args)) => change(&args.name, UserAct::Enable, args.one, context).await,
        Some(Command::EndSessions(args)) => change(&args.name, UserAct::EndSessions, args.one, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let users: Vec<Value> = client.items("/v1/users", &Query::new()).await?;
    list_out(
        args.json,
        &COLUMNS,
        &users,
        "no users yet; invite one with `sekisho users invite --rank admin`",
    );
    Ok(ExitCode::SUCCESS)
}

async fn invite(args: Invite, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let order = NewInvite { rank: Some(args.rank.name().to_owned()) };
    let made: Whole<types::Invite> = client.post("/v1/users/invite", &order).await?;
    let config = context.load().map(|loaded| loaded.config).ok();
    let public = config.as_ref().and_then(|config| config.console.url.clone());
    let root = public.or_else(|| client.url().map(str::to_owned)).unwrap_or_else(|| {
        let listen = config.map_or_else(|| "HOST:PORT".to_owned(), |config| config.server.listen.to_string());
        format!("http://{listen}")
    });
    let url = format!("{root}{}", made.path);
    if args.json {
        json_out(&Invitation { made, url });
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&url);
    hint(&format!("invitation for one {}: works once, within 24 hours", args.rank.name()));
    Ok(ExitCode::SUCCESS)
}

/// An invitation, with the link that leads to it.
#[derive(Serialize)]
struct Invitation {
    #[serde(flatten)]
    made: Whole<types::Invite>,
    url: String,
}

async fn change(name: &str, act: UserAct, args: Output, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    // What is no name must not lead to another path.
    if check_name(name).is_err() {
        bail!("there is no user {name:?}");
    }
    let (verb, order) = match act {
        UserAct::Rank(rank) => ("rank", json!({ "rank": rank })),
        UserAct::Disable => ("disable", json!({})),
        UserAct::Enable => ("enable", json!({})),
        UserAct::EndSessions => ("end-sessions", json!({})),
    };
    let changed: Value = client.post(&path(&["users", name, verb])?, &order).await?;
    if args.json {
        json_out(&changed);
    } else {
        line_out(&match act {
            UserAct::Rank(rank) => format!("{name} has the role {} now", rank.name()),
            UserAct::Disable => format!("Deactivated {name}; every session has ended"),
            UserAct::Enable => format!("Reactivated {name}"),
            UserAct::EndSessions => format!("every session of {name} has ended"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn rank(text: &str) -> Result<Rank, String> {
    Rank::parse(text).ok_or_else(|| "expected viewer, operator or admin".into())
}
