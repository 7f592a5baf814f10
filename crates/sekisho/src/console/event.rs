//! One event, from the request to everything that followed: what was decided, what changed, who was told, and how each
//! delivery fared. With the request itself, as it may be shown to whoever looks.

mod calls;
mod changes;
mod message;
mod replay;
mod waterfall;

use askama::Template;
use axum::body::Body;
use http::{HeaderValue, Response, header};
use sekisho_core::job::Lane;
use sekisho_core::notification::Notice;
use sekisho_core::state::{self, Key, State};
use sekisho_core::{Seq, Time, mail_address};
use sekisho_store::{AuditFilter, EventRecord, EventSummary, StateFilter, Store};

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::payload::{self, Bound, Eyes, Form, Shown};
use super::trouble::{Resource, Trouble};
use crate::queries;
use crate::view::words;
pub use calls::{CallView, MessageView, calls_of, veiled};
use changes::{ActView, AnnouncedRow, ChangeRow};
use waterfall::Waterfall;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/events/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/events/{id}/body",
        needs: OPERATOR,
        run: |visit| Box::pin(body(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/events/{id}/replay",
        needs: OPERATOR,
        run: |visit| Box::pin(replay::preview_one(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/events/{id}/replay",
        needs: OPERATOR,
        run: |visit| Box::pin(replay::one(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/events/replay",
        needs: OPERATOR,
        run: |visit| Box::pin(replay::preview_many(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/events/replay",
        needs: OPERATOR,
        run: |visit| Box::pin(async move { replay::many(&visit) }),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/messages/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(message::show(visit)),
    },
];

/// Most of what is shown of one event.
const MESSAGES_MAX: usize = 50;
const AUDIT_MAX: usize = 200;
const NOTICES_LOOKED_MAX: usize = 100;
/// How long after an event its notices are looked for.
const NOTICES_WITHIN_MS: i64 = 10 * 60_000;

#[derive(Template)]
#[template(path = "console/event.html")]
struct EventPage {
    f: Frame,
    id: String,
    event: EventSummary,
    stored_at: Time,
    /// What came before under the same id, where that is not signed.
    first_under_id: Option<String>,
    links: Links,
    /// How its own settling ended. An event can be settled, and have failed all the same on its way to a route.
    settling: Option<MessageView>,
    changes: Vec<ChangeRow>,
    announced: Vec<AnnouncedRow>,
    acts: Vec<ActView>,
    messages: Vec<MessageView>,
    more_messages: usize,
    notices: Vec<NoticeView>,
    waterfall: Option<Waterfall>,
    headers: Vec<(String, String)>,
    payload: Shown,
}

impl EventPage {
    /// What was decided, as a word that badges know.
    fn decided(&self) -> &str {
        self.settling.as_ref().map_or_else(|| self.event.status.name(), |settling| settling.standing)
    }

    fn tone(&self) -> &'static str {
        words::status(self.decided(), self.f.lang).0.class()
    }
}

/// What an event turned out to be about, without what was deleted since.
#[derive(Default)]
struct Links {
    payment: Option<String>,
    billing: Option<String>,
    tenant: Option<String>,
    currency: Option<String>,
}

struct NoticeView {
    id: String,
    channel: String,
    audience: &'static str,
    to: String,
    status: String,
}

async fn show(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let record = find(&visit).await?;
    let (seq, id) = (record.summary.seq, record.summary.seq.as_event().to_string());
    if visit.id != id {
        // One address for one event, so that links and history agree.
        return Ok(Reply::Go { to: format!("/console/events/{id}"), flash: visit.flash.clone() });
    }
    let (eyes, lang) = (eyes(&visit), visit.lang);
    let links = links(store, &record.summary).await?;
    let (mut changes, mut announced) = (Vec::new(), Vec::new());
    for target in [&links.payment, &links.billing].into_iter().flatten() {
        let filter = AuditFilter {
            target: Some(target.clone()),
            since: Some(record.summary.received_at),
            limit: AUDIT_MAX,
            ..AuditFilter::default()
        };
        let entries = store.find_audit(filter).await?.entries;
        let own = entries.iter().rev().map(|one| &one.entry).filter(|entry| entry.event == Some(seq));
        for entry in own {
            match changes::told(entry) {
                Some(told) => announced.push(changes::announced(store, entry, told).await?),
                None => changes.push(ChangeRow::of(entry, links.currency.as_deref(), lang)),
            }
        }
    }
    let acts = AuditFilter { target: Some(id.clone()), limit: AUDIT_MAX, ..AuditFilter::default() };
    let acts =
        store.find_audit(acts).await?.entries.iter().rev().map(|one| ActView::of(&one.entry)).collect();

    let found = store.find_messages(seq).await?;
    let more_messages = found.len().saturating_sub(MESSAGES_MAX);
    let tells = found.iter().any(|message| message.lane == Lane::notify());
    let mut messages = Vec::new();
    for message in found.iter().take(MESSAGES_MAX) {
        messages.push(MessageView::of(store, message, eyes, lang).await?);
    }
    let settling = match store.find_message(seq).await? {
        Some(message) => Some(MessageView::of(store, &message, eyes, lang).await?),
        None => None,
    };
    let notices = if tells { notices(store, &record.summary, &links).await? } else { Vec::new() };
    let spans = queries::trace(store, &visit.console.engine.tracer.sampler, seq).await?;
    let waterfall = Waterfall::of(&spans, visit.console.trace_url.as_deref(), lang);
    let payload = payload::show(&record.body, eyes, Bound::BODY);
    let headers = headers(&record.headers, eyes);
    let event = record.summary;
    let first = if event.id_reused { store.find_seq(&event.source, &event.event_id).await? } else { None };
    Reply::page(&EventPage {
        f: visit.frame("events", event.event_type.clone()),
        id,
        stored_at: seq.made_at(),
        first_under_id: first.filter(|first| *first != seq).map(|first| first.as_event().to_string()),
        event,
        links,
        settling,
        changes,
        announced,
        acts,
        messages,
        more_messages,
        notices,
        waterfall,
        headers,
        payload,
    })
}

/// The event of the path: by our id, or by the provider's in any source, or in the one that is named.
async fn find(visit: &Visit) -> Result<EventRecord, Trouble> {
    let store = &*visit.console.store;
    let named = visit.param("source").map(|source| vec![source.to_owned()]);
    let sources = named.as_ref().unwrap_or(&visit.console.known.sources);
    let missing = || Trouble::unknown(Resource::Event, &visit.id);
    let seq = queries::find_event(store, sources, &visit.id).await?.ok_or_else(missing)?;
    store.find_event(seq).await?.ok_or_else(missing)
}

pub fn eyes(visit: &Visit) -> Eyes {
    use sekisho_core::user::Rank;
    match visit.who.rank {
        Rank::Viewer => Eyes::Viewer,
        Rank::Operator | Rank::Admin => Eyes::Operator,
    }
}

async fn links(store: &dyn Store, event: &EventSummary) -> Result<Links, Trouble> {
    let key = |kind, id: &Option<String>| id.as_ref().map(|id| Key::new(kind, id.clone()));
    let about = &event.about;
    let keys = [
        key(state::Kind::Payment, &about.payment),
        key(state::Kind::Billing, &about.billing),
        key(state::Kind::Tenant, &about.tenant),
    ];
    let wanted: Vec<Key> = keys.iter().flatten().cloned().collect();
    if wanted.is_empty() {
        return Ok(Links::default());
    }
    let loaded = store.load(Vec::new(), wanted).await?.states;
    let state = |key: &Option<Key>| key.as_ref().and_then(|key| loaded.get(key));
    let kept = |key: &Option<Key>, id: &Option<String>| {
        id.clone().filter(|_| !state(key).is_some_and(State::is_deleted))
    };
    let [payment, billing, tenant] = &keys;
    let currency = state(payment).or_else(|| state(billing)).and_then(|state| state.index.currency.clone());
    Ok(Links {
        payment: about.payment.clone(),
        billing: kept(billing, &about.billing),
        tenant: kept(tenant, &about.tenant),
        currency,
    })
}

/// Notices of this event, among those that were written down shortly after it.
async fn notices(store: &dyn Store, event: &EventSummary, links: &Links) -> Result<Vec<NoticeView>, Trouble> {
    let id = event.seq.as_event().to_string();
    let until = Seq::floor_of(event.received_at.plus_ms(NOTICES_WITHIN_MS)).tagged("ntc_");
    let filter = StateFilter {
        tenant: links.tenant.clone(),
        before: Some(until),
        ..StateFilter::all(state::Kind::Notice, NOTICES_LOOKED_MAX)
    };
    let mut found = Vec::new();
    for state in store.find_states(filter).await? {
        let Ok(notice) = serde_json::from_str::<Notice>(&state.facts) else { continue };
        if notice.event.as_deref() == Some(&*id) {
            found.push(NoticeView {
                id: state.key.id,
                audience: notice.audience.name(),
                to: notice.to.as_ref().map(ToString::to_string).unwrap_or_default(),
                status: state.index.status.unwrap_or_default(),
                channel: notice.channel,
            });
        }
    }
    Ok(found)
}

/// Names and values, as they may be shown.
pub fn headers(stored: &str, eyes: Eyes) -> Vec<(String, String)> {
    let pairs: Vec<(String, String)> = serde_json::from_str(stored).unwrap_or_default();
    let shown = pairs.into_iter().map(|(name, value)| {
        let value = payload::mask_header(&name, &value);
        let value = if eyes == Eyes::Viewer { mail_address::mask_text(&value) } else { value };
        (name, value)
    });
    shown.collect()
}

/// The body as it came. Nothing in it is hidden, so it is not for everybody, and never shown as a page.
async fn body(visit: Visit) -> Answer {
    let record = find(&visit).await?;
    let ending = match payload::show(&record.body, Eyes::Operator, Bound::ANSWER).form {
        Form::Json => "json",
        Form::Empty | Form::BrokenJson | Form::Fields | Form::Text => "txt",
        Form::Bytes => "bin",
    };
    let name = format!("attachment; filename=\"{}.{ending}\"", record.summary.seq.as_event());
    let mut answer = Response::new(Body::from(record.body));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let name = HeaderValue::from_str(&name).expect("our ids are plain letters");
    headers.insert(header::CONTENT_DISPOSITION, name);
    Ok(Reply::Other(answer))
}
