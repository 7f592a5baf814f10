//! `sekisho events list|show|tail`: what came in, and where it stands.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use sekisho_core::Seq;
use sekisho_core::provider::encode_base64;
use sekisho_store::{EventFilter, EventSummary, Order, Status, Store};

use super::Context;
use super::output::{json_out, line_out, table};

#[derive(clap::Subcommand)]
pub enum Command {
    /// The newest events first
    List(List),
    /// One event with its headers and body
    Show(Show),
    /// New events as they come, until Ctrl-C
    Tail(Tail),
}

#[derive(clap::Args)]
struct Filter {
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only this type; a * at the end stands for anything: payment_intent.*
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events that stand there: received, success, failed or skipped
    #[arg(long, value_parser = |text: &str| Status::parse(text).ok_or("received, success, failed or skipped"))]
    status: Option<Status>,
    /// Only events about this object, by the provider's id: pi_…
    #[arg(long, value_name = "ID")]
    object: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    filter: Filter,
    /// How many; 0 for all, page by page
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Only events older than this one: the last id of the page before
    #[arg(long, value_name = "ID")]
    before: Option<Seq>,
}

#[derive(clap::Args)]
pub struct Show {
    /// Sekisho's id (evt_… or msg_…) or the provider's
    id: String,
    /// The source, when several know the provider's id
    #[arg(long)]
    source: Option<String>,
    /// Only the body, byte for byte
    #[arg(long, conflicts_with = "json")]
    body: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct Tail {
    #[command(flatten)]
    filter: Filter,
}

const PAGE: usize = 500;
const TAIL_POLL: Duration = Duration::from_millis(300);
/// Longer than an event can take from its receipt to its commit.
const TAIL_OVERLAP_MS: i64 = 10_000;
const HEADINGS: [&str; 6] = ["RECEIVED", "ID", "SOURCE", "TYPE", "EVENT ID", "STATUS"];

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, seen) = context.open_store().await?;
    match command {
        Command::List(args) => list(args, &*store).await,
        Command::Show(args) => show(args, &seen.sources, &*store).await,
        Command::Tail(args) => tail(args, &*store).await,
    }
}

impl Filter {
    fn query(&self) -> EventFilter {
        EventFilter {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            status: self.status,
            object_id: self.object.clone(),
            ..EventFilter::default()
        }
    }
}

