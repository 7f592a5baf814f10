//! What the operator types. Each command is one file: its arguments, then `run`. Tables for people, `--json` for
//! programs; errors say what to do next; exit code 0 done, 1 failed, 2 wrongly called.

mod alerts;
mod amount;
mod audit;
mod balances;
mod bench;
mod billing;
mod books;
mod bulk;
mod cases;
mod channels;
mod client;
mod compensation;
mod config;
mod context;
mod customers;
mod dead;
mod delete;
mod deliveries;
mod demo;
mod doctor;
mod events;
mod fulfilments;
mod help;
mod import;
mod keys;
mod listen;
mod members;
mod messages;
mod metadata;
mod migrate;
mod notices;
mod notify;
mod order_links;
mod output;
mod pages;
mod payments;
mod providers;
mod reconcile;
mod rejections;
mod reminders;
mod reservations;
mod routes;
mod schedules;
mod send;
mod serve;
mod server_file;
mod slots;
mod staff;
mod style;
mod subjects;
mod suppressions;
mod target;
mod targets;
mod templates;
mod tenants;
mod trace;
mod trigger;
mod users;
mod verify;
mod when;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use http::StatusCode;

use crate::acts::Refusal;
use client::Connection;
use context::{Context, choose};

/// The checkpoint between payment providers and your application.
///
/// Without a command it serves, and without a configuration it serves on a local SQLite file.
#[derive(Parser)]
#[command(name = "sekisho", version, max_term_width = 110)]
struct Cli {
    /// The configuration; ./sekisho.toml if there is one, else built-in defaults
    #[arg(long, short, global = true, value_name = "FILE", env = "SEKISHO_CONFIG")]
    config: Option<PathBuf>,
    /// Where events are kept: sqlite:PATH or postgres://…
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    style: style::Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Receive and process webhooks
    Serve(serve::Args),
    /// Watch it survive: thousands of payments, sold-out shows, repeats, forgeries, failing apps, kill -9; then a proof
    Demo(demo::Args),
    /// Send signed test events to a running server
    Trigger(trigger::Args),
    /// Sign any body as any provider would, and send it
    Send(send::Args),
    /// Say why a saved request is refused, or check a file of signature vectors
    Verify(verify::Args),
    /// Show stored events; process them again
    Events(RemoteGroup<events::Command>),
    /// Draw what was done because of an event: when, for how long, and what went wrong
    Trace(Remote<trace::Args>),
    /// Show dead letters; retry or discard them
    Dead(RemoteGroup<dead::Command>),
    /// Show deliveries to the routes; cancel those that wait
    Deliveries(RemoteGroup<deliveries::Command>),
    /// Show one message
    Messages(RemoteGroup<messages::Command>),
    /// Read from providers what never came: after an outage, or to import payments of before
    ///
    /// What is taken in is processed and delivered to your app like any other event, however old it is: your app gets each once,
    /// also those that it knows by another way. `--dry-run` first says what that would be, and takes nothing in.
    Reconcile(Remote<reconcile::Args>),
    /// Show routes and their breakers
    Routes(Remote<routes::Args>),
    /// Show which events Sekisho makes itself, and when
    Schedules(Remote<schedules::Args>),
    /// Forward new events to a local application, for development
    Listen(Remote<listen::Args>),
    /// Show payments, or create one
    Payments(Remote<payments::Args>),
    /// Show slots: places that can be sold once, and how many are free; make or change one
    Slots(Remote<slots::Args>),
    /// Show reservations; hold places, confirm, extend or cancel
    Reservations(Remote<reservations::Args>),
    /// Show fulfilments: what was paid for and must be made; retry one, or say what became of a run
    Fulfilments(Remote<fulfilments::Args>),
    /// Show cases: what went wrong with orders; acknowledge or resolve one
    Cases(Remote<cases::Args>),
    /// Show what was done because something had gone wrong with an order; the rules, and which hold for an order
    Compensation(Remote<compensation::Args>),
    /// Print the link to the page of an order, or revoke those that were given out
    Pages(RemoteGroup<order_links::Command>),
    /// Show billing: subscriptions of tenants and until when they are paid
    Billing(Remote<billing::Args>),
    /// Show a customer's balance
    Balances(Remote<balances::Args>),
    /// Show the books, or check them against the payments
    Books(Remote<books::Args>),
    /// Show tenants, create one, or import many
    Tenants(Remote<tenants::Args>),
    /// Show customers, create one, or import many
    Customers(Remote<customers::Args>),
    /// Show staff who get reminders of deadlines; create, import or delete them
    Staff(Remote<staff::Args>),
    /// Show subjects with deadlines; create, import or delete them
    Subjects(Remote<subjects::Args>),
    /// Show the templates of notices; write them out, or check your own
    Templates(templates::Args),
    /// Show notices and their status; resend one
    Notices(Remote<notices::Args>),
    /// Show suppressed addresses; add or release one
    Suppressions(Remote<suppressions::Args>),
    /// Run a day's reminders of deadlines, and see how they stand
    Reminders(RemoteGroup<reminders::Command>),
    /// Show alerts and what fires; silence one, or try whether anybody hears it
    Alerts(Remote<alerts::Args>),
    /// Show whether targets are met
    Targets(Remote<targets::Args>),
    /// Show channels; resume one
    Channels(Remote<channels::Args>),
    /// Send a test message
    #[command(subcommand)]
    Notify(notify::Command),
    /// Show API keys; create or revoke one
    Keys(Remote<keys::Args>),
    /// Show users of the console; invite or deactivate one
    Users(users::Args),
    /// Show the audit log: who did what. Verify that it is unchanged, or export it
    Audit(Remote<audit::Args>),
    /// Show rejected requests, and why
    Rejections(Remote<rejections::Args>),
    /// Check this set-up and list problems
    Doctor(doctor::Args),
    /// Check the configuration, or print an example of it
    #[command(subcommand)]
    Config(config::Command),
    /// List the providers Sekisho knows
    Providers(providers::Args),
    /// Bring the store's schema up to date
    Migrate(migrate::Args),
    /// Measure this machine
    #[command(subcommand)]
    Bench(bench::Command),
    /// Print completions for a shell
    Completions(help::Completions),
    /// Print the manual page, or write one for each command
    Man(help::Man),
    /// Say what exit codes mean
    #[command(long_about = help::EXIT_CODES)]
    ExitCodes,
    /// Print the version
    Version(help::Version),
}

