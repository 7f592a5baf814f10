//! What failed for good and waits for a person: what many have in common, each with all that is needed to understand
//! it, and the two things that can be done about it. Many at once are first shown, then carried out as a run.

mod advice;
mod chosen;
mod many;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use askama::Template;
use sekisho_core::job::{JobKind, Lane};
use sekisho_core::state::{self, Key, State};
use sekisho_core::{Time, money};
use sekisho_store::{DeadFilter, DeadGroup, DeadLetter, FIND_MAX, GROUPED_MAX, Store};

use super::event::{self, CallView};
use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::payload::{self, Bound, Form, Shown};
use super::runs::{Run, RunKind};
use super::trouble::{Resource, Trouble};
use crate::acts::{self, DeadLetterSelection, DeadReport, REASON_MAX};
use crate::queries;
use crate::types;
use crate::view::{self, words};
use chosen::Chosen;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/dead",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/dead/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/dead/{id}/retry",
        needs: OPERATOR,
        run: |visit| Box::pin(retry(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/dead/{id}/discard",
        needs: OPERATOR,
        run: |visit| Box::pin(discard(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/dead/retry",
        needs: OPERATOR,
        run: |visit| Box::pin(many::preview(visit, many::Action::Retry)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/dead/retry",
        needs: OPERATOR,
        run: |visit| Box::pin(async move { many::start(&visit, many::Action::Retry) }),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/dead/discard",
        needs: OPERATOR,
        run: |visit| Box::pin(many::preview(visit, many::Action::Discard)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/dead/discard",
        needs: OPERATOR,
        run: |visit| Box::pin(async move { many::start(&visit, many::Action::Discard) }),
    },
];

const HOME: &str = "/console/dead";
/// Dead letters on a page, and runs above them.
const PAGE: usize = 50;
const RUNS_SHOWN: usize = 3;

#[derive(Template)]
#[template(path = "console/dead.html")]
struct DeadPage {
    f: Frame,
    chosen: Chosen,
    sources: Vec<String>,
    lanes: Vec<(String, String)>,
    reasons: Vec<String>,
    groups: Vec<GroupRow>,
    count: usize,
    /// More than were looked at.
    is_more: bool,
    /// Currency, amount, and of how many payments.
    risks: Vec<(String, i64, usize)>,
    rows: Vec<LetterRow>,
    next: Option<String>,
    runs: Vec<Arc<Run>>,
}

struct GroupRow {
    reason: String,
    class: String,
    lane: String,
    count: usize,
    oldest: Time,
    newest: Time,
    risks: Vec<types::Risk>,
    /// The list of these alone.
    link: String,
}

impl GroupRow {
    fn of(group: types::DeadGroup, chosen: &Chosen, f: &Frame) -> Self {
        let lane = Lane::from(group.lane);
        Self {
            class: group.class,
            lane: words::lane(&lane, f.lang),
            count: group.count,
            oldest: group.oldest,
            newest: group.newest,
            link: chosen.narrowed(&group.reason, &lane).link(HOME),
            reason: group.reason,
            risks: group.at_risk,
        }
    }
}

struct LetterRow {
    id: String,
    reason: String,
    title: String,
    lane: String,
    source: String,
    attempts: i32,
    at: Time,
    payment: Option<String>,
    tenant: Option<String>,
    worth: Option<(i64, String)>,
    next_try: Option<Time>,
}

impl LetterRow {
    fn of(letter: &DeadLetter, next_try: Option<Time>, f: &Frame, gone: &BTreeSet<Key>) -> Self {
        let tenant = letter.about.tenant.clone();
        Self {
            id: letter.job.as_message().to_string(),
            reason: letter.death.reason.clone(),
            title: letter
                .event_type
                .clone()
                .unwrap_or_else(|| words::work(letter.task.kind(), f.lang).to_owned()),
            lane: words::lane(&letter.lane, f.lang),
            source: letter.source.clone().unwrap_or_default(),
            attempts: letter.attempts,
            at: letter.at,
            payment: letter.about.payment.clone(),
            tenant: tenant.filter(|tenant| !gone.contains(&Key::new(state::Kind::Tenant, tenant))),
            worth: letter.stake.as_ref().map(|stake| (stake.amount, stake.currency.clone())),
            next_try,
        }
    }
}

/// Tenants of theirs that were deleted: nothing is shown to lead to one.
async fn gone_tenants(store: &dyn Store, letters: &[DeadLetter]) -> sekisho_store::Result<BTreeSet<Key>> {
    let tenants = letters.iter().filter_map(|letter| letter.about.tenant.as_ref());
    let keys: BTreeSet<Key> = tenants.map(|tenant| Key::new(state::Kind::Tenant, tenant)).collect();
    let known = store.load(Vec::new(), keys.into_iter().collect()).await?;
    Ok(known.states.into_values().filter(State::is_deleted).map(|state| state.key).collect())
}

async fn list(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let chosen = Chosen::of(|name| visit.param(name), &visit.zone)?;
    let filter = chosen.query.filter()?;
    let f = visit.frame("dead", visit.lang.t("Dead letters", "デッドレター"));
    let groups = store.find_dead_groups(DeadFilter { limit: GROUPED_MAX, ..filter.clone() }).await?;
    let page = DeadFilter { limit: PAGE, before: visit.before()?, ..filter.clone() };
    let letters = store.find_dead(page).await?;
    let next = letters.last().filter(|_| letters.len() == PAGE).map(|last| last.job.as_message().to_string());
    let gone = gone_tenants(store, &letters).await?;
    let count = groups.iter().map(|group| group.count).sum();
    let mut reasons: Vec<String> = groups.iter().map(|group| group.reason.clone()).collect();
    reasons.extend(chosen.query.reason.clone());
    reasons.sort();
    reasons.dedup();
    let mut sources = visit.console.known.sources.clone();
    sources.extend(["sekisho", "fetched"].map(str::to_owned));
    Reply::page(&DeadPage {
        sources,
        lanes: lanes(&visit, &groups, &chosen),
        reasons,
        count,
        is_more: count >= GROUPED_MAX,
        risks: at_risk(&visit, filter.clone(), count).await?,
        groups: groups.into_iter().map(|group| GroupRow::of(group.into(), &chosen, &f)).collect(),
        rows: letters
            .iter()
            .map(|letter| LetterRow::of(letter, next_try(&visit, letter), &f, &gone))
            .collect(),
        next,
        runs: visit.console.runs.newest(&[RunKind::Retry, RunKind::Discard], RUNS_SHOWN),
        chosen,
        f,
    })
}

/// When it is tried again automatically, at the latest.
fn next_try(visit: &Visit, letter: &DeadLetter) -> Option<Time> {
    view::next_automatic_try(&visit.console.places, letter, visit.at)
}

/// Every lane that can be chosen, with what it is called.
fn lanes(visit: &Visit, groups: &[DeadGroup], chosen: &Chosen) -> Vec<(String, String)> {
    let routes = visit.console.known.routes.iter().map(|route| Lane::to_route(&route.name));
    let found = groups.iter().map(|group| group.lane.clone());
    let own = chosen.query.lane.clone().map(Lane::from);
    let mut lanes: Vec<Lane> = routes.chain(found).chain(own).collect();
    lanes.sort();
    lanes.dedup();
    lanes.into_iter().map(|lane| (lane.0.to_string(), words::lane(&lane, visit.lang))).collect()
}

/// Money that hangs on all of them together, by currency. A payment counts once, however many letters; so it is looked up
/// only while they are few.
async fn at_risk(
    visit: &Visit,
    filter: DeadFilter,
    count: usize,
) -> Result<Vec<(String, i64, usize)>, Trouble> {
    if count > FIND_MAX {
        return Ok(Vec::new());
    }
    let letters = visit.console.store.find_dead(DeadFilter { limit: FIND_MAX, ..filter }).await?;
    let mut payments: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for stake in letters.into_iter().filter_map(|letter| letter.stake) {
        payments.entry(stake.currency).or_default().insert(stake.payment, stake.amount);
    }
    let sum = |(currency, amounts): (String, BTreeMap<String, i64>)| {
        (currency, money::sum(amounts.values().copied()), amounts.len())
    };
    Ok(payments.into_iter().map(sum).collect())
}

#[derive(Template)]
#[template(path = "console/dead_letter.html")]
struct LetterPage {
    f: Frame,
    id: String,
    letter: DeadLetter,
    lane: String,
    error: String,
    advice: &'static str,
    calls: Vec<CallView>,
    /// `evt_…`, if it is still kept.
    event: Option<String>,
    notice: Option<String>,
    payload: Option<Shown>,
    /// When it is tried again automatically, at the latest.
    next_try: Option<Time>,
    reason_max: usize,
}

impl LetterPage {
    fn calls(&self) -> &[CallView] {
        &self.calls
    }
}

async fn show(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let job = visit.seq(Resource::DeadLetter)?;
    let Some(mut letter) = queries::find_letter(store, job).await? else {
        // Retried or discarded since: its message tells what became of it.
        if store.find_message(job).await?.is_some() {
            return Ok(Reply::Go {
                to: format!("/console/messages/{}", visit.id),
                flash: visit.flash.clone(),
            });
        }
        return Err(Trouble::unknown(Resource::DeadLetter, &visit.id));
    };
    let gone = gone_tenants(store, std::slice::from_ref(&letter)).await?;
    if !gone.is_empty() {
        letter.about.tenant = None;
    }
    let eyes = event::eyes(&visit);
    let record = match letter.event {
        Some(seq) => store.find_event(seq).await?,
        None => None,
    };
    let calls = event::calls_of(store, job, eyes).await?;
    Reply::page(&LetterPage {
        f: visit.frame("dead", visit.lang.t("Dead letter", "デッドレター")),
        id: job.as_message().to_string(),
        lane: words::lane(&letter.lane, visit.lang),
        error: event::veiled(&letter.death.error, eyes),
        advice: advice::of(&letter.death, visit.lang),
        calls,
        event: record.as_ref().map(|record| record.summary.seq.as_event().to_string()),
        notice: letter.task.notice().map(str::to_owned),
        payload: record.map(|record| payload::show(&record.body, eyes, Bound::BODY)),
        next_try: next_try(&visit, &letter),
        letter,
        reason_max: REASON_MAX,
    })
}

async fn retry(visit: Visit) -> Answer {
    let done = acts::retry(&*visit.console.store, &order(&visit), &visit.actor()).await;
    let said = ("It is queued again, with all its attempts.", "再試行のキューに入れました。");
    after(&visit, done, said)
}

async fn discard(visit: Visit) -> Answer {
    let done = acts::discard(&*visit.console.store, &order(&visit), &visit.actor()).await;
    after(&visit, done, ("It was discarded.", "破棄しました。"))
}

/// What is to be done with the one of the path.
fn order(visit: &Visit) -> DeadLetterSelection {
    let reason = visit.field("reason").unwrap_or_default().to_owned();
    DeadLetterSelection { ids: vec![visit.id.clone()], reason, ..DeadLetterSelection::default() }
}

/// To its message, which goes on living; or back to it, when nothing came of it.
fn after(visit: &Visit, done: acts::Result<DeadReport>, said: (&str, &str)) -> Answer {
    let id = visit.seq(Resource::DeadLetter)?.as_message();
    let to = if done.is_ok() { format!("/console/messages/{id}") } else { format!("{HOME}/{id}") };
    visit.after(&to, done, said)
}
