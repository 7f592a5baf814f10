//! Where one input leads: which of the names it mentions are its own, and which known things they mean. A provider's id
//! ties; a word that people chose ties less, and never live to test, one tenant to another, or two payments that the app
//! made.

use std::collections::{BTreeMap, BTreeSet};

use super::{Thing, parse};
use crate::settlement::reading::Part;
use crate::state::{Key, Loaded};

pub struct Lead<'i, F> {
    pub part: &'i Part<F>,
    /// Those of its names that are its own.
    pub names: BTreeSet<&'i str>,
    pub keys: BTreeSet<Key>,
    /// Things of the app's that it also named, though it belongs to another.
    pub conflicts: Vec<String>,
}

/// Who uses what in this batch.
#[derive(Default)]
pub struct Owners<'i> {
    of_names: BTreeMap<&'i str, Owner>,
    of_keys: BTreeMap<Key, Owner>,
}

impl<'i, F: Thing> Lead<'i, F> {
    /// Names that lead to what must stay apart are passed by.
    pub fn of(part: &'i Part<F>, loaded: &Loaded, owners: &mut Owners<'i>) -> Self {
        let mut own = Owner { livemode: part.facts.livemode(), tenants: part.facts.tenants().clone() };
        let mut lead = Self { part, names: BTreeSet::new(), keys: BTreeSet::new(), conflicts: Vec::new() };
        for name in &part.names {
            let key = loaded.names.get(&F::full(name));
            let stored = |key: &Key| {
                let index = loaded.states.get(key).map(|state| &state.index);
                let tenants = index.and_then(|index| index.tenant.clone()).into_iter().collect();
                Owner { livemode: index.and_then(|index| index.livemode), tenants }
            };
            let owner = match key {
                Some(key) => owners.of_keys.entry(key.clone()).or_insert_with(|| stored(key)),
                None => owners.of_names.entry(name).or_default(),
            };
            if owner.keeps_away(&own, F::is_loose(part, name)) {
                continue;
            }
            own.take_over(owner);
            owner.take_over(&own);
            lead.keys.extend(key.cloned());
            lead.names.insert(name);
        }
        lead.stay_with_one(loaded);
        lead
    }

    /// Two that the app made are two, whatever names both.
    fn stay_with_one(&mut self, loaded: &Loaded) {
        if self.keys.len() < 2 {
            return;
        }
        let is_ours = |key: &&Key| parse::<F>(loaded, key).is_ok_and(|facts| facts.is_ours());
        let others: BTreeSet<Key> = self.keys.iter().filter(is_ours).skip(1).cloned().collect();
        self.names.retain(|name| loaded.names.get(&F::full(name)).is_none_or(|key| !others.contains(key)));
        self.keys.retain(|key| !others.contains(key));
        self.conflicts = others.into_iter().map(|key| key.id).collect();
    }
}

/// Who else uses a name or a thing, as far as that keeps others away.
#[derive(Clone, Default)]
struct Owner {
    livemode: Option<bool>,
    tenants: BTreeSet<String>,
}

impl Owner {
    /// Live and test never meet, and a name that people gave does not tie tenants together.
    fn keeps_away(&self, other: &Self, is_loose: bool) -> bool {
        let modes = self.livemode.zip(other.livemode).is_some_and(|(own, other)| own != other);
        let strangers =
            !self.tenants.is_empty() && !other.tenants.is_empty() && self.tenants.is_disjoint(&other.tenants);
        modes || is_loose && strangers
    }

    fn take_over(&mut self, other: &Self) {
        self.livemode = self.livemode.or(other.livemode);
        self.tenants.extend(other.tenants.iter().cloned());
    }
}
