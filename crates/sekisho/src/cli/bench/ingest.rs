//! `bench ingest`: what durability costs. Three servers take turns under the same driver: a bare axum that answers
//! 204, one that verifies and reads but stores nothing, and the real thing.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use sekisho_demo::load::{Load, Pace};
use sekisho_demo::measure::{millis, thousands};
use sekisho_demo::process::Server;
use sekisho_demo::traffic::BODY_BYTES;
use serde_json::{Value, json};

use super::{Kind, Stage, Turn, figure_out, median, per_thousand, row_out};
use crate::cli::output::{Progress, line_out, table};

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
    /// Also run the worker, so that receiving and processing share the machine
    #[arg(long)]
    with_worker: bool,
    /// One JSON object for each row and each ratio
    #[arg(long)]
    json: bool,
    /// Where the temporary data goes; the disk under it is what is measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

const WARM_UP: Duration = Duration::from_secs(1);
/// Connections from which on PostgreSQL must do better.
const MANY: u16 = 256;

/// A server with the figures of its turns.
struct Subject {
    name: &'static str,
    server: Server,
    turns: Vec<Turn>,
}

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let role = if args.with_worker { "gateway,worker" } else { "gateway" };
    let store = stage.fresh_store("real")?;
    let subject = |name, server| Subject { name, server, turns: Vec::new() };
    let mut subjects = vec![
        subject("bare", stage.reference("bare")?),
        subject("verify-only", stage.reference("verify-only")?),
        subject("real", stage.real("real", &store, role, "")?),
    ];
    let idle_kb = subjects[2].server.pss_kb().unwrap_or_default();
    let progress = Progress::new();
    for round in 1..=args.rounds {
        for subject in &mut subjects {
            progress.show(&format!("round {round} of {}: {}", args.rounds, subject.name));
            let load = load(args, subject, Pace::Closed);
            subject.turns.push(stage.turn(load, &subject.server, (u64::from(round) << 8) + 1));
        }
    }
    let best = median(subjects[2].turns.iter().map(|turn| turn.report.per_second()));
    let mut open = Vec::new();
    for subject in &subjects[1..] {
        progress.show(&format!("half load: {}", subject.name));
        let load = load(args, subject, Pace::Open { per_second: best / 2.0 });
        open.push((subject.name, stage.turn(load, &subject.server, 2)));
    }
    drop(progress);
    let figures = figures(args, stage, &subjects, &open, idle_kb);
    if args.json {
        print_json(args, stage, &subjects, &open, &figures);
    } else {
        print(args, stage, &subjects, &open, &figures);
    }
    let failures: u64 =
        subjects.iter().flat_map(|subject| &subject.turns).map(|turn| turn.report.refusals()).sum();
    if failures > 0 {
        bail!("{failures} requests were not acknowledged, so these figures mean nothing");
    }
    Ok(ExitCode::SUCCESS)
}

fn load(args: &Args, subject: &Subject, pace: Pace) -> Load {
    let mut load = Load::new(subject.server.address());
    load.connections = args.connections.into();
    load.pace = pace;
    load.warm_up = WARM_UP;
    load.duration = Duration::from_secs(args.seconds.into());
    load
}

fn middle(subject: &Subject, value: &dyn Fn(&Turn) -> f64) -> f64 {
    median(subject.turns.iter().map(value))
}

/// A figure that counts, and the limit it must keep, if it has one.
struct Figure {
    name: &'static str,
    value: f64,
    least: Option<f64>,
    most: Option<f64>,
}

impl Figure {
    fn line(&self) -> String {
        let Self { name, value, least, most } = self;
        let kept = least.is_none_or(|least| *value >= least) && most.is_none_or(|most| *value <= most);
        let limit = match (least, most) {
            (Some(least), _) => format!("  (limit: at least {least}; {})", word(kept)),
            (None, Some(most)) => format!("  (limit: at most {most}; {})", word(kept)),
            (None, None) => String::new(),
        };
        format!("{name:<40}{value:>7.3}{limit}")
    }
}

fn word(kept: bool) -> &'static str {
    if kept { "kept" } else { "missed" }
}

