//! What each of the three knows: the sender what it sent and heard, the store what it holds, the application what it
//! got. The store is read beside the running server; the server's own word is asked for about places only ([`places`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sekisho_core::job::Lane;
use sekisho_core::source_name::{FETCHED, OWN};
use sekisho_core::state::Kind;
use sekisho_core::{Seq, Time};
use sekisho_demo::app::DemoApp;
use sekisho_demo::shop::{Money, Sale};
use sekisho_store::{
    Access, DeadFilter, EventFilter, EventSummary, FIND_MAX, Order, Standing, StateFilter, Status, Store,
    StoreUrl,
};
use tokio::runtime::Handle;

use super::acts::SentCount;
use super::places::{self, DemoPlaces};
use super::stage::{Stage, now_seconds};
use super::{Stop, TICK};
use crate::queries;
use crate::types::BooksReport;
use crate::view;

/// How long work that is just being finished may take.
const STILL_RUNNING_MAX: Duration = Duration::from_mins(1);
/// What is due later than this is nothing to wait for: a refund that its bank has not taken yet is asked about after days.
const SOON_MS: i64 = 10 * 60_000;
/// Questions to the store under way at once.
const ASKED_AT_ONCE: usize = 16;

pub struct Accounts {
    pub sender: DemoSender,
    pub store: HeldMoney,
    pub app: Received,
    pub places: DemoPlaces,
}

/// By the sender's own list.
#[derive(Default)]
pub struct DemoSender {
    /// Everything that was to be sent.
    pub events: BTreeSet<String>,
    pub requests_planned: u64,
    pub requests: u64,
    /// Once for each 2xx.
    pub acknowledged: Vec<String>,
    pub sales: Vec<Sale>,
    /// Places that were held, each with a payment of its own.
    pub orders: usize,
    pub money: BTreeMap<String, Money>,
    pub forged: u64,
    pub forged_refused: u64,
    /// Answered 2xx.
    pub forged_accepted: u64,
    pub kills: usize,
}

