//! `bench holds`: how many reservations a second are held, each in a slot of its own and all in one, beside events that are
//! settled in the same run. And whether a place is ever sold twice.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use sekisho_demo::http;
use sekisho_demo::load::{Load, Pace, Report};
use sekisho_demo::measure::thousands;
use sekisho_demo::process::Server;
use serde_json::{Value, json};

use super::{Kind, Stage, figure_out, row_out, settle};
use crate::cli::output::{Progress, line_out};

#[derive(clap::Args)]
pub struct Args {
    /// Connections that ask at once
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Seconds of each turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// One JSON object for each row and each ratio
    #[arg(long)]
    json: bool,
    /// Where the temporary data goes; the disk under it is what is measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

const KEY: &str = "bench-key-0123456789abcdef";
/// Places of the one slot that everybody wants.
const PLACES: u64 = 100_000;
/// Those who want one place at the same moment.
const CALLERS: u16 = 64;
/// Least parts of what they are compared with, and the slowest of a hundred at half the load.
const OWN_MIN: f64 = 0.5;
const HOT_MIN: f64 = 0.6;
const TWO_NODES_MIN: f64 = 0.5;
const P99_MAX_MS: f64 = 100.0;

struct Measured {
    settled: f64,
    own: f64,
    hot: f64,
    /// PostgreSQL only: two nodes on the one slot.
    two: Option<f64>,
    p99_ms: f64,
    won: u64,
    lost: u64,
    oversold: u64,
}

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let measured = measure(args, stage)?;
    let Measured { settled, own, hot, two, p99_ms, won, lost, oversold } = measured;
    let is_one = won == 1 && lost == u64::from(CALLERS) - 1;
    let figures = [
        ("own slots / settled", own / settled, OWN_MIN),
        ("one slot / own slots", hot / own, HOT_MIN),
        ("two nodes / one, on one slot", two.unwrap_or_default() / hot, TWO_NODES_MIN),
    ];
    let figures = figures.iter().take(if two.is_some() { 3 } else { 2 });
    if args.json {
        for (name, rate) in [("settled", settled), ("own slots", own), ("one slot", hot)] {
            row_out(stage, name, json!({ "connections": args.connections, "per_second": rate }));
        }
        for (name, ratio, least) in figures {
            figure_out(stage, name, *ratio, Some(*least));
        }
        figure_out(stage, "p99 at half load, ms", p99_ms, Some(P99_MAX_MS));
        row_out(stage, "one place", json!({ "callers": CALLERS, "won": won, "refused": lost }));
        figure_out(stage, "oversold", oversold, Some(0.0));
    } else {
        line_out(&format!(
            "{}, {} connections, {} s of load each",
            stage.kind.name(),
            args.connections,
            args.seconds
        ));
        line_out(&format!("events settled           {:>8} a second", thousands(settled as u64)));
        line_out(&format!("holds, own slots         {:>8} a second", thousands(own as u64)));
        line_out(&format!(
            "holds, one slot          {:>8} a second, of {} places",
            thousands(hot as u64),
            thousands(PLACES)
        ));
        if let Some(two) = two {
            line_out(&format!("the same from two nodes  {:>8} a second", thousands(two as u64)));
        }
        line_out("");
        for (name, ratio, least) in figures {
            line_out(&format!("{name:30} {ratio:.2}  (limit {least:.1})"));
        }
        line_out(&format!("p99 at half load               {p99_ms:.1} ms  (limit {P99_MAX_MS:.0} ms)"));
        line_out(&format!("one place, {CALLERS} callers           {won} won, {lost} refused"));
        line_out(&format!("oversold                       {oversold}"));
    }
    // Speed is this machine's; a place that is sold twice is ours.
    ensure!(oversold == 0 && is_one, "places were sold twice: {oversold}; {won} of {CALLERS} won one place");
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args, stage: &Stage) -> anyhow::Result<Measured> {
    let progress = Progress::new();
    progress.show("events settled");
    let settled = settle::settled_per_second(args.connections, args.seconds, stage)?;
    let store = stage.fresh_store("holds")?;
    let server = start(stage, "holds", &store)?;
    progress.show("holds, each in a slot of its own");
    let own = rate(&hold(args, &server, "own", Pace::Closed, |n| format!("own-{n}"))?);
    progress.show("the same at half load");
    let half = Pace::Open { per_second: own / 2.0 };
    let half = hold(args, &server, "half", half, |n| format!("half-{n}"))?;
    progress.show("holds, all in one slot");
    make_slot(&server, "hot", PLACES)?;
    let hot = hold(args, &server, "hot", Pace::Closed, |_| "hot".to_owned())?;
    let mut oversold = difference(&server, "hot", hot.acknowledged())?;
    progress.show("one place");
    make_slot(&server, "one", 1)?;
    let mut load = load(args, &server, Pace::Closed);
    (load.connections, load.requests_max) = (CALLERS.into(), CALLERS.into());
    let one = load.run_blocking(Arc::new(request("one", |_| "one".to_owned())));
    oversold += difference(&server, "one", 1)?;
    let two = match stage.kind {
        Kind::Sqlite => None,
        Kind::Postgres => {
            progress.show("one slot, two nodes");
            let other = start(stage, "holds-2", &store)?;
            make_slot(&server, "two", PLACES)?;
            let (first, second) = std::thread::scope(|scope| {
                let beside = scope.spawn(|| hold(args, &other, "second", Pace::Closed, |_| "two".to_owned()));
                let here = hold(args, &server, "first", Pace::Closed, |_| "two".to_owned());
                (here, beside.join().expect("it hands over its result"))
            });
            let (first, second) = (first?, second?);
            oversold += difference(&server, "two", first.acknowledged() + second.acknowledged())?;
            Some(rate(&first) + rate(&second))
        }
    };
    let answers = |status: u16| one.statuses.get(&status).copied().unwrap_or_default();
    Ok(Measured {
        settled,
        own,
        hot: rate(&hot),
        two,
        p99_ms: half.latency_us(0.99) as f64 / 1e3,
        won: answers(201),
        lost: answers(409),
        oversold,
    })
}

