//! How a store is, for whoever looks after it: how its database is set up, and what waits for a person.

use std::collections::BTreeMap;

use sekisho_core::alert::announce::subject_name;
use sekisho_core::alert::{AlertName, AlertPhase, AlertState};
use sekisho_core::job::Lane;
use sekisho_core::queue::Breaker;
use sekisho_core::reconcile::SourceRegister;
use sekisho_core::state::{Key, Kind};
use sekisho_store::{DeadFilter, FIND_MAX, Result, StateFilter, Store};

pub struct Condition {
    /// What the database says of itself, by name.
    pub settings: Vec<(String, String)>,
    pub dead: Option<DeadLettersWaiting>,
    pub paused: Vec<PausedChannel>,
    /// How sources compare with their providers, of those that were asked for and compared.
    pub registers: BTreeMap<String, SourceRegister>,
    /// Whether places are sold, and whether something is made for customers.
    pub has_slots: bool,
    pub has_fulfilments: bool,
    /// Alerts that fire, in words.
    pub firing: Vec<String>,
}

pub struct DeadLettersWaiting {
    pub count: usize,
    /// There may be more than were counted.
    pub is_more: bool,
    pub newest_error: String,
}

pub struct PausedChannel {
    pub name: String,
    pub why: Option<String>,
}

/// What can't be read of the work is left out: the rest is worth telling all the same.
pub async fn condition(store: &dyn Store, sources: &[&str]) -> Result<Condition> {
    Ok(Condition {
        settings: store.describe().await?,
        dead: dead(store).await.unwrap_or_default(),
        paused: paused(store).await.unwrap_or_default(),
        registers: registers(store, sources).await.unwrap_or_default(),
        has_slots: has_any(store, Kind::Slot).await.unwrap_or_default(),
        has_fulfilments: has_any(store, Kind::Fulfilment).await.unwrap_or_default(),
        firing: firing(store).await.unwrap_or_default(),
    })
}

async fn has_any(store: &dyn Store, kind: Kind) -> Result<bool> {
    Ok(!store.find_states(StateFilter::all(kind, 1)).await?.is_empty())
}

async fn dead(store: &dyn Store) -> Result<Option<DeadLettersWaiting>> {
    let letters = store.find_dead(DeadFilter { limit: FIND_MAX, ..DeadFilter::default() }).await?;
    Ok(letters.first().map(|newest| DeadLettersWaiting {
        count: letters.len(),
        is_more: letters.len() == FIND_MAX,
        newest_error: newest.death.error.clone(),
    }))
}

async fn paused(store: &dyn Store) -> Result<Vec<PausedChannel>> {
    let states = store.find_states(StateFilter::all(Kind::Breaker, FIND_MAX)).await?;
    let paused = states.into_iter().filter_map(|state| {
        let lane = Lane(state.key.id.into());
        let breaker = serde_json::from_str::<Breaker>(&state.facts).unwrap_or_default();
        let name = lane.channel().filter(|_| breaker.is_open())?.to_owned();
        Some(PausedChannel { name, why: breaker.why().map(str::to_owned) })
    });
    Ok(paused.collect())
}

async fn firing(store: &dyn Store) -> Result<Vec<String>> {
    let states = super::alert_states(store).await?.into_iter();
    let firing = states.filter(|(_, state)| state.phase == AlertPhase::Firing);
    let words = |((alert, subject), state): ((AlertName, String), AlertState)| {
        let rule = alert.rule();
        format!("{} ({})", rule.title.0.replace("{}", &subject_name(rule, &subject)), state.value)
    };
    Ok(firing.map(words).collect())
}

async fn registers(store: &dyn Store, sources: &[&str]) -> Result<BTreeMap<String, SourceRegister>> {
    let keys: Vec<_> = sources.iter().map(|name| SourceRegister::key(name)).collect();
    let loaded = store.load(Vec::new(), keys.clone()).await?;
    let read = |key: Key| Some((key.id.clone(), loaded.read::<SourceRegister>(&key).ok().flatten()?.value));
    Ok(keys.into_iter().filter_map(read).collect())
}
