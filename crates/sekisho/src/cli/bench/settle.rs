//! `bench settle`: how many events a second become payments, with nothing left waiting, beside a server that only
//! receives them. A payment is made of several events, as in a shop.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use sekisho_demo::load::{Load, Pace};
use sekisho_demo::measure::thousands;
use sekisho_demo::process::Server;
use sekisho_demo::traffic::{BODY_BYTES, CheckoutTraffic};
use serde_json::json;

use super::e2e::{SETTLED, metric, wait_for};
use super::{Kind, PATH, SECRET, Stage, figure_out, median, per_thousand, row_out};
use crate::cli::output::{Progress, line_out};

#[derive(clap::Args)]
pub struct Args {
    /// Connections that send at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Seconds of each turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// Turns of each server
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// One JSON object for each row and each ratio
    #[arg(long)]
    json: bool,
    /// Where the temporary data goes; the disk under it is what is measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// What one turn came to.
struct Turn {
    /// From the first request until nothing waited any more.
    finished_per_second: f64,
    acknowledged_per_second: f64,
    cpu_per_thousand: f64,
    /// Settled a second after the load had ended, for the backlog.
    backlog: u64,
}

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let progress = Progress::new();
    let (mut received, mut settled) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        progress.show(&format!("round {round} of {}: received", args.rounds));
        received.push(turn(args, stage, "received", "gateway", round)?);
        progress.show(&format!("round {round} of {}: received and processed", args.rounds));
        settled.push(turn(args, stage, "settled", "gateway,worker", round)?);
    }
    drop(progress);
    let middle = |turns: &[Turn], value: fn(&Turn) -> f64| median(turns.iter().map(value));
    let rate = |turns: &[Turn]| middle(turns, |turn| turn.finished_per_second);
    let least = if stage.kind == Kind::Sqlite { 0.5 } else { 0.4 };
    if args.json {
        for (name, turns) in [("received", &received), ("settled", &settled)] {
            let figures = json!({
                "connections": args.connections,
                "events_per_second": rate(turns),
                "acknowledged_per_second": middle(turns, |turn| turn.acknowledged_per_second),
                "cpu_s_per_1000": middle(turns, |turn| turn.cpu_per_thousand),
                "waiting": middle(turns, |turn| turn.backlog as f64),
            });
            row_out(stage, name, figures);
        }
        figure_out(stage, "settled / received", rate(&settled) / rate(&received), Some(least));
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!(
        "{}, {} connections, {} events of {BODY_BYTES} bytes a payment, {} turns of {} s each, medians",
        stage.kind.name(),
        args.connections,
        CheckoutTraffic::EVENTS,
        args.rounds,
        args.seconds
    ));
    for (name, turns) in [("received", &received), ("and processed", &settled)] {
        line_out(&format!(
            "{name:12} {:>8} events a second, acknowledged at {:>8}, {:.4} s of CPU for 1,000, {} waiting when the load ended",
            thousands(middle(turns, |turn| turn.finished_per_second) as u64),
            thousands(middle(turns, |turn| turn.acknowledged_per_second) as u64),
            middle(turns, |turn| turn.cpu_per_thousand),
            thousands(middle(turns, |turn| turn.backlog as f64) as u64)
        ));
    }
    line_out("");
    line_out(&format!("processed / received  {:.2}  (limit {least:.1})", rate(&settled) / rate(&received)));
    Ok(ExitCode::SUCCESS)
}

/// One turn, for those who compare with it.
pub fn settled_per_second(connections: u16, seconds: u16, stage: &Stage) -> anyhow::Result<f64> {
    let args = Args { connections, seconds, rounds: 1, json: false, folder: stage.folder.clone() };
    Ok(turn(&args, stage, "settled", "gateway,worker", 1)?.finished_per_second)
}

fn turn(args: &Args, stage: &Stage, name: &str, role: &str, round: u16) -> anyhow::Result<Turn> {
    let name = format!("{name}-{round}");
    let store = stage.fresh_store(&name)?;
    let server = stage.real(&name, &store, role, "")?;
    let cpu = || server.cpu_time().unwrap_or_default() + stage.database_cpu();
    let seed = u64::from(round) ^ u64::from(std::process::id());
    let traffic = Arc::new(CheckoutTraffic::with_seed(PATH, SECRET, BODY_BYTES, seed));
    let (before, started) = (cpu(), Instant::now());
    let report = load(args, &server).run_blocking(traffic);
    let acknowledged = report.acknowledged();
    if report.refusals() > 0 || acknowledged == 0 {
        bail!("{} requests were not acknowledged, so these figures mean nothing", report.refusals());
    }
    // Each payment is announced once, and what is announced is settled, too. The last ones may be half.
    let announced = (acknowledged / CheckoutTraffic::EVENTS).saturating_sub(args.connections.into());
    let wanted = acknowledged + announced;
    let mut backlog = 0;
    if role.contains("worker") {
        backlog = wanted.saturating_sub(metric(&server, SETTLED));
        wait_for(wanted, || metric(&server, SETTLED))?;
    }
    Ok(Turn {
        finished_per_second: acknowledged as f64 / started.elapsed().as_secs_f64(),
        acknowledged_per_second: report.per_second(),
        cpu_per_thousand: per_thousand(cpu().saturating_sub(before), acknowledged),
        backlog,
    })
}

fn load(args: &Args, server: &Server) -> Load {
    let mut load = Load::new(server.address());
    load.connections = args.connections.into();
    load.pace = Pace::Closed;
    load.warm_up = Duration::ZERO;
    load.duration = Duration::from_secs(args.seconds.into());
    load
}
