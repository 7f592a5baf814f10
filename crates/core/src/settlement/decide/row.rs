//! One thing while a batch is being decided: as it was loaded, and as it is now.

use std::borrow::Cow;

use serde_json::Value;

use super::{Aggregate, Derivation};
use crate::state::State;

pub struct Row<F> {
    pub state: Option<State>,
    pub before: Vec<F>,
    /// None are left when it became part of another.
    pub clusters: Vec<F>,
    pub into: Option<String>,
    /// What follows from it now; worked out when it is asked for.
    derivation: Option<Derivation>,
    pub derivation_before: Option<Derivation>,
    /// What was last noted of it.
    pub seen: Option<Value>,
    /// Whose it was when its payments were last told.
    pub billed_to: Option<String>,
}

impl<F: Aggregate> Row<F> {
    pub fn new(state: Option<&State>) -> Result<Self, String> {
        let mut row = Self {
            state: state.cloned(),
            before: Vec::new(),
            clusters: Vec::new(),
            into: None,
            derivation: None,
            derivation_before: None,
            seen: None,
            billed_to: state.and_then(|state| state.index.tenant.clone()),
        };
        if let Some(state) = state {
            let broken =
                |error| format!("what is kept of {} {} can't be read: {error}", F::KIND.name(), state.key.id);
            row.clusters = parts(&state.facts).map_err(broken)?;
            if let [only] = &mut row.clusters[..] {
                row.into = only.merged_into().take();
            }
            if row.into.is_some() {
                row.clusters.clear();
            }
            row.before.clone_from(&row.clusters);
        }
        Ok(row)
    }

    /// All that is known of it.
    pub fn facts(&self) -> Cow<'_, F> {
        unite(&self.clusters)
    }

    /// What is stored of it.
    pub fn kept(&self) -> Cow<'_, F> {
        if let [only] = &self.clusters[..] {
            return Cow::Borrowed(only);
        }
        let mut kept = F::default();
        kept.clusters_mut().clone_from(&self.clusters);
        Cow::Owned(kept)
    }

    pub fn derivation(&mut self) -> &Derivation {
        let Self { derivation, clusters, .. } = self;
        derivation.get_or_insert_with(|| unite(clusters).derivation())
    }

    pub fn is_changed(&self) -> bool {
        self.clusters != self.before
    }

    /// The cluster that remembers something: the one it is about, or the one that announcements are called after.
    pub fn place_of(&self, mark: &F::Mark) -> usize {
        if self.clusters.len() == 1 {
            return 0;
        }
        let about = self.clusters.iter().position(|cluster| cluster.is_about(mark));
        let anchor = self.facts().anchor();
        let named = || self.clusters.iter().position(|cluster| cluster.anchor() == anchor);
        about.or_else(named).unwrap_or_default()
    }

    /// Whether it became part of another just now.
    pub fn is_merged_now(&self) -> bool {
        self.into.is_some() && !self.before.is_empty()
    }

    /// It is about to change: what it was is kept, what follows from it is worked out again.
    pub fn touch(&mut self) {
        if self.derivation_before.is_none() && !self.before.is_empty() {
            let derivation = self.derivation.take().unwrap_or_else(|| unite(&self.before).derivation());
            self.seen = Some(derivation.summary.clone());
            self.derivation_before = Some(derivation);
        }
        self.derivation = None;
    }
}

/// The clusters of what is stored.
pub fn parts<F: Aggregate>(facts: &str) -> serde_json::Result<Vec<F>> {
    let mut facts: F = serde_json::from_str(facts)?;
    let clusters = std::mem::take(facts.clusters_mut());
    Ok(if clusters.is_empty() { vec![facts] } else { clusters })
}

/// What several clusters know together.
pub fn unite<F: Aggregate>(clusters: &[F]) -> Cow<'_, F> {
    if let [only] = clusters {
        return Cow::Borrowed(only);
    }
    let mut all = F::default();
    clusters.iter().for_each(|cluster| all.join(cluster));
    *all.clusters_mut() = clusters.to_vec();
    Cow::Owned(all)
}
