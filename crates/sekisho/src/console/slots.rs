//! Slots: places that can be sold once, how many are held, sold and free, and who has them.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::reservation::ReservationFacts;
use sekisho_core::slot::{BLOCK_PLACES, CAPACITY_MAX, Slot, SlotName};
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{Error, StateFilter};

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::{Resource, Trouble};
use crate::acts;
use crate::queries::{self, SlotClaim};
use crate::types::{self, NewSlot};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/slots",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/slots/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/slots/{id}/capacity",
        needs: OPERATOR,
        run: |visit| Box::pin(set_capacity(visit)),
    },
];

/// Slots on a page.
const PAGE: usize = 50;
/// Blocks that are read for one page: of larger slots the places are not counted here.
const BLOCKS_MAX: u32 = 200;
/// Reservations that are listed of one slot.
const HOLDERS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "console/slots.html")]
struct SlotsPage {
    f: Frame,
    tenant: String,
    mode: String,
    rows: Vec<SlotRow>,
    next: Option<String>,
}

struct SlotRow {
    href: String,
    id: String,
    title: String,
    starts_at: Option<Time>,
    capacity: u32,
    /// Held, sold and free; none of a slot that is too large to count here.
    counted: Option<(u32, u32, u32)>,
    tenant: String,
    is_test: bool,
}

#[derive(Template)]
#[template(path = "console/slot.html")]
struct SlotPage {
    f: Frame,
    slot: SlotRow,
    key: String,
    holders: Vec<HolderRow>,
    /// More have places than are listed.
    is_cut: bool,
    capacity_max: u32,
    counted_max: u32,
}

struct HolderRow {
    id: String,
    reference: String,
    customer: String,
    places: u32,
    /// Of a hold.
    until: Option<Time>,
}

/// The page of a slot: one id may stand for several, by mode and tenant.
pub fn address(name: &SlotName) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let mut query = form_urlencoded::Serializer::new(String::new());
    if !name.livemode {
        query.append_pair("mode", "test");
    }
    if let Some(tenant) = &name.tenant {
        query.append_pair("tenant", tenant);
    }
    let query = query.finish();
    let path = format!("/console/slots/{}", encoded(&name.id).replace('+', "%20"));
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

impl SlotRow {
    fn of(name: SlotName, slot: Slot, counted: Option<&types::Slot>) -> Self {
        Self {
            href: address(&name),
            id: name.id,
            title: slot.title.unwrap_or_default(),
            starts_at: slot.starts_at,
            capacity: slot.capacity,
            counted: counted.map(|one| (one.held, one.sold, one.free)),
            tenant: name.tenant.unwrap_or_default(),
            is_test: !name.livemode,
        }
    }
}

/// Counts those of them that fit into one page's work.
async fn rows(visit: &Visit, states: Vec<State>) -> Result<Vec<SlotRow>, Trouble> {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let (mut heads, mut small, mut left) = (Vec::new(), Vec::new(), BLOCKS_MAX);
    for state in states {
        let slot: Slot = serde_json::from_str(&state.facts).map_err(Error::corrupt)?;
        let Some(name) = SlotName::parse(&state.key.id) else { continue };
        let is_counted = slot.blocks() <= left;
        if is_counted {
            left -= slot.blocks();
            small.push(state);
        }
        heads.push((name, slot, is_counted));
    }
    let mut counted = queries::slots(store, policy, &small, visit.at).await?.into_iter();
    let row = |(name, slot, is_counted): (SlotName, Slot, bool)| {
        let counted = if is_counted { counted.next() } else { None };
        SlotRow::of(name, slot, counted.as_ref())
    };
    Ok(heads.into_iter().map(row).collect())
}

async fn list(visit: Visit) -> Answer {
    let filter = StateFilter {
        tenant: visit.text("tenant"),
        livemode: visit.livemode(),
        before: visit.text("before"),
        ..StateFilter::all(Kind::Slot, PAGE)
    };
    let states = visit.console.store.find_states(filter).await?;
    let next = states.last().filter(|_| states.len() == PAGE).map(|last| last.key.id.clone());
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    Reply::page(&SlotsPage {
        f: visit.frame("slots", visit.lang.t("Slots", "枠")),
        tenant: text("tenant"),
        mode: text("mode"),
        rows: rows(&visit, states).await?,
        next,
    })
}

/// Which slot the address means.
fn named(visit: &Visit, value: impl Fn(&str) -> Option<String>) -> SlotName {
    let livemode = value("mode").as_deref() != Some("test");
    SlotName { livemode, tenant: value("tenant"), id: visit.id.clone() }
}

async fn show(visit: Visit) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let key = named(&visit, |name| visit.text(name)).key();
    let state = queries::load(store, &key).await?;
    let state = state.ok_or_else(|| Trouble::unknown(Resource::Slot, &visit.id))?;
    let slot: Slot = serde_json::from_str(&state.facts).map_err(Error::corrupt)?;
    let mut claims =
        queries::slot_claims(store, policy, &key, slot.blocks().min(BLOCKS_MAX), visit.at).await?;
    let is_cut = claims.len() > HOLDERS_MAX || slot.blocks() > BLOCKS_MAX;
    claims.truncate(HOLDERS_MAX);
    let keys = claims.iter().map(|claim| Key::new(Kind::Reservation, &*claim.reservation)).collect();
    let loaded = if claims.is_empty() { None } else { Some(store.load(Vec::new(), keys).await?) };
    let holder = |claim: SlotClaim| {
        let key = Key::new(Kind::Reservation, &*claim.reservation);
        let state = loaded.as_ref().and_then(|loaded| loaded.states.get(&key));
        let facts = state.and_then(|state| serde_json::from_str::<ReservationFacts>(&state.facts).ok());
        let ours = facts.map(|facts| facts.ours).unwrap_or_default();
        HolderRow {
            id: claim.reservation,
            reference: ours.reference.unwrap_or_default(),
            customer: ours.customer.unwrap_or_default(),
            places: claim.places,
            until: (!claim.sold).then_some(claim.until),
        }
    };
    let holders = claims.into_iter().map(holder).collect();
    let slot = rows(&visit, vec![state]).await?.pop();
    Reply::page(&SlotPage {
        f: visit.frame("slots", visit.lang.t("Slot", "枠")),
        slot: slot.ok_or_else(|| Trouble::unknown(Resource::Slot, &visit.id))?,
        key: key.id,
        holders,
        is_cut,
        capacity_max: CAPACITY_MAX,
        counted_max: BLOCKS_MAX * BLOCK_PLACES,
    })
}

async fn set_capacity(visit: Visit) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let name = named(&visit, |name| visit.field(name).map(str::to_owned));
    if queries::load(store, &name.key()).await?.is_none() {
        return Err(Trouble::unknown(Resource::Slot, &visit.id));
    }
    let home = address(&name);
    let Some(capacity) = visit.field("capacity").and_then(|text| text.parse().ok()) else {
        return Reply::failed(
            home,
            visit.lang.t("Type a number of places.", "席数を数字で入力してください。"),
        );
    };
    let order = NewSlot {
        id: name.id,
        capacity: Some(capacity),
        starts_at: None,
        title: None,
        livemode: Some(name.livemode),
        tenant: name.tenant,
    };
    let set = acts::set_slot(store, policy, order, None, &visit.actor()).await;
    visit.after(&home, set, ("The capacity was changed.", "席数を変更しました。"))
}
