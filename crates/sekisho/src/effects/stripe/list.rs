//! Lists: what is asked for, and one page of the answer.

use sekisho_core::Time;
use serde::Deserialize;

use super::ApiObject;

/// Most objects Stripe puts on a page.
const LIMIT_MAX: u8 = 100;

/// Where a page begins. Lists are newest first, and so is every page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cursor {
    #[default]
    Newest,
    /// Continues after the last object of a page.
    OlderThan(String),
    /// The page next to this object in the other direction, forward in time.
    NewerThan(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    pub cursor: Cursor,
    /// 1 to 100.
    pub limit: u8,
    /// Nothing created before this second.
    pub created_since: Option<Time>,
}

impl Default for Paging {
    fn default() -> Self {
        Self { cursor: Cursor::Newest, limit: LIMIT_MAX, created_since: None }
    }
}

impl Paging {
    pub(super) fn query<'a>(&self, mut query: Vec<(&'a str, String)>) -> Vec<(&'a str, String)> {
        query.push(("limit", self.limit.to_string()));
        match &self.cursor {
            Cursor::Newest => {}
            Cursor::OlderThan(id) => query.push(("starting_after", id.clone())),
            Cursor::NewerThan(id) => query.push(("ending_before", id.clone())),
        }
        if let Some(since) = self.created_since {
            query.push(("created[gte]", since.seconds().to_string()));
        }
        query
    }
}

/// Whose refunds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundsOf {
    PaymentIntent(String),
    Charge(String),
}

impl RefundsOf {
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::PaymentIntent(id) => vec![("payment_intent", id.clone())],
            Self::Charge(id) => vec![("charge", id.clone())],
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct StripePage {
    /// Newest first.
    pub data: Vec<ApiObject>,
    /// There are more in the direction of the cursor.
    pub has_more: bool,
}

impl StripePage {
    /// Where the list goes on towards the past.
    pub fn older(&self) -> Option<Cursor> {
        self.data.last().and_then(id).map(Cursor::OlderThan)
    }

    /// Where the list goes on towards the present.
    pub fn newer(&self) -> Option<Cursor> {
        self.data.first().and_then(id).map(Cursor::NewerThan)
    }
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

fn id(object: &ApiObject) -> Option<String> {
    serde_json::from_str::<Named>(object.get()).ok().map(|named| named.id)
}
