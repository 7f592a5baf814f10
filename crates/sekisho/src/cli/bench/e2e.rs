//! `bench e2e`: the whole walk, received, decided and delivered to an application on the same machine, beside a server
//! that verifies and stores nothing; and what the queue alone costs.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use sekisho_demo::app::{DemoApp, Keep, Settings};
use sekisho_demo::load::{Load, Pace};
use sekisho_demo::measure::thousands;
use sekisho_demo::process::Server;
use sekisho_demo::traffic::{BODY_BYTES, CheckoutTraffic, StripeTraffic, Traffic};
use serde_json::json;

use super::{Kind, PATH, SECRET, Stage, figure_out, per_thousand, row_out};
use crate::cli::output::{Progress, line_out};

#[derive(clap::Args)]
pub struct Args {
    /// Connections that send at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Seconds of each turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// PostgreSQL only: also beside a transaction that was begun before and stays open, as a backup or a report does
    #[arg(long)]
    old_reader: bool,
    /// One JSON object for each row and each ratio
    #[arg(long)]
    json: bool,
    /// Where the temporary data goes; the disk under it is what is measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// How long the queue may take to run dry after the load.
const DRY_WITHIN: Duration = Duration::from_mins(3);

/// What one server did with what it got.
struct Walk {
    acknowledged: u64,
    acknowledged_per_second: f64,
    /// Finished, whatever that means for this server, from the first request until the last was.
    finished_per_second: f64,
    cpu_per_thousand: f64,
}

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    if args.old_reader {
        return beside_an_old_reader(args, stage);
    }
    let progress = Progress::new();
    let say = |what: &str| progress.show(what);
    say("verify-only");
    let verify = stage.reference("verify-only")?;
    let verify = stage.turn(load(args, &verify, Pace::Closed), &verify, 1).report.per_second();
    say("received only");
    let received = walk(args, stage, "gateway", "gateway", None, Pace::Closed)?.0;
    say("received and decided");
    let decided = walk(args, stage, "decided", "gateway,worker", None, Pace::Closed)?.0;
    say("received, processed into payments and delivered");
    let settings = Settings { keep: Keep::Ids, ..Settings::default() };
    let app = DemoApp::start_with(settings)?;
    let delivered = walk(args, stage, "delivered", "gateway,worker", Some(&app), Pace::Closed)?.0;
    say("the same at half load");
    let half = Pace::Open { per_second: delivered.finished_per_second / 2.0 };
    let (_, picked_up) = walk(args, stage, "half", "gateway,worker", Some(&app), half)?;
    let from_another = match stage.kind {
        Kind::Sqlite => None,
        Kind::Postgres => {
            say("received on one node, delivered by another");
            let half = Pace::Open { per_second: delivered.finished_per_second / 4.0 };
            Some(two_nodes(args, stage, &app, half)?)
        }
    };
    drop(progress);
    let least = if stage.kind == Kind::Sqlite { 0.10 } else { 0.06 };
    let overhead = (decided.cpu_per_thousand - received.cpu_per_thousand).max(0.0);
    let delivered_of_verified = delivered.finished_per_second / verify;
    if args.json {
        row_out(stage, "verify-only", json!({ "per_second": verify }));
        for (name, walk) in [("received", &received), ("decided", &decided), ("delivered", &delivered)] {
            let figures = json!({
                "connections": args.connections,
                "per_second": walk.finished_per_second,
                "acknowledged_per_second": walk.acknowledged_per_second,
                "cpu_s_per_1000": walk.cpu_per_thousand,
            });
            row_out(stage, name, figures);
        }
        figure_out(stage, "delivered / verify-only", delivered_of_verified, Some(least));
        figure_out(stage, "queue overhead, cpu_s_per_1000", overhead, Some(0.06));
        row_out(stage, "picked up on the same node", json!({ "p50": picked_up, "limit": "2 ms" }));
        if let Some(picked_up) = from_another {
            row_out(stage, "picked up by another node", json!({ "p50": picked_up, "limit": "300 ms" }));
        }
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!(
        "{}, {} connections, bodies of {BODY_BYTES} bytes, {} s of load each",
        stage.kind.name(),
        args.connections,
        args.seconds
    ));
    line_out(&format!("verify-only            {:>8} a second", thousands(verify as u64)));
    for (name, walk) in [("received", &received), ("and decided", &decided), ("and delivered", &delivered)] {
        line_out(&format!(
            "{name:22} {:>8} a second, acknowledged at {:>8}, {:.4} s of CPU for 1,000",
            thousands(walk.finished_per_second as u64),
            thousands(walk.acknowledged_per_second as u64),
            walk.cpu_per_thousand
        ));
    }
    line_out("");
    line_out(&format!(
        "delivered / verify-only                 {delivered_of_verified:.3}  (limit {least:.2})"
    ));
    line_out(&format!(
        "queue overhead of a processed job       {overhead:.4} s of CPU for 1,000  (limit 0.06)"
    ));
    line_out(&format!("picked up on the same node, half load   p50 {picked_up}  (limit 2 ms)"));
    if let Some(picked_up) = from_another {
        line_out(&format!("picked up by another node               p50 {picked_up}  (limit 300 ms)"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Dead rows can't be cleaned away while somebody may still look at them: the queue must not slow down over them.
fn beside_an_old_reader(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let Some(database) = &stage.database else { bail!("--old-reader needs --store postgres") };
    let settings = Settings { keep: Keep::Ids, ..Settings::default() };
    let app = DemoApp::start_with(settings)?;
    let progress = Progress::new();
    progress.show("nobody else looks");
    let alone = walk(args, stage, "alone", "gateway,worker", Some(&app), Pace::Closed)?.0;
    progress.show("beside a reader");
    let store = stage.fresh_store("read")?;
    let server = stage.real("read", &store, "gateway,worker", &route(Some(&app)))?;
    let name = store.rsplit('/').next().and_then(|name| name.split('?').next()).unwrap_or_default();
    let reader = database.hold_snapshot(name, Duration::from_hours(1)).map_err(anyhow::Error::msg)?;
    let beside = walk_on(args, stage, &server, "gateway,worker", Some(&app), Pace::Closed)?.0;
    drop(reader);
    drop(progress);
    let (before, after) = (alone.finished_per_second, beside.finished_per_second);
    if args.json {
        row_out(stage, "alone", json!({ "per_second": before }));
        row_out(stage, "beside an open REPEATABLE READ", json!({ "per_second": after }));
        figure_out(stage, "beside / alone", after / before, Some(0.8));
        return Ok(ExitCode::SUCCESS);
    }
    line_out(&format!("{}, {} s of load each, delivered", stage.kind.name(), args.seconds));
    line_out(&format!("alone                               {:>8} a second", thousands(before as u64)));
    line_out(&format!("beside an open REPEATABLE READ      {:>8} a second", thousands(after as u64)));
    line_out(&format!("ratio                               {:.2}  (limit 0.80)", after / before));
    Ok(ExitCode::SUCCESS)
}

fn load(args: &Args, server: &Server, pace: Pace) -> Load {
    let mut load = Load::new(server.address());
    load.connections = args.connections.into();
    load.pace = pace;
    load.warm_up = Duration::ZERO;
    load.duration = Duration::from_secs(args.seconds.into());
    load
}

/// Loads a fresh server until the queue has run dry again. Also says how fast work was picked up, at the median.
fn walk(
    args: &Args,
    stage: &Stage,
    name: &'static str,
    role: &str,
    app: Option<&DemoApp>,
    pace: Pace,
) -> anyhow::Result<(Walk, String)> {
    let store = stage.fresh_store(name)?;
    let server = stage.real(name, &store, role, &route(app))?;
    walk_on(args, stage, &server, role, app, pace)
}

fn walk_on(
    args: &Args,
    stage: &Stage,
    server: &Server,
    role: &str,
    app: Option<&DemoApp>,
    pace: Pace,
) -> anyhow::Result<(Walk, String)> {
    let cpu = || server.cpu_time().unwrap_or_default() + stage.database_cpu();
    let (before, started) = (cpu(), Instant::now());
    let delivered_before = app.map_or(0, |app| app.counts().processed);
    let traffic = sent(app.is_some(), 3);
    let report = load(args, server, pace).run_blocking(traffic);
    let acknowledged = report.acknowledged();
    let works = role.contains("worker");
    let finished = || match app {
        Some(app) => app.counts().processed - delivered_before,
        None if works => metric(server, SETTLED),
        None => acknowledged,
    };
    wait_for(acknowledged, finished)?;
    let (elapsed, spent) = (started.elapsed(), cpu().saturating_sub(before));
    let walk = Walk {
        acknowledged,
        acknowledged_per_second: report.per_second(),
        finished_per_second: acknowledged as f64 / elapsed.as_secs_f64(),
        cpu_per_thousand: per_thousand(spent, acknowledged),
    };
    if report.refusals() > 0 || walk.acknowledged == 0 {
        bail!("{} requests were not acknowledged, so these figures mean nothing", report.refusals());
    }
    Ok((walk, median_of(server, "sekisho_pick_up_seconds", "kind=\"deliver\"")))
}

/// What is delivered is what a shop has; what is only decided is about things that no rule settles, so that its cost is
/// the queue's.
fn sent(to_app: bool, seed: u64) -> Arc<dyn Traffic> {
    let seed = seed ^ u64::from(std::process::id());
    if to_app {
        return Arc::new(CheckoutTraffic::with_seed(PATH, SECRET, BODY_BYTES, seed));
    }
    Arc::new(StripeTraffic::of_products(PATH, SECRET, BODY_BYTES, seed))
}

/// One process receives, another delivers.
fn two_nodes(args: &Args, stage: &Stage, app: &DemoApp, pace: Pace) -> anyhow::Result<String> {
    let store = stage.fresh_store("two")?;
    let gateway = stage.real("two-gateway", &store, "gateway", "")?;
    let worker = stage.real("two-worker", &store, "worker", &route(Some(app)))?;
    let before = app.counts().processed;
    let report = load(args, &gateway, pace).run_blocking(sent(true, 4));
    wait_for(report.acknowledged(), || app.counts().processed - before)?;
    Ok(median_of(&worker, "sekisho_pick_up_seconds", "kind=\"settle\""))
}

/// What the settled jobs are counted under.
pub const SETTLED: &str = "sekisho_jobs_total{lane=\"settle\"";

pub fn wait_for(wanted: u64, finished: impl Fn() -> u64) -> anyhow::Result<()> {
    let started = Instant::now();
    while finished() < wanted {
        if started.elapsed() > DRY_WITHIN {
            bail!("the queue did not run dry: {} of {wanted}", finished());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn route(app: Option<&DemoApp>) -> String {
    let route = |app: &DemoApp| {
        format!(
            "[[route]]\nname = \"app\"\nurl = \"{}/hook\"\nallow_private = true\nsigning = \"stripe\"\n\
             secrets = [\"whsec_app\"]\nconcurrency = 50\n",
            app.url()
        )
    };
    app.map(route).unwrap_or_default()
}

fn figures(server: &Server) -> String {
    sekisho_demo::http::get(server.address(), "/metrics").map(|page| page.text()).unwrap_or_default()
}

/// The sum of a metric's lines that begin so.
pub fn metric(server: &Server, start: &str) -> u64 {
    let figures = figures(server);
    let lines = figures.lines().filter(|line| line.starts_with(start));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
}

/// The median of a histogram, as far as its buckets tell.
fn median_of(server: &Server, name: &str, label: &str) -> String {
    let start = format!("{name}_bucket{{");
    let figures = figures(server);
    let buckets: Vec<(&str, f64)> = figures
        .lines()
        .filter(|line| line.starts_with(&start) && line.contains(label))
        .filter_map(|line| {
            let bound = line.split("le=\"").nth(1)?.split('"').next()?;
            Some((bound, line.rsplit(' ').next()?.parse().ok()?))
        })
        .collect();
    let all = buckets.last().map_or(0.0, |(_, count)| *count);
    let middle = buckets.iter().find(|(_, count)| *count >= all / 2.0);
    match middle.and_then(|(bound, _)| bound.parse::<f64>().ok()) {
        Some(seconds) if all > 0.0 => format!("≤ {} ms", seconds * 1e3),
        _ => "unknown".into(),
    }
}
