//! What a provider lists of its own events and objects. Each provider that can be asked has its own [`Lister`]; what the
//! lists mean is the core's business.

use async_trait::async_trait;
use sekisho_core::Time;
use serde_json::value::RawValue;

use super::call::ApiCall;

/// One page of what a provider lists, newest first or oldest first as it likes.
#[derive(Debug)]
pub struct ListedPage {
    pub items: Vec<Box<RawValue>>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<String>,
}

#[async_trait]
pub trait Lister: Send + Sync {
    /// Whether the provider has a list of events, and how far back it goes.
    fn events_kept_ms(&self) -> Option<i64>;

    async fn events(&self, since: Time, until: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage>;

    /// Kinds of objects that can be listed, such as `payment_intent`.
    fn objects(&self) -> &'static [&'static str];

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage>;
}
