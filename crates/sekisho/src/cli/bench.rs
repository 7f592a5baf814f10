//! `sekisho bench ingest`: what durability costs on this machine. Absolute figures mean little on shared machines, so
//! three servers run in one family of processes and take turns under the same driver: a bare axum that answers 204,
//! one that verifies and reads but stores nothing, and the real thing. What counts is their ratio.

mod servers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sekisho_lab::load::{Load, Pace, Report};
use sekisho_lab::measure::{millis, thousands};
use sekisho_lab::postgres::Postgres;
use sekisho_lab::process::{Config, Options, Server};
use sekisho_lab::traffic::{BODY_BYTES, StripeTraffic};

use super::Context;
use super::output::{Progress, line_out, table};

#[derive(clap::Subcommand)]
pub enum Command {
    /// How many webhooks a second are stored durably, beside what is possible without storing; --store sqlite
    /// or --store postgres says on what, and a fresh database is made for it
    Ingest(Ingest),
    /// One of the servers that `ingest` compares with
    #[command(hide = true)]
    Server(servers::Args),
}

#[derive(clap::Args)]
pub struct Ingest {
    /// Connections that send at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Seconds of each turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// Turns of each server
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Also run the worker, so that receiving and settling share the machine
    #[arg(long)]
    with_worker: bool,
    /// Where the temporary data goes; the disk under it is what is measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sqlite,
    Postgres,
}

pub const SECRET: &str = "whsec_bench";
pub const PATH: &str = "/webhooks/stripe";
const WARM_UP: Duration = Duration::from_secs(1);

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::Server(args) => servers::run(args).await,
        Command::Ingest(args) => {
            let kind = kind(context.store.as_deref().unwrap_or("sqlite"))?;
            tokio::task::spawn_blocking(move || ingest(&args, kind)).await?
        }
    }
}

/// `--store sqlite|postgres` names the kind; the database itself is always a fresh one.
fn kind(store: &str) -> anyhow::Result<Kind> {
    match store.split(':').next().unwrap_or_default() {
        "sqlite" => Ok(Kind::Sqlite),
        "postgres" | "postgresql" => Ok(Kind::Postgres),
        _ => bail!("--store is sqlite or postgres here: the benchmark makes its own database"),
    }
}

/// A server with the figures of its turns.
struct Subject {
    name: &'static str,
    server: Server,
    turns: Vec<Turn>,
}

struct Turn {
    report: Report,
    server_cpu: Duration,
    database_cpu: Duration,
    pss_kb: u64,
}

fn ingest(args: &Ingest, kind: Kind) -> anyhow::Result<ExitCode> {
    sekisho_lab::measure::raise_open_files();
    let folder = args.folder.join(format!("sekisho-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let result = measure(args, kind, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn measure(args: &Ingest, kind: Kind, folder: &std::path::Path) -> anyhow::Result<ExitCode> {
    let database = match kind {
        Kind::Sqlite => None,
        Kind::Postgres => Some(Postgres::start_in(folder).map_err(anyhow::Error::msg)?),
    };
    let store = match &database {
        None => format!("sqlite:{}", folder.join("real/events.db").display()),
        Some(database) => database.fresh_url().map_err(anyhow::Error::msg)?,
    };
    let mut subjects = start_servers(args, folder, &store)?;
    let idle_kb = subjects[2].server.pss_kb().unwrap_or_default();
    let progress = Progress::new();
    for round in 1..=args.rounds {
        for subject in &mut subjects {
            progress.show(&format!("round {round} of {}: {}", args.rounds, subject.name));
            let load = load(args, subject, Pace::Closed);
            let turn = turn(load, &subject.server, database.as_ref(), (u64::from(round) << 8) + 1);
            subject.turns.push(turn);
        }
    }
    let best = median(subjects[2].turns.iter().map(|turn| turn.report.per_second()));
    let mut open = Vec::new();
    for subject in &subjects[1..] {
        progress.show(&format!("half load: {}", subject.name));
        let load = load(args, subject, Pace::Open { per_second: best / 2.0 });
        open.push((subject.name, turn(load, &subject.server, None, 2)));
    }
    drop(progress);
    print(args, kind, &subjects, &open, idle_kb);
    let failures: u64 =
        subjects.iter().flat_map(|subject| &subject.turns).map(|turn| turn.report.refusals()).sum();
    if failures > 0 {
        bail!("{failures} requests were not acknowledged, so these figures mean nothing");
    }
    Ok(ExitCode::SUCCESS)
}

fn start_servers(args: &Ingest, folder: &std::path::Path, store: &str) -> anyhow::Result<Vec<Subject>> {
    let binary = std::env::current_exe().context("this program can't find itself")?;
    let start = |name: &'static str, change: &dyn Fn(&mut Options)| {
        let mut options = Options::new(&binary, folder.join(name));
        change(&mut options);
        let server = Server::start(options).map_err(anyhow::Error::msg)?;
        Ok::<_, anyhow::Error>(Subject { name, server, turns: Vec::new() })
    };
    let reference = |kind: &'static str| {
        move |options: &mut Options| {
            options.command = vec!["bench".into(), "server".into()];
            options.arguments = vec![kind.into()];
        }
    };
    let real = |options: &mut Options| {
        let source =
            format!("[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"{SECRET}\"]\n");
        options.config = Config::Text(format!("[log]\nlevel = \"warn\"\n{source}"));
        options.store = Some(store.to_owned());
        options.role = Some(if args.with_worker { "gateway,worker" } else { "gateway" }.to_owned());
    };
    Ok(vec![
        start("bare", &reference("bare"))?,
        start("verify-only", &reference("verify-only"))?,
        start("real", &real)?,
    ])
}

