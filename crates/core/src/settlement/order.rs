//! A payment that the app announces, before, while or after its customer pays; and every name by which a payment or a
//! tenant's billing can be asked for.

use std::collections::BTreeSet;

use super::decide::{Cause, Input, Thing};
use super::payment::{Derived, Facts, Ours};
use super::reading::{Part, Reading, Realm, billing_name, order_name};
use super::{PROVIDERS, billing};
use crate::id::Seq;
use crate::state::{Key, Loaded};

/// Live comes before test, and that before what has no mode.
const MODES: [Option<bool>; 3] = [Some(true), Some(false), None];

/// What the app says of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub ours: Ours,
    pub livemode: Option<bool>,
}

/// Why a reference can't be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is another payment's of the app.
    By(Key),
    /// What it leads to is not the tenant's who asks.
    Foreign,
}

impl Order {
    /// What must be loaded before [`Order::input`] can be asked.
    pub fn names(&self) -> Vec<String> {
        let names = self.ours.reference.iter().flat_map(|reference| self.names_of(reference));
        names.map(|name| Facts::full(&name)).collect()
    }

    /// What the app says, as something to be decided. `tenant` is the one in whose name it is said, if only one may be
    /// spoken for.
    pub fn input(
        &self,
        seq: Seq,
        loaded: &Loaded,
        tenant: Option<&str>,
        cause: Cause,
    ) -> Result<Input, Taken> {
        for name in self.names() {
            self.check_free(&name, loaded, tenant)?;
        }
        let id = seq.tagged(Facts::TAG);
        // Our own id is as good a reference as the app's.
        let references = self.ours.reference.as_deref().into_iter().chain([&*id]);
        let names = references.flat_map(|reference| self.names_of(reference)).collect();
        let ours = [(id.clone(), self.ours.clone())].into();
        let facts = Facts { livemode: self.livemode, ours, ..Facts::default() };
        Ok(Input { seq, reading: Reading { payment: Some(Part { names, facts }), billing: None }, cause })
    }

    /// The names under which the provider's objects may have brought it already, or will, by mode. An order whose mode
    /// nobody said takes that of the first who brings it.
    fn names_of(&self, reference: &str) -> BTreeSet<String> {
        let account = self.ours.account.as_deref();
        let modes = MODES
            .into_iter()
            .filter(|mode| self.livemode.is_none() || mode.is_none() || *mode == self.livemode);
        modes.map(|mode| order_name(mode, account, reference)).collect()
    }

    /// A reference names one payment of the app's, in a mode.
    fn check_free(&self, name: &str, loaded: &Loaded, tenant: Option<&str>) -> Result<(), Taken> {
        let Some(key) = loaded.names.get(name) else { return Ok(()) };
        let facts = loaded.states.get(key).and_then(|state| serde_json::from_str::<Facts>(&state.facts).ok());
        let Some(facts) = facts else { return Ok(()) };
        if tenant.is_some() && Derived::of(&facts).tenant.as_deref() != tenant {
            return Err(Taken::Foreign);
        }
        let is_of_the_mode = facts.livemode.zip(self.livemode).is_none_or(|(known, wanted)| known == wanted);
        if !facts.ours.is_empty() && is_of_the_mode { Err(Taken::By(key.clone())) } else { Ok(()) }
    }
}

/// Every name a payment may have by this reference: as an order, or as an object of any provider. `account` is the
/// connected account whose words are meant.
pub fn payment_known_as(reference: &str, account: Option<&str>) -> Vec<String> {
    let orders = MODES.into_iter().flat_map(|mode| {
        let own = account.map(|account| order_name(mode, Some(account), reference));
        [Some(order_name(mode, None, reference)), own].into_iter().flatten()
    });
    let objects = PROVIDERS.into_iter().flat_map(|provider| {
        MODES.into_iter().map(move |livemode| {
            Realm { provider, account: account.map(str::to_owned), livemode }.name(reference)
        })
    });
    orders.chain(objects).map(|name| Facts::full(&name)).collect()
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
    modes.map(|mode| billing::Facts::full(&billing_name(mode, tenant))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_a_payment_is_known_by_what_anybody_calls_it() {
        let plain = payment_known_as("pi_1", None);
        for name in ["p:live/order/pi_1", "p:any/order/pi_1", "p:stripe/-/test/pi_1", "p:payjp/-/live/pi_1"] {
            assert!(plain.iter().any(|one| one == name), "{name}");
        }
        let of_account = payment_known_as("pi_1", Some("acct_1"));
        assert!(of_account.contains(&"p:stripe/acct_1/live/pi_1".to_owned()));
        assert!(!of_account.contains(&"p:stripe/-/live/pi_1".to_owned()));
    }

    #[test]
    fn d1_an_order_of_one_mode_does_not_claim_the_other() {
        let order = |livemode| {
            let ours = Ours { reference: Some("o".into()), ..Ours::default() };
            Order { ours, livemode }.names()
        };
        assert_eq!(order(Some(true)), ["p:any/order/o", "p:live/order/o"]);
        assert_eq!(order(None), ["p:any/order/o", "p:live/order/o", "p:test/order/o"]);
    }
}
