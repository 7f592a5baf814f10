//! Whose order an event is about: where its customer is reached, in which language, and which page is theirs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compose::Named;
use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::reservation::{ReservationFacts, TAG};
use crate::settlement::follow::LinkPolicy;
use crate::settlement::payment::{self, Derived};
use crate::slot::Slot;
use crate::state::{Key, Kind, Loaded};
use crate::time::Time;

/// What is known of an order beside the event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderParty {
    /// Given with the order itself.
    pub address: Option<MailAddress>,
    pub language: Option<Language>,
    /// What its slot is called.
    pub title: Option<String>,
    /// As it stands now, where the event is about something else.
    pub payment: Option<Value>,
    pub page: Option<OrderPage>,
}

/// The page of an order, as it is kept in a notice. The link itself is a key, so it is made when the notice is sent and kept
/// nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPage {
    pub id: String,
    pub generation: u32,
    /// From when on the link lasts its time.
    pub from: Time,
}

impl OrderPage {
    /// Puts the link into what a template is filled with.
    pub fn link(data: &mut Value, links: &LinkPolicy) {
        let page = serde_json::from_value::<Option<Self>>(data["order_page"].clone()).ok().flatten();
        let Some(page) = page else { return };
        let url = links.page_of(&page.id, page.generation, page.from);
        if data["fulfilment"].is_object() {
            data["fulfilment"]["link"] = url.clone().into();
        }
        data["order_url"] = url.into();
    }
}

impl OrderParty {
    pub fn of(named: &Named, known: &Loaded, payment: Option<&payment::Facts>) -> Self {
        let shown = named.payment.as_ref().zip(payment).map(|(id, facts)| {
            let mut shown = payment::view(id, facts, &Derived::of(facts));
            shown.as_object_mut().map(|shown| shown.remove("facts"));
            shown
        });
        let reserved = reservation(named, known);
        let made = named.fulfilment.as_ref().map(|id| OrderPage {
            id: id.clone(),
            generation: 0,
            from: payment.and_then(|facts| facts.paid_at).unwrap_or_default(),
        });
        let Some((id, facts)) = reserved else {
            return Self {
                payment: shown,
                page: made.filter(|page| page.from > Time::default()),
                ..Self::default()
            };
        };
        let from = facts.ours.starts_at.map_or(facts.ours.at, |starts_at| starts_at.max(facts.ours.at));
        Self {
            title: read::<Slot>(known, &Key::new(Kind::Slot, &*facts.ours.slot)).and_then(|slot| slot.title),
            address: facts.ours.email,
            language: facts.ours.language,
            payment: shown,
            page: Some(OrderPage { id, generation: facts.links, from }),
        }
    }
}

/// What must be loaded next.
pub fn led_to(named: &Named, known: &Loaded) -> Vec<Key> {
    let Some((_, facts)) = reservation(named, known) else {
        let id = member(named, known);
        return id.into_iter().map(|id| Key::new(Kind::Reservation, id)).collect();
    };
    vec![Key::new(Kind::Slot, facts.ours.slot)]
}

fn reservation(named: &Named, known: &Loaded) -> Option<(String, ReservationFacts)> {
    let id = named.reservation.clone().or_else(|| member(named, known))?;
    let facts = read(known, &Key::new(Kind::Reservation, &*id))?;
    Some((id, facts))
}

/// The reservation that a payment is for.
fn member(named: &Named, known: &Loaded) -> Option<String> {
    let state = known.states.get(&named.payment_key()?)?;
    let facts = payment::Facts::parse(&state.facts).ok()?;
    facts.members.into_iter().find(|id| id.starts_with(TAG))
}

fn read<T: serde::de::DeserializeOwned>(known: &Loaded, key: &Key) -> Option<T> {
    serde_json::from_str(&known.states.get(key)?.facts).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::link::LinkKeys;
    use crate::secret::Secret;

    #[test]
    fn f8_the_link_of_an_order_is_made_when_its_notice_is_sent() {
        let keys = LinkKeys::new(vec![Secret::new("a key of thirty-two letters, or more")]);
        let links = LinkPolicy {
            keys,
            pages: Some("https://pay.example.jp".into()),
            lasts_ms: 86_400_000,
            ..LinkPolicy::default()
        };
        let id = crate::id::Seq::from_i64(7).tagged(TAG);
        let page = OrderPage { id, generation: 0, from: Time::from_ms(1_780_000_000_000) };
        let kept = json!({ "order_page": page, "fulfilment": { "id": "ful_1" } });
        assert!(!kept.to_string().contains("/o/"));
        let mut data = kept.clone();
        OrderPage::link(&mut data, &links);
        assert!(data["order_url"].as_str().is_some_and(|url| url.starts_with("https://pay.example.jp/o/")));
        assert_eq!(data["fulfilment"]["link"], data["order_url"]);
        let mut without = kept;
        OrderPage::link(&mut without, &LinkPolicy::default());
        assert_eq!(without["order_url"], Value::Null);
    }
}
