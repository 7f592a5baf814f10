//! How things stand, at a glance: the last 24 hours in figures, and what wants somebody's eyes. Two parts of the page
//! ask for themselves again: the figures often, the rest now and then. While nothing has come in, the figures make room
//! for the first steps.

mod chart;
mod figures;
mod latency;
mod standing;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::calendar::Zone;
use sekisho_core::change::Rejection;
use sekisho_core::time::{DAY_MS, HOUR_MS};
use sekisho_store::{
    DeadFilter, DeadGroup, EventFilter, FIND_MAX, GROUPED_MAX, PendingWork, RejectionFilter,
};

use self::chart::{Bar, Chart};
use self::figures::DayBar;
use self::latency::Spans;
use self::standing::Situation;
use super::config_summary::{ConfigSummary, SourceSummary};
use super::events::address;
use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::view::show;

pub const PAGES: &[Page] = &[
    Page { method: PageMethod::Get, path: "/console", needs: VIEWER, run: |visit| Box::pin(overview(visit)) },
    Page {
        method: PageMethod::Get,
        path: "/console/overview/now",
        needs: VIEWER,
        run: |visit| Box::pin(now_part(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/overview/standing",
        needs: VIEWER,
        run: |visit| Box::pin(standing_part(visit)),
    },
];

/// The newest events by which it is said how long settling takes.
const TIMED_MAX: usize = 1_000;

#[derive(Template)]
#[template(path = "console/overview.html")]
struct OverviewPage {
    f: Frame,
    now: Now,
    standing: Situation,
}

#[derive(Template)]
#[template(path = "console/overview_now.html")]
struct NowPart {
    f: Frame,
    now: Now,
}

#[derive(Template)]
#[template(path = "console/overview_standing.html")]
struct StandingPart {
    f: Frame,
    standing: Situation,
}

/// The last 24 hours.
struct Now {
    /// Whether anything ever came in.
    is_empty: bool,
    webhooks: Vec<WebhookAddress>,
    /// The words that send a first event, if one can be signed.
    trigger: Option<String>,
    root: String,
    as_of: Option<String>,
    day: DayBar,
    chart: Chart,
    retrying: i64,
    dead: Counted,
    turned_away: Counted,
    settled: Option<Spans>,
    acknowledged: Option<Spans>,
    zone: Zone,
}

/// A number that may be the end of what was looked at.
struct Counted {
    number: i64,
    is_more: bool,
}

/// Where the webhooks of a source come in.
struct WebhookAddress {
    pub source: String,
    pub provider: &'static str,
    pub path: String,
    /// What `sekisho trigger` would send, if it can sign for it.
    pub sample: Option<&'static str>,
}

impl WebhookAddress {
    fn all(summary: &ConfigSummary) -> Vec<Self> {
        let address = |source: &SourceSummary| Self {
            source: source.name.clone(),
            provider: source.about.name,
            path: source.path.clone(),
            sample: (!source.types.is_empty()).then_some(source.about.sample_type),
        };
        summary.sources.iter().map(address).collect()
    }
}

impl Now {
    async fn of(visit: &Visit) -> Result<Self, Trouble> {
        let (console, at) = (&visit.console, visit.at);
        let store = &*console.store;
        let as_of = console.tally.look(&console.store, at).await;
        let timed = EventFilter { received: true, limit: TIMED_MAX, ..EventFilter::default() };
        let dead = DeadFilter { limit: GROUPED_MAX, ..DeadFilter::default() };
        let rejections = RejectionFilter { limit: FIND_MAX, ..RejectionFilter::default() };
        let (counts, events, dead, work, rejections) = tokio::try_join!(
            store.find_counts(DayBar::begin(at), at),
            store.find_events(timed),
            store.find_dead_groups(dead),
            store.find_work(),
            store.find_rejections(rejections),
        )?;
        let day = DayBar::of(&counts, at);
        let webhooks = WebhookAddress::all(&console.summary);
        Ok(Self {
            is_empty: events.events.is_empty() && events.next.is_none() && day.total.all() == 0,
            trigger: trigger(&webhooks),
            webhooks,
            root: console.settings.url.clone().unwrap_or_default(),
            as_of: as_of.map(|at| clock(&console.zone.clock(at), 11..19)),
            chart: Chart::of(&day),
            day,
            retrying: work.iter().map(|work: &PendingWork| work.retrying).sum(),
            dead: Counted::dead(&dead),
            turned_away: Counted::turned_away(&rejections, at),
            settled: latency::settled(&events.events),
            acknowledged: latency::acknowledged(&console.metrics.encode()),
            zone: console.zone.clone(),
        })
    }

    /// `09:00`, by the house's clock.
    fn hour(&self, bar: &Bar) -> String {
        clock(&self.zone.clock(bar.hour.at), 11..16)
    }

    /// Labels below the chart: every sixth bar, and the last.
    fn labels(&self) -> Vec<String> {
        let bars = self.chart.bars.iter().step_by(6).chain(self.chart.bars.last());
        bars.map(|bar| self.hour(bar)).collect()
    }

    /// The events of an hour.
    fn hour_link(&self, bar: &Bar) -> String {
        let local = |at: Time| clock(&self.zone.clock(at), 0..16).replace(' ', "T");
        let end = bar.hour.at.plus_ms(HOUR_MS);
        address("/console/events", [("from", &*local(bar.hour.at)), ("to", &*local(end))])
    }
}

impl Counted {
    fn dead(groups: &[DeadGroup]) -> Self {
        let number = groups.iter().map(|group| group.count).sum::<usize>();
        Self { number: number as i64, is_more: number >= GROUPED_MAX }
    }

    /// Each stands for as many requests as were alike.
    fn turned_away(newest: &[Rejection], now: Time) -> Self {
        let since = now.plus_ms(-DAY_MS);
        let within = newest.iter().filter(|one| one.at >= since);
        let is_more = newest.len() >= FIND_MAX && newest.iter().all(|one| one.at >= since);
        Self { number: within.map(|one| one.count).sum(), is_more }
    }

    fn shown(&self) -> String {
        let number = show::grouped(&self.number.to_string());
        if self.is_more { format!("{number}+") } else { number }
    }
}

impl Spans {
    /// At half of all, at 95 and at 99 in a hundred, in words.
    fn shown(&self) -> [String; 3] {
        self.0.map(|ms| ms.map_or_else(|| "> 10 s".to_owned(), latency::shown))
    }
}

async fn overview(visit: Visit) -> Answer {
    let (now, standing) = tokio::try_join!(Now::of(&visit), Situation::of(&visit))?;
    Reply::page(&OverviewPage { f: frame(&visit), now, standing })
}

async fn now_part(visit: Visit) -> Answer {
    let now = Now::of(&visit).await?;
    Reply::page(&NowPart { f: frame(&visit), now })
}

async fn standing_part(visit: Visit) -> Answer {
    let standing = Situation::of(&visit).await?;
    Reply::page(&StandingPart { f: frame(&visit), standing })
}

fn frame(visit: &Visit) -> Frame {
    visit.frame("overview", visit.lang.t("Overview", "概要"))
}

fn trigger(webhooks: &[WebhookAddress]) -> Option<String> {
    let (source, sample) = webhooks.iter().find_map(|webhook| Some((&webhook.source, webhook.sample?)))?;
    let option = if webhooks.len() > 1 { format!(" --source {source}") } else { String::new() };
    Some(format!("sekisho trigger {sample}{option}"))
}

/// A part of `2026-02-02 11:40:00`; all of what is not like that.
fn clock(shown: &str, part: std::ops::Range<usize>) -> String {
    shown.get(part).unwrap_or(shown).to_owned()
}
