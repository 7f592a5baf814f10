//! Whether everything is well, and what is not: the store, the nodes, the ways out, payments that want a person, and the
//! newest dead letters. A few of each, with where to see the rest.

use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::state::{Kind, State};
use sekisho_store::{DeadFilter, DeadLetter, StateFilter};

use crate::console::page::Visit;
use crate::console::trouble::Trouble;
use crate::types::{Channel, Route};
use crate::view::{self, show, words};

/// Payments and dead letters that are shown.
const FEW: usize = 5;

pub struct Situation {
    /// What is wrong with the store, if anything is.
    pub reason: Option<String>,
    pub store: String,
    pub size: Option<String>,
    pub nodes: usize,
    /// Since when the longest of them lives.
    pub since: Option<Time>,
    pub routes: Vec<Way>,
    pub channels: Vec<Way>,
    pub payments: Vec<PaymentRow>,
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

pub struct PaymentRow {
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

impl Situation {
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
            view::channels(&console.channels, store, visit.at),
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
            routes: routes.into_iter().map(Way::of_route).collect(),
            channels: channels.into_iter().map(Way::of_channel).collect(),
            payments: payments.into_iter().map(PaymentRow::of).collect(),
            dead: dead.into_iter().map(|letter| DeadRow::of(letter, visit.lang)).collect(),
        })
    }
}

impl Way {
    fn of_route(route: Route) -> Self {
        Self {
            name: route.name,
            about: route.url,
            breaker: route.breaker,
            why: String::new(),
            open_until: route.open_until,
            oldest_due_at: route.oldest_due_at,
        }
    }

    fn of_channel(channel: Channel) -> Self {
        Self {
            name: channel.name,
            about: channel.kind,
            breaker: channel.breaker,
            why: channel.why.unwrap_or_default(),
            open_until: channel.open_until,
            oldest_due_at: channel.oldest_due_at,
        }
    }
}

impl PaymentRow {
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
            event_type: letter.event_type.unwrap_or_else(|| words::work(letter.task.kind(), lang).to_owned()),
            reason: letter.death.reason,
            amount: letter.stake.map(|stake| show::money(stake.amount, &stake.currency)),
            at: letter.at,
        }
    }
}
