//! Which clusters are one thing. A cluster is what a provider's own ids tie together; that never comes apart. Clusters
//! become one thing by what people wrote on them, and may part again when more is known:
//!
//! 1. A provider's ids and our own `pay_…` bind always.
//! 2. A reference binds inside the tenant that the cluster names.
//! 3. Without a tenant it binds to an order that was posted for the whole installation, or to others without one.
//! 4. Whoever could belong to two belongs to none, and a person is told; two that the app posted are never one.
//! 5. Things of two tenants are never one. A tenant that becomes known later moves the cluster to where it belongs.
//!
//! The answer depends on the clusters alone, not on the order in which they came (ADR 25).

use std::collections::{BTreeMap, BTreeSet};

use super::Aggregate;

/// Groups the clusters; each group is one thing. What a cluster could also have belonged to is noted in it.
pub fn partition<F: Aggregate>(clusters: &mut [F]) -> Vec<Vec<usize>> {
    if clusters.len() == 1 {
        return vec![vec![0]];
    }
    take_modes(clusters);
    note_seekers(clusters);
    let claims: Vec<Vec<String>> = clusters.iter().map(F::claims).collect();
    let mut claimed: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (n, names) in claims.iter().enumerate() {
        names.iter().for_each(|name| claimed.entry(name).or_default().push(n));
    }
    let homes: Vec<Home> = (0..clusters.len()).map(|n| home(n, clusters, &claims, &claimed)).collect();

    let mut groups = Groups::new(clusters);
    for (n, home) in homes.iter().enumerate() {
        if let Home::With(other) = home {
            groups.unite(n, *other);
        }
    }
    for members in claimed.values() {
        let mut free = members.iter().filter(|n| !matches!(homes[**n], Home::Torn(_)));
        let Some(first) = free.next() else { continue };
        free.for_each(|n| groups.unite(*first, *n));
    }
    let groups = groups.into_groups();
    for (n, home) in homes.into_iter().enumerate() {
        if let Home::Torn(owners) = home {
            owners.into_iter().for_each(|owner| clusters[n].conflict_with(owner));
        }
    }
    groups
}

/// Where a cluster belongs, as far as something was posted or declared that it could belong to.
enum Home {
    /// Wherever its claims lead.
    Free,
    With(usize),
    /// To each of these as well as to another: so to none.
    Torn(BTreeSet<String>),
}

fn home<F: Aggregate>(
    n: usize,
    clusters: &[F],
    claims: &[Vec<String>],
    claimed: &BTreeMap<&str, Vec<usize>>,
) -> Home {
    let own = &clusters[n];
    if own.owner().is_some() {
        return Home::Free;
    }
    let by_claim = claims[n].iter().flat_map(|name| &claimed[&**name]).copied();
    let found: BTreeMap<&str, usize> =
        by_claim.filter_map(|other| Some((clusters[other].owner()?, other))).collect();
    let found = if found.is_empty() { answering(own, clusters) } else { found };
    match found.len() {
        0 => Home::Free,
        1 => Home::With(*found.values().next().expect("there is one")),
        _ => Home::Torn(found.into_keys().map(str::to_owned).collect()),
    }
}

/// What was posted and takes this cluster in, though the cluster claims nothing of it.
fn answering<'c, F: Aggregate>(own: &F, clusters: &'c [F]) -> BTreeMap<&'c str, usize> {
    let seeks = own.seeks();
    let each =
        clusters.iter().enumerate().filter(|(_, other)| seeks.iter().any(|name| other.answers(name, own)));
    each.filter_map(|(n, other)| Some((other.owner()?, n))).collect()
}

/// What was posted for any mode takes that of the cluster that claims it: live before test.
fn take_modes<F: Aggregate>(clusters: &mut [F]) {
    for n in 0..clusters.len() {
        if clusters[n].owner().is_none() || clusters[n].livemode().is_some() {
            continue;
        }
        let (claims, own) = (clusters[n].claims(), &clusters[n]);
        let meets = |other: &&F| {
            let claimed = || other.claims().iter().any(|name| claims.contains(name));
            claimed() || other.seeks().iter().any(|name| own.answers(name, other))
        };
        let bound = |other: &&F| other.names().iter().any(|name| own.names().contains(name));
        let others = clusters.iter().enumerate().filter(|(other, _)| *other != n).map(|(_, other)| other);
        let modes = others.filter(|other| meets(other) || bound(other)).filter_map(F::livemode);
        if let Some(mode) = modes.max() {
            clusters[n].take_mode(mode);
        }
    }
}

/// An order that was posted for no tenant remembers which tenants asked for it: with two it is nobody's.
fn note_seekers<F: Aggregate>(clusters: &mut [F]) {
    for n in 0..clusters.len() {
        if clusters[n].owner().is_none() {
            continue;
        }
        let own = &clusters[n];
        let asks = |other: &&F| other.seeks().iter().any(|name| own.is_sought(name));
        let tenants: Vec<String> =
            clusters.iter().filter(asks).filter_map(|other| other.tenant().map(str::to_owned)).collect();
        tenants.into_iter().for_each(|tenant| clusters[n].sought_by(tenant));
    }
}

/// A forest in which every tree is a group. Two owners, or two tenants, never come into one.
struct Groups {
    above: Vec<usize>,
    /// By root.
    owner: Vec<Option<String>>,
    tenant: Vec<Option<String>>,
    mode: Vec<Option<bool>>,
}

impl Groups {
    fn new<F: Aggregate>(clusters: &[F]) -> Self {
        Self {
            above: (0..clusters.len()).collect(),
            owner: clusters.iter().map(|one| one.owner().map(str::to_owned)).collect(),
            tenant: clusters.iter().map(|one| one.tenant().map(str::to_owned)).collect(),
            mode: clusters.iter().map(F::livemode).collect(),
        }
    }

    fn root(&self, mut n: usize) -> usize {
        while self.above[n] != n {
            n = self.above[n];
        }
        n
    }

    fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        let apart =
            |one: &Option<String>, other: &Option<String>| one.is_some() && other.is_some() && one != other;
        let modes = self.mode[one].zip(self.mode[other]).is_some_and(|(one, other)| one != other);
        if one == other
            || modes
            || apart(&self.owner[one], &self.owner[other])
            || apart(&self.tenant[one], &self.tenant[other])
        {
            return;
        }
        let (low, high) = (one.min(other), one.max(other));
        self.above[high] = low;
        self.owner[low] = self.owner[low].take().or(self.owner[high].take());
        self.tenant[low] = self.tenant[low].take().or(self.tenant[high].take());
        self.mode[low] = self.mode[low].or(self.mode[high]);
    }

    fn into_groups(self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for n in 0..self.above.len() {
            groups.entry(self.root(n)).or_default().push(n);
        }
        groups.into_values().collect()
    }
}

/// Whether a cluster may belong elsewhere now.
pub fn is_moved<F: Aggregate>(before: &F, after: &F) -> bool {
    before.tenant() != after.tenant()
        || before.owner() != after.owner()
        || before.livemode() != after.livemode()
        || before.claims() != after.claims()
        || before.seeks() != after.seeks()
        || before.aliases() != after.aliases()
}