fn figures(
    args: &Args,
    stage: &Stage,
    subjects: &[Subject],
    open: &[(&str, Turn)],
    idle_kb: u64,
) -> Vec<Figure> {
    let rate = |n: usize| middle(&subjects[n], &|turn| turn.report.per_second());
    let cpu = |turn: &Turn| per_thousand(turn.server_cpu + turn.database_cpu, turn.report.next);
    let at_half = open.last().map_or(0, |(_, turn)| turn.report.latency_us(0.5)) as f64 / 1000.0;
    let full_mb = middle(&subjects[2], &|turn| turn.pss_kb as f64 / 1024.0);
    let (ratio, seconds, ms) = match stage.kind {
        Kind::Sqlite => (0.40, 0.055, 1.0),
        Kind::Postgres if args.connections < MANY => (0.15, 0.075, 3.0),
        Kind::Postgres => (0.30, 0.075, 3.0),
    };
    // The limits are those of receiving.
    let limit = |value: f64| Some(value).filter(|_| !args.with_worker);
    let figure = |name, value, least, most| Figure { name, value, least, most };
    vec![
        figure("real / verify-only", rate(2) / rate(1), limit(ratio), None),
        figure("real / bare", rate(2) / rate(0), None, None),
        figure("real: CPU for 1,000 with database, s", middle(&subjects[2], &cpu), None, limit(seconds)),
        figure("real: p50 at half load, ms", at_half, None, limit(ms)),
        figure("real: memory idle, MB", idle_kb as f64 / 1024.0, None, limit(20.0)),
        figure("real: memory at full load, MB", full_mb, None, limit(100.0)),
    ]
}

fn print(args: &Args, stage: &Stage, subjects: &[Subject], open: &[(&str, Turn)], figures: &[Figure]) {
    let latency = |quantile: f64| move |turn: &Turn| turn.report.latency_us(quantile) as f64;
    let row = |subject: &Subject| {
        vec![
            subject.name.to_owned(),
            thousands(middle(subject, &|turn| turn.report.per_second()) as u64),
            millis(middle(subject, &latency(0.5)) as u64),
            millis(middle(subject, &latency(0.99)) as u64),
            millis(middle(subject, &latency(0.999)) as u64),
            format!("{:.4} s", middle(subject, &|turn| per_thousand(turn.server_cpu, turn.report.next))),
            format!("{:.4} s", middle(subject, &|turn| per_thousand(turn.database_cpu, turn.report.next))),
            format!("{:.0} MB", middle(subject, &|turn| turn.pss_kb as f64) / 1024.0),
        ]
    };
    let store = stage.kind.name();
    line_out(&format!(
        "{store}, {} connections, bodies of {BODY_BYTES} bytes, {} turns of {} s each, medians",
        args.connections, args.rounds, args.seconds
    ));
    let headings = ["SERVER", "EVENTS/S", "P50", "P99", "P99.9", "CPU/1000", "DATABASE/1000", "MEMORY"];
    table(&headings, &subjects.iter().map(row).collect::<Vec<_>>());
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
    line_out("");
    figures.iter().for_each(|figure| line_out(&figure.line()));
}

fn print_json(args: &Args, stage: &Stage, subjects: &[Subject], open: &[(&str, Turn)], figures: &[Figure]) {
    let row = |load: &str, turns: &[Turn]| -> Value {
        let middle = |value: &dyn Fn(&Turn) -> f64| median(turns.iter().map(value));
        let ms = |quantile| middle(&|turn| turn.report.latency_us(quantile) as f64 / 1000.0);
        json!({
            "load": load,
            "connections": args.connections,
            "events_per_second": middle(&|turn| turn.report.per_second()),
            "p50_ms": ms(0.5),
            "p99_ms": ms(0.99),
            "p99_9_ms": ms(0.999),
            "cpu_s_per_1000": middle(&|turn| per_thousand(turn.server_cpu, turn.report.next)),
            "database_cpu_s_per_1000": middle(&|turn| per_thousand(turn.database_cpu, turn.report.next)),
            "memory_mb": middle(&|turn| turn.pss_kb as f64 / 1024.0),
        })
    };
    for subject in subjects {
        row_out(stage, subject.name, row("full", &subject.turns));
    }
    for (name, turn) in open {
        row_out(stage, name, row("half", std::slice::from_ref(turn)));
    }
    for figure in figures {
        figure_out(stage, figure.name, figure.value, figure.least.or(figure.most));
    }
}
