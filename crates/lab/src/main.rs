//! `sekisho-lab`: the lab's tools by hand, against a server on this machine.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use sekisho_lab::app::{self, Behaviour, DemoApp, Keep};
use sekisho_lab::attack::{self, Depth};
use sekisho_lab::hostile::{self, HostileTarget};
use sekisho_lab::instructions::{self, Walk};
use sekisho_lab::load::{Load, LoadResend, Pace, Recording};
use sekisho_lab::measure::thousands;
use sekisho_lab::postgres::Postgres;
use sekisho_lab::sink;
use sekisho_lab::stripe::{self, Stripe};
use sekisho_lab::torture::faults::TortureFault;
use sekisho_lab::torture::{self, Plan, StoreKind};
use sekisho_lab::traffic::{BODY_BYTES, StripeTraffic};

#[derive(Parser)]
#[command(about = "Load, hostile clients and private servers for trying Sekisho; loopback only")]
enum Command {
    /// Send signed Stripe events and print how fast they were acknowledged
    Load(LoadArguments),
    /// Run every hostile client once and print what the server did
    Hostile(HostileArguments),
    /// Try every known attack on a server of its own, and print what was tried and what succeeded
    Attack(AttackArguments),
    /// Receive deliveries, well or badly, until standard input ends; each line of it is a new behaviour
    App(AppArguments),
    /// Be Stripe's API until standard input ends; each line of it is a fault for the next request, or `forget_keys`
    Stripe(StripeArguments),
    /// Load and faults together on the real binary, then a check of every promise
    Torture(TortureArguments),
    /// Count the instructions that an event costs, beside those of another build, with Valgrind
    Instructions(InstructionsArguments),
    /// Answer every request with 204, to see how fast `load` is by itself
    Sink,
    #[command(subcommand)]
    Start(Start),
}

/// Start a private server and keep it until standard input ends
#[derive(Subcommand)]
enum Start {
    Postgres,
}

#[derive(Args)]
struct LoadArguments {
    address: SocketAddr,
    #[arg(long, default_value = "/webhooks/stripe")]
    path: String,
    #[arg(long, env = "SEKISHO_LAB_SECRET", hide_env_values = true)]
    secret: String,
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Events per second whether or not the server keeps up; without it, as fast as answers come
    #[arg(long)]
    rate: Option<f64>,
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[arg(long, default_value_t = 1.0)]
    warm_up_seconds: f64,
    #[arg(long, default_value_t = BODY_BYTES)]
    body_bytes: usize,
    /// Send each event this many times in a row
    #[arg(long, default_value_t = 1)]
    repeats: u64,
    /// Send an event again until it is acknowledged
    #[arg(long)]
    resend: bool,
    /// Append the id of every acknowledged event to this file
    #[arg(long)]
    ledger: Option<std::path::PathBuf>,
}

#[derive(Args)]
struct HostileArguments {
    address: SocketAddr,
    #[arg(long, default_value = "/webhooks/stripe")]
    path: String,
    #[arg(long, default_value_t = 100)]
    connections: usize,
    /// How long the server may put up with one connection
    #[arg(long, default_value_t = 30)]
    seconds: u64,
}

