//! `sekisho demo`: a shop, a planetarium, a nasty application and a server that is killed twice, and at the end a proof that
//! nothing was lost, done twice or oversold.
//!
//! Needs no configuration and leaves nothing behind: [`stage`] is a folder with the product as a child process and the
//! application in this one. [`acts`] is what happens there, [`view`] what is shown of it. [`accounts`] reads what the
//! sender, the store and the application each know, [`places`] what became of the places that were sold, and [`proof`] lays
//! these side by side.

mod accounts;
mod acts;
mod places;
mod proof;
mod stage;
mod view;

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use sekisho_demo::planetarium::Planetarium;
use sekisho_demo::process::Server;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::Context;
use super::output::json_out;
use crate::view::ROOT;
use proof::Proof;
use stage::{Stage, WantedStage};
use view::View;

/// --store postgres starts a private PostgreSQL, --store postgres://… takes an empty database of yours; without it,
/// the demo runs on SQLite.
#[derive(clap::Args)]
pub struct Args {
    /// Payments that the shop takes
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    payments: u32,
    /// The same number gives the same traffic; default: a new one each time
    #[arg(long)]
    seed: Option<u64>,
    /// End after the proof, instead of leaving the server for you to look at
    #[arg(long)]
    exit: bool,
    /// The proof as one JSON object; what happens meanwhile goes to standard error
    #[arg(long)]
    json: bool,
}

/// As a shell calls it when Ctrl-C ended a command.
const INTERRUPTED: u8 = 130;
/// How often somebody who waits looks whether to go on.
const TICK: Duration = Duration::from_millis(100);

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let wanted = WantedStage::parse(context.store.as_deref())?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let mut signals = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
    tokio::spawn(async move {
        let [interrupt, terminate] = &mut signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        told.store(true, Ordering::Relaxed);
    });
    // A thread of its own: the lab starts and stops processes, which blocks.
    let handle = Handle::current();
    let stop = Stop(stop);
    let watching = stop.clone();
    let played = tokio::task::spawn_blocking(move || play(&args, wanted, &watching, &handle)).await?;
    match (stop.check(), played) {
        (Ok(()), ended) => ended,
        // Ctrl-C reaches every process of the demo, so whatever failed then failed by it.
        (Err(interrupted), ended) => {
            eprintln!("{interrupted}");
            Ok(ended.unwrap_or(ExitCode::from(INTERRUPTED)))
        }
    }
}

fn play(args: &Args, wanted: WantedStage, stop: &Stop, handle: &Handle) -> anyhow::Result<ExitCode> {
    let clock = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_millis() as u64);
    // Short enough to be typed again.
    let seed = args.seed.unwrap_or(clock % 1_000_000);
    let started = Instant::now();
    let mut view = View::new(args.json);
    view.title(args.payments, wanted.name(), seed);
    view.say("starting the server");
    let mut stage = Stage::set(wanted, args.payments, seed, handle)?;
    let (sent, planetarium) = acts::perform(&mut stage, &mut view, stop, handle)?;
    view.say("reading the store and the ledgers, side by side");
    let accounts = accounts::read(&stage, sent, stop, handle)?;
    let proof = Proof::of(&accounts);
    view.end();
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        json_out(&json!({
            "holds": proof.holds(),
            "payments": args.payments,
            "store": stage.kind,
            "seed": seed,
            "seconds": (seconds * 10.0).round() / 10.0,
            "lines": proof.lines,
        }));
    } else {
        view.proof(&proof, seconds);
    }
    if !args.exit {
        view.stay(&console_address(&stage.server), page_of_an_order(&stage.server, &planetarium), &stage);
        while stop.check().is_ok() {
            std::thread::sleep(TICK);
        }
    }
    Ok(if proof.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where to look at it with a browser: the link for the first admin, as the server printed it when it last started.
fn console_address(server: &Server) -> String {
    let root = format!("http://{}{ROOT}", server.address());
    let said = server.stdout();
    let link = said.split_whitespace().rfind(|word| word.starts_with(&format!("{root}/join/")));
    link.map_or(root, str::to_owned)
}

/// Where the customer of an order that went well looks at it.
fn page_of_an_order(server: &Server, planetarium: &Planetarium) -> Option<String> {
    let ledger = planetarium.ledger();
    let mut went_well = ledger.held().filter(|(visitor, _)| visitor.is_made && !visitor.is_cancelled);
    went_well.next().map(|(_, place)| format!("http://{}{}", server.address(), place.page))
}

/// Whether the user wants it to end.
#[derive(Clone)]
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped: the server is gone, and so is its folder")
    }
}

impl std::error::Error for Interrupted {}
