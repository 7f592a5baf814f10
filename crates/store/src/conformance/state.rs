//! What a store promises about things, their versions and their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::state::{Index, Key, Kind, Naming, State, Write};

use super::group::{assert_left_everything, assert_left_nothing, everything};
use super::{
    ALL, APPLIED, Arrivals, NOW, UP, claim_name, commit, join, leads_to, leased, payment, stored, version,
    write, writes,
};
use crate::{Loaded, StateFilter, Store};

pub async fn versions(store: Arc<dyn Store>) {
    let key = payment("b");
    let put = async |version, facts: &str| commit(&store, writes(vec![write(&key, version, facts)])).await;
    assert_eq!(put(1, "{}").await, Committed::Stale, "it is not there yet");
    assert_eq!(stored(&store, &key).await, None);
    assert_eq!(put(0, "{\"a\":1}").await, APPLIED);
    assert_eq!(put(0, "{}").await, Committed::Stale, "it is there now");
    let index = Index {
        status: Some("paid".into()),
        tenant: Some("t".into()),
        customer: Some("客".into()),
        livemode: Some(true),
        amount: Some(-7),
        currency: Some("JPY".into()),
        attention: Some("unlinked".into()),
    };
    let second = Write { index: index.clone(), ..write(&key, 1, "{\"名\":\"前\"}") };
    let later = ChangeSet { at: NOW.plus_ms(5), ..writes(vec![second]) };
    assert_eq!(commit(&store, later).await, APPLIED);
    for stale in [0, 1, 3, -1] {
        assert_eq!(put(stale, "{}").await, Committed::Stale);
    }
    let (facts, changed_at) = ("{\"名\":\"前\"}".into(), NOW.plus_ms(5));
    let expected = State { key: key.clone(), version: 2, facts, index, created_at: NOW, changed_at };
    assert_eq!(stored(&store, &key).await, Some(expected));
    assert_eq!(put(2, "{}").await, APPLIED);
    assert_eq!(stored(&store, &key).await.expect("it is there").index, Index::default(), "rewritten whole");
    let other = Key::new(Kind::Billing, "b");
    assert_eq!(
        commit(&store, writes(vec![write(&other, 0, "{}")])).await,
        APPLIED,
        "another kind, another thing"
    );
}

pub async fn branches(store: Arc<dyn Store>) {
    let found = async |prefix: &str, limit| store.find_branches(prefix.into(), limit).await.expect(UP);
    assert_eq!(found("p:square/", ALL).await, [""; 0]);
    let key = payment("a");
    let names = [
        "p:square/M1/any/a",
        "p:square/M1/any/b",
        "p:square/M1/live/a",
        "p:square/M-2/any/c",
        "p:square/客/any/d",
    ];
    let others = ["p:squar/M0/any/a", "p:square0/M3/any/a", "q:square/M4/any/a", "p:stripe/-/live/a"];
    let namings = names.into_iter().chain(others);
    let namings = namings.map(|name| Naming { name: name.into(), key: key.clone(), was: None }).collect();
    let set = ChangeSet { names: namings, ..writes(vec![write(&key, 0, "{}")]) };
    assert_eq!(commit(&store, set).await, APPLIED);
    assert_eq!(found("p:square/", ALL).await, ["M-2", "M1", "客"]);
    assert_eq!(found("p:square/", 2).await, ["M-2", "M1"]);
    assert_eq!(found("p:square/", 0).await, [""; 0]);
    assert_eq!(found("p:square/M1/", ALL).await, ["any", "live"]);
    assert_eq!(found("p:payjp/", ALL).await, [""; 0]);
}

pub async fn races(store: Arc<dyn Store>) {
    let key = Key::new(Kind::Breaker, "raced");
    for version in 0..10 {
        let runs = (0..6).map(|n| {
            let (store, facts) = (Arc::clone(&store), format!("{{\"by\":{n}}}"));
            let set = writes(vec![write(&key, version, &facts)]);
            tokio::spawn(async move { (commit(&store, set).await == APPLIED).then_some(facts) })
        });
        let mut won = Vec::new();
        for run in runs.collect::<Vec<_>>() {
            won.extend(run.await.expect("no panic"));
        }
        assert_eq!(won.len(), 1, "exactly one from version {version}");
        let state = stored(&store, &key).await.expect("it was written");
        assert_eq!((state.version, state.facts), (version + 1, won.remove(0)));
    }
}

