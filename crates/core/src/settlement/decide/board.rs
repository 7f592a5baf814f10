//! The things that a batch touches, as they are while it is being decided. Inputs are taken in one by one, each as if it
//! had come alone, so that what was settled together never counts.
//!
//! What is not loaded yet is written down as wanted; then the whole batch is decided again with it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::Aggregate;
use super::partition::{is_moved, partition};
use super::row::Row;
use crate::id::Seq;
use crate::state::{Key, Loaded, Wanted};

/// What is known of the stored things: what was asked for, and what was found.
#[derive(Clone, Copy)]
pub struct KnownThings<'l> {
    pub asked: &'l Wanted,
    pub loaded: &'l Loaded,
}

pub struct Board<'l, F> {
    known: KnownThings<'l>,
    pub rows: BTreeMap<String, Row<F>>,
    /// Names of the rows that were laid out, as they are stored.
    stored: BTreeMap<String, String>,
    /// Where names lead by now, as far as that is not what is stored.
    moved: BTreeMap<String, String>,
    pub wanted: Wanted,
}

/// What taking in one input did.
#[derive(Debug, Default)]
pub struct Taken {
    /// Where the input's own cluster is now.
    pub id: String,
    /// Whether it is a new thing, and whether anything is known now that was not.
    pub is_new: bool,
    pub is_changed: bool,
    /// What became part of it.
    pub merged: Vec<String>,
    /// What parted: from where, to where.
    pub parted: Vec<(String, String)>,
    /// Every row that had to be looked at.
    pub touched: BTreeSet<String>,
}

impl<'l, F: Aggregate> Board<'l, F> {
    pub fn new(known: KnownThings<'l>) -> Self {
        let (rows, stored, moved) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { known, rows, stored, moved, wanted: Wanted::default() }
    }

    /// Takes in what one input says.
    pub fn take_in(&mut self, event: &F, seq: Seq) -> Result<Taken, String> {
        let mut found = self.find(event)?;
        // What the app posted comes first, and two of it never become one.
        found.sort_by_key(|(id, place)| {
            (self.rows[id].clusters[*place].owner().is_none(), id.clone(), *place)
        });
        let mut said = Cow::Borrowed(event);
        let mut known: Option<F> = None;
        let mut taken: Vec<(String, usize)> = Vec::new();
        for (id, place) in found {
            let other = &self.rows[&id].clusters[place];
            let modes = known.as_ref().unwrap_or(event).livemode().zip(other.livemode());
            if modes.is_some_and(|(own, other)| own != other) {
                continue;
            }
            let own = known.as_ref().unwrap_or(event);
            let both = own.owner().zip(other.owner()).filter(|_| own.is_posted() && other.is_posted());
            if let Some((_, foreign)) = both.filter(|(own, foreign)| own != foreign) {
                let (foreign, theirs) = (foreign.to_owned(), other.names().clone());
                said.to_mut().conflict_with(foreign);
                said.to_mut().names_mut().retain(|name| !theirs.contains(name));
                continue;
            }
            match &mut known {
                Some(known) => known.join(other),
                None => known = Some(other.clone()),
            }
            taken.push((id, place));
        }
        let Some(mut known) = known else {
            let mut cluster = said.into_owned();
            cluster.set_born(seq.tagged(F::TAG));
            let result = self.place(cluster, &[])?;
            return Ok(Taken { is_new: true, is_changed: true, ..result });
        };
        known.join(&said);
        if let Some(mode) = known.livemode() {
            known.take_mode(mode);
        }
        self.replace(known, &taken)
    }

