//! A tenant's billing that a person deleted: what is left of it, and when it is one again.
//!
//! Who deletes a record deletes what was subscribed to by then, so whatever is still said of those subscriptions is kept
//! and shown to nobody; a subscription that is new brings the record back. Both follow from the facts alone, so it does
//! not matter whether an event came before its record was deleted or after.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::BillingFacts;
use crate::settlement::decide::Aggregate;
use crate::state::{State, Write};
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedBilling {
    pub at: Time,
    pub by: String,
    /// What was subscribed to by then.
    pub subscriptions: BTreeSet<String>,
}

impl DeletedBilling {
    pub(super) fn join(own: &mut Option<Self>, other: Option<&Self>) {
        let Some(other) = other else { return };
        match own {
            None => *own = Some(other.clone()),
            Some(own) => {
                own.subscriptions.extend(other.subscriptions.iter().cloned());
                if (other.at, &other.by) > (own.at, &own.by) {
                    (own.at, own.by) = (other.at, other.by.clone());
                }
            }
        }
    }
}

/// What is written in place of a record, and how it stood until now.
pub fn delete(state: &State, by: &str, at: Time) -> Result<(Write, Value), serde_json::Error> {
    let facts = BillingFacts::parse(&state.facts)?;
    let stone = facts.deleted(by, at);
    let write = Write {
        key: state.key.clone(),
        version: state.version,
        facts: serde_json::to_string(&stone).expect("texts and numbers serialise"),
        index: stone.derivation().index,
    };
    Ok((write, facts.derivation().summary))
}

impl BillingFacts {
    /// Without what was subscribed to and paid. Names stay, because late events go by them; and what was announced, so
    /// that it is not announced again.
    fn deleted(&self, by: &str, at: Time) -> Self {
        let subscriptions = self.subscribed().cloned().collect();
        let mut deleted = Some(DeletedBilling { at, by: by.to_owned(), subscriptions });
        DeletedBilling::join(&mut deleted, self.deleted.as_ref());
        Self {
            deleted,
            born: self.born.clone(),
            names: self.names.clone(),
            livemode: self.livemode,
            tenants: self.tenants.clone(),
            realms: self.realms.clone(),
            announced: self.announced.clone(),
            emitted: self.emitted.clone(),
            ..Self::default()
        }
    }

    pub fn is_deleted(&self) -> bool {
        let gone = |deleted: &DeletedBilling| self.subscribed().all(|id| deleted.subscriptions.contains(id));
        self.deleted.as_ref().is_some_and(gone)
    }

    fn subscribed(&self) -> impl Iterator<Item = &String> {
        let invoiced = self.invoices.values().filter_map(|invoice| invoice.subscription.as_ref());
        self.subscriptions.keys().chain(invoiced)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settlement::billing::tests::{Books, event, invoice, subscription};
    use crate::state::{Key, Kind};

    const AT: Time = Time::from_seconds(40);

    fn state(facts: &BillingFacts) -> State {
        State {
            key: Key::new(Kind::Billing, "bil_1"),
            version: 7,
            facts: serde_json::to_string(facts).unwrap(),
            index: facts.derivation().index,
            created_at: AT,
            changed_at: AT,
        }
    }

    /// A tenant that subscribed and paid, then deleted.
    fn stone() -> BillingFacts {
        let events = [subscription("updated", 20, "active"), invoice("in_1", "paid", 20, "paid", 500, 30)];
        let books = Books::after(events.iter().map(String::as_str));
        let (write, before) = delete(&state(&books.facts()), "tomo", AT).unwrap();
        assert_eq!((&before["status"], &before["amount_paid_total"]), (&json!("active"), &json!(500)));
        assert_eq!((write.version, write.index.status.as_deref()), (7, Some("deleted")));
        serde_json::from_str(&write.facts).unwrap()
    }

    /// The stone after more events came.
    fn after(events: &[String]) -> BillingFacts {
        let stone = stone();
        let mut books = Books::with(&stone);
        events.iter().for_each(|event| books.arrives(event));
        books.facts()
    }

    fn another(status: &str) -> String {
        let object = json!({
            "object": "subscription", "id": "sub_2", "customer": "cus_1", "status": status, "currency": "jpy",
            "metadata": {"tenant_id": "office"},
        });
        event("customer.subscription.created", 60, object)
    }

    #[test]
    fn d8_what_is_deleted_leaves_names_and_what_was_announced() {
        let stone = stone();
        assert!(stone.is_deleted());
        assert!(stone.subscriptions.is_empty() && stone.invoices.is_empty());
        assert!(stone.provider_customers.is_empty());
        assert!(!stone.names.is_empty() && !stone.emitted.is_empty() && stone.announced.is_some());
        let deleted = stone.deleted.unwrap();
        assert_eq!((deleted.at, &*deleted.by), (AT, "tomo"));
    }

    #[test]
    fn d8_what_is_said_of_the_deleted_is_kept_and_only_a_new_subscription_brings_it_back() {
        let old = [
            subscription("updated", 50, "past_due"),
            invoice("in_2", "paid", 51, "paid", 500, 60),
            subscription("deleted", 52, "canceled"),
        ];
        let late = after(&old);
        assert!(late.is_deleted());
        assert_eq!((late.subscriptions.len(), late.invoices.len()), (1, 1), "nothing is lost");
        assert_eq!(late.derivation().index.attention, None);

        let mut events = old.to_vec();
        events.push(another("active"));
        let back = after(&events);
        assert_eq!(back.derivation().index.status.as_deref(), Some("active"));
        events.reverse();
        assert_eq!(after(&events).derivation().index, back.derivation().index, "in any order");
        // It stays back, whatever becomes of the subscription.
        events.push(another("canceled"));
        assert!(!after(&events).is_deleted());

        let (again, _) = delete(&state(&back), "mika", AT.plus_ms(1)).unwrap();
        let again: BillingFacts = serde_json::from_str(&again.facts).unwrap();
        assert_eq!(again.deleted.unwrap().subscriptions.len(), 2, "both are deleted now");
    }
}
