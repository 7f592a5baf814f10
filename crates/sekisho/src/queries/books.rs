//! Whether the books say what the payments say. Nothing is changed: who finds a difference decides what it means.
//!
//! Three questions: do all lines sum to zero, by currency and mode; are the lines of each payment those that its facts
//! give; does every line belong to a payment. Payments may change while they are looked at, so what differs is looked at
//! again, and only what stood still in between counts.

mod compare;

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::settlement::payment::Facts;
use sekisho_core::state::{Key, Kind, MERGED, Posting, State};
use sekisho_store::{FIND_MAX, LineFilter, StateFilter, Store};

use crate::refusal::Result;
use crate::types::{BooksReport, Difference, Warning};

use compare::{compare, followers, negative, unbalanced};

/// How often a payment that changes while it is looked at is looked at again.
const LOOKS: usize = 3;

pub async fn check_books(store: &dyn Store) -> Result<BooksReport> {
    let sums = store.find_sums(None).await?;
    let mut report = BooksReport {
        accounts: sums.iter().map(|sum| &sum.account).collect::<BTreeSet<_>>().len() as u64,
        differences: unbalanced(&sums),
        warnings: negative(&sums),
        ..BooksReport::default()
    };
    let mut doubtful = Vec::new();
    let mut merged = merged(store).await?;
    let mut before = None;
    loop {
        let filter = StateFilter { before, ..StateFilter::all(Kind::Payment, FIND_MAX) };
        let page = store.find_states(filter).await?;
        for state in &page {
            let parts = merged.remove(&state.key.id).unwrap_or_default();
            if !state.is_merged() {
                report.payments += 1;
                if !differences(store, state, &parts).await?.is_empty() {
                    doubtful.push(state.key.clone());
                }
            }
        }
        let Some(last) = page.last() else { break };
        before = Some(last.key.id.clone());
    }
    look_again(store, doubtful, &mut report).await?;
    check_owners(store, &mut report).await?;
    // Their payment went into one that is not there.
    for part in merged.into_values().flatten() {
        if !lines_of(store, &part).await?.is_empty() {
            report.differences.push(Difference::Orphaned { payment: part });
        }
    }
    Ok(report)
}

/// What became part of each payment. Its lines stayed where they were booked, and count there.
async fn merged(store: &dyn Store) -> Result<BTreeMap<String, Vec<String>>> {
    let (mut into, mut before) = (BTreeMap::new(), None);
    loop {
        let all = StateFilter::all(Kind::Payment, FIND_MAX);
        let page = store.find_states(StateFilter { status: Some(MERGED.into()), before, ..all }).await?;
        let Some(last) = page.last() else { return Ok(followers(&into)) };
        before = Some(last.key.id.clone());
        for state in page {
            let facts = Facts::parse(&state.facts).unwrap_or_default();
            into.extend(facts.merged_into.map(|target| (state.key.id, target)));
        }
    }
}

/// What differs in one payment; `parts` are the ids of what became part of it.
pub async fn differences(store: &dyn Store, state: &State, parts: &[String]) -> Result<Vec<Difference>> {
    let payment = &state.key.id;
    let facts: Facts = match Facts::parse(&state.facts) {
        Ok(facts) => facts,
        Err(error) => {
            return Ok(vec![Difference::Unreadable { payment: payment.clone(), error: error.to_string() }]);
        }
    };
    let mut lines = lines_of(store, payment).await?;
    for part in parts {
        lines.extend(lines_of(store, part).await?);
    }
    Ok(compare(payment, &facts, &lines))
}

async fn lines_of(store: &dyn Store, payment: &str) -> Result<Vec<Posting>> {
    let (mut lines, mut before) = (Vec::new(), None);
    loop {
        let filter = LineFilter {
            payment: Some(payment.to_owned()),
            before,
            limit: FIND_MAX,
            ..LineFilter::default()
        };
        let page = store.find_lines(filter).await?;
        let is_last = page.len() < FIND_MAX;
        before = page.last().map(|line| line.number);
        lines.extend(page.into_iter().map(|line| line.posting));
        if is_last {
            return Ok(lines);
        }
    }
}

/// Looks at what differed until it stands still.
async fn look_again(store: &dyn Store, mut doubtful: Vec<Key>, report: &mut BooksReport) -> Result<()> {
    for _ in 0..LOOKS {
        if doubtful.is_empty() {
            return Ok(());
        }
        // Order matters: a merge after this read raises the version that is compared below.
        let before = load(store, &doubtful).await?;
        let merged = merged(store).await?;
        let mut found = BTreeMap::new();
        for (key, state) in before.iter().filter(|(_, state)| !state.is_merged()) {
            let parts = merged.get(&key.id).map(Vec::as_slice).unwrap_or_default();
            found.insert(key, differences(store, state, parts).await?);
        }
        let after = load(store, &doubtful).await?;
        doubtful.clear();
        for (key, differences) in found.into_iter().filter(|(_, differences)| !differences.is_empty()) {
            if after.get(key).map(|state| state.version) == Some(before[key].version) {
                report.differences.extend(differences);
            } else {
                doubtful.push(key.clone());
            }
        }
    }
    report.warnings.extend(doubtful.into_iter().map(|key| Warning::Restless { payment: key.id }));
    Ok(())
}

async fn load(store: &dyn Store, keys: &[Key]) -> Result<BTreeMap<Key, State>> {
    let mut states = BTreeMap::new();
    for chunk in keys.chunks(FIND_MAX) {
        states.extend(store.load(Vec::new(), chunk.to_vec()).await?.states);
    }
    Ok(states)
}

/// Every line belongs to a payment: both are written in one transaction.
async fn check_owners(store: &dyn Store, report: &mut BooksReport) -> Result<()> {
    let (mut before, mut orphaned) = (None, BTreeSet::new());
    loop {
        let page = store.find_lines(LineFilter { before, limit: FIND_MAX, ..LineFilter::default() }).await?;
        let Some(last) = page.last() else { break };
        before = Some(last.number);
        report.lines += page.len() as u64;
        let owners: BTreeSet<_> =
            page.into_iter().map(|line| Key::new(Kind::Payment, line.posting.payment)).collect();
        let owners: Vec<_> = owners.into_iter().collect();
        let there = load(store, &owners).await?;
        orphaned.extend(owners.into_iter().filter(|key| !there.contains_key(key)).map(|key| key.id));
    }
    let orphaned = orphaned.into_iter().map(|payment| Difference::Orphaned { payment });
    report.differences.extend(orphaned);
    Ok(())
}

#[cfg(test)]
mod tests;
