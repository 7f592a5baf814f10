//! Whether everything is well, and what is not: the store, the nodes, the ways out, payments that want a person, and the
//! newest dead letters. A few of each, with where to see the rest.

use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::state::{Kind, State};
use sekisho_store::{DeadFilter, DeadLetter, StateFilter};
use serde_json::Value;

use crate::console::page::Visit;
use crate::console::trouble::Trouble;
use crate::view::{self, show, words};

/// Payments and dead letters that are shown.
const FEW: usize = 5;

pub struct Standing {
    /// What is wrong with the store, if anything is.
    pub reason: Option<String>,
    pub store: String,
    pub size: Option<String>,
    pub nodes: usize,
    /// Since when the longest of them lives.
    pub since: Option<Time>,
    pub routes: Vec<Way>,
    pub channels: Vec<Way>,
    pub payments: Vec<Payment>,
    pub dead: Vec<DeadRow>,
}

/// A destination or a channel.
pub struct Way {
    pub name: String,
    /// Its address, or its kind.
    pub about: String,
    pub breaker: String,
    pub why: String,
    pub open_until: Option<Time>,
    /// When its oldest work that waits is, or was, due.
    pub oldest_due_at: Option<Time>,
}

pub struct Payment {
    pub id: String,
    pub amount: Option<String>,
    pub tenant: Option<String>,
    pub attention: String,
}

pub struct DeadRow {
    pub id: String,
    pub event_type: String,
    pub reason: String,
    pub amount: Option<String>,
    pub at: Time,
}

impl Standing {
    pub async fn of(visit: &Visit) -> Result<Self, Trouble> {
        let console = &visit.console;
        let store = &*console.store;
        let attention =
            StateFilter { attention: Some(String::new()), ..StateFilter::all(Kind::Payment, FEW) };
        let newest = DeadFilter { limit: FEW, ..DeadFilter::default() };
        let (described, nodes, routes, channels, payments, dead) = tokio::try_join!(
            store.describe(),
            store.find_nodes(),
            view::routes(&console.places, store),
            view::channels(&console.outlets, store, visit.at),
            store.find_states(attention),
            store.find_dead(newest),
        )?;
        let said =
            |name: &str| described.iter().find(|(known, _)| known == name).map(|(_, said)| said.clone());
        Ok(Self {
            reason: console.health.unready().map(|why| why.detail),
            store: said("store").unwrap_or_default(),
            size: said("size"),
            nodes: nodes.len(),
            since: nodes.iter().map(|node| node.joined_at).min(),
            routes: routes.iter().map(|route| Way::of(route, "url")).collect(),
            channels: channels.iter().map(|channel| Way::of(channel, "kind")).collect(),
            payments: payments.into_iter().map(Payment::of).collect(),
            dead: dead.into_iter().map(|letter| DeadRow::of(letter, visit.lang)).collect(),
        })
    }
}

impl Way {
    fn of(shown: &Value, about: &str) -> Self {
        let text = |name: &str| shown[name].as_str().unwrap_or_default().to_owned();
        let time = |name: &str| shown[name].as_str().and_then(Time::parse_rfc3339);
        Self {
            name: text("name"),
            about: text(about),
            breaker: text("breaker"),
            why: text("why"),
            open_until: time("open_until"),
            oldest_due_at: time("oldest_due_at"),
        }
    }
}

impl Payment {
    fn of(state: State) -> Self {
        let amount = state.index.amount.zip(state.index.currency);
        Self {
            id: state.key.id,
            amount: amount.map(|(amount, currency)| show::money(amount, &currency)),
            tenant: state.index.tenant,
            attention: state.index.attention.unwrap_or_default(),
        }
    }
}

impl DeadRow {
    fn of(letter: DeadLetter, lang: Language) -> Self {
        Self {
            id: letter.job.as_message().to_string(),
            event_type: letter.event_type.unwrap_or_else(|| words::work(letter.kind, lang).to_owned()),
            reason: letter.death.reason,
            amount: letter.stake.map(|stake| show::money(stake.amount, &stake.currency)),
            at: letter.at,
        }
    }
}
