//! The link that opens an order's page.

use sekisho_core::Time;
use sekisho_core::fulfilment::FulfilmentFacts;
use sekisho_core::link::LinkedOrder;
use sekisho_core::reservation::ReservationFacts;
use sekisho_core::settlement::follow::{OrderPolicy, view};
use sekisho_core::state::{Key, Kind};
use sekisho_store::{Result, Store};

use super::states::load_typed;
use crate::types::CustomerLink;

/// A link to the page of a reservation, or of a fulfilment without one, and whose order it is. It is good for
/// `[pages] links` from now at least, however old the order is.
pub async fn order_link(
    store: &dyn Store,
    policy: &OrderPolicy,
    id: &str,
    at: Time,
) -> Result<Option<(CustomerLink, Option<String>)>> {
    let found = match LinkedOrder::of(id) {
        None => None,
        Some(LinkedOrder::Reservation(_)) => {
            let facts = load_typed::<ReservationFacts>(store, &Key::new(Kind::Reservation, id)).await?;
            facts.map(|facts| (facts.links, view::link_from(&facts), facts.ours.tenant))
        }
        Some(LinkedOrder::Fulfilment(_)) => {
            let facts = load_typed::<FulfilmentFacts>(store, &Key::new(Kind::Fulfilment, id)).await?;
            facts.map(|facts| (facts.links, facts.ours.at, facts.ours.tenant))
        }
    };
    Ok(found.map(|(generation, from, tenant)| (shown(policy, id, generation, from.max(at)), tenant)))
}

fn shown(policy: &OrderPolicy, id: &str, generation: u32, from: Time) -> CustomerLink {
    CustomerLink {
        order: id.to_owned(),
        object: "order_link".to_owned(),
        url: policy.links.page_of(id, generation, from),
        expires_at: from.plus_ms(policy.links.lasts_ms),
        generation,
    }
}
