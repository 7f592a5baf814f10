//! Where webhooks come in, where events go, and the ways that messages take: how each fares, and setting it right.

use std::collections::BTreeMap;

use askama::Template;
use futures_util::future::try_join_all;
use sekisho_core::Time;
use sekisho_core::job::Lane;
use sekisho_core::mail_address::mask_text;
use sekisho_core::queue::Breaker;
use sekisho_store::{EventFilter, FIND_MAX, RejectionFilter};

use super::config_summary::SourceSummary;
use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::{Resource, Trouble};
use crate::types::{Channel, Route};
use crate::{acts, view};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/sources",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/sources/{name}/test",
        needs: OPERATOR,
        run: |visit| Box::pin(test(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/routes/{name}/reset",
        needs: OPERATOR,
        run: |visit| Box::pin(reset(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/channels/{name}/resume",
        needs: OPERATOR,
        run: |visit| Box::pin(resume(visit)),
    },
];

const HOME: &str = "/console/sources";

#[derive(Template)]
#[template(path = "console/sources.html")]
struct SourcesPage {
    f: Frame,
    sources: Vec<SourceRow>,
    routes: Vec<RouteRow>,
    channels: Vec<ChannelRow>,
}

struct SourceRow {
    name: String,
    title: &'static str,
    address: String,
    last: Option<LastEvent>,
    /// Requests that were turned away, among the newest lines.
    rejections: i64,
    types: Vec<&'static str>,
    sample: &'static str,
}

struct LastEvent {
    id: String,
    at: Time,
    event_type: String,
}

struct RouteRow {
    name: String,
    url: String,
    signing: &'static str,
    breaker: Standing,
}

struct ChannelRow {
    name: String,
    kind: String,
    used: Option<u64>,
    daily: Option<u64>,
    breaker: Standing,
}

/// How a destination fares.
struct Standing {
    state: String,
    why: String,
    since: Option<Time>,
    until: Option<Time>,
    oldest: Option<Time>,
}

impl Standing {
    fn of_route(route: &Route) -> Self {
        Self {
            state: route.breaker.clone(),
            why: String::new(),
            since: route.open_since,
            until: route.open_until,
            oldest: route.oldest_due_at,
        }
    }

    fn of_channel(channel: &Channel) -> Self {
        Self {
            state: channel.breaker.clone(),
            why: channel.why.as_deref().map(mask_text).unwrap_or_default(),
            since: channel.open_since,
            until: channel.open_until,
            oldest: channel.oldest_due_at,
        }
    }

    fn is_closed(&self) -> bool {
        self.state == Breaker::default().state()
    }
}

async fn list(visit: Visit) -> Answer {
    let console = &visit.console;
    let rejections = rejections(&visit).await?;
    let sources = console.summary.sources.iter().map(|source| {
        let count = rejections.get(&source.name).copied().unwrap_or_default();
        source_row(&visit, source, count)
    });
    let routes = view::routes(&console.places, &*console.store).await?;
    let routes = console.summary.routes.iter().zip(&routes).map(|(route, one)| RouteRow {
        name: route.name.clone(),
        url: route.url.clone(),
        signing: route.signing,
        breaker: Standing::of_route(one),
    });
    let channels = view::channels(&console.channels, &*console.store, visit.at).await?;
    let channels = channels.into_iter().map(|one| ChannelRow {
        breaker: Standing::of_channel(&one),
        name: one.name,
        kind: one.kind,
        used: one.used_today,
        daily: one.daily,
    });
    Reply::page(&SourcesPage {
        sources: try_join_all(sources).await?,
        routes: routes.collect(),
        channels: channels.collect(),
        f: visit.frame("sources", visit.lang.t("Sources and routes", "送信元と配送先")),
    })
}

/// How many requests to each source were turned away, over the newest lines.
async fn rejections(visit: &Visit) -> Result<BTreeMap<String, i64>, Trouble> {
    let filter = RejectionFilter { limit: FIND_MAX, ..RejectionFilter::default() };
    let mut counts = BTreeMap::new();
    for one in visit.console.store.find_rejections(filter).await? {
        *counts.entry(one.source).or_default() += one.count;
    }
    Ok(counts)
}

async fn source_row(visit: &Visit, source: &SourceSummary, rejections: i64) -> Result<SourceRow, Trouble> {
    let filter = EventFilter { source: Some(source.name.clone()), limit: 1, ..EventFilter::default() };
    let last = visit.console.store.find_events(filter).await?.events.into_iter().next();
    let root = visit.console.settings.url.as_deref().unwrap_or_default();
    Ok(SourceRow {
        name: source.name.clone(),
        title: source.about.title,
        address: source.url.clone().unwrap_or_else(|| format!("{root}{}", source.path)),
        last: last.map(|event| LastEvent {
            id: event.seq.as_event().to_string(),
            at: event.received_at,
            event_type: event.event_type,
        }),
        rejections,
        types: source.types.clone(),
        sample: source.about.sample_type,
    })
}

async fn test(visit: Visit) -> Answer {
    let summary = &visit.console.summary;
    let missing = || Trouble::unknown(Resource::Source, &visit.id);
    let source = summary.source(&visit.id).ok_or_else(missing)?;
    let kind = visit.field("type").unwrap_or(source.about.sample_type);
    if !source.types.contains(&kind) {
        return Err(Trouble::wrong(format!("type: {kind:?} is none that can be sent to try a source")));
    }
    acts::note_test(&*visit.console.store, &source.name, kind, &visit.actor()).await?;
    let answer = match summary.test(source, kind).await {
        Ok(answer) => answer,
        Err(error) => {
            let text = visit.lang.t("The test event was not sent:", "テストイベントを送信できませんでした：");
            return Reply::failed(HOME, format!("{text} {error:#}"));
        }
    };
    let (source, actor) = (&source.name, &visit.who.name);
    tracing::info!(source, kind, actor, status = answer.status, "test event sent by an operator");
    if answer.status >= 300 {
        let text = visit.lang.t("The test event was refused:", "テストイベントが拒否されました：");
        return Reply::failed(HOME, format!("{text} {}", answer.sentence()));
    }
    let text = visit.lang.t("The test event was taken:", "テストイベントを受け付けました：");
    let done = format!("{text} {}", answer.sentence());
    // What was stored under this number can be looked at right away.
    let stored = answer.message_id.parse::<sekisho_core::Seq>().ok();
    let to = stored.map_or_else(|| HOME.to_owned(), |seq| format!("/console/events/{}", seq.as_event()));
    Reply::done(to, done)
}

async fn reset(visit: Visit) -> Answer {
    let console = &visit.console;
    if !console.places.iter().any(|place| place.name == visit.id) {
        return Err(Trouble::unknown(Resource::Route, &visit.id));
    }
    let done = acts::reset(&*console.store, &visit.id, &visit.actor()).await;
    if done.is_ok() {
        // This node need not wait until it looks at the store again.
        console.engine.lanes.breaker(&Lane::to_route(&visit.id)).set(Breaker::default());
        tracing::info!(route = visit.id, actor = visit.who.name, "breaker reset by an operator");
    }
    let home = format!("/console/routes/{}", visit.id);
    visit.after(
        if visit.field("from") == Some("route") { &home } else { HOME },
        done,
        ("Deliveries to this destination were resumed.", "遮断を解除しました。配送を再開します。"),
    )
}

async fn resume(visit: Visit) -> Answer {
    let console = &visit.console;
    if !console.channels.iter().any(|configured| configured.name == visit.id) {
        return Err(Trouble::unknown(Resource::Channel, &visit.id));
    }
    let done = acts::resume(&*console.store, &visit.id, &visit.actor()).await;
    if done.is_ok() {
        // This node need not wait until it looks at the store again.
        console.engine.lanes.breaker(&Lane::by_channel(&visit.id)).set(Breaker::default());
        tracing::info!(channel = visit.id, actor = visit.who.name, "channel resumed by an operator");
    }
    visit.after(
        HOME,
        done,
        (
            "The channel was resumed; waiting messages are sent.",
            "送信経路を再開しました。待機中の通知を送信します。",
        ),
    )
}