fn load(args: &Ingest, subject: &Subject, pace: Pace) -> Load {
    let mut load = Load::new(subject.server.address());
    load.connections = args.connections.into();
    load.pace = pace;
    load.warm_up = WARM_UP;
    load.duration = Duration::from_secs(args.seconds.into());
    load
}

/// One turn under load, with what it cost. The CPU of the warm-up counts too, and so do its events.
fn turn(load: Load, server: &Server, database: Option<&Postgres>, seed: u64) -> Turn {
    let cpu =
        || (server.cpu_time().unwrap_or_default(), database.and_then(Postgres::cpu_time).unwrap_or_default());
    let before = cpu();
    let traffic = StripeTraffic::with_seed(PATH, SECRET, BODY_BYTES, seed ^ u64::from(std::process::id()));
    let report = load.run_blocking(Arc::new(traffic));
    let after = cpu();
    Turn {
        report,
        server_cpu: after.0.saturating_sub(before.0),
        database_cpu: after.1.saturating_sub(before.1),
        pss_kb: server.pss_kb().unwrap_or_default(),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn print(args: &Ingest, kind: Kind, subjects: &[Subject], open: &[(&str, Turn)], idle_kb: u64) {
    let middle = |subject: &Subject, value: &dyn Fn(&Turn) -> f64| median(subject.turns.iter().map(value));
    let latency = |quantile: f64| move |turn: &Turn| turn.report.latency_us(quantile) as f64;
    let row = |subject: &Subject| {
        vec![
            subject.name.to_owned(),
            thousands(middle(subject, &|turn| turn.report.per_second()) as u64),
            millis(middle(subject, &latency(0.5)) as u64),
            millis(middle(subject, &latency(0.99)) as u64),
            millis(middle(subject, &latency(0.999)) as u64),
            format!("{:.4} s", middle(subject, &|turn| per_thousand(turn, turn.server_cpu))),
            format!("{:.4} s", middle(subject, &|turn| per_thousand(turn, turn.database_cpu))),
            format!("{:.0} MB", middle(subject, &|turn| turn.pss_kb as f64) / 1024.0),
        ]
    };
    let store = match kind {
        Kind::Sqlite => "SQLite",
        Kind::Postgres => "PostgreSQL",
    };
    line_out(&format!(
        "{store}, {} connections, bodies of {BODY_BYTES} bytes, {} turns of {} s each, medians",
        args.connections, args.rounds, args.seconds
    ));
    let headings = ["SERVER", "EVENTS/S", "P50", "P99", "P99.9", "CPU/1000", "DATABASE/1000", "MEMORY"];
    table(&headings, &subjects.iter().map(row).collect::<Vec<_>>());
    let rate = |n: usize| middle(&subjects[n], &|turn| turn.report.per_second());
    line_out("");
    line_out(&format!("real / verify-only  {:.2}", rate(2) / rate(1)));
    line_out(&format!("real / bare         {:.2}", rate(2) / rate(0)));
    line_out(&format!("memory idle         {:.1} MB", idle_kb as f64 / 1024.0));
    line_out("");
    line_out("At half of the real one's maximum, open loop:");
    let row = |(name, turn): &(&str, Turn)| {
        vec![
            (*name).to_owned(),
            thousands(turn.report.per_second() as u64),
            millis(turn.report.latency_us(0.5)),
            millis(turn.report.latency_us(0.99)),
            millis(turn.report.latency_us(0.999)),
        ]
    };
    table(&["SERVER", "EVENTS/S", "P50", "P99", "P99.9"], &open.iter().map(row).collect::<Vec<_>>());
}

fn per_thousand(turn: &Turn, cpu: Duration) -> f64 {
    cpu.as_secs_f64() * 1000.0 / turn.report.next.max(1) as f64
}