/// Each moves one from a thing to another until it went through: what all hold together stays the same.
pub async fn transfers(store: Arc<dyn Store>) {
    let keys: Vec<Key> = (0..4).map(|n| payment(&n.to_string())).collect();
    let mut runs = Vec::new();
    for run in 0..6_usize {
        let (store, keys) = (Arc::clone(&store), keys.clone());
        runs.push(tokio::spawn(async move {
            for round in 0..5 {
                let (from, to) = (&keys[(run + round) % 4], &keys[(run + round + 1 + run % 2) % 4]);
                while !moved_one(&store, from, to).await {}
            }
        }));
    }
    for run in runs {
        run.await.expect("no panic");
    }
    let states = store.load(Vec::new(), keys).await.expect(UP).states;
    let held: i64 = states.values().map(|state| state.facts.parse::<i64>().expect("a number")).sum();
    let versions: i64 = states.values().map(|state| state.version).sum();
    assert_eq!((held, versions), (0, 60), "every move, once");
}

async fn moved_one(store: &Arc<dyn Store>, from: &Key, to: &Key) -> bool {
    let loaded = store.load(Vec::new(), vec![from.clone(), to.clone()]).await.expect(UP);
    let add = |key: &Key, amount: i64| {
        let state = loaded.states.get(key);
        let held: i64 = state.map_or(0, |state| state.facts.parse().expect("a number"));
        write(key, state.map_or(0, |state| state.version), &(held + amount).to_string())
    };
    commit(store, writes(vec![add(to, 1), add(from, -1)])).await == APPLIED
}

pub async fn names(store: Arc<dyn Store>) {
    let (a, b) = (payment("a"), payment("b"));
    let give =
        async |names: Vec<Naming>| commit(&store, ChangeSet { names, ..ChangeSet::nothing(NOW) }).await;
    assert_eq!(give(vec![claim_name("one", &a), claim_name("二", &a)]).await, APPLIED);
    assert_eq!(give(vec![claim_name("one", &b)]).await, Committed::Stale, "it is taken");
    assert_eq!(give(vec![claim_name("free", &b), claim_name("二", &b)]).await, Committed::Stale);
    assert_eq!(leads_to(&store, "free").await, None);
    assert_eq!(
        give(vec![claim_name("one", &a), claim_name("free", &a)]).await,
        APPLIED,
        "by the same thing again"
    );
    let other = Key::new(Kind::Billing, "a");
    assert_eq!(
        give(vec![claim_name("one", &other)]).await,
        Committed::Stale,
        "the kind is part of the thing"
    );
    for name in ["one", "二", "free"] {
        assert_eq!(leads_to(&store, name).await.as_ref(), Some(&a));
    }
    // What a database can't hold as it is, is found again all the same.
    let odd = payment("nul\0");
    let set = ChangeSet { names: vec![claim_name("odd\0", &b)], ..writes(vec![write(&odd, 0, "{}")]) };
    assert_eq!(commit(&store, set.clone()).await, APPLIED);
    assert_eq!(commit(&store, set).await, Committed::Stale);
    assert_eq!((version(&store, &odd).await, leads_to(&store, "odd\0").await), (1, Some(b)));
}

pub async fn moves(store: Arc<dyn Store>) {
    let (a, b, c) = (payment("a"), payment("b"), payment("c"));
    let step = |name: &str, was: &Key, key: &Key| Naming { was: Some(was.clone()), ..claim_name(name, key) };
    let set = |version, naming: Naming| ChangeSet {
        writes: vec![write(naming.was.as_ref().expect("it moves"), version, "{}")],
        names: vec![naming],
        ..ChangeSet::nothing(NOW)
    };
    let first = ChangeSet {
        names: vec![claim_name("n", &a)],
        ..writes(vec![write(&a, 0, "{}"), write(&b, 0, "{}")])
    };
    assert_eq!(commit(&store, first).await, APPLIED);
    assert_eq!(commit(&store, set(1, step("n", &b, &c))).await, Committed::Stale, "it is not there");
    assert_eq!(commit(&store, set(1, step("unknown", &a, &b))).await, Committed::Stale);
    assert_eq!(
        commit(&store, set(2, step("n", &a, &b))).await,
        Committed::Stale,
        "the version guards the move"
    );
    assert_eq!((version(&store, &a).await, version(&store, &b).await), (1, 1), "nothing was written");
    assert_eq!(commit(&store, set(1, step("n", &a, &b))).await, APPLIED);
    assert_eq!(leads_to(&store, "n").await.as_ref(), Some(&b));
    assert_eq!(commit(&store, set(2, step("n", &a, &c))).await, Committed::Stale, "it has left");
    assert_eq!(commit(&store, set(1, step("n", &b, &c))).await, APPLIED);
    let loaded = store.load(vec!["n".into()], Vec::new()).await.expect(UP);
    assert_eq!(
        (loaded.names.get("n"), loaded.states.len()),
        (Some(&c), 0),
        "to a thing that is not there yet"
    );
}

