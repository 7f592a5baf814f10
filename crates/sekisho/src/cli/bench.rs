//! `sekisho bench`: what this machine can do. Absolute figures mean little on shared machines, so everything is
//! measured beside a peer in the same run, and what counts is the ratio.
//!
//! [`ingest`] receiving alone · [`settle`] received and settled · [`e2e`] received, decided, delivered · [`holds`] places held ·
//! [`growth`] cost against history · [`crowd`] cost beside a destination that is down · [`console`] pages against history

mod console;
mod crowd;
mod e2e;
mod fill;
mod growth;
mod holds;
mod ingest;
mod servers;
mod settle;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sekisho_demo::load::{Load, Report};
use sekisho_demo::postgres::Postgres;
use sekisho_demo::process::{Server, ServerConfig, ServerOptions};
use sekisho_demo::traffic::{BODY_BYTES, StripeTraffic};
use serde::Serialize;
use serde_json::{Value, json};

use super::Context;
use super::output::json_out;

#[derive(clap::Subcommand)]
pub enum Command {
    /// How many webhooks a second are stored durably, beside what is possible without storing; --store sqlite
    /// or --store postgres says on what, and a fresh database is made for it
    Ingest(ingest::Args),
    /// How many events a second are received and processed into payments, beside receiving alone
    Settle(settle::Args),
    /// How many events a second are received, decided and delivered to an application, and what the queue costs
    E2e(e2e::Args),
    /// How many reservations a second are held, in slots of their own and in one, beside events that are processed
    Holds(holds::Args),
    /// Whether an event costs more when many are stored already
    Growth(growth::Args),
    /// Whether a destination with many waiting jobs costs the others
    Crowd(crowd::Args),
    /// How long the pages of the console take when much is stored
    Console(console::Args),
    /// One of the servers that the others are compared with
    #[command(hide = true)]
    Server(servers::Args),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// PostgreSQL's memory for pages: what its manual advises, a quarter, for a machine of 4 GB. Without advice it has 128 MB,
/// less than the keys of five million events take.
const DATABASE_MB: u32 = 1_024;

pub const SECRET: &str = "whsec_bench";
pub const PATH: &str = "/webhooks/stripe";

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    if let Command::Server(args) = command {
        return servers::run(args).await;
    }
    let kind = kind(context.store.as_deref().unwrap_or("sqlite"))?;
    let measure = move || {
        sekisho_demo::measure::raise_open_files();
        match command {
            Command::Ingest(args) => on_stage(kind, &args.folder, |stage| ingest::run(&args, stage)),
            Command::Settle(args) => on_stage(kind, &args.folder, |stage| settle::run(&args, stage)),
            Command::E2e(args) => on_stage(kind, &args.folder, |stage| e2e::run(&args, stage)),
            Command::Holds(args) => on_stage(kind, &args.folder, |stage| holds::run(&args, stage)),
            Command::Growth(args) => on_stage(kind, &args.folder, |stage| growth::run(&args, stage)),
            Command::Crowd(args) => on_stage(kind, &args.folder, |stage| crowd::run(&args, stage)),
            Command::Console(args) => on_stage(kind, &args.folder, |stage| console::run(&args, stage)),
            Command::Server(_) => Ok(ExitCode::SUCCESS),
        }
    };
    tokio::task::spawn_blocking(measure).await?
}

/// `--store sqlite|postgres` names the kind; the database itself is always a fresh one.
fn kind(store: &str) -> anyhow::Result<Kind> {
    match store.split(':').next().unwrap_or_default() {
        "sqlite" => Ok(Kind::Sqlite),
        "postgres" | "postgresql" => Ok(Kind::Postgres),
        _ => bail!("--store is sqlite or postgres here: the benchmark makes its own database"),
    }
}

/// A folder of its own, and the database in it.
struct Stage {
    kind: Kind,
    folder: PathBuf,
    database: Option<Postgres>,
}

