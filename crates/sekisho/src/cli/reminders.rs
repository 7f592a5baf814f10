//! `sekisho reminders run|show`: a day's reminders of deadlines, and what became of them. Whoever was reminded of a day
//! before is not reminded of it again, so a run that broke off is simply started once more.

mod wait;

use std::process::ExitCode;

use sekisho_core::calendar::Day;
use serde::Serialize;

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{count, hint, json_out, line_out, rows_out};
use crate::acts::{self, RemindReport};
use crate::types::ReminderSummary;
use wait::{WaitEnded, wait};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Write down and send the reminders of a day; exits with 1 when some failed, are uncertain or got stuck
    Run(Remind),
    /// How the reminders of a day stand
    Show(Show),
}

#[derive(clap::Args)]
pub struct Remind {
    /// The day, such as 2026-11-16; without: the one that each office has now
    #[arg(long, value_name = "DAY")]
    date: Option<Day>,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only say who would get what
    #[arg(long)]
    dry_run: bool,
    /// Don't wait until they are sent
    #[arg(long)]
    no_wait: bool,
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct Show {
    /// Such as 2026-11-16
    #[arg(value_name = "DAY")]
    date: Day,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const RECIPIENTS: [(&str, &str); 8] = [
    ("TO", "to"),
    ("NAME", "/details/staff_name"),
    ("OFFICE", "/details/office_name"),
    ("RENEWALS", "/details/renewal_alert_count"),
    ("ASSESSMENTS", "/details/assessment_alert_count"),
    ("WITHIN DAYS", "/details/email_threshold_days"),
    ("LANGUAGE", "language"),
    ("STATUS", "status"),
];

const SUMMARY: [(&str, &str); 9] = [
    ("DAY", "date"),
    ("TOTAL", "total"),
    ("SENT", "sent"),
    ("OFF", "off"),
    ("SUPPRESSED", "suppressed"),
    ("FAILED", "failed"),
    ("UNCERTAIN", "uncertain"),
    ("WAITING", "waiting"),
    ("CAME BACK", "came_back"),
];

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => remind(args, context).await,
        Command::Show(args) => show(args, context).await,
    }
}