/// In the store.
#[derive(Default)]
pub struct HeldMoney {
    /// Stripe's events: id and where each stands.
    pub events: Vec<(String, Status)>,
    /// The ids of what Sekisho announced.
    pub announced: Vec<String>,
    pub payments: Vec<DemoPayment>,
    /// Not finished, and buried: each with what it is.
    pub waiting: Vec<String>,
    pub dead: Vec<String>,
    /// Deliveries that ended well.
    pub delivered: u64,
    /// What the books say lies at the provider, by currency.
    pub money: BTreeMap<String, i64>,
    pub books: BooksReport,
    pub audit: Audit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoPayment {
    pub intents: Vec<String>,
    pub status: String,
    pub received: i64,
    pub refunded: i64,
}

#[derive(Default)]
pub struct Audit {
    pub entries: u64,
    pub links: u64,
    pub faults: Vec<String>,
}

/// In the application's ledger.
#[derive(Default)]
pub struct Received {
    /// Event and path of everything it did.
    pub effects: BTreeSet<(String, String)>,
    /// Done under two different message ids.
    pub doubled: Vec<String>,
    pub messages: u64,
    /// Done again under the same message id.
    pub repeats: u64,
}

pub fn read(stage: &Stage, sent: SentCount, stop: &Stop, handle: &Handle) -> anyhow::Result<Accounts> {
    let started = Instant::now();
    let store = loop {
        stop.check()?;
        let held = handle.block_on(held(&stage.store)).context("the store can't be read for the proof")?;
        if held.waiting.is_empty() || started.elapsed() > STILL_RUNNING_MAX {
            break held;
        }
        std::thread::sleep(TICK);
    };
    let places = places::read(stage, sent.places.clone()).context("the API can't be asked for the proof")?;
    Ok(Accounts { sender: sender(stage, sent), store, app: got(&stage.app), places })
}

fn sender(stage: &Stage, sent: SentCount) -> DemoSender {
    let shop = &stage.shop;
    let SentCount { genuine, forged, places, kills } = sent;
    let webhooks = &places.webhooks;
    let mut money: BTreeMap<_, _> =
        shop.money().into_iter().map(|(currency, money)| (currency.to_owned(), money)).collect();
    let yen = money.entry("jpy".to_owned()).or_default();
    let paid = places.visitors.iter().filter(|visitor| visitor.intent.is_some());
    yen.charged += paid.map(|visitor| visitor.amount).sum::<i64>();
    let back = places.refunds.iter().filter(|made| !made.is_sent_back);
    yen.refunded += back.map(|made| made.amount).sum::<i64>();
    DemoSender {
        events: shop.events.iter().map(|event| &event.id).chain(&webhooks.events).cloned().collect(),
        requests_planned: shop.requests() + webhooks.planned,
        requests: genuine.statuses.values().sum::<u64>() + genuine.unknown + webhooks.requests,
        acknowledged: [genuine.ledger.acknowledged, webhooks.acknowledged.clone()].concat(),
        sales: shop.sales.clone(),
        orders: places.held().count(),
        money,
        forged: forged.next,
        forged_refused: forged.refusals(),
        forged_accepted: forged.acknowledged(),
        kills,
    }
}

fn got(app: &DemoApp) -> Received {
    let (ledger, counts) = (app.ledger(), app.counts());
    let doubled = ledger.doubled();
    Received {
        effects: ledger.effects().map(|(event, path)| (event.to_owned(), path.to_owned())).collect(),
        doubled: doubled
            .iter()
            .map(|(event, path, by)| format!("{event} at {path} by {}", by.join(", ")))
            .collect(),
        messages: counts.messages,
        repeats: counts.processed - counts.messages,
    }
}

async fn held(url: &StoreUrl) -> anyhow::Result<HeldMoney> {
    let store = sekisho_store::open(url, Access::Read).await?;
    let store = &*store;
    let mut held = HeldMoney::default();
    let events = events_after(store, None).await?;
    for event in &events {
        if event.source == OWN {
            held.announced.push(event.event_id.clone());
        } else if event.source != FETCHED {
            held.events.push((event.event_id.clone(), event.status));
        }
    }
    messages(store, &events, &mut held).await?;
    for (lane, _) in busy_lanes(store).await? {
        held.waiting.push(format!("work in the lane {}", lane.0));
    }
    for letter in store.find_dead(DeadFilter { limit: FIND_MAX, ..DeadFilter::default() }).await? {
        let about = letter.event_id.unwrap_or_default();
        held.dead.push(format!("{about}: {} after {} attempts", letter.death.reason, letter.attempts));
    }
    held.payments = payments(store).await?;
    for sum in store.find_sums(None).await?.iter().filter(|sum| sum.account.starts_with("provider/")) {
        *held.money.entry(sum.currency.clone()).or_default() += sum.amount;
    }
    held.books = queries::check_books(store).await?;
    let check = queries::verify_audit(store).await?.check;
    let faults = check.faults.iter().map(ToString::to_string).collect();
    held.audit = Audit { entries: check.entries, links: check.links, faults };
    Ok(held)
}

/// Where every delivery stands, by the store's account.
async fn messages(store: &dyn Store, events: &[EventSummary], held: &mut HeldMoney) -> anyhow::Result<()> {
    let asked = stream::iter(events.iter().map(|event| store.find_messages(event.seq)));
    let mut answers = asked.buffer_unordered(ASKED_AT_ONCE);
    while let Some(messages) = answers.try_next().await? {
        for message in messages {
            let (id, lane) = (message.job.as_message(), &message.lane.0);
            match message.standing {
                Standing::Waiting(_) | Standing::Running => {
                    held.waiting.push(format!("{id} in the lane {lane}"));
                }
                Standing::Done(..) => held.delivered += u64::from(message.lane.route().is_some()),
                // Among the dead letters.
                Standing::Dead(..) => {}
            }
        }
    }
    Ok(())
}

async fn payments(store: &dyn Store) -> anyhow::Result<Vec<DemoPayment>> {
    let (mut payments, mut before) = (Vec::new(), None);
    loop {
        let filter = StateFilter { before, ..StateFilter::all(Kind::Payment, FIND_MAX) };
        let page = store.find_states(filter).await?;
        let Some(last) = page.last() else { return Ok(payments) };
        before = Some(last.key.id.clone());
        for state in page.iter().filter(|state| !state.is_merged()) {
            let shown = view::payment(state)?;
            let shown = shown.thing;
            payments.push(DemoPayment {
                intents: shown.references.payment_intents.into_iter().collect(),
                status: shown.status,
                received: shown.amount_received,
                refunded: shown.amount_refunded,
            });
        }
    }
}

/// Lanes with work that nobody has in hand, and that is due soon. Timers always wait, and so do the deadlines of orders.
async fn busy_lanes(store: &dyn Store) -> sekisho_store::Result<Vec<(Lane, Time)>> {
    let soon = Time::from_seconds(now_seconds()).plus_ms(SOON_MS);
    let waits = |lane: &Lane| [Lane::timer(), Lane::deadline()].contains(lane);
    let mut lanes = store.lanes().await?;
    lanes.retain(|(lane, due_at)| *due_at < soon && !waits(lane));
    Ok(lanes)
}

async fn events_after(store: &dyn Store, after: Option<Seq>) -> sekisho_store::Result<Vec<EventSummary>> {
    all_events(store, EventFilter { after, ..EventFilter::default() }).await
}

/// Page after page, the oldest first.
async fn all_events(store: &dyn Store, filter: EventFilter) -> sekisho_store::Result<Vec<EventSummary>> {
    let (mut events, mut after) = (Vec::new(), filter.after);
    loop {
        let filter = EventFilter { after, order: Order::OldestFirst, limit: FIND_MAX, ..filter.clone() };
        let page = store.find_events(filter).await?;
        events.extend(page.events);
        let Some(next) = page.next else { return Ok(events) };
        after = Some(next);
    }
}

/// The store while things happen, for the figures.
pub struct Watch {
    url: StoreUrl,
    store: Option<Arc<dyn Store>>,
    seen: HashSet<Seq>,
    /// The newest number at the look before the last: what commits a little later may have a lower number.
    before_last: Option<Seq>,
    last: Option<Seq>,
    pub stored: u64,
    pub announced: u64,
    /// Videos that were asked for: announcements that go to the renderer, too.
    pub videos: u64,
    /// Of what is stored; at most [`FIND_MAX`] are counted.
    pub unsettled: u64,
    idle: bool,
}

impl Watch {
    pub fn new(url: StoreUrl) -> Self {
        let (seen, store) = (HashSet::new(), None);
        let (before_last, last) = (None, None);
        let [stored, announced, videos, unsettled] = [0; 4];
        Self { url, store, seen, before_last, last, stored, announced, videos, unsettled, idle: false }
    }

    /// Nothing waited at the last look.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    pub async fn look(&mut self) {
        self.idle = false;
        if self.try_look().await.is_err() {
            self.store = None;
        }
    }

    async fn try_look(&mut self) -> anyhow::Result<()> {
        let store = match &self.store {
            Some(store) => Arc::clone(store),
            None => sekisho_store::open(&self.url, Access::Read).await?,
        };
        for event in events_after(&*store, self.before_last).await? {
            if self.seen.insert(event.seq) {
                match event.source.as_str() {
                    OWN => self.announced += 1,
                    FETCHED => {}
                    _ => self.stored += 1,
                }
                self.videos += u64::from(event.event_type == "fulfilment.requested");
            }
        }
        self.before_last = self.last;
        self.last = self.seen.iter().max().copied();
        let unsettled =
            EventFilter { received: true, status: Some(Status::Received), ..EventFilter::default() };
        self.unsettled = all_events(&*store, unsettled).await?.len() as u64;
        self.idle = self.unsettled == 0 && busy_lanes(&*store).await?.is_empty();
        self.store = Some(store);
        Ok(())
    }
}