fn start(stage: &Stage, name: &str, store: &str) -> anyhow::Result<Server> {
    let key = format!("[[key]]\nname = \"bench\"\nsecret = \"{KEY}\"\nscopes = [\"write\"]\n");
    stage.real(name, store, "gateway,worker,api", &key)
}

fn rate(report: &Report) -> f64 {
    report.per_second()
}

/// Asks for places as fast as the pace says. Where the slot has enough of them, all must be held.
fn hold(
    args: &Args,
    server: &Server,
    name: &'static str,
    pace: Pace,
    slot: impl Fn(u64) -> String + Send + Sync + 'static,
) -> anyhow::Result<Report> {
    let mut load = load(args, server, pace);
    load.requests_max = PLACES;
    let report = load.run_blocking(Arc::new(request(name, slot)));
    if report.refusals() > 0 || report.acknowledged() == 0 {
        bail!("{:?} were answered, so these figures mean nothing", report.statuses);
    }
    Ok(report)
}

fn load(args: &Args, server: &Server, pace: Pace) -> Load {
    let mut load = Load::new(server.address());
    load.connections = args.connections.into();
    load.pace = pace;
    load.duration = Duration::from_secs(args.seconds.into());
    load
}

/// One request for a place, as an app sends it.
fn request(
    name: &'static str,
    slot: impl Fn(u64) -> String + Send + Sync,
) -> impl Fn(u64, &mut Vec<u8>) + Send + Sync {
    move |n, request| {
        let body = json!({
            "slot": slot(n), "reference": format!("{name}-{n}"),
            "payment": { "amount": 4_800, "currency": "jpy" },
        })
        .to_string();
        let head = format!(
            "POST /v1/reservations HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(body.as_bytes());
    }
}

fn make_slot(server: &Server, id: &str, capacity: u64) -> anyhow::Result<()> {
    let bearer = format!("Bearer {KEY}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let body = json!({ "id": id, "capacity": capacity }).to_string();
    let made = http::post(server.address(), "/v1/slots", &headers, body.as_bytes())?;
    ensure!((200..300).contains(&made.status), "the slot {id} could not be made: {}", made.text());
    Ok(())
}

/// How many more or fewer places are taken than were given out.
fn difference(server: &Server, id: &str, given: u64) -> anyhow::Result<u64> {
    let bearer = format!("Bearer {KEY}");
    let headers = [("authorization", &*bearer)];
    let shown = http::request(server.address(), "GET", &format!("/v1/slots/{id}"), &headers, b"")?;
    let slot: Value = serde_json::from_slice(&shown.body).context("the slot can't be read")?;
    let count = |name: &str| slot[name].as_u64().unwrap_or(u64::MAX);
    Ok(count("held").saturating_add(count("sold")).abs_diff(given))
}