fn on_stage(
    kind: Kind,
    folder: &Path,
    measure: impl FnOnce(&Stage) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    // Whole: the servers run in folders of their own.
    let folder = std::path::absolute(folder)?.join(format!("sekisho-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let database = match kind {
        Kind::Sqlite => None,
        Kind::Postgres => {
            let database = Postgres::start_with(&folder, DATABASE_MB).map_err(anyhow::Error::msg)?;
            database.wear_in().map_err(anyhow::Error::msg)?;
            Some(database)
        }
    };
    let stage = Stage { kind, folder, database };
    let result = measure(&stage);
    let folder = stage.folder.clone();
    drop(stage);
    let _ = std::fs::remove_dir_all(folder);
    result
}

impl Stage {
    /// A store that nobody has used.
    fn fresh_store(&self, name: &str) -> anyhow::Result<String> {
        match &self.database {
            None => Ok(format!("sqlite:{}", self.folder.join(name).join("events.db").display())),
            Some(database) => database.fresh_url().map_err(anyhow::Error::msg),
        }
    }

    /// One of the servers that store nothing.
    fn reference(&self, name: &'static str) -> anyhow::Result<Server> {
        self.start(name, |options| {
            options.command = vec!["bench".into(), "server".into()];
            options.arguments = vec![name.into()];
        })
    }

    /// The product, with these roles and whatever the configuration says besides one source.
    fn real(&self, name: &str, store: &str, role: &str, more: &str) -> anyhow::Result<Server> {
        self.start(name, |options| {
            let source =
                format!("[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"{SECRET}\"]\n");
            options.config = ServerConfig::Text(format!("[log]\nlevel = \"warn\"\n{source}{more}"));
            options.store = Some(store.to_owned());
            options.role = Some(role.to_owned());
        })
    }

    fn start(&self, name: &str, change: impl FnOnce(&mut ServerOptions)) -> anyhow::Result<Server> {
        let binary = std::env::current_exe().context("this program can't find itself")?;
        let mut options = ServerOptions::new(&binary, self.folder.join(name));
        change(&mut options);
        Server::start(options).map_err(anyhow::Error::msg)
    }

    fn database_cpu(&self) -> Duration {
        self.database.as_ref().and_then(Postgres::cpu_time).unwrap_or_default()
    }

    /// One turn under load, with what it cost. The CPU of the warm-up counts too, and so do its events.
    fn turn(&self, load: Load, server: &Server, seed: u64) -> Turn {
        let cpu = || (server.cpu_time().unwrap_or_default(), self.database_cpu());
        let before = cpu();
        let report = load.run_blocking(traffic(seed));
        let after = cpu();
        Turn {
            report,
            server_cpu: after.0.saturating_sub(before.0),
            database_cpu: after.1.saturating_sub(before.1),
            pss_kb: server.pss_kb().unwrap_or_default(),
        }
    }
}

fn traffic(seed: u64) -> Arc<StripeTraffic> {
    let seed = seed ^ u64::from(std::process::id());
    Arc::new(StripeTraffic::with_seed(PATH, SECRET, BODY_BYTES, seed))
}

struct Turn {
    report: Report,
    server_cpu: Duration,
    database_cpu: Duration,
    pss_kb: u64,
}

/// For programs: a measured row, with what it was measured on.
fn row_out(stage: &Stage, name: &str, figures: Value) {
    #[derive(Serialize)]
    struct Row<'r> {
        #[serde(flatten)]
        figures: Value,
        store: &'r str,
        measured: &'r str,
    }
    json_out(&Row { figures, store: stage.kind.name(), measured: name });
}

/// For programs: a figure that counts, with its limit where it has one.
fn figure_out(stage: &Stage, name: &str, value: impl Into<Value>, limit: Option<f64>) {
    row_out(stage, name, json!({ "value": value.into(), "limit": limit }));
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Seconds of CPU for a thousand.
fn per_thousand(cpu: Duration, events: u64) -> f64 {
    cpu.as_secs_f64() * 1000.0 / events.max(1) as f64
}