pub async fn name_races(store: Arc<dyn Store>) {
    for round in 0..10 {
        let names: Vec<_> = (0..3).map(|n| format!("{round}-{n}")).collect();
        let runs = (0..6).map(|n| {
            let (store, mut names) = (Arc::clone(&store), names.clone());
            if n % 2 == 0 {
                names.reverse();
            }
            tokio::spawn(async move {
                let key = payment(&format!("{round}/{n}"));
                let names = names.iter().map(|name| claim_name(name, &key)).collect();
                let set = ChangeSet { names, ..writes(vec![write(&key, 0, "{}")]) };
                let bystander = payment(&format!("by {round}/{n}"));
                let sets = vec![set, writes(vec![write(&bystander, 0, "{}")])];
                let answers = store.commit(sets).await.expect(UP);
                assert_eq!(answers[1], APPLIED, "whoever loses a name harms no neighbour");
                (answers[0] == APPLIED).then_some(key)
            })
        });
        let mut won = Vec::new();
        for run in runs.collect::<Vec<_>>() {
            won.extend(run.await.expect("no panic"));
        }
        assert_eq!(won.len(), 1, "exactly one has them all");
        for name in &names {
            assert_eq!(leads_to(&store, name).await.as_ref(), Some(&won[0]));
        }
        let all: Vec<_> = (0..6).map(|n| payment(&format!("{round}/{n}"))).collect();
        assert_eq!(store.load(Vec::new(), all).await.expect(UP).states.len(), 1, "the others left nothing");
    }
}

pub async fn stale_sets(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let (there, taken) = (payment("there"), payment("taken"));
    let first = ChangeSet {
        names: vec![claim_name("taken", &taken)],
        ..writes(vec![write(&there, 0, "1"), write(&taken, 0, "1")])
    };
    assert_eq!(commit(&store, first).await, APPLIED);
    let mut sets = Vec::new();
    for name in ["good", "present", "absent", "moved on", "named", "not there", "fine"] {
        let lease = leased(&store, epoch, new.job(&format!("held by {name}"))).await;
        let mut set = everything(&mut new, &[lease], name);
        let mine = payment(name);
        match name {
            "present" => set.writes.push(write(&there, 0, "2")),
            "absent" => set.writes.push(write(&payment("nowhere"), 1, "2")),
            "moved on" => set.writes.push(write(&taken, 2, "2")),
            "named" => set.names.push(claim_name("taken", &mine)),
            "not there" => set.names.push(Naming { was: Some(there.clone()), ..claim_name("gone", &mine) }),
            _ => {}
        }
        sets.push(set);
    }
    let answers = store.commit(sets.clone()).await.expect(UP);
    for (n, (set, answer)) in sets.iter().zip(answers).enumerate() {
        if n == 0 || n == 6 {
            assert_eq!(answer, APPLIED);
            assert_left_everything(&store, set).await;
        } else {
            assert_eq!(answer, Committed::Stale, "{n}");
            assert_left_nothing(&store, set).await;
        }
    }
    assert_eq!((version(&store, &there).await, version(&store, &taken).await), (1, 1));
    assert_eq!(leads_to(&store, "taken").await, Some(taken));
    // The leases are still held: decided anew, the same set goes through.
    let again = ChangeSet { writes: vec![write(&there, 1, "3")], ..sets[1].clone() };
    assert_eq!(commit(&store, again.clone()).await, APPLIED);
    assert_left_everything(&store, &again).await;
}

pub async fn same_thing(store: Arc<dyn Store>) {
    let (a, b) = (payment("a"), payment("b"));
    let named = |key: &Key, set: ChangeSet| ChangeSet { names: vec![claim_name("n", key)], ..set };
    let sets = vec![
        named(&a, writes(vec![write(&a, 0, "1")])),
        writes(vec![write(&a, 0, "2")]),
        writes(vec![write(&a, 1, "3")]),
        named(&b, writes(vec![write(&b, 0, "4")])),
        writes(vec![write(&b, 0, "5")]),
    ];
    let answers = store.commit(sets).await.expect(UP);
    assert_eq!(answers, [APPLIED, Committed::Stale, APPLIED, Committed::Stale, APPLIED]);
    assert_eq!(stored(&store, &a).await.map(|state| (state.version, state.facts)), Some((2, "3".into())));
    assert_eq!(stored(&store, &b).await.map(|state| (state.version, state.facts)), Some((1, "5".into())));
    assert_eq!(leads_to(&store, "n").await, Some(a));
}

