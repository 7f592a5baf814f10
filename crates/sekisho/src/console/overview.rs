//! How things stand, at a glance: is all well, the last day, week or month in figures, and what wants somebody's eyes. Two parts of
//! the page ask for themselves again: the figures often, the rest now and then. While nothing has come in, the figures make room
//! for the first steps.

mod attention;
mod chart;
mod figures;
mod latency;
mod money;
mod range;
mod standing;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::calendar::Zone;
use sekisho_core::change::Rejection;
use sekisho_core::state::Kind;
use sekisho_core::time::DAY_MS;
use sekisho_store::{
    DeadFilter, DeadGroup, EventFilter, FIND_MAX, GROUPED_MAX, PendingWork, RejectionFilter, StateFilter,
};

use self::attention::{Matter, Seen};
use self::chart::{Bar, Chart};
use self::figures::DayBar;
use self::latency::Spans;
use self::money::MoneyRow;
use self::range::OverviewRange;
use self::standing::Situation;
use super::config_summary::{ConfigSummary, SourceSummary};
use super::events::address;
use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::view::{self, show};

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
/// The newest dead letters and payments that are looked at for the strip on top; more are "and more".
const LOOKED_AT: usize = 200;

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

/// The last day, week or month.
struct Now {
    /// What wants somebody's eyes; nothing is "all good".
    matters: Vec<Matter>,
    range: OverviewRange,
    money: Vec<MoneyRow>,
    /// Whether anything ever came in.
    is_empty: bool,
    webhooks: Vec<WebhookAddress>,
    /// The words that send a first event, if one can be signed.
    trigger: Option<String>,
    root: String,
    as_of: Option<String>,
    day: DayBar,
    chart: Chart,
    /// Deliveries that are not finished.
    waiting: i64,
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
        let range = OverviewRange::of(visit.param("range"));
        let timed = EventFilter { received: true, limit: TIMED_MAX, ..EventFilter::default() };
        let dead = DeadFilter { limit: GROUPED_MAX, ..DeadFilter::default() };
        let newest_dead = DeadFilter { limit: LOOKED_AT, ..DeadFilter::default() };
        let rejections = RejectionFilter { limit: FIND_MAX, ..RejectionFilter::default() };
        let attention =
            StateFilter { attention: Some(String::new()), ..StateFilter::all(Kind::Payment, LOOKED_AT) };
        let (counts, money, events, dead, work, rejections, newest_dead, payments, routes, channels) = tokio::try_join!(
            store.find_counts(range.begin(at), at),
            store.find_money(range.begin(at), at),
            store.find_events(timed),
            store.find_dead_groups(dead),
            store.find_work(),
            store.find_rejections(rejections),
            store.find_dead(newest_dead),
            store.find_states(attention),
            view::routes(&console.places, store),
            view::channels(&console.channels, store, at),
        )?;
        let seen = Seen {
            unready: console.health.unready().map(|why| why.detail),
            routes: &routes,
            channels: &channels,
            dead: &newest_dead,
            is_more_dead: newest_dead.len() >= LOOKED_AT,
            payments: payments.iter().filter(|payment| payment.is_shown()).count(),
            are_more_payments: payments.len() >= LOOKED_AT,
            rejections: &rejections,
            counts: &counts,
            at,
        };
        let day = DayBar::of(&counts, range, at);
        let webhooks = WebhookAddress::all(&console.summary);
        Ok(Self {
            matters: attention::matters(&seen, visit.lang),
            range,
            money: money::rows(&money),
            is_empty: events.events.is_empty() && events.next.is_none() && day.total.all() == 0,
            trigger: trigger(&webhooks),
            webhooks,
            root: console.settings.url.clone().unwrap_or_default(),
            as_of: as_of.map(|at| clock(&visit.zone.clock(at), 11..19)),
            chart: Chart::of(&day),
            day,
            waiting: work.iter().filter(|work| work.lane.route().is_some()).map(unfinished).sum(),
            dead: Counted::dead(&dead),
            turned_away: Counted::turned_away(&rejections, at),
            settled: latency::settled(&events.events),
            acknowledged: latency::acknowledged(&console.metrics.encode()),
            zone: visit.zone.clone(),
        })
    }

    /// `09:00`, or the day where bars are longer; by the clock that was chosen.
    fn hour(&self, bar: &Bar) -> String {
        let part = match self.range {
            OverviewRange::Day => 11..16,
            OverviewRange::Week => 5..16,
            OverviewRange::Month => 5..10,
        };
        clock(&self.zone.clock(bar.hour.at), part)
    }

    /// Labels below the chart: of some bars, and the last.
    fn labels(&self) -> Vec<String> {
        let bars = self.chart.bars.iter().step_by(self.range.label_every()).chain(self.chart.bars.last());
        bars.map(|bar| self.hour(bar)).collect()
    }

    /// The events of a bar.
    fn hour_link(&self, bar: &Bar) -> String {
        let local = |at: Time| clock(&self.zone.clock(at), 0..16).replace(' ', "T");
        let end = bar.hour.at.plus_ms(self.range.bar_ms());
        address("/console/events", [("from", &*local(bar.hour.at)), ("to", &*local(end))])
    }
}

fn unfinished(work: &PendingWork) -> i64 {
    work.waiting + work.retrying + work.running
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
