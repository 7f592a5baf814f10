//! Events that a provider lists in its own API. Their proof is the way they came: TLS to the provider, opened by our key.

use std::sync::LazyLock;

use http::{HeaderMap, Method};

use super::{Request, RequestReading, Scheme, Unusable, Verified, usable};
use crate::event::Event;
use crate::time::Time;

/// A list has no request of its own.
static GET: Method = Method::GET;
static NO_HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

/// Reads one listed event.
///
/// Invariant: `event` is an answer of the provider's API, read over TLS with our own key. Nothing else may be handed in:
/// no signature is asked for here.
pub fn read_listed<'r>(scheme: &dyn Scheme, event: &'r str, now: Time) -> Result<Event<'r>, Unusable> {
    let request =
        Request { method: &GET, headers: &NO_HEADERS, query: "", body: event.as_bytes(), certificate: None };
    let reading = scheme.read_listed(&Verified { request, now })?;
    match usable(reading)? {
        RequestReading::Events(mut events) if events.len() == 1 => Ok(events.remove(0)),
        RequestReading::Events(_) | RequestReading::Handshake(_) => {
            Err(Unusable("the list holds something else than an event".into()))
        }
    }
}
