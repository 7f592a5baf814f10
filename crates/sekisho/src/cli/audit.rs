//! `sekisho audit [list|verify|export]`: who did what, and whether nobody changed it afterwards.

use std::process::ExitCode;

use sekisho_core::Time;
use sekisho_store::{AuditEntry, AuditFilter, Link, Store};
use serde_json::json;

use super::output::{Progress, json_out, line_out};
use super::pages::Pages;
use super::when::moment;
use super::{Context, pages};
use crate::acts::{self, Verified};
use crate::view;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum Command {
    /// The newest entries first
    List(List),
    /// Check every entry and every link between them; exits with 1 when something was changed
    Verify(Verify),
    /// Write the log to standard output, one JSON object a line, each chain from its beginning, with all that is needed
    /// to check it
    Export(Export),
}

#[derive(clap::Args)]
struct List {
    /// Only what concerns this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only this action; a * at the end stands for anything: payment.*
    #[arg(long)]
    action: Option<String>,
    /// Only what was done to this: pay_…, evt_…, msg_…, a route
    #[arg(long, value_name = "ID")]
    target: Option<String>,
    /// Only what they did, as the list names them: cli:tomo
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    pages: Pages<i64>,
}

#[derive(clap::Args)]
struct Range {
    /// Only since: 2026-02-02T02:40:00Z, 2026-02-02, or how long ago: 30m, 2h, 3d
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Time>,
    /// Only before that
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Time>,
}

#[derive(clap::Args)]
struct Verify {
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
}

/// What was written together stays together: an entry outside the range is written out with those on its link that are
/// inside, because the hash is over all of them.
#[derive(clap::Args)]
struct Export {
    #[command(flatten)]
    range: Range,
}

const COLUMNS: [(&str, &str); 7] = [
    ("AT", "at"),
    ("WHO", "actor"),
    ("AS", "role"),
    ("DID", "action"),
    ("TO", "target"),
    ("TENANT", "tenant"),
    ("REASON", "reason"),
];

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args.list, context).await,
        Some(Command::List(args)) => list(args, context).await,
        Some(Command::Verify(args)) => verify(args, context).await,
        Some(Command::Export(args)) => export(args, context).await,
    }
}

async fn list(args: List, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &AuditFilter {
        tenant: args.tenant,
        action: args.action,
        target: args.target,
        actor: args.actor,
        since: args.range.since,
        until: args.range.until,
        ..AuditFilter::default()
    };
    let fetch = async |before, limit| {
        let found = page(store, AuditFilter { before, limit, ..query.clone() }).await?;
        Ok(found.iter().map(|entry| (entry.number, view::audit(entry))).collect())
    };
    pages::out(&args.pages, &COLUMNS, "no entries", fetch).await?;
    Ok(ExitCode::SUCCESS)
}

/// So many entries, however far apart they are.
async fn page(store: &dyn Store, mut filter: AuditFilter) -> anyhow::Result<Vec<AuditEntry>> {
    let wanted = filter.limit;
    let mut found = Vec::new();
    loop {
        let page = store.find_audit(filter.clone()).await?;
        found.extend(page.entries);
        filter.limit = wanted - found.len();
        filter.before = page.next;
        if filter.limit == 0 || page.next.is_none() {
            return Ok(found);
        }
    }
}

async fn verify(args: Verify, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let progress = Progress::new();
    progress.show("reading the audit log");
    let verified = acts::verify_audit(&*store).await?;
    drop(progress);
    let Verified { check, anchor } = &verified;
    if args.json {
        let faults: Vec<_> = check.faults.iter().map(ToString::to_string).collect();
        json_out(&json!({
            "entries": check.entries,
            "links": check.links,
            "anchors": check.anchors,
            "faults": faults,
            "anchored_at": anchor.map(|(_, at)| at),
            "anchor": anchor.map(|(number, _)| number),
        }));
    } else {
        tell(&verified);
    }
    Ok(if check.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(Verified { check, anchor }: &Verified) {
    line_out(&format!(
        "checked {} entries on {} links, and {} anchors",
        check.entries, check.links, check.anchors
    ));
    check.faults.iter().for_each(|fault| line_out(&fault.to_string()));
    line_out(&match check.faults.len() {
        0 => "nothing was changed, removed or inserted".to_owned(),
        1 => "1 thing is not as it was written: compare with a backup or an earlier export".to_owned(),
        n => format!("{n} things are not as they were written: compare with a backup or an earlier export"),
    });
    line_out(&match anchor {
        Some((number, at)) => format!(
            "what can't be seen: whether the end of the log was cut off after the newest anchor, entry {number} of {at}"
        ),
        None => "what can't be seen: whether the end of the log was cut off. There is no anchor yet; a running server \
                 writes one an hour"
            .to_owned(),
    });
}

async fn export(args: Export, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let write = |link: &Link| {
        if link.entries.iter().any(|one| args.range.holds(one.entry.at)) {
            view::exported(link).for_each(|entry| json_out(&entry));
        }
    };
    acts::each_link(&*store, write).await?;
    Ok(ExitCode::SUCCESS)
}

impl Range {
    fn holds(&self, at: Time) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d8_a_range_begins_with_its_first_moment_and_ends_before_its_last() {
        let (since, until) = (Time::from_ms(10), Time::from_ms(20));
        let range = Range { since: Some(since), until: Some(until) };
        let inside = |ms| range.holds(Time::from_ms(ms));
        assert_eq!([9, 10, 19, 20].map(inside), [false, true, true, false]);
        assert!(Range { since: None, until: None }.holds(since));
    }
}
