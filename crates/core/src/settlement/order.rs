//! A payment that the app announces, before, while or after its customer pays; and every name by which a payment or a
//! tenant's billing can be asked for.

use super::decide::{Aggregate, Cause, Input, parts};
use super::payment::{Facts, MerchantOrder};
use super::reading::{MODES, Reading, Realm, billing_name, order_name, own_name};
use super::{PROVIDERS, billing};
use crate::id::Seq;
use crate::state::{Key, Loaded};

/// What the app says of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerchantRequest {
    pub ours: MerchantOrder,
    pub livemode: Option<bool>,
}

impl MerchantRequest {
    /// What the app says, as something to be decided.
    pub fn input(&self, seq: Seq, cause: Cause) -> Input {
        let id = seq.tagged(Facts::TAG);
        // One whose mode nobody said takes that of the first who brings it.
        let is_possible =
            |mode: &Option<bool>| self.livemode.is_none() || mode.is_none() || *mode == self.livemode;
        let facts = Facts {
            livemode: self.livemode,
            names: MODES.into_iter().filter(is_possible).map(|mode| own_name(mode, &id)).collect(),
            ours: [(id, self.ours.clone())].into(),
            ..Facts::default()
        };
        Input { seq, reading: Reading { payment: Some(facts), ..Reading::default() }, cause }
    }
}

/// The order that has this one's reference already, if there is one: a reference names one order of a tenant in a mode,
/// and one that was posted for the whole installation names no other.
pub fn taken(input: &Input, loaded: &Loaded) -> Option<Key> {
    let facts = input.reading.payment.as_ref()?;
    let has = |name: &String, known: &Facts| {
        let is_of_the_mode = facts.livemode.zip(known.livemode).is_none_or(|(own, known)| own == known);
        known.owner().is_some() && is_of_the_mode && known.claims().contains(name)
    };
    facts.claims().into_iter().find_map(|name| {
        let key = loaded.names.get(&Facts::full(&name))?;
        let known = parts::<Facts>(&loaded.states.get(key)?.facts).ok()?;
        known.iter().any(|known| has(&name, known)).then(|| key.clone())
    })
}

/// Every name a payment may have by this reference: as an order, or as an object of any provider. `account` is the
/// connected account whose words are meant. What is found knows the others that share the reference.
pub fn payment_known_as(reference: &str, account: Option<&str>) -> Vec<String> {
    let orders = MODES.into_iter().flat_map(|mode| {
        let own = account.map(|account| order_name(mode, Some(account), None, reference));
        [Some(order_name(mode, None, None, reference)), own].into_iter().flatten()
    });
    let ours = MODES.into_iter().map(|mode| own_name(mode, reference));
    let objects = PROVIDERS.into_iter().flat_map(|provider| {
        MODES.into_iter().map(move |livemode| {
            Realm { provider, account: account.map(str::to_owned), livemode }.name(reference)
        })
    });
    orders.chain(ours).chain(objects).map(|name| Facts::full(&name)).collect()
}

/// What the names of a provider's objects begin with. Their accounts follow it, `-` where there is none.
pub fn objects_of(provider: &str) -> String {
    Facts::full(&format!("{provider}/"))
}

/// Every name an object may have at one account of a provider.
pub fn object_known_as(id: &str, provider: &'static str, account: &str) -> impl Iterator<Item = String> {
    MODES.into_iter().map(move |livemode| {
        Facts::full(&Realm { provider, account: Some(account.to_owned()), livemode }.name(id))
    })
}

/// Every name a tenant's billing may have, in one mode or in any: the first that leads somewhere is meant.
pub fn billing_known_as(tenant: &str, livemode: Option<bool>) -> Vec<String> {
    let modes = MODES.into_iter().filter(|mode| livemode.is_none() || *mode == livemode);
    modes.map(|mode| billing::BillingFacts::full(&billing_name(mode, tenant))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_a_payment_is_known_by_what_anybody_calls_it() {
        let plain = payment_known_as("pi_1", None);
        for name in
            ["p:live/-/order/-/pi_1", "p:any/-/order/-/pi_1", "p:stripe/-/test/pi_1", "p:payjp/-/live/pi_1"]
        {
            assert!(plain.iter().any(|one| one == name), "{name}");
        }
        let of_account = payment_known_as("pi_1", Some("acct_1"));
        assert!(of_account.contains(&"p:stripe/acct_1/live/pi_1".to_owned()));
        assert!(!of_account.contains(&"p:stripe/-/live/pi_1".to_owned()));
    }

    #[test]
    fn d1_an_order_of_one_mode_does_not_claim_the_other() {
        let order = |livemode| {
            let ours =
                MerchantOrder { reference: Some("o".into()), for_all: true, ..MerchantOrder::default() };
            let input = MerchantRequest { ours, livemode }.input(Seq::from_i64(1), Cause::default());
            input.reading.payment.unwrap().claims()
        };
        assert_eq!(order(Some(true)), ["live/-/order/-/o", "any/-/order/-/o"]);
        assert_eq!(order(None), ["live/-/order/-/o", "test/-/order/-/o", "any/-/order/-/o"]);
    }
}
