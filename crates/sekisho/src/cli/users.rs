//! `sekisho users [list|invite|rank|disable|enable|end-sessions]`: who may enter the console. Only on the server's own
//! machine: no key decides about people.

use std::process::ExitCode;

use sekisho_core::user::{Act, Rank};

use super::Context;
use super::output::{cell, json_out, line_out, list_out};
use super::server::{Door, Server, Through};
use crate::transition;
use crate::{now, view};

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
    /// Everybody who may enter, by name
    List(List),
    /// Print a link by which one person becomes a user, within 24 hours
    Invite(Invite),
    /// Give somebody another rank
    Rank(SetRank),
    /// Shut somebody out, with every session
    Disable(One),
    /// Let somebody in again
    Enable(One),
    /// End every session of somebody
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
    /// What they may do: viewer looks, operator retries and replays, admin says who else may
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
    ("RANK", "rank"),
    ("CREATED", "created_at"),
    ("LAST ENTERED", "entered_at"),
    ("SESSIONS", "sessions"),
    ("DISABLED", "disabled_at"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Invite(args)) => invite(args, context).await,
        Some(Command::Rank(args)) => change(&args.name, Act::Rank(args.rank), args.one, context).await,
        Some(Command::Disable(args)) => change(&args.name, Act::Disable, args.one, context).await,
        Some(Command::Enable(args)) => change(&args.name, Act::Enable, args.one, context).await,
        Some(Command::EndSessions(args)) => change(&args.name, Act::EndSessions, args.one, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let users = if let Some(server) = Server::find(&Through::default(), context).await? {
        server.items("/v1/users").await?
    } else {
        let (store, _) = context.open_store().await?;
        let users = transition::users(&*store).await?;
        users.iter().map(|(name, user)| view::user(name, user, now())).collect()
    };
    list_out(
        args.json,
        &COLUMNS,
        &users,
        "nobody may enter the console yet; invite somebody with `sekisho users invite --rank admin`",
    );
    Ok(ExitCode::SUCCESS)
}

async fn invite(args: Invite, context: &Context) -> anyhow::Result<ExitCode> {
    let door = Door::open(&Through::default(), context).await?;
    let mut made = door.invite(args.rank).await?;
    let config = context.load().map(|loaded| loaded.config).ok();
    let public = config.as_ref().and_then(|config| config.console.url.clone());
    let root = public.or_else(|| door.url().map(str::to_owned)).unwrap_or_else(|| {
        let listen = config.map_or_else(|| "HOST:PORT".to_owned(), |config| config.server.listen.to_string());
        format!("http://{listen}")
    });
    let url = format!("{root}{}", cell(&made["path"]));
    if args.json {
        made["url"] = url.into();
        json_out(&made);
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&url);
    eprintln!("this link makes one person {}, once, within 24 hours", args.rank.name());
    Ok(ExitCode::SUCCESS)
}

async fn change(name: &str, act: Act, args: Output, context: &Context) -> anyhow::Result<ExitCode> {
    let changed = Door::open(&Through::default(), context).await?.change_user(name, act).await?;
    if args.json {
        json_out(&changed);
    } else {
        line_out(&match act {
            Act::Rank(rank) => format!("{name} is {} now", rank.name()),
            Act::Disable => format!("{name} is shut out, with every session"),
            Act::Enable => format!("{name} may enter again"),
            Act::EndSessions => format!("every session of {name} has ended"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn rank(text: &str) -> Result<Rank, String> {
    Rank::parse(text).ok_or_else(|| "expected viewer, operator or admin".into())
}
