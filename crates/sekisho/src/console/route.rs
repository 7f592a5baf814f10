//! One route: whether its destination is well, why not, what waits for it, and how it answered lately.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use sekisho_store::{
    DeadFilter, DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, FIND_MAX, GROUPED_MAX,
    PendingWork,
};

use super::deliveries;
use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::{Resource, Trouble};
use crate::types::{Delivery, Route};
use crate::view;

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/routes/{name}",
    needs: VIEWER,
    run: |visit| Box::pin(show(visit)),
}];

/// Deliveries that are listed.
const LISTED: usize = 10;

#[derive(Template)]
#[template(path = "console/route.html")]
struct RoutePage {
    f: Frame,
    route: Route,
    signing: &'static str,
    /// Not finished, and of those how many failed at least once.
    waiting: i64,
    retrying: i64,
    dead: usize,
    lately: Lately,
    /// When its dead letters are tried again automatically at the latest; none where that is switched off.
    next_wave: Option<Time>,
    rows: Vec<Delivery>,
}

impl RoutePage {
    fn is_closed(&self) -> bool {
        self.route.breaker == Breaker::default().state()
    }
}

/// How the newest deliveries went.
struct Lately {
    ended: usize,
    /// Of a hundred.
    success: Option<String>,
    p95_ms: Option<i64>,
    last: Option<Answered>,
}

/// The last call to it.
struct Answered {
    message: String,
    at: Time,
    took_ms: i64,
    status: Option<i32>,
    reason: Option<String>,
}

impl Lately {
    fn of(newest: &[DeliveryRecord]) -> Self {
        let is =
            |wanted: DeliveryStatus| move |one: &&DeliveryRecord| DeliveryStatus::of(&one.standing) == wanted;
        let delivered = newest.iter().filter(is(DeliveryStatus::Delivered)).count();
        let ended = delivered + newest.iter().filter(is(DeliveryStatus::Failed)).count();
        let mut took: Vec<i64> =
            newest.iter().filter_map(|one| one.last.as_ref()).map(|call| call.took_ms).collect();
        took.sort_unstable();
        let calls = newest.iter().filter_map(|one| one.last.as_ref().map(|call| (one.job, call)));
        Self {
            ended,
            success: (ended > 0).then(|| format!("{:.1} %", 100.0 * delivered as f64 / ended as f64)),
            p95_ms: took.get((took.len() * 95).div_ceil(100).saturating_sub(1)).copied(),
            last: calls.max_by_key(|(_, call)| call.at).map(|(job, call)| Answered {
                message: job.as_message().to_string(),
                at: call.at,
                took_ms: call.took_ms,
                status: call.status,
                reason: call.reason.clone(),
            }),
        }
    }
}

async fn show(visit: Visit) -> Answer {
    let (console, store) = (&visit.console, &*visit.console.store);
    let missing = || Trouble::unknown(Resource::Route, &visit.id);
    let place = console.places.iter().find(|place| place.name == visit.id).ok_or_else(missing)?;
    let summary = console.summary.routes.iter().find(|route| route.name == visit.id).ok_or_else(missing)?;
    let lane = Lane::to_route(&place.name);
    let newest = DeliveryFilter { lane: Some(lane.clone()), limit: FIND_MAX, ..DeliveryFilter::default() };
    let dead = DeadFilter { lane: Some(lane.clone()), limit: GROUPED_MAX, ..DeadFilter::default() };
    let (routes, work, newest, dead) = tokio::try_join!(
        view::routes(&console.places, store),
        store.find_work(),
        store.find_deliveries(newest),
        store.find_dead_groups(dead),
    )?;
    let route = routes.into_iter().find(|route| route.name == place.name).ok_or_else(missing)?;
    let own = work.into_iter().find(|work| work.lane == lane);
    let (waiting, retrying) =
        own.map_or((0, 0), |own: PendingWork| (own.waiting + own.retrying + own.running, own.retrying));
    let lately = Lately::of(&newest.deliveries);
    let listed =
        DeliveryPage { deliveries: newest.deliveries.into_iter().take(LISTED).collect(), next: None };
    Reply::page(&RoutePage {
        f: visit.frame("sources", place.name.clone()),
        route,
        signing: summary.signing,
        waiting,
        retrying,
        dead: dead.iter().map(|group| group.count).sum(),
        lately,
        next_wave: (!place.retry_dead.is_off()).then(|| place.retry_dead.next_wave(visit.at)),
        rows: deliveries::shown(&visit, &listed).await?,
    })
}