/// Fails when anything succeeded, an answer was 500 or above, or a panic is in the server's log
#[derive(Args)]
struct AttackArguments {
    /// sqlite, postgres or both
    #[arg(long, default_value = "both", value_parser = stores)]
    store: Stores,
    /// A few of everything, within a minute
    #[arg(long)]
    short: bool,
    #[arg(long)]
    seed: Option<u64>,
    /// The `sekisho` to attack; the one beside this program when not given
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

#[derive(Clone)]
struct Stores(Vec<StoreKind>);

fn stores(text: &str) -> Result<Stores, String> {
    match text {
        "both" => Ok(Stores(vec![StoreKind::Sqlite, StoreKind::Postgres])),
        one => one.parse().map(|one| Stores(vec![one])),
    }
}

#[derive(Args)]
struct AppArguments {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// ok, drop, silent, status:503, status:489;name=value, fail:2:503, delay:250:ok, slow:10,
    /// mix:SEED:10=drop,20=status:500 (per cent, the rest ok)
    #[arg(long, default_value = "ok")]
    behaviour: Behaviour,
    /// A path with a behaviour of its own, as /PATH=BEHAVIOUR
    #[arg(long = "path", value_parser = path_behaviour)]
    paths: Vec<(String, Behaviour)>,
    /// Append a line for every processed request to this file
    #[arg(long)]
    ledger: Option<std::path::PathBuf>,
}

#[derive(Args)]
struct StripeArguments {
    /// On loopback; 0 is any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The secret key callers must send
    #[arg(long, env = "SEKISHO_LAB_STRIPE_KEY", hide_env_values = true, default_value = stripe::KEY)]
    key: String,
    /// A JSON file with an object that is there from the start; of an event, the object in it too
    #[arg(long = "put")]
    objects: Vec<std::path::PathBuf>,
}

/// Prints what was found; fails when a promise was broken, and keeps everything for inspection
#[derive(Args)]
struct TortureArguments {
    /// sqlite or postgres
    #[arg(long)]
    store: StoreKind,
    /// Nodes on PostgreSQL; SQLite has one
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// kill, stop, pg-restart, pg-terminate, cut-after-commit, clock; those that fit the store are taken
    #[arg(long, value_delimiter = ',', default_values_t = TortureFault::ALL.map(|fault| fault.name().to_owned()))]
    faults: Vec<String>,
    /// Mean pause between two faults, in milliseconds
    #[arg(long, default_value_t = 1_000)]
    every: u64,
    #[arg(long)]
    seed: Option<u64>,
    /// Events a second over all nodes
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
    /// Seconds that a busy machine may add to the 12 in which work of a killed node must be taken up
    #[arg(long, default_value_t = 3)]
    slack: u64,
    /// The `sekisho` to torture; the one beside this program when not given
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

#[derive(Args)]
struct InstructionsArguments {
    /// The `sekisho` to measure; the one beside this program when not given
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
    /// The `sekisho` to compare it with
    #[arg(long)]
    before: Option<std::path::PathBuf>,
    #[arg(long, default_value_t = 1_000)]
    events: u64,
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Load(arguments) => load(arguments),
        Command::Hostile(arguments) => crowd(arguments),
        Command::Attack(arguments) => attack(arguments),
        Command::App(arguments) => serve_app(arguments),
        Command::Stripe(arguments) => serve_stripe(arguments),
        Command::Torture(arguments) => torture(arguments),
        Command::Instructions(arguments) => count_instructions(arguments),
        Command::Sink => serve_sink(),
        Command::Start(Start::Postgres) => start_postgres(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn load(arguments: LoadArguments) -> Result<(), String> {
    let ledger = match &arguments.ledger {
        None => Recording::Off,
        Some(path) => Recording::to_file(path)
            .map_err(|error| format!("{} can't be written: {error}", path.display()))?,
    };
    let load = Load {
        connections: arguments.connections,
        pace: arguments.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
        warm_up: Duration::from_secs_f64(arguments.warm_up_seconds),
        duration: Duration::from_secs_f64(arguments.seconds),
        resend: if arguments.resend { LoadResend::UntilAcknowledged } else { LoadResend::Never },
        ledger,
        ..Load::new(arguments.address)
    };
    let traffic = StripeTraffic::new(&arguments.path, &arguments.secret, arguments.body_bytes);
    println!("{}", load.run_blocking(Arc::new(traffic.repeated(arguments.repeats))));
    Ok(())
}

fn crowd(arguments: HostileArguments) -> Result<(), String> {
    const LARGE: u64 = 64 << 20;
    let target = HostileTarget {
        address: arguments.address,
        path: arguments.path,
        connections: arguments.connections,
        limit: Duration::from_secs(arguments.seconds),
    };
    runtime()?.block_on(async {
        println!("garbage              {}", hostile::garbage(&target, 1, 2_000).await);
        println!("many headers         {}", hostile::header_bomb(&target, 1_000, 100).await);
        println!("huge header          {}", hostile::header_bomb(&target, 1, 1 << 20).await);
        println!("oversized, announced {}", hostile::oversized_announced(&target, LARGE).await);
        println!("oversized, sent      {}", hostile::oversized_sent(&target, LARGE).await);
        println!("endless body         {}", hostile::endless_body(&target, LARGE).await);
        println!("slow body            {}", hostile::slow_body(&target).await);
        println!("slow headers         {}", hostile::slow_headers(&target).await);
        println!("silence              {}", hostile::silence(&target).await);
    });
    Ok(())
}

fn serve_app(arguments: AppArguments) -> Result<(), String> {
    let with_paths = |others: Behaviour| Behaviour::Paths(arguments.paths.clone(), Box::new(others));
    let app = DemoApp::start_with(app::Settings {
        listen: arguments.listen,
        behaviour: with_paths(arguments.behaviour),
        keep: Keep::Ids,
        ledger: arguments.ledger,
        tell: None,
    })
    .map_err(|error| format!("the application can't start: {error}"))?;
    println!("{}", app.address());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.trim().parse() {
            Ok(behaviour) => app.set(with_paths(behaviour)),
            Err(error) => eprintln!("{error}"),
        }
    }
    let (counts, ledger) = (app.counts(), app.ledger());
    println!(
        "{} requests, {} processed, {} messages, {} effects doubled",
        counts.seen,
        counts.processed,
        counts.messages,
        ledger.doubled().len()
    );
    Ok(())
}

fn serve_stripe(arguments: StripeArguments) -> Result<(), String> {
    let listen = (Ipv4Addr::LOCALHOST, arguments.port).into();
    let stripe = Stripe::start_with(stripe::Settings { listen, key: arguments.key })
        .map_err(|error| format!("Stripe can't start: {error}"))?;
    for path in &arguments.objects {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        stripe.put_text(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    println!("{}", stripe.address());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.trim() {
            "forget_keys" => stripe.forget_keys(),
            fault => match fault.parse() {
                Ok(fault) => stripe.order(fault),
                Err(error) => eprintln!("{error}"),
            },
        }
    }
    let calls = stripe.calls();
    let worked = calls.iter().filter(|call| call.worked).count();
    let replayed = calls.iter().filter(|call| call.replayed).count();
    println!("{} requests, {worked} created something, {replayed} replayed", calls.len());
    Ok(())
}

/// A seed, if nobody gives one.
fn clock() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos() as u64)
}

fn attack(arguments: AttackArguments) -> Result<(), String> {
    let binary = arguments.binary.map_or_else(sekisho_beside, Ok)?;
    let seed = arguments.seed.unwrap_or_else(clock);
    let depth = if arguments.short { Depth::Short } else { Depth::Full };
    eprintln!("seed {seed}");
    let mut clean = true;
    for store in arguments.store.0 {
        let book = attack::run(&attack::AttackPlan { store, depth, seed, binary: binary.clone() })?;
        println!("{store:?}\n{book}");
        clean &= book.is_clean();
    }
    if clean { Ok(()) } else { Err("the house did not stand".to_owned()) }
}

fn torture(arguments: TortureArguments) -> Result<(), String> {
    let plan = Plan {
        store: arguments.store,
        nodes: arguments.nodes,
        lasts: Duration::from_secs_f64(arguments.minutes * 60.0),
        faults: arguments.faults.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
        every: Duration::from_millis(arguments.every),
        seed: arguments.seed.unwrap_or_else(clock),
        rate: arguments.rate,
        slack: Duration::from_secs(arguments.slack),
        binary: arguments.binary.map_or_else(sekisho_beside, Ok)?,
    };
    eprintln!("seed {}", plan.seed);
    let verdict = torture::run(&plan)?;
    println!("{verdict}");
    match verdict.violations().len() {
        0 => Ok(()),
        broken => Err(format!("{broken} kinds of promises were broken")),
    }
}

/// The `sekisho` that was built together with this program.
fn sekisho_beside() -> Result<std::path::PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    Ok(own.with_file_name("sekisho"))
}

fn count_instructions(arguments: InstructionsArguments) -> Result<(), String> {
    let binary = arguments.binary.map_or_else(sekisho_beside, Ok)?;
    for walk in Walk::ALL {
        let now = instructions::per_event(&binary, walk, arguments.events)?;
        let beside = match &arguments.before {
            None => String::new(),
            Some(before) => {
                let before = instructions::per_event(before, walk, arguments.events)?;
                format!(", before {}, ratio {:.3}", thousands(before), now as f64 / before as f64)
            }
        };
        println!("{:<10} {:>12} instructions per event{beside}", walk.name(), thousands(now));
    }
    Ok(())
}

fn path_behaviour(text: &str) -> Result<(String, Behaviour), String> {
    let (path, behaviour) = text.split_once('=').ok_or("expected /PATH=BEHAVIOUR")?;
    Ok((path.to_owned(), behaviour.parse()?))
}

fn serve_sink() -> Result<(), String> {
    let runtime = runtime()?;
    let address = runtime.block_on(sink::serve(|_| sink::GOOD)).map_err(|error| error.to_string())?;
    println!("{address}");
    wait_for_end_of_input();
    Ok(())
}

fn start_postgres() -> Result<(), String> {
    let postgres = Postgres::start()?;
    println!("{}", postgres.fresh_url()?);
    wait_for_end_of_input();
    Ok(())
}

fn wait_for_end_of_input() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))
}
