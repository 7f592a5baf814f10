//! Stripe's lists for reconciliation: 30 days of events, and the objects that money hangs on.

use async_trait::async_trait;
use sekisho_core::Time;
use sekisho_core::time::DAY_MS;

use super::{ApiCall, Client, Collection, Cursor, Paging, StripePage};
use crate::effects::listing::{ListedPage, Lister};

const EVENTS_KEPT_MS: i64 = 30 * DAY_MS;
/// Most types that one question may name.
const TYPES_MAX: usize = 20;

pub struct StripeLister {
    client: Client,
    types: Vec<String>,
}

impl StripeLister {
    /// Lists events of these types, `charge.*` included; of all types when there are too many to name.
    pub fn new(client: Client, types: impl IntoIterator<Item = String>) -> Self {
        let mut types: Vec<String> = types.into_iter().collect();
        if types.len() > TYPES_MAX {
            types.clear();
        }
        Self { client, types }
    }
}

#[async_trait]
impl Lister for StripeLister {
    fn events_kept_ms(&self) -> Option<i64> {
        Some(EVENTS_KEPT_MS)
    }

    /// Newest first: what is made meanwhile comes before the first page and moves none, so no end is named.
    async fn events(
        &self,
        since: Time,
        _until: Time,
        cursor: Option<&str>,
        now: Time,
    ) -> ApiCall<ListedPage> {
        let types: Vec<_> = self.types.iter().map(String::as_str).collect();
        self.client.events(&types, &paging(since, cursor), now).await.map(listing)
    }

    fn objects(&self) -> &'static [&'static str] {
        &["payment_intent", "checkout.session", "refund"]
    }

    async fn list(&self, object: &str, since: Time, cursor: Option<&str>, now: Time) -> ApiCall<ListedPage> {
        let (client, paging) = (&self.client, paging(since, cursor));
        let call = match Collection::of(object) {
            Some(collection) => client.list(collection, &paging, now).await,
            None => client.api.unsent(object, now),
        };
        call.map(listing)
    }
}

fn paging(since: Time, cursor: Option<&str>) -> Paging {
    let cursor = cursor.map_or(Cursor::Newest, |id| Cursor::OlderThan(id.to_owned()));
    Paging { cursor, created_since: Some(since), ..Paging::default() }
}

fn listing(page: StripePage) -> ListedPage {
    let next = match page.older() {
        Some(Cursor::OlderThan(id)) if page.has_more => Some(id),
        _ => None,
    };
    ListedPage { items: page.data, next }
}