pub async fn loads(store: Arc<dyn Store>) {
    let empty = store.load(vec!["nobody".into()], vec![payment("nothing")]).await.expect(UP);
    assert_eq!(empty, Loaded::default());
    assert_eq!(store.load(Vec::new(), Vec::new()).await.expect(UP), Loaded::default());
    let (a, b, c) = (payment("a"), Key::new(Kind::Billing, "a"), payment("c"));
    let set = ChangeSet {
        names: vec![claim_name("one", &a), claim_name("two", &a), claim_name("ahead", &payment("not yet"))],
        ..writes([&a, &b, &c].map(|key| write(key, 0, "{}")).to_vec())
    };
    assert_eq!(commit(&store, set).await, APPLIED);
    let asked = ["two", "nobody", "one", "ahead", "two"].map(str::to_owned).to_vec();
    let loaded =
        store.load(asked, vec![b.clone(), a.clone(), payment("nothing"), b.clone()]).await.expect(UP);
    let named = [("ahead", payment("not yet")), ("one", a.clone()), ("two", a.clone())];
    assert_eq!(loaded.names, named.map(|(name, key)| (name.to_owned(), key)).into());
    assert_eq!(loaded.states.keys().collect::<Vec<_>>(), [&a, &b], "named or asked for, and nothing else");
    assert!(loaded.states.iter().all(|(key, state)| state.key == *key && state.version == 1));
    let mut seen = BTreeMap::new();
    for round in 0..20 {
        assert_eq!(commit(&store, writes(vec![write(&c, 1 + round, "{}")])).await, APPLIED);
        seen.insert(round, version(&store, &c).await);
    }
    assert!(seen.iter().all(|(round, version)| *version == round + 2), "at once: {seen:?}");
}

pub async fn pages(store: Arc<dyn Store>) {
    let index = |n: usize| Index {
        status: Some(["paid", "open"][n % 2].into()),
        tenant: (!n.is_multiple_of(3)).then(|| format!("t{}", n % 3)),
        customer: (n == 4).then(|| "客".into()),
        livemode: [None, Some(true), Some(false)][n % 3],
        attention: [None, Some("unlinked"), None, Some("refund_failed")][n % 4].map(str::to_owned),
        ..Index::default()
    };
    let all = (0..12).map(|n| Write { index: index(n), ..write(&payment(&format!("{n:02}")), 0, "{}") });
    assert_eq!(commit(&store, writes(all.collect())).await, APPLIED);
    assert_eq!(commit(&store, writes(vec![write(&Key::new(Kind::Billing, "05"), 0, "{}")])).await, APPLIED);
    let find = async |filter: StateFilter| -> Vec<usize> {
        let found = store.find_states(filter).await.expect(UP);
        found.iter().map(|state| state.key.id.parse().expect("a number")).collect()
    };
    let kind = || StateFilter::all(Kind::Payment, ALL);
    let those = |of: fn(&usize) -> bool| (0..12).rev().filter(of).collect::<Vec<_>>();
    assert_eq!(find(kind()).await, those(|_| true));
    assert_eq!(find(StateFilter::all(Kind::Billing, ALL)).await, [5]);
    assert_eq!(find(StateFilter { status: Some("open".into()), ..kind() }).await, those(|n| n % 2 == 1));
    assert_eq!(find(StateFilter { tenant: Some("t2".into()), ..kind() }).await, those(|n| n % 3 == 2));
    assert_eq!(find(StateFilter { customer: Some("客".into()), ..kind() }).await, [4]);
    assert_eq!(find(StateFilter { livemode: Some(false), ..kind() }).await, those(|n| n % 3 == 2));
    assert_eq!(find(StateFilter { attention: Some(String::new()), ..kind() }).await, those(|n| n % 2 == 1));
    let failed = StateFilter { attention: Some("refund_failed".into()), ..kind() };
    assert_eq!(find(failed).await, those(|n| n % 4 == 3));
    assert_eq!(find(StateFilter { before: Some("03".into()), limit: 2, ..kind() }).await, [2, 1]);
    assert!(find(StateFilter { limit: 0, ..kind() }).await.is_empty());
}