// A command that uses the API, and so a server anywhere.
#[derive(clap::Args)]
struct Remote<A: clap::Args> {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    args: A,
}

// The same with subcommands.
#[derive(clap::Args)]
struct RemoteGroup<C: clap::Subcommand> {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: C,
}

/// The tree of commands, for the reference.
pub fn command() -> clap::Command {
    Cli::command()
}

pub fn main() -> ExitCode {
    let command = || help::with_help(Cli::command());
    let cli = match Cli::from_arg_matches(&command().get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    cli.style.set();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    let context = Context { config: cli.config, store: cli.store, connection: Connection::default() };
    let chosen = cli.command.unwrap_or_else(|| Command::Serve(serve::Args::default()));
    let result = runtime.block_on(async {
        match chosen {
            Command::Serve(args) => Box::pin(serve::run(args, &context)).await,
            Command::Demo(args) => demo::run(args, &context).await,
            Command::Trigger(args) => trigger::run(args, &context).await,
            Command::Send(args) => send::run(args, &context).await,
            Command::Verify(args) => verify::run(args, &context),
            Command::Events(remote) => events::run(remote.command, &context.to(remote.connection)).await,
            Command::Trace(remote) => trace::run(remote.args, &context.to(remote.connection)).await,
            Command::Dead(remote) => dead::run(remote.command, &context.to(remote.connection)).await,
            Command::Deliveries(remote) => {
                deliveries::run(remote.command, &context.to(remote.connection)).await
            }
            Command::Messages(remote) => messages::run(remote.command, &context.to(remote.connection)).await,
            Command::Reconcile(remote) => reconcile::run(remote.args, &context.to(remote.connection)).await,
            Command::Routes(remote) => routes::run(remote.args, &context.to(remote.connection)).await,
            Command::Schedules(remote) => schedules::run(remote.args, &context.to(remote.connection)).await,
            Command::Listen(remote) => listen::run(remote.args, &context.to(remote.connection)).await,
            Command::Payments(remote) => payments::run(remote.args, &context.to(remote.connection)).await,
            Command::Slots(remote) => slots::run(remote.args, &context.to(remote.connection)).await,
            Command::Reservations(remote) => {
                reservations::run(remote.args, &context.to(remote.connection)).await
            }
            Command::Fulfilments(remote) => {
                fulfilments::run(remote.args, &context.to(remote.connection)).await
            }
            Command::Cases(remote) => cases::run(remote.args, &context.to(remote.connection)).await,
            Command::Compensation(remote) => {
                compensation::run(remote.args, &context.to(remote.connection)).await
            }
            Command::Pages(remote) => order_links::run(remote.command, &context.to(remote.connection)).await,
            Command::Billing(remote) => billing::run(remote.args, &context.to(remote.connection)).await,
            Command::Balances(remote) => balances::run(remote.args, &context.to(remote.connection)).await,
            Command::Books(remote) => books::run(remote.args, &context.to(remote.connection)).await,
            Command::Tenants(remote) => tenants::run(remote.args, &context.to(remote.connection)).await,
            Command::Customers(remote) => customers::run(remote.args, &context.to(remote.connection)).await,
            Command::Staff(remote) => staff::run(remote.args, &context.to(remote.connection)).await,
            Command::Subjects(remote) => subjects::run(remote.args, &context.to(remote.connection)).await,
            Command::Templates(args) => templates::run(args),
            Command::Notices(remote) => notices::run(remote.args, &context.to(remote.connection)).await,
            Command::Suppressions(remote) => {
                suppressions::run(remote.args, &context.to(remote.connection)).await
            }
            Command::Reminders(remote) => {
                reminders::run(remote.command, &context.to(remote.connection)).await
            }
            Command::Alerts(remote) => alerts::run(remote.args, &context.to(remote.connection)).await,
            Command::Targets(remote) => targets::run(remote.args, &context.to(remote.connection)).await,
            Command::Channels(remote) => channels::run(remote.args, &context.to(remote.connection)).await,
            Command::Notify(command) => notify::run(command, &context).await,
            Command::Keys(remote) => keys::run(remote.args, &context.to(remote.connection)).await,
            Command::Users(args) => users::run(args, &context).await,
            Command::Audit(remote) => audit::run(remote.args, &context.to(remote.connection)).await,
            Command::Rejections(remote) => rejections::run(remote.args, &context.to(remote.connection)).await,
            Command::Doctor(args) => doctor::run(args, &context).await,
            Command::Config(command) => config::run(&command, &context),
            Command::Providers(args) => providers::run(&args),
            Command::Migrate(args) => migrate::run(args, &context).await,
            Command::Bench(command) => bench::run(command, &context).await,
            Command::Completions(args) => Ok(help::completions(&args, command())),
            Command::Man(args) => help::man(&args, command()),
            Command::ExitCodes => Ok(help::exit_codes()),
            Command::Version(args) => Ok(help::version(&args)),
        }
    });
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", output::said(&format!("{error:#}")));
            let is_misused = matches!(error.downcast_ref(), Some(Refusal::Fields(_)))
                || client::is_refused_with(&error, StatusCode::BAD_REQUEST);
            if is_misused { ExitCode::from(MISUSED) } else { ExitCode::FAILURE }
        }
    }
}

/// How clap ends, too, when a command was wrongly called.
const MISUSED: u8 = 2;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn h2_every_command_can_be_parsed() {
        super::Cli::command().debug_assert();
    }
}
