//! Slots: made by the app, and changed as long as what is taken fits.

use std::collections::BTreeMap;

use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::settlement::follow::{OrderPolicy, view};
use sekisho_core::slot::{Block, CAPACITY_MAX, Slot, SlotName, TakenPlaces, block_key, is_slot_id};
use sekisho_core::state::{Index, Key, Loaded, Wanted, Write};
use sekisho_store::Store;
use serde_json::json;

use super::request::{Answered, OnceKey};
use super::reservation::{SLOT_ID, is_text};
use crate::refusal::{Refusal, Result};
use crate::transact::{Decision, transact_in_steps};
use crate::types::{FieldError, NewSlot};

const TITLE_MAX: usize = 200;

/// Makes a slot, or changes it.
pub async fn set_slot(
    store: &dyn Store,
    policy: &OrderPolicy,
    body: NewSlot,
    request: Option<&OnceKey>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let name = check(&body, actor)?;
    let key = name.key();
    let mut wanted = Wanted::keys([key.clone()]);
    wanted.extend(Wanted::keys(request.map(OnceKey::key)));
    let set = transact_in_steps(store, wanted.clone(), |loaded: &Loaded| -> Result<_> {
        if let Some(answered) = OnceKey::repeated(request, loaded)? {
            return Ok(Decision::Write(ChangeSet::nothing(actor.at), answered));
        }
        let known = loaded.read::<Slot>(&key)?;
        let before = known.as_ref().map(|known| known.value.clone());
        let slot = Slot {
            capacity: body.capacity.or(before.as_ref().map(|slot| slot.capacity)).unwrap_or(1),
            starts_at: body.starts_at.or(before.as_ref().and_then(|slot| slot.starts_at)),
            title: body.title.clone().or_else(|| before.as_ref().and_then(|slot| slot.title.clone())),
        };
        // Every block of then and of now: whoever takes places meanwhile meets one of them.
        let count = slot.blocks().max(before.as_ref().map_or(0, Slot::blocks));
        let mut more = Wanted::default();
        (0..count).for_each(|n| more.want(block_key(&key, n), &wanted));
        if !more.is_empty() {
            wanted.extend(more.clone());
            return Ok(Decision::Load(more));
        }
        let blocks = read_blocks(loaded, &key, count)?;
        let taken = taken(&blocks, policy, actor);
        check_capacity(&slot, &blocks, policy, actor)?;
        let index = Index { tenant: name.tenant.clone(), livemode: Some(name.livemode), ..Index::default() };
        let version = known.map_or(0, |known| known.version);
        let mut writes = vec![Write { index: index.clone(), ..Write::of(&key, version, &slot) }];
        if before.as_ref().is_some_and(|before| before.capacity > slot.capacity) {
            for (n, block) in &blocks {
                let key = block_key(&key, *n);
                writes.push(Write { index: index.clone(), ..Write::of(&key, loaded.version(&key), block) });
            }
        }
        let answer = view::slot(&key.id, &slot, taken);
        writes.extend(request.map(|request| request.write(&answer)));
        let details = json!({ "before": before, "after": slot });
        let entry = actor.entry(name.tenant.as_deref(), "slot.set", ("slot", &key.id), &details);
        let set = ChangeSet { writes, audit: vec![entry], ..ChangeSet::nothing(actor.at) };
        Ok(Decision::Write(set, Answered { answer, repeated: false }))
    });
    set.await.map_err(Refusal::from)
}

fn check(body: &NewSlot, actor: &Actor<'_>) -> Result<SlotName> {
    let mut wrong = Vec::new();
    if !is_slot_id(&body.id) {
        wrong.push(FieldError::new("id", SLOT_ID));
    }
    if body.capacity.is_some_and(|capacity| !(1..=CAPACITY_MAX).contains(&capacity)) {
        wrong.push(FieldError::new("capacity", format!("expected 1 to {CAPACITY_MAX} places")));
    }
    if body.title.as_deref().is_some_and(|title| !is_text(title, TITLE_MAX)) {
        wrong.push(FieldError::new("title", format!("expected 1 to {TITLE_MAX} characters")));
    }
    if !wrong.is_empty() {
        return Err(Refusal::Fields(wrong));
    }
    let tenant = body.tenant.clone().or_else(|| actor.tenant.map(str::to_owned));
    actor.check_tenant(tenant.as_deref())?;
    Ok(SlotName { livemode: body.livemode.unwrap_or(true), tenant, id: body.id.clone() })
}

fn read_blocks(loaded: &Loaded, slot: &Key, count: u32) -> Result<BTreeMap<u32, Block>> {
    let read = |n: u32| {
        let block = loaded.read::<Block>(&block_key(slot, n))?;
        Ok((n, block.map(|block| block.value).unwrap_or_default()))
    };
    (0..count).map(read).collect()
}

fn taken(blocks: &BTreeMap<u32, Block>, policy: &OrderPolicy, actor: &Actor<'_>) -> TakenPlaces {
    blocks
        .values()
        .map(|block| block.taken(actor.at, policy.grace_ms))
        .fold(TakenPlaces::default(), TakenPlaces::plus)
}

/// Whether what is taken fits, block by block: places are not moved between them.
fn check_capacity(
    slot: &Slot,
    blocks: &BTreeMap<u32, Block>,
    policy: &OrderPolicy,
    actor: &Actor<'_>,
) -> Result<()> {
    let taken_of = |block: &Block| block.taken(actor.at, policy.grace_ms).all();
    if blocks.iter().all(|(n, block)| taken_of(block) <= slot.places_of(*n)) {
        return Ok(());
    }
    let least = blocks.iter().rfind(|(_, block)| taken_of(block) > 0);
    let least = least.map_or(0, |(n, block)| n * sekisho_core::slot::BLOCK_PLACES + taken_of(block));
    Err(Refusal::Conflict(format!("places are taken: its capacity can't be below {least} now")))
}
