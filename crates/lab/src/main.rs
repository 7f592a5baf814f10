//! `sekisho-lab`: the lab's tools by hand, against a server on this machine.

use std::io::Read;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use sekisho_lab::hostile::{self, Target};
use sekisho_lab::load::{Load, Pace, Recording, Resend};
use sekisho_lab::postgres::Postgres;
use sekisho_lab::sink;
use sekisho_lab::traffic::{BODY_BYTES, StripeTraffic};

#[derive(Parser)]
#[command(about = "Load, hostile clients and private servers for trying Sekisho; loopback only")]
enum Command {
    /// Send signed Stripe events and print how fast they were acknowledged
    Load(LoadArguments),
    /// Run every hostile client once and print what the server did
    Hostile(HostileArguments),
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

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Load(arguments) => load(arguments),
        Command::Hostile(arguments) => attack(arguments),
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
        resend: if arguments.resend { Resend::UntilAcknowledged } else { Resend::Never },
        ledger,
        ..Load::new(arguments.address)
    };
    let traffic = StripeTraffic::new(&arguments.path, &arguments.secret, arguments.body_bytes);
    println!("{}", load.run_blocking(Arc::new(traffic.repeated(arguments.repeats))));
    Ok(())
}

fn attack(arguments: HostileArguments) -> Result<(), String> {
    const LARGE: u64 = 64 << 20;
    let target = Target {
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