async fn remind(args: Remind, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT.and_configuration()).await?;
    let order =
        acts::Remind { date: args.date.map(String::from), tenant: args.tenant, dry_run: args.dry_run };
    let report: RemindReport = client.post("/v1/reminders", &order).await?;
    if args.dry_run {
        if args.json {
            json_out(&report);
        } else {
            forecast_out(&report);
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Order matters: what was done stands there before anybody waits.
    if !args.json {
        line_out(&sentence(&report));
    }
    let tenant = order.tenant.as_deref();
    let waits = client.is_served() && !args.no_wait;
    let ended = if waits { wait(&client, &report, tenant).await? } else { WaitEnded::Unasked };
    let summaries = summaries(&client, &report.days, tenant).await?;
    if args.json {
        json_out(&Ran { report: &report, summary: &summaries });
    } else if !summaries.is_empty() {
        summary_out(&summaries);
    }
    if !client.is_served() && report.queued > 0 {
        hint("no server runs here: they are sent when one does (`sekisho serve`)");
    }
    ended.tell();
    how_to_find(&summaries);
    let well = !ended.is_stuck() && bad(&summaries) == 0;
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a run did, and how its days stand.
#[derive(Serialize)]
struct Ran<'r> {
    #[serde(flatten)]
    report: &'r RemindReport,
    summary: &'r [Summary],
}

type Summary = Whole<ReminderSummary>;

async fn show(args: Show, context: &Context) -> anyhow::Result<ExitCode> {
    let day = args.date.to_string();
    let client = Client::open(context, Needs::READ).await?;
    let shown = summary(&client, &day, args.tenant.as_deref()).await?;
    if args.json {
        json_out(&shown);
    } else {
        let summaries = [shown];
        summary_out(&summaries);
        how_to_find(&summaries);
    }
    Ok(ExitCode::SUCCESS)
}

async fn summaries(client: &Client, days: &[String], tenant: Option<&str>) -> anyhow::Result<Vec<Summary>> {
    let mut all = Vec::new();
    for day in days {
        all.push(summary(client, day, tenant).await?);
    }
    Ok(all)
}

/// How a day's reminders stand, of one office or all.
async fn summary(client: &Client, day: &str, tenant: Option<&str>) -> anyhow::Result<Summary> {
    client.get(&path(&["reminders", day])?, &Query::new().with("tenant", tenant)).await
}

/// What a run did, in one sentence.
fn sentence(report: &RemindReport) -> String {
    if report.offices == 0 {
        return "there are no tenants, so no reminders; create them with `sekisho tenants create ID`".into();
    }
    let of = format!("{} of {}", report.days.join(" and "), count(report.offices, "office"));
    let (due, new) = (count(report.due, "reminder"), report.new);
    let before = report.due - report.new.min(report.due);
    if report.due == 0 {
        return format!("nothing is due on {of}: no reminders");
    }
    let off = if report.off == 0 {
        String::new()
    } else {
        format!(", {} recorded only, because notifications are off", report.off)
    };
    let would = if report.dry_run { "would be " } else { "" };
    let known = if before == 0 { String::new() } else { format!("; {before} written down before") };
    format!("{due} for {of}: {new} new ({would}queued {}{off}){known}", report.queued)
}

fn forecast_out(report: &RemindReport) {
    if !report.recipients.is_empty() {
        rows_out(&RECIPIENTS, &report.recipients, "");
    }
    let unnamed = report.new - report.recipients.len().min(report.new);
    if unnamed > 0 {
        line_out(&format!("and {unnamed} more"));
    }
    line_out(&sentence(report));
}

fn of_status(summary: &ReminderSummary, status: &str) -> usize {
    summary.by_status.get(status).copied().unwrap_or_default()
}

/// How a day stands, as the table shows it.
#[derive(Serialize)]
struct Row {
    date: Day,
    total: usize,
    sent: usize,
    off: usize,
    suppressed: usize,
    failed: usize,
    uncertain: usize,
    waiting: usize,
    came_back: usize,
}

impl Row {
    fn of(summary: &Summary) -> Self {
        let of_status = |status: &str| of_status(summary, status);
        Self {
            date: summary.date,
            total: summary.total,
            sent: of_status("sent"),
            off: of_status("off"),
            suppressed: of_status("suppressed"),
            failed: of_status("failed"),
            uncertain: of_status("uncertain"),
            waiting: summary.waiting,
            came_back: of_status("bounced") + of_status("complained"),
        }
    }
}

fn summary_out(summaries: &[Summary]) {
    rows_out(&SUMMARY, &summaries.iter().map(Row::of).collect::<Vec<_>>(), "");
}

/// Those that a person must look after.
fn bad(summaries: &[Summary]) -> usize {
    summaries.iter().map(|summary| of_status(summary, "failed") + of_status(summary, "uncertain")).sum()
}

/// How to find those that did not go out.
fn how_to_find(summaries: &[Summary]) {
    for summary in summaries {
        for status in ["failed", "uncertain", "suppressed"] {
            if of_status(summary, status) > 0 {
                let day = &summary.date;
                hint(&format!("see `sekisho notices --batch reminders/{day} --status {status}`"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(due: usize, new: usize, off: usize) -> RemindReport {
        let days = vec!["2026-11-16".to_owned()];
        RemindReport { days, offices: 2, due, new, queued: new - off, off, ..RemindReport::default() }
    }

    #[test]
    fn g4_what_a_run_did_is_said_in_one_sentence() {
        let cases = [
            (report(3, 3, 1), "3 reminders for 2026-11-16 of 2 offices: 3 new (queued 2, 1 recorded only"),
            (report(3, 0, 0), "0 new (queued 0); 3 written down before"),
            (report(0, 0, 0), "nothing is due on 2026-11-16"),
            (
                RemindReport { dry_run: true, ..report(1, 1, 0) },
                "1 reminder for 2026-11-16 of 2 offices: 1 new (would be queued 1)",
            ),
            (RemindReport::default(), "there are no tenants"),
        ];
        for (report, words) in cases {
            assert!(sentence(&report).contains(words), "{}", sentence(&report));
        }
    }

    #[test]
    fn g4_only_what_a_person_must_look_after_ends_with_1() {
        let summary = |status: &str| -> Summary {
            let by_status = json!({ status: 2, "sent": 5 });
            let shown = json!({
                "object": "reminders", "date": "2026-11-16", "total": 7, "waiting": 0, "by_status": by_status,
            });
            serde_json::from_value(shown).unwrap()
        };
        for (status, expected) in
            [("failed", 2), ("uncertain", 2), ("suppressed", 0), ("off", 0), ("queued", 0)]
        {
            assert_eq!(bad(&[summary(status)]), expected, "{status}");
        }
    }
}
