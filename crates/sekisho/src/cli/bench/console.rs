//! `bench console`: how long the pages of the console take when much is stored. The store is filled directly, with events
//! of a month, payments, decisions and dead letters; then the server is asked for each page, as a browser would.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::ensure;
use bytes::Bytes;
use sekisho_core::audit::Entry;
use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::event::{About, Created, DedupeKey, Trust};
use sekisho_core::id::Sequence;
use sekisho_core::job::{Class, DeadReason, End, Lease, Outcome};
use sekisho_core::state::{Index, Key, Kind, Write};
use sekisho_core::time::DAY_MS;
use sekisho_core::{Epoch, Seq, Time};
use sekisho_demo::http;
use sekisho_demo::measure::thousands;
use sekisho_store::Access;
use serde_json::json;

use super::fill::write_sets;
use super::{Stage, median, row_out};
use crate::cli::output::{Progress, line_out, table};
use crate::now;

#[derive(clap::Args)]
pub struct Args {
    /// Stored events
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// How often each page is asked for
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// One JSON object for each row and each ratio
    #[arg(long)]
    json: bool,
    /// Where the temporary data goes
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// What no page may take longer than.
const LIMIT: Duration = Duration::from_millis(100);
const BATCH: u64 = 1_000;
/// Events of one payment; one payment in so many is dead, one in so many rare.
const EVENTS_EACH: u64 = 4;
const DEAD_EACH: u64 = 500;
const RARE_EACH: u64 = 400_000;
const MONTH_MS: i64 = 30 * DAY_MS;
const HOUR_MS: i64 = 3_600_000;
const BODY_BYTES: usize = 1_500;

/// Pages, each with what it is called. `{…}` stands for something in the middle of the history.
const PAGES: &[(&str, &str)] = &[
    ("overview", "/console"),
    ("events, the newest", "/console/events"),
    ("events, an old page", "/console/events?before={event}"),
    ("events of a usual type", "/console/events?type=charge.succeeded"),
    ("events of a rare type", "/console/events?type=radar.early_fraud_warning.created"),
    ("events of a payment", "/console/events?payment={payment}"),
    ("events of a tenant", "/console/events?tenant=tenant-7"),
    ("events that failed", "/console/events?status=failed"),
    ("events by an id of the provider", "/console/events?q={provider_id}"),
    ("one event", "/console/events/{event}"),
    ("payments", "/console/payments"),
    ("payments of a status", "/console/payments?status=refunded"),
    ("one payment", "/console/payments/{payment}"),
    ("dead letters", "/console/dead"),
    ("audit log", "/console/audit"),
    ("audit log of an action", "/console/audit?action=payment.refunded"),
    ("notifications", "/console/notices"),
    ("rejected requests", "/console/rejections"),
    ("sources and routes", "/console/sources"),
];

pub fn run(args: &Args, stage: &Stage) -> anyhow::Result<ExitCode> {
    let url = stage.fresh_store("console")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let middle = runtime.block_on(fill(args.events, &url))?;
    drop(runtime);
    let more = "[console]\nuser_header = \"Remote-User\"\nrank = \"operator\"\n";
    let server = stage.real("pages", &url, "console", more)?;
    let ask = |path: &str| -> anyhow::Result<Duration> {
        let started = Instant::now();
        let answer = http::request(server.address(), "GET", path, &[("Remote-User", "bench")], b"")?;
        ensure!(answer.status == 200 || answer.status == 303, "{path} answered {}", answer.status);
        Ok(started.elapsed())
    };
    let mut rows = Vec::new();
    let mut slowest = Duration::ZERO;
    for (name, path) in PAGES {
        let path = middle.filled(path);
        ask(&path)?;
        let times = (0..args.rounds.max(1)).map(|_| ask(&path)).collect::<anyhow::Result<Vec<_>>>()?;
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let half = median(times.iter().map(|time| ms(*time)));
        let most = times.iter().max().copied().unwrap_or_default();
        slowest = slowest.max(Duration::from_secs_f64(half / 1000.0));
        if args.json {
            let figures = json!({ "p50_ms": half, "most_ms": ms(most), "limit_ms": ms(LIMIT) });
            row_out(stage, name, figures);
        }
        rows.push(vec![
            (*name).to_owned(),
            format!("{half:.1} ms"),
            format!("{:.1} ms", ms(most)),
            format!("{:.2}", half / ms(LIMIT)),
        ]);
    }
    if !args.json {
        line_out(&format!(
            "{}: pages of the console with {} events stored",
            stage.kind.name(),
            thousands(args.events)
        ));
        table(&["PAGE", "P50", "MOST", "P50 / 100 MS (LIMIT 1)"], &rows);
    }
    Ok(if slowest <= LIMIT { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Something in the middle of the history, to look for.
struct Middle {
    event: String,
    provider_id: String,
    payment: String,
}

impl Middle {
    fn filled(&self, path: &str) -> String {
        path.replace("{event}", &self.event)
            .replace("{provider_id}", &self.provider_id)
            .replace("{payment}", &self.payment)
    }
}

async fn fill(events: u64, url: &str) -> anyhow::Result<Middle> {
    let url = url.parse().map_err(anyhow::Error::msg)?;
    let store = sekisho_store::open(&url, Access::Serve { allow_unsafe_durability: false }).await?;
    let epoch = store.join(now()).await?.epoch;
    let end = now();
    let mut past = Past {
        sequence: Sequence::new(epoch, Seq::ZERO),
        epoch,
        made: 0,
        step_ms: MONTH_MS as f64 / events as f64,
        begin: end.plus_ms(-MONTH_MS),
    };
    let progress = Progress::new();
    let mut middle = None;
    // PostgreSQL keeps events by day: the days of the past are made before they are filled.
    let mut day = past.begin;
    while day < end {
        store.upkeep(day).await?;
        day = day.plus_ms(DAY_MS);
    }
    while past.made < events {
        progress.show(&format!("{} of {} events", thousands(past.made), thousands(events)));
        let batch: Vec<_> = (0..BATCH.min(events - past.made)).map(|_| past.next()).collect();
        if past.made * 2 >= events {
            middle.get_or_insert_with(|| Middle {
                event: batch[0].0.seq.as_event().to_string(),
                provider_id: batch[0].0.event_id.clone(),
                payment: batch[0].1.clone(),
            });
        }
        store.admit(batch.iter().map(|(arrival, _)| arrival.clone()).collect(), Some(epoch)).await?;
        let ends = batch.iter().map(|(arrival, payment)| past.ended(arrival, payment));
        write_sets(&*store, ends.collect()).await?;
    }
    progress.show("counting the hours");
    for back in 0..=25 {
        let hour = end.ms() - back * HOUR_MS;
        store.count_hour(Time::from_ms(hour - hour.rem_euclid(HOUR_MS))).await?;
    }
    Ok(middle.expect("something was made"))
}

/// A month in which all went as it usually does.
struct Past {
    sequence: Sequence,
    epoch: Epoch,
    made: u64,
    step_ms: f64,
    begin: Time,
}

impl Past {
    /// An event, and the payment it is about.
    fn next(&mut self) -> (Arrival, String) {
        const TYPES: [&str; EVENTS_EACH as usize] =
            ["payment_intent.created", "payment_intent.succeeded", "charge.succeeded", "charge.updated"];
        let n = self.made;
        self.made += 1;
        let at = self.begin.plus_ms((n as f64 * self.step_ms) as i64);
        let event_id = format!("evt_{n:016x}");
        let created = Created { at, immutable: true };
        let is_rare = n % RARE_EACH == RARE_EACH / 2;
        let usual = TYPES[(n % EVENTS_EACH) as usize];
        let arrival = Arrival {
            key: DedupeKey::new("stripe", &event_id, Some(created)),
            first_body: None,
            seq: self.sequence.next(at),
            received_at: at,
            source: "stripe".into(),
            event_id,
            event_type: if is_rare { "radar.early_fraud_warning.created" } else { usual }.into(),
            created_at: Some(at),
            object: Some(("payment_intent".into(), format!("pi_{:016x}", n / EVENTS_EACH))),
            account: None,
            livemode: Some(true),
            trust: Trust::Signed,
            headers: "[]".into(),
            body: Bytes::from(format!("{{\"id\":\"{n}\",\"text\":\"{}\"}}", "x".repeat(BODY_BYTES))),
            held: None,
        };
        (arrival, format!("pay_{:013}", n / EVENTS_EACH))
    }

    /// How its settling ended, and what it left behind.
    fn ended(&self, arrival: &Arrival, payment: &str) -> ChangeSet {
        let at = arrival.received_at.plus_ms(20);
        let number = number_of(arrival);
        let lease = Lease { job: arrival.seq, epoch: self.epoch, attempt: 1 };
        let tenant = Some(format!("tenant-{}", number / EVENTS_EACH % 100));
        if number % DEAD_EACH == DEAD_EACH - 1 {
            let death = DeadReason {
                class: Class::Transient,
                reason: "timeout".into(),
                error: "no answer in 10 s".into(),
            };
            return ChangeSet::end(lease, End::Dead(death), at);
        }
        let mut set = ChangeSet::end(lease, End::Done(Outcome::SUCCESS), at);
        set.ends[0].about =
            About { payment: Some(payment.to_owned()), billing: None, tenant: tenant.clone() };
        if number.is_multiple_of(EVENTS_EACH) {
            let is_back = (number / EVENTS_EACH).is_multiple_of(200);
            let status = if is_back { "refunded" } else { "paid" };
            let index = Index {
                status: Some(status.into()),
                tenant: tenant.clone(),
                livemode: Some(true),
                amount: Some(1_200),
                currency: Some("jpy".into()),
                ..Index::default()
            };
            set.writes.push(Write {
                key: Key::new(Kind::Payment, payment),
                version: 0,
                facts: "{}".into(),
                index,
            });
            set.audit.push(Entry {
                at,
                actor: None,
                role: None,
                action: format!("payment.{status}"),
                target: ("payment".into(), payment.to_owned()),
                tenant,
                event: Some(arrival.seq),
                details: "{}".into(),
            });
        }
        set
    }
}

/// Which of all events it is.
fn number_of(arrival: &Arrival) -> u64 {
    u64::from_str_radix(arrival.event_id.trim_start_matches("evt_"), 16).unwrap_or_default()
}
