//! One event as a provider makes it, before it is signed; and who tells what of a history.

use serde_json::Value;

use super::world::{Course, DAY, Shop, World};
use super::{komoju, payjp, paypal, square, stripe, subscription};

/// Before signing.
#[derive(Clone, Debug)]
pub struct Told {
    /// The source it is sent to.
    pub source: &'static str,
    pub id: String,
    pub at: i64,
    pub body: Value,
}

impl Told {
    pub fn new(source: &'static str, id: &str, at: i64, body: Value) -> Self {
        Self { source, id: id.to_owned(), at, body }
    }

    /// For people who look at a history that fails.
    pub fn line(&self) -> String {
        let kind = ["type", "event_type"].into_iter().find_map(|field| self.body[field].as_str());
        format!("{} {}", self.id, kind.unwrap_or("?"))
    }
}

/// Everything the providers tell, in their own order.
pub fn all(world: &World) -> Vec<Told> {
    let mut told: Vec<_> = world
        .purchases
        .iter()
        .flat_map(|purchase| match purchase.shop {
            Shop::Stripe => stripe::tell(purchase),
            Shop::PayPal => paypal::tell(purchase),
            Shop::Komoju => komoju::tell(purchase),
            Shop::PayJp => payjp::tell(purchase),
            Shop::Square => square::tell(purchase),
        })
        .collect();
    let begun = world.now - 55 * DAY;
    told.extend(
        world
            .buyers
            .iter()
            .filter(|buyer| is_used(world, &buyer.id))
            .map(|buyer| subscription::tell_buyer(buyer, begun)),
    );
    told.extend(world.purchases.iter().filter(|one| one.invoiced).flat_map(subscription::tell_invoice));
    for subscribed in &world.subscriptions {
        told.extend(subscription::tell(subscribed, world.now));
    }
    told.sort_by_key(|one| one.at);
    told
}

/// Whether such a thing happens at a provider, and is told.
pub fn can_tell(shop: Shop, course: Course) -> bool {
    use Course::{Authorised, Cancelled, Free, Open, PaidByCapture, PaidByCard, PaidByVoucher, VoucherOpen};
    match shop {
        Shop::Stripe => true,
        Shop::PayPal => matches!(course, Open | Authorised | VoucherOpen | PaidByVoucher | PaidByCard),
        Shop::Komoju => !matches!(course, Free | PaidByCapture),
        Shop::PayJp | Shop::Square => {
            matches!(course, Open | Authorised | Cancelled | PaidByCard | PaidByCapture)
        }
    }
}

fn is_used(world: &World, buyer: &str) -> bool {
    world.subscriptions.iter().any(|one| one.buyer == buyer)
}