    /// Changes the cluster with this name where it stands, and puts it where it belongs then.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut F)) -> Result<Option<Taken>, String> {
        let Some(id) = self.leads_to(name)? else { return Ok(None) };
        let Some(place) = self.rows[&id].clusters.iter().position(|one| one.names().contains(name)) else {
            return Ok(None);
        };
        let mut cluster = self.rows[&id].clusters[place].clone();
        change(&mut cluster);
        self.replace(cluster, &[(id, place)]).map(Some)
    }

    /// The clusters that the names lead to, by row and place.
    fn find(&mut self, event: &F) -> Result<Vec<(String, usize)>, String> {
        let mut found = Vec::new();
        for name in event.names() {
            let Some(id) = self.leads_to(name)? else { continue };
            let place = self.rows[&id].clusters.iter().position(|one| one.names().contains(name));
            found.extend(place.map(|place| (id, place)).filter(|one| !found.contains(one)));
        }
        Ok(found)
    }

    /// Puts a cluster in place of those it was made from. Mostly nothing else follows from that.
    fn replace(&mut self, cluster: F, instead_of: &[(String, usize)]) -> Result<Taken, String> {
        let [(id, place)] = instead_of else {
            let result = self.place(cluster, instead_of)?;
            return Ok(Taken { is_changed: true, ..result });
        };
        let row = self.rows.get_mut(id).expect("it was found there");
        let mut taken = Taken { id: id.clone(), touched: [id.clone()].into(), ..Taken::default() };
        if cluster == row.clusters[*place] {
            return Ok(taken);
        }
        taken.is_changed = true;
        if !is_moved(&row.clusters[*place], &cluster) {
            row.touch();
            let before = std::mem::replace(&mut row.clusters[*place], cluster);
            let names = row.clusters[*place].names().difference(before.names()).cloned();
            self.moved.extend(names.map(|name| (name, id.clone())));
            return Ok(taken);
        }
        let result = self.place(cluster, instead_of)?;
        Ok(Taken { is_changed: true, ..result })
    }

    /// Puts a cluster in place of those it was made from, and each of its neighbours where it belongs now.
    fn place(&mut self, mut cluster: F, instead_of: &[(String, usize)]) -> Result<Taken, String> {
        // A tenant that became known may decide between two that it could have belonged to.
        cluster.forget_conflicts();
        let mut touched: BTreeSet<String> = instead_of.iter().map(|(id, _)| id.clone()).collect();
        for name in cluster.claims().into_iter().chain(cluster.seeks()).chain(cluster.aliases()) {
            touched.extend(self.leads_to(&name)?);
        }
        if cluster.owner().is_some() {
            for id in touched.clone() {
                let others: Vec<String> =
                    self.rows[&id].clusters.iter().flat_map(|one| one.namesakes().iter().cloned()).collect();
                for other in others {
                    touched.extend(self.standing(&other)?);
                }
            }
        }
        // Where what was posted stands, the cluster stands.
        let is_posted = |(id, place): &(String, usize)| self.rows[id].clusters[*place].is_posted();
        let home = instead_of.iter().min_by_key(|one| (!is_posted(one), &one.0));
        let mut homes = vec![home.map(|(id, _)| id.clone())];
        let mut clusters = vec![cluster];
        for id in &touched {
            let row = self.rows.get_mut(id).expect("touched rows are there");
            row.touch();
            for (place, other) in std::mem::take(&mut row.clusters).into_iter().enumerate() {
                if !instead_of.iter().any(|(taken, at)| taken == id && *at == place) {
                    homes.push(Some(id.clone()));
                    clusters.push(other);
                }
            }
        }
        let groups = partition(&mut clusters);
        let ids = self.name_groups(&groups, &homes, &clusters, instead_of.is_empty())?;
        self.settle(groups, ids, homes, clusters, touched)
    }

    /// Puts each group of clusters into its row; a row that nothing is left of became part of another.
    fn settle(
        &mut self,
        groups: Vec<Vec<usize>>,
        ids: Vec<String>,
        homes: Vec<Option<String>>,
        clusters: Vec<F>,
        touched: BTreeSet<String>,
    ) -> Result<Taken, String> {
        let mut taken = Taken { touched, ..Taken::default() };
        let mut clusters: Vec<_> = clusters.into_iter().map(Some).collect();
        let mut left: Vec<(String, String, bool)> = Vec::new();
        for (group, id) in groups.into_iter().zip(ids) {
            for n in group {
                let cluster = clusters[n].take().expect("each is in one group");
                if let Some(home) = homes[n].as_ref().filter(|home| **home != id) {
                    left.push((home.clone(), id.clone(), cluster.was_announced()));
                }
                if n == 0 {
                    taken.id.clone_from(&id);
                }
                for name in cluster.names() {
                    if self.owner_of(name).as_deref() != Some(&*id) {
                        self.moved.insert(name.clone(), id.clone());
                    }
                }
                self.rows.get_mut(&id).expect("named rows are there").clusters.push(cluster);
            }
            taken.touched.insert(id);
        }
        for id in &taken.touched {
            let row = self.rows.get_mut(id).expect("touched rows are there");
            row.touch();
            row.clusters.sort_by(|one, other| one.born().cmp(&other.born()));
            if row.clusters.is_empty() && row.into.is_none() {
                let to = left.iter().find(|(from, ..)| from == id).map_or(&taken.id, |(_, to, _)| to);
                row.into = Some(to.clone());
                taken.merged.push(id.clone());
            }
        }
        for (from, to, was_announced) in left {
            let row = self.rows.get_mut(&from).expect("touched rows are there");
            let Some(first) = row.clusters.first_mut() else { continue };
            if was_announced {
                first.lose(&to);
            }
            taken.parted.push((from, to));
        }
        self.claim(&taken.touched)?;
        let holders = self.point(&taken.touched)?;
        taken.touched.extend(holders);
        Ok(taken)
    }

    /// Gives rows the names that they claim. Where two may claim one, what was posted has it, or else who had it first.
    fn claim(&mut self, touched: &BTreeSet<String>) -> Result<(), String> {
        for id in touched {
            let clusters = self.rows[id].clusters.iter();
            let claims: Vec<(String, bool)> = clusters
                .flat_map(|one| one.claims().into_iter().map(|name| (name, one.is_posted())))
                .collect();
            for (name, is_posted) in claims {
                let holder = self.leads_to(&name)?.filter(|holder| holder != id);
                let is_kept = holder.is_some_and(|holder| {
                    let mut claimers =
                        self.rows[&holder].clusters.iter().filter(|one| one.claims().contains(&name));
                    claimers.any(|one| one.is_posted() || !is_posted)
                });
                if !is_kept && self.owner_of(&name).as_ref() != Some(id) {
                    self.moved.insert(name, id.clone());
                }
            }
        }
        Ok(())
    }

    /// Which row each group is. It keeps the id it has; of several, that of what the app posted, or else the oldest. What
    /// parts gets the id that it would have had alone.
    fn name_groups(
        &mut self,
        groups: &[Vec<usize>],
        homes: &[Option<String>],
        clusters: &[F],
        is_new: bool,
    ) -> Result<Vec<String>, String> {
        let posted = |group: &[usize]| group.iter().copied().find(|n| clusters[*n].is_posted());
        let oldest =
            |group: &[usize]| group.iter().filter_map(|n| clusters[*n].born()).min().map(str::to_owned);
        let native = |group: &[usize], id: &str| group.iter().any(|n| clusters[*n].born() == Some(id));
        let lives_at_home = |group: &[usize]| {
            group.iter().filter_map(|n| homes[*n].as_deref()).any(|home| native(group, home))
        };
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|n| {
            (posted(&groups[*n]).is_none(), !lives_at_home(&groups[*n]), oldest(&groups[*n]))
        });
        let mut given: BTreeMap<usize, String> = BTreeMap::new();
        for n in order {
            let group = &groups[n];
            let first = posted(group).and_then(|one| homes[one].clone());
            let mut others: Vec<String> = group.iter().filter_map(|one| homes[*one].clone()).collect();
            others.sort_by_key(|id| (!native(group, id), id.clone()));
            let born = group.iter().chain(groups.iter().flatten());
            let born = born.filter_map(|one| clusters[*one].born().map(str::to_owned));
            let wishes = first.into_iter().chain(others).chain(born);
            let is_free = |id: &String| {
                let is_empty = self.rows.get(id).is_none_or(|row| row.clusters.is_empty());
                is_empty && !given.values().any(|taken| taken == id)
            };
            let id = { wishes }.find(is_free).ok_or_else(|| "no id is left for what parts".to_owned())?;
            if !self.rows.contains_key(&id) {
                let is_fresh = is_new && clusters[0].born() == Some(&*id);
                self.open(&id, !is_fresh)?;
            }
            let row = self.rows.get_mut(&id).expect("it was opened");
            (row.into, row.clusters) = (None, Vec::new());
            given.insert(n, id);
        }
        Ok(given.into_values().collect())
    }

    /// Lets everything be found by what people call it, whosever it is: a name leads to one row, which knows the others.
    fn point(&mut self, touched: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        let mut holders = BTreeSet::new();
        for id in touched {
            let aliases: BTreeSet<String> = self.rows[id].clusters.iter().flat_map(F::aliases).collect();
            for alias in aliases {
                let Some(holder) = self.leads_to(&alias)?.filter(|holder| holder != id) else {
                    if self.owner_of(&alias).as_ref() != Some(id) {
                        self.moved.insert(alias, id.clone());
                    }
                    continue;
                };
                let row = self.rows.get_mut(&holder).expect("it was looked up");
                match row.clusters.iter_mut().find(|cluster| cluster.aliases().contains(&alias)) {
                    Some(cluster) => cluster.add_namesake(id),
                    None => drop(self.moved.insert(alias, id.clone())),
                }
                holders.insert(holder);
            }
        }
        Ok(holders)
    }

    fn owner_of(&self, name: &str) -> Option<String> {
        let loaded = || self.known.loaded.names.get(&F::full(name)).map(|key| &key.id);
        self.moved.get(name).or_else(loaded).or_else(|| self.stored.get(name)).cloned()
    }

    /// The row that a name leads to now.
    pub fn leads_to(&mut self, name: &str) -> Result<Option<String>, String> {
        if let Some(id) = self.owner_of(name) {
            return self.standing(&id);
        }
        let full = F::full(name);
        if !self.known.asked.names.contains(&full) {
            self.wanted.names.insert(full);
        }
        Ok(None)
    }

    /// The row under this id, or the one it became part of.
    pub fn standing(&mut self, id: &str) -> Result<Option<String>, String> {
        let mut id = id.to_owned();
        for _ in 0..=self.known.loaded.states.len() + self.rows.len() {
            if !self.rows.contains_key(&id) {
                if !self.known.loaded.states.contains_key(&Key::new(F::KIND, &*id)) {
                    self.wanted.want(Key::new(F::KIND, id), self.known.asked);
                    return Ok(None);
                }
                self.open(&id, true)?;
            }
            let Some(into) = &self.rows[&id].into else { return Ok(Some(id)) };
            id.clone_from(into);
        }
        Err(format!("{} {id} became part of itself", F::KIND.name()))
    }

    /// The same, of what lies here.
    pub fn standing_now(&self, id: &str) -> Option<String> {
        let mut id = id.to_owned();
        for _ in 0..=self.rows.len() {
            match &self.rows.get(&id)?.into {
                Some(into) => id.clone_from(into),
                None => return Some(id),
            }
        }
        None
    }

    /// Lays a row out as it is stored, or as a new one. One that may be stored must have been asked for.
    fn open(&mut self, id: &str, may_be_stored: bool) -> Result<(), String> {
        let key = Key::new(F::KIND, id);
        let state = self.known.loaded.states.get(&key);
        if state.is_none() && may_be_stored {
            self.wanted.want(key, self.known.asked);
        }
        let row = Row::<F>::new(state)?;
        for cluster in &row.clusters {
            self.stored.extend(cluster.names().iter().map(|name| (name.clone(), id.to_owned())));
        }
        self.rows.insert(id.to_owned(), row);
        Ok(())
    }

    /// Names that do not lead where they are stored to lead, with where that is.
    pub fn moved(&self) -> impl Iterator<Item = (&String, &String, Option<&str>)> {
        self.moved.iter().filter_map(|(name, id)| {
            let loaded = self.known.loaded.names.get(&F::full(name)).map(|key| &*key.id);
            let was = loaded.or_else(|| self.stored.get(name).map(String::as_str));
            (was != Some(id)).then_some((name, id, was))
        })
    }
}