async fn list(args: List, store: &dyn Store) -> anyhow::Result<ExitCode> {
    let mut before = args.before;
    let mut left = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut rows = Vec::new();
    while left > 0 {
        let query = EventFilter { before, limit: left.min(PAGE), ..args.filter.query() };
        let page = store.find_events(query).await?;
        left -= page.len();
        before = page.last().map(|event| event.seq);
        if args.filter.json {
            page.iter().for_each(|event| json_out(&json(event)));
        } else {
            rows.extend(page.iter().map(row));
        }
        if page.len() < PAGE {
            break;
        }
    }
    if !args.filter.json {
        if rows.is_empty() {
            line_out("no events");
        } else {
            table(&HEADINGS, &rows);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(args: Show, sources: &[String], store: &dyn Store) -> anyhow::Result<ExitCode> {
    let Some(seq) = find(&args, sources, store).await? else {
        bail!(
            "no event has the id {0}; if it names what events are about, try `sekisho events list --object {0}`",
            args.id
        );
    };
    let Some(record) = store.find_event(seq).await? else {
        bail!("no event has the id {}", args.id);
    };
    if args.body {
        use std::io::Write;
        std::io::stdout().write_all(&record.body)?;
        return Ok(ExitCode::SUCCESS);
    }
    let headers: serde_json::Value = serde_json::from_str(&record.headers)?;
    let event = &record.summary;
    if args.json {
        let mut value = json(event);
        value["headers"] = headers;
        match std::str::from_utf8(&record.body) {
            Ok(text) => value["body"] = text.into(),
            Err(_) => value["body_base64"] = encode_base64(&record.body).into(),
        }
        json_out(&value);
        return Ok(ExitCode::SUCCESS);
    }
    let object = event.object.as_ref().map(|(kind, id)| format!("{kind} {id}")).unwrap_or_default();
    let optional = |time: Option<sekisho_core::Time>| time.map(|time| time.to_string()).unwrap_or_default();
    for (name, value) in [
        ("id", event.seq.as_event().to_string()),
        ("event id", event.event_id.clone()),
        ("source", event.source.clone()),
        ("type", event.event_type.clone()),
        ("about", object),
        ("trust", event.trust.clone()),
        ("created", optional(event.created_at)),
        ("received", event.received_at.to_string()),
        ("status", event.status.name().to_owned()),
        ("note", event.note.clone().unwrap_or_default()),
        ("processed", optional(event.processed_at)),
    ] {
        if !value.is_empty() {
            line_out(&format!("{name:10} {value}"));
        }
    }
    line_out("");
    for header in headers.as_array().into_iter().flatten() {
        line_out(&format!(
            "{}: {}",
            header[0].as_str().unwrap_or_default(),
            header[1].as_str().unwrap_or_default()
        ));
    }
    line_out("");
    line_out(&String::from_utf8_lossy(&record.body));
    Ok(ExitCode::SUCCESS)
}

/// Our id first; else the provider's, in the named source or in any configured one.
async fn find(args: &Show, sources: &[String], store: &dyn Store) -> anyhow::Result<Option<Seq>> {
    if let Ok(seq) = args.id.parse::<Seq>()
        && store.find_event(seq).await?.is_some()
    {
        return Ok(Some(seq));
    }
    let sources = args.source.as_ref().map_or(sources, std::slice::from_ref);
    for source in sources {
        if let Some(seq) = store.find_seq(source, &args.id).await? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

async fn tail(args: Tail, store: &dyn Store) -> anyhow::Result<ExitCode> {
    let newest = store.find_events(EventFilter { limit: 1, ..EventFilter::default() }).await?;
    let start = newest.first().map_or(Seq::ZERO, |event| event.seq);
    if !args.filter.json {
        eprintln!("waiting for events; Ctrl-C ends it");
    }
    // Numbers are given at receipt and seen at commit, so a lower one may appear after a higher: the last moments are
    // read again each time, and what was shown is passed over.
    let mut shown = BTreeSet::new();
    loop {
        let newest = shown.last().copied().unwrap_or(start);
        let from = Seq::floor_of(newest.made_at().plus_ms(-TAIL_OVERLAP_MS)).max(start);
        for event in after(from, &args.filter, store).await? {
            if shown.insert(event.seq) {
                if args.filter.json { json_out(&json(&event)) } else { line_out(&row(&event).join("  ")) }
            }
        }
        shown = shown.split_off(&from);
        tokio::time::sleep(TAIL_POLL).await;
    }
}

/// Every event with a higher number, oldest first.
async fn after(mut from: Seq, filter: &Filter, store: &dyn Store) -> anyhow::Result<Vec<EventSummary>> {
    let mut events = Vec::new();
    loop {
        let query =
            EventFilter { after: Some(from), order: Order::OldestFirst, limit: PAGE, ..filter.query() };
        let page = store.find_events(query).await?;
        let full = page.len() == PAGE;
        from = page.last().map_or(from, |event| event.seq);
        events.extend(page);
        if !full {
            return Ok(events);
        }
    }
}

fn row(event: &EventSummary) -> Vec<String> {
    vec![
        event.received_at.to_string(),
        event.seq.as_event().to_string(),
        event.source.clone(),
        event.event_type.clone(),
        event.event_id.clone(),
        event.status.name().to_owned(),
    ]
}

fn json(event: &EventSummary) -> serde_json::Value {
    serde_json::json!({
        "id": event.seq.as_event().to_string(),
        "event_id": event.event_id,
        "source": event.source,
        "type": event.event_type,
        "status": event.status.name(),
        "received_at": event.received_at,
        "created_at": event.created_at,
        "object": event.object.as_ref().map(|(kind, id)| serde_json::json!({ "kind": kind, "id": id })),
        "account": event.account,
        "livemode": event.livemode,
        "trust": event.trust,
        "note": event.note,
        "processed_at": event.processed_at,
    })
}
