//! What one event says, in our own words: which things it speaks of, and what it adds to what is known of them. Each
//! provider has one file that reads its events into this; nothing after it knows providers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decide::Aggregate;
use super::follow::{Hold, OrderPart, Renewal};
use super::{billing, payment};
use crate::event::Stored;
use crate::id::is_tagged;

/// Whose objects: ids of one provider, account and mode never meet those of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Realm {
    pub provider: &'static str,
    pub account: Option<String>,
    pub livemode: Option<bool>,
}

impl Realm {
    /// Provider, account and mode of a realm that is written as text.
    pub fn parse(text: &str) -> Option<(&str, Option<String>, Option<bool>)> {
        let (provider, rest) = text.split_once('/')?;
        let (account, mode) = rest.rsplit_once('/')?;
        let account = Some(account).filter(|account| *account != "-").map(str::to_owned);
        let livemode = match mode {
            "live" => Some(true),
            "test" => Some(false),
            _ => None,
        };
        Some((provider, account, livemode))
    }

    /// The name of a provider's object.
    pub fn name(&self, id: &str) -> String {
        format!("{self}/{id}")
    }
}

impl std::fmt::Display for Realm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let account = self.account.as_deref().unwrap_or("-");
        write!(f, "{}/{account}/{}", self.provider, mode(self.livemode))
    }
}

pub const fn mode(livemode: Option<bool>) -> &'static str {
    match livemode {
        Some(true) => "live",
        Some(false) => "test",
        None => "any",
    }
}

/// Live comes before test, and that before what has no mode.
pub const MODES: [Option<bool>; 3] = [Some(true), Some(false), None];

/// What people call a payment: a reference, in a mode (`any` where the provider knows none), of a connected account, inside
/// a tenant.
pub fn order_name(
    livemode: Option<bool>,
    account: Option<&str>,
    tenant: Option<&str>,
    reference: &str,
) -> String {
    format!("{}/{}/order/{}/{reference}", mode(livemode), segment(account), segment(tenant))
}

/// What a payment of ours is called by its own id.
pub fn own_name(livemode: Option<bool>, id: &str) -> String {
    format!("{}/id/{id}", mode(livemode))
}

/// A word between slashes, so that it reads one way only; `-` is none.
fn segment(word: Option<&str>) -> Cow<'_, str> {
    match word {
        None => "-".into(),
        Some("-") => "%2D".into(),
        Some(word) if word.contains(['/', '%']) => word.replace('%', "%25").replace('/', "%2F").into(),
        Some(word) => word.into(),
    }
}

/// The name under which a tenant's billing is found.
pub fn billing_name(livemode: Option<bool>, tenant: &str) -> String {
    format!("{}/billing/{tenant}", mode(livemode))
}

/// The name under which billing is found that belongs to no tenant yet.
pub fn customer_name(realm: &str, customer: &str) -> String {
    format!("{realm}/customer/{customer}")
}

/// What an event adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub payment: Option<payment::Facts>,
    pub billing: Option<billing::BillingFacts>,
    /// What is said of an order beside its money.
    pub order: Vec<OrderPart>,
}

impl Reading {
    /// The places that it asks for.
    pub fn hold(&self) -> Option<&Hold> {
        self.order.iter().find_map(|part| if let OrderPart::Hold(hold) = part { Some(&**hold) } else { None })
    }

    /// The places that are to be held longer, or again.
    pub fn renewal(&self) -> Option<&Renewal> {
        self.order
            .iter()
            .find_map(|part| if let OrderPart::Renewal(renewal) = part { Some(renewal) } else { None })
    }
}

/// Why an event that should be understood is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableEvent {
    #[error("its body can't be read as what its type promises: {0}")]
    Body(String),
    #[error("{0} is no amount")]
    Amount(String),
    #[error("{0:?} is no currency")]
    Currency(String),
}

/// Where an event says what it is for: fields in the order they are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    pub order: Vec<String>,
    /// What may be something else than an order: it counts only where the app posted an order of that reference.
    pub order_if_posted: Vec<String>,
    pub tenant: Vec<String>,
    pub customer: Vec<String>,
    pub purpose: Vec<String>,
}

impl Default for References {
    fn default() -> Self {
        let list = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect();
        Self {
            order: list(&[
                "metadata.order_id",
                "custom_id",
                "invoice_id",
                "external_order_num",
                "reference_id",
                "orderId",
            ]),
            order_if_posted: list(&["client_reference_id"]),
            tenant: list(&["metadata.tenant_id", "metadata.tenant"]),
            customer: list(&["metadata.customer_id", "metadata.customer"]),
            purpose: list(&["metadata.purpose"]),
        }
    }
}

/// What the merchant wrote on a provider's object: `metadata.order_id`, `client_reference_id`, …
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(pub BTreeMap<String, String>);

/// Longer references are not taken for one.
const REFERENCE_BYTES_MAX: usize = 200;

impl Labels {
    /// The first of these fields that says something.
    pub fn first(&self, fields: &[String]) -> Option<String> {
        let found = fields.iter().filter_map(|field| self.0.get(field)).map(|value| value.trim());
        let mut usable = found.filter(|value| {
            !value.is_empty() && value.len() <= REFERENCE_BYTES_MAX && !value.contains(char::is_control)
        });
        usable.next().map(str::to_owned)
    }

    /// Takes over which order of ours is paid. Our own id binds as a provider's does.
    pub fn order(&self, references: &References, facts: &mut payment::Facts) {
        let order = self.first(&references.order);
        let maybe = self.first(&references.order_if_posted);
        let own = order.iter().chain(&maybe).filter(|text| is_tagged(text, payment::Facts::TAG));
        let own: Vec<String> = own.map(|id| own_name(facts.livemode, id)).collect();
        facts.names.extend(own);
        facts.orders.extend(order);
        facts.client_references.extend(maybe);
    }
}

/// What one object of a provider says of a payment.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Every id it mentions, its own first.
    pub ids: Vec<String>,
    pub labels: Labels,
    pub facts: payment::Facts,
}

impl Statement {
    pub fn into_reading(self, provider: &'static str, event: &Stored, references: &References) -> Reading {
        let Self { ids, labels, mut facts } = self;
        let realm = Realm { provider, account: event.account.clone(), livemode: event.livemode };
        let ids = ids.iter().filter(|id| !id.is_empty());
        facts.names = ids.map(|id| realm.name(id)).collect();
        facts.livemode = event.livemode;
        labels.order(references, &mut facts);
        facts.tenants.extend(labels.first(&references.tenant));
        facts.customers.extend(labels.first(&references.customer));
        facts.purposes.extend(labels.first(&references.purpose));
        facts.realms.insert(realm.to_string());
        Reading { payment: Some(facts), ..Reading::default() }
    }
}

/// An object without a name can't be told from the next one.
pub(super) fn named(id: String) -> Result<String, UnreadableEvent> {
    if id.is_empty() { Err(UnreadableEvent::Body("an object has no id".to_owned())) } else { Ok(id) }
}

pub(super) fn parse<'e, T: Deserialize<'e>>(object: &'e RawValue) -> Result<T, UnreadableEvent> {
    serde_json::from_str(object.get()).map_err(unreadable)
}

pub(super) fn unreadable(error: serde_json::Error) -> UnreadableEvent {
    UnreadableEvent::Body(error.to_string())
}
